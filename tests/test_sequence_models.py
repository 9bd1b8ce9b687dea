"""Chapter 8's comparisons: the scripts measure what they say, and what is stored is whole."""

import json
from collections import defaultdict
from pathlib import Path

import pytest
import torch

from autograder import dates
from benchmarks import mixing, sequence_models

FOLDER = Path(sequence_models.__file__).parent


@pytest.fixture(scope="module")
def runs() -> dict[tuple[str, str], list[dict]]:
    text = (FOLDER / "recurrence_convolution_models.json").read_text(encoding="utf-8")
    found = defaultdict(list)
    for run in json.loads(text)["runs"]:
        found[run["task"], run["model"]].append(run)
    return found


def share(run: dict, first: int = 0, last: int = 99) -> float:
    counts = [c for n, c in run["by_length"].items() if first <= int(n) <= last]
    return sum(right for right, _ in counts) / sum(asked for _, asked in counts)


@pytest.mark.parametrize("name", sequence_models.RATES)
def test_one_pass_tells_what_greedy_decoding_would_write(name):
    model = sequence_models.models((13, 13), seed=3)[name].eval()
    generator = torch.Generator().manual_seed(0)
    source, _ = sequence_models.to_copy(40, 3, generator)
    ids = torch.full((40, 1), dates.BOS)
    with torch.no_grad():
        for _ in range(4):
            ids = torch.cat([ids, model(source, ids)[:, -1:].argmax(-1)], dim=1)
    target = ids[:, 1:].clone()  # what it would write: right everywhere
    other = torch.arange(40) % 3 == 0
    target[other, 2] = (target[other, 2] + 1) % 13
    rows = (target != dates.PAD).all(1)  # a pad in a target would not be counted
    hits = torch.tensor(sequence_models.right(model, source, target))
    assert hits[rows].tolist() == (~other)[rows].tolist()
    assert rows.sum() > 0


def test_the_models_are_of_one_size_and_had_the_same_time(runs):
    assert set(runs) == {(t, m) for t in sequence_models.TASKS for m in sequence_models.RATES}
    for (task, name), found in runs.items():
        assert sorted(run["seed"] for run in found) == list(sequence_models.SEEDS), (task, name)
        others = [run["parameters"] for (t, _), r in runs.items() if t == task for run in r]
        for run in found:
            assert max(others) / min(others) < 1.02
            seconds = sequence_models.SECONDS[task]
            assert seconds <= run["cpu_seconds"] < 1.1 * seconds


def test_what_a_forward_pass_keeps_is_counted_once():
    layer, counts = mixing.Attention(8), []
    for n in (128, 256):
        table, row = 2 * n * n * 4, 2 * n * 8 * 4
        counts.append(mixing.kept(layer, torch.randn(2, n, 8, requires_grad=True)))
        assert table < counts[-1] < table + 8 * row
    assert 3.5 < counts[1] / counts[0] < 4, "the table is four times as large, the rest twice"


def test_attention_is_the_steepest_and_convolution_is_not_overtaken():
    text = (FOLDER / "recurrence_convolution_mixing.json").read_text(encoding="utf-8")
    rows = json.loads(text)["runs"]
    took = {(r["layer"], r["n"]): r["forward"] + r["backward"] for r in rows}
    for other in ("recurrence", "convolution", "linear attention"):
        assert took["attention", 64] < took["recurrence", 64]
        assert took["attention", 2048] > 3 * took[other, 2048]
    kept = {(r["layer"], r["n"]): r["kept"] for r in rows}
    assert kept["attention", 2048] / kept["attention", 1024] > 3.5
    for layer in ("recurrence", "convolution", "linear attention"):
        assert 1.9 < kept[layer, 2048] / kept[layer, 1024] < 2.1


def test_copying_shows_the_bottleneck_on_every_seed(runs):
    for plain, looks in zip(
        runs["copying", "GRU"], runs["copying", "GRU with attention"], strict=True
    ):
        assert plain["seed"] == looks["seed"]
        assert share(plain, 10, 12) < 0.5
        assert share(plain, 16, 20) < 0.02
        assert share(looks, 2, 20) > 0.99
    for run in runs["copying", "Transformer"]:
        assert share(run, 10, 12) > 0.9
        assert share(run, 18, 20) < 0.6
    assert all(
        share(run, 28, 28) < 0.1 for task, m in runs if task == "copying" for run in runs[task, m]
    )


def test_dates_do_not(runs):
    means = {}
    for name in sequence_models.RATES:
        found = runs["dates", name]
        means[name] = [share(run) for run in found]
    assert max(means["Transformer"]) < min(means["GRU"])
    assert max(means["GRU"]) < min(means["GRU with attention"])
    for run in runs["dates", "GRU"]:
        assert share(run, 26) == 1
        assert share(run, 0, 8) < 0.95
    for name in ("GRU", "Transformer"):
        for run, sooner in zip(
            runs["dates", name], runs["dates", "GRU with attention"], strict=True
        ):
            assert sooner["curve"][1][1] > 0.6
            assert run["curve"][1][1] < 0.1
