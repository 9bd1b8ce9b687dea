"""What chapter 9's page says of its sizes, its rivals and its caches, held to data."""

import ast
import json
import lzma
import math
import platform
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_by_hand import blocks
from attention_by_hand.data import python_manual
from attention_by_hand.models.checkpoints import file_of, unpacked
from autograder.publishing.chapter_runs import CELL
from benchmarks import going_on, language_models
from benchmarks.language_models import streams
from solutions.language_model import GPT

ROOT = Path(__file__).resolve().parents[2]

MADE, RUNS = json.loads(
    (ROOT / "benchmarks" / "language_model_sizes.json").read_text(encoding="utf-8")
).values()
SIZES = sorted({run["parameters"] for run in RUNS})
TEXT = (ROOT / "book" / "09_language_model.md").read_text(encoding="utf-8")
PAGE, TRAINED = json.loads(
    (ROOT / "benchmarks" / "language_model_page.json").read_text(encoding="utf-8")
).values()


def of(size: int, part: str) -> dict[int, float]:
    return {run["seed"]: run[part] for run in RUNS if run["parameters"] == size}


def test_there_are_three_sizes_or_more_with_three_seeds_each():
    assert len(SIZES) >= 3
    assert all(sorted(of(size, "test")) == [0, 1, 2] for size in SIZES)
    assert {"date", "machine", "torch", "steps"} <= set(MADE)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: f"{run['d_model']}, seed {run['seed']}")
def test_the_sizes_are_those_of_such_models(run):
    with torch.device("meta"):
        model = GPT(1257, 128, run["d_model"], run["d_model"] // 32, run["layers"])
    assert sum(p.numel() for p in model.parameters()) == run["parameters"]


@pytest.fixture(scope="module")
def stream():
    ids, lengths = streams()
    return {part: found.tolist() for part, found in ids.items()} | {"lengths": lengths.tolist()}


def page_functions(*names: str, **scope) -> list:
    """Functions that cells of the page define."""
    text = (ROOT / "book" / "09_language_model.md").read_text(encoding="utf-8")
    for cell in CELL.findall(text):
        nodes = ast.parse(cell).body
        wanted = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name in names]
        exec(compile(ast.Module(wanted, []), "page", "exec"), scope)
    return [scope[name] for name in names]


@pytest.mark.parametrize("longest", [1, 3, 6])
def test_counts_of_bytes_frozen_and_going_on(longest):
    """The page's, the benchmark's `Counts`, and the formula by whole lists of what stood where."""
    draw = np.random.default_rng(longest)
    seen, new = (draw.choice([97, 98, 99], n, p=[0.6, 0.3, 0.1]).tobytes()[::8] for n in (90, 30))
    (counted,) = page_functions("counted", np=np, math=math, Counter=Counter)

    def chance(past: bytes, symbol: int, read: bytes) -> float:
        places = [i for i in range(len(past), len(read)) if read[i - len(past) : i] == past]
        if len(past) < longest:  # of how many different runs, each one longer, did it end?
            longer = {read[max(i - len(past) - 1, 0) : i + 1] for i in places}
            stood = Counter(run[-1] for run in longer)
        else:
            stood = Counter(read[i] for i in places)
        shorter = chance(past[1:], symbol, read) if past else 1 / 256
        if not stood:
            return shorter
        taken = 0.9 * len(stood) * shorter
        return (max(stood[symbol] - 0.9, 0) + taken) / stood.total()

    both = []
    for goes_on in (False, True):
        costs = counted(seen, new, longest, 256, goes_on)
        for i, cost in enumerate(costs):
            read = seen + new[:i] if goes_on else seen
            past = (seen + new[:i])[-longest:]
            assert 2**-cost == pytest.approx(chance(past, new[i], read))
        both.append(costs.sum() / len(new))
    assert going_on.measure(seen, new, longest, 0.9) == pytest.approx(both, abs=1e-4)


def test_the_page_says_what_going_on_learning_is_worth():
    found = json.loads(going_on.RESULT.read_text("utf-8"))
    assert found["chosen"] == [24, 0.95] == min(found["tried"], key=lambda row: row[3])[:2]
    assert "kept, 24, 256, goes_on=True, discount=0.95" in TEXT
    frozen, on = found["test"]
    assert f"need {frozen:.2f} frozen and {on:.2f} going on" in TEXT
    stored = json.loads((going_on.RESULT.parent / "ppm.json").read_text("utf-8"))
    for by_ppm in (stored["manual"], stored["English"]):
        assert by_ppm["order"] == min(by_ppm["tried"], key=lambda row: row[1])[0]
    alone, primed = stored["manual"]["alone"], stored["manual"]["primed"]
    assert f"needs {primed:.2f}, and without the training text {alone:.2f}." in TEXT
    assert primed < on, "ahead of the counts that go on"


def test_the_page_says_how_many_of_people_s_words_are_not_in_the_training_text():
    """Claim 1's yardstick; its lines need no name but the two texts."""
    learnt, kept = (
        "".join(python_manual.documents(part).values()).encode() for part in ("train", "test")
    )
    cell = TEXT[TEXT.index('# 1. "a high temperature') : TEXT.index('# 2. "greedy')]
    lines = [line for line in cell.splitlines() if line.startswith(("known = ", "human = "))]
    scope = {"re": re, "learnt": learnt, "kept": kept, "words": "counted, up to six tokens"}
    exec("\n".join(lines), scope)
    seen, share = set(), 0
    for text, tell in ((learnt, False), (kept, True)):
        read = "".join(chr(b) if chr(b).isalpha() and b < 128 else " " for b in text).split()
        if tell:
            share = sum(word not in seen for word in read) / len(read)
        seen |= set(read)
    new = [word not in scope["known"] for word in scope["human"]]
    assert sum(new) / len(new) == pytest.approx(share)
    assert 0.05 < share < 0.2
    assert f"of the words that people wrote, {share:.0%}".replace("%", " %") in TEXT


@pytest.mark.parametrize("length", [9, 16, 17, 45])
def test_page_and_benchmark_read_each_token_after_half_a_window_or_more(length, monkeypatch):
    torch.manual_seed(length)
    (bits_of,) = page_functions("bits_of", torch=torch, math=math)
    model, ids = GPT(20, 16, 8, 2, 1).eval(), torch.randint(20, (length,))
    right = []
    for i in range(1, length):
        past = ids[max(0, i // 8 - 1) * 8 : i]
        right.append(-math.log2(model(past[None])[0, -1].softmax(-1)[ids[i]].item()))
    assert np.allclose(bits_of(model, ids), right, atol=1e-5)
    monkeypatch.setattr(language_models, "CONTEXT", 16)
    assert np.allclose(language_models.token_bits(model, ids), right, atol=1e-5)


@pytest.mark.share(0)
def test_the_three_models_are_the_page_s_and_their_topics_make_up_the_test(stream):
    text = (ROOT / "book" / "09_language_model.md").read_text(encoding="utf-8")
    steps = int(re.search(r"STEPS, MOST = \d+, \d+, (\d+)", text)[1])
    assert PAGE["steps"] == steps and {run["parameters"] for run in TRAINED} == {574_080}
    assert sorted(run["seed"] for run in TRAINED) == [0, 1, 2]
    kept = "".join(python_manual.documents("test").values()).encode()
    assert sum(stream["lengths"][i] for i in stream["test"]) == len(kept)
    same = PAGE["python"] == platform.python_version()  # another's manual is 1 % longer or so
    for run in TRAINED:
        assert len(run["topics"]) == stream["test"].count(0) == len(python_manual.documents("test"))
        bits = pytest.approx(run["test"], abs=1e-4 if same else 0.05)
        assert sum(run["topics"]) / len(kept) == bits


def test_a_cache_gives_the_same_logits_as_the_whole_text():
    torch.manual_seed(0)
    model = blocks.GPT(50, 64, 32, 4, 2).double().eval()
    ids = torch.randint(50, (2, 40))
    whole, cache = model(ids), None
    for start, end in pairwise((0, 7, 8, 9, 40)):
        part, cache = model.step(ids[:, start:end], cache)
        assert torch.allclose(part, whole[:, start:end], atol=1e-12)
    kept = sum(tensor.nbytes for pair in cache for tensor in pair)
    assert kept == 2 * 2 * 2 * 4 * 40 * 8 * 8  # k and v, blocks, texts, heads, T, d_k, bytes


def test_the_page_says_what_the_cache_of_a_large_model_takes():
    blocks_, positions, size, bytes_ = 80, 131_072, 128, 2
    heads, sets = (2 * blocks_ * n * positions * size * bytes_ / 2**30 for n in (64, 8))
    assert f"would keep {heads:.0f} GiB for a single text of {positions:,} tokens" in TEXT
    assert f"its eight sets make that {sets:.0f}." in TEXT


def test_after_training_the_page_s_model_is_behind_pairs_of_tokens_on_its_piece(stream):
    assert "a third of the 8 bits of a byte, a little more than counted pairs of tokens." in TEXT
    (counted,) = page_functions("counted", Counter=Counter, math=math, np=np)
    known, piece = tuple(stream["train"]), tuple(stream["valid"][:4000])
    size = sum(stream["lengths"][i] for i in piece[1:])
    pairs = counted(known, piece, 1, len(stream["lengths"]))[1:].sum() / size
    notes = unpacked(lzma.decompress(file_of("reader").read_bytes()))[1]
    assert pairs < json.loads(notes["curves"])["bits"][-1] < min(8 / 3, pairs + 0.1)


def test_counts_of_bytes_are_ahead_of_the_page_s_model_even_frozen():
    stored = (ROOT / "attention_by_hand/models/checkpoints.measurements.json").read_text("utf-8")
    counts = json.loads(stored)["counted_bytes"]["found"]
    assert "But frozen counts of bytes are ahead of it, too." in TEXT
    assert counts["bytes, going on"] < counts["bytes, frozen"] < min(r["test"] for r in TRAINED)
