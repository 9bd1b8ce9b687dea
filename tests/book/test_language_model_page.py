"""What chapter 9's page says of its sizes, its rivals and its caches, held to data."""

import ast
import json
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
from benchmarks import language_models
from benchmarks.language_models import streams
from solutions.language_model import GPT

ROOT = Path(__file__).resolve().parents[2]

MADE, RUNS = json.loads(
    (ROOT / "benchmarks" / "language_model_sizes.json").read_text(encoding="utf-8")
).values()
SIZES = sorted({run["parameters"] for run in RUNS})
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


def bits_by_runs(seen: list[int], new: list[int], trusts: tuple[int, ...]) -> np.ndarray:
    """Bits of each token but the first, after those before it, from the counts in `seen`."""
    size = max(*seen, *new) + 1
    single = np.bincount(seen, minlength=size) + 1  # each token once more
    runs = Counter(tuple(seen[i - k : i + 1]) for i in range(len(seen)) for k in range(i + 1)[:4])
    past = Counter(tuple(seen[i - k : i]) for i in range(len(seen)) for k in range(i + 1)[:4])
    bits = []
    for i in range(1, len(new)):
        chance = single[new[i]] / single.sum()
        for k, trust in enumerate(trusts[:i], 1):
            before = tuple(new[i - k : i])
            chance = (runs[*before, new[i]] + trust * chance) / (past[before] + trust)
        bits.append(-np.log2(chance))
    return np.array(bits)


def page_functions(*names: str, **scope) -> list:
    """Functions that cells of the page define."""
    text = (ROOT / "book" / "09_language_model.md").read_text(encoding="utf-8")
    for cell in re.findall(r"^```\{code-cell\}[^\n]*\n(.*?)^```", text, re.M | re.S):
        code = re.sub(r"\A(---\n.*?^---\n|:tags:[^\n]*\n)", "", cell, flags=re.M | re.S)
        nodes = ast.parse(code).body
        wanted = [n for n in nodes if isinstance(n, ast.FunctionDef) and n.name in names]
        exec(compile(ast.Module(wanted, []), "page", "exec"), scope)
    return [scope[name] for name in names]


def test_the_page_counts_as_is_counted_here():
    by_counting, _ = page_functions("by_counting", "stood", np=np, Counter=Counter)
    draw = np.random.default_rng(0)
    seen, new = (draw.integers(6, size=n).tolist() for n in (300, 80))
    for trusts in ((), (3,), (3, 20), (1, 2, 50)):
        found = by_counting(seen, new, len(trusts) + 1)(trusts)
        assert np.allclose(found, bits_by_runs(seen, new, trusts))


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
