"""What chapter 9's page says of its sizes, its rivals and its caches, held to data."""

import bz2
import json
import lzma
from itertools import pairwise
from pathlib import Path
from statistics import mean

import pytest
import torch

from autograder import blocks, manual
from solutions.language_model import GPT

ROOT = Path(__file__).resolve().parents[1]
MADE, RUNS = json.loads(
    (ROOT / "benchmarks" / "language_model_sizes.json").read_text(encoding="utf-8")
).values()
SIZES = sorted({run["parameters"] for run in RUNS})


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
