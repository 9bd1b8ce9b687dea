"""What chapter 9's page says of its sizes, its rivals and its caches, held to data."""

import bz2
import gzip
import json
import lzma
import re
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from autograder import blocks, manual  # noqa: E402
from benchmarks.language_models import streams  # noqa: E402
from solutions.language_model import GPT  # noqa: E402

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


def test_a_larger_model_is_better_with_every_seed_and_the_gap_grows():
    for smaller, larger in pairwise(SIZES):
        for part in ("test", "train"):
            small, large = of(smaller, part), of(larger, part)
            assert all(large[seed] < small[seed] for seed in large), (smaller, larger, part)
    gaps = [mean(of(s, "test").values()) - mean(of(s, "train").values()) for s in SIZES]
    assert gaps == sorted(gaps)
    largest = of(SIZES[-1], "test").values()
    assert max(largest) - min(largest) == pytest.approx(0.03, abs=0.005)


def bits_by_pairs(seen: list[int], new: list[int], trust: int) -> float:
    """Bits for `new`, each token after the one before it, from the counts in `seen`."""
    size = max(*seen, *new) + 1
    single = np.bincount(seen, minlength=size) + 1  # each token once more
    pairs, firsts = Counter(pairwise(seen)), np.bincount(seen, minlength=size)
    share = single / single.sum()
    chances = [(pairs[a, b] + trust * share[b]) / (firsts[a] + trust) for a, b in pairwise(new)]
    return float(-np.log2(chances).sum())


def test_three_models_like_the_page_s_are_ahead_of_pairs_and_behind_every_compressor():
    text = (ROOT / "book" / "09_language_model.md").read_text(encoding="utf-8")
    steps = int(re.search(r"STEPS, MOST = \d+, \d+, (\d+)", text)[1])
    assert PAGE["steps"] == steps and {run["parameters"] for run in TRAINED} == {574_080}
    held_out = {run["seed"]: run["test"] for run in TRAINED}
    assert sorted(held_out) == [0, 1, 2]
    ids, _ = streams()
    train, valid, test = (ids[part].tolist() for part in ("train", "valid", "test"))
    kept = "".join(manual.documents("test").values()).encode()
    trust = min((1, 3, 10, 30, 100, 300), key=lambda t: bits_by_pairs(train, valid, t))
    leads = [bits_by_pairs(train, test, trust) / len(kept) - bits for bits in held_out.values()]
    off = 4.303 * stdev(leads) / 3**0.5
    assert mean(leads) - off > 0 and mean(leads) + off < 0.1
    packed = 8 * len(gzip.compress(kept, 9, mtime=0)) / len(kept)  # the worst of the compressors
    assert packed < min(held_out.values())


@pytest.mark.parametrize("pack", [bz2.compress, lzma.compress], ids=["bz2", "xz"])
def test_a_compressor_gains_from_the_training_text_and_from_the_test(pack):
    learnt, kept = ("".join(manual.documents(part).values()).encode() for part in ("train", "test"))
    before = len(pack(learnt))

    def primed(text: bytes) -> int:
        return len(pack(learnt + text)) - before

    assert primed(kept) < 0.9 * len(pack(kept))
    pieces = [kept[i : i + 600] for i in range(0, len(kept), 600)][::12]
    share = sum(map(primed, pieces)) / sum(map(len, pieces))
    assert share > 1.15 * primed(kept) / len(kept), "packed piece by piece, it costs more"


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
