"""Chapter 8's comparisons: the scripts measure what they say, and what is stored is whole."""

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
import torch

from attention_by_hand.data import dates
from benchmarks import mixing, sequence_models

FOLDER = Path(sequence_models.__file__).parent
PAGE = (FOLDER.parent / "book" / "08_recurrence_convolution.md").read_text(encoding="utf-8")


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


@pytest.mark.share(3)
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


def test_what_the_page_says_of_costs_is_what_is_stored():
    text = (FOLDER / "recurrence_convolution_mixing.json").read_text(encoding="utf-8")
    rows = json.loads(text)["runs"]
    took = {(r["layer"], r["n"]): r["forward"] + r["backward"] for r in rows}
    assert "measured, it is three to seven" in PAGE
    ratios = [took["attention", 2 * n] / took["attention", n] for n in (256, 512, 1024)]
    assert (round(min(ratios)), round(max(ratios))) == (3, 7)


def test_every_length_was_asked_alike_and_a_share_is_of_all(runs):
    for (task, _), found in runs.items():
        asked = [{n: count for n, (_, count) in run["by_length"].items()} for run in found]
        assert all(each == asked[0] for each in asked), "all seeds are asked the same lengths"
        for run in found:
            assert all(0 <= right <= count for right, count in run["by_length"].values())
            assert (task == "copying") <= (len(set(asked[0].values())) == 1)


def test_what_the_page_says_of_copying_is_what_is_stored(runs):
    assert "ten digits are copied in about half of the cases, twelve in a quarter or fewer" in PAGE
    for run in runs["copying", "GRU"]:
        assert share(run, 10, 10) == pytest.approx(0.5, abs=0.1)
        assert share(run, 12, 12) <= 0.255
        assert share(run, 16, 16) < 0.05, "sixteen hardly ever"
    assert "nearly all sequences are copied, up to the longest of the training" in PAGE
    for run in runs["copying", "GRU with attention"]:
        assert min(share(run, n, n) for n in range(2, 21, 2)) > 0.95
    assert "None of the three copes with sequences much longer" in PAGE
    assert all(
        share(run, 28, 28) < 0.1 for task, m in runs if task == "copying" for run in runs[task, m]
    )


def test_what_the_page_says_of_dates_is_what_is_stored(runs):
    assert "three runs the GRU without attention reads all of the *longest* texts correctly" in PAGE
    assert all(share(run, 26) == 1 for run in runs["dates", "GRU"])


def test_sixteen_features_must_fail_some_sets_of_six_pairs_out_of_64_keys():
    def least_rank(pairs: int) -> float:
        """Of a table of 64 keys whose diagonal outweighs any `pairs` - 1 others of its row."""
        rest = np.arange(1, 64)  # how many of the others share what they may sum to
        squares = (rest / np.minimum(rest, pairs - 1) ** 2).max()
        return 64 / (1 + squares)

    assert "From $m = 6$ on, that is more than 16." in PAGE
    assert least_rank(5) < 16 < least_rank(6) < least_rank(9) == pytest.approx(32)


def test_recall_falls_around_the_bound_as_the_page_says():
    stored = FOLDER.parent / "attention_by_hand" / "models" / "checkpoints.measurements.json"
    found = json.loads(stored.read_text(encoding="utf-8"))["recall"]["found"]
    few, many = (np.array(found[f"linear, d_k = {features}"]) for features in (16, 64))
    assert "linear attention mixes up, and softmax attention none" in PAGE
    assert np.min(found["softmax, d_k = 16"]) > 0.999
    assert "With 64 features it recalls nine in ten of 64 pairs; with 16 fewer than half" in PAGE
    assert many[:, -1] == pytest.approx(0.9, abs=0.05) and few[:, -1].max() < 0.5
    assert "16 features begin to fall before it." in PAGE
    at_8, at_16 = few[:, 3], few[:, 4]
    assert at_16.max() < at_8.min() < at_8.max() < 0.99 < many[:, 4].min()


@pytest.mark.parametrize("features", [1, 3, 8])
def test_no_more_keys_are_safe_than_there_are_features(features):
    """Rows larger on the diagonal than elsewhere: at most as many as the table has rank."""
    generator = torch.Generator().manual_seed(features)
    for _ in range(50):
        q, k = torch.rand(2, 12, features, generator=generator).pow(4).double()
        table = q @ k.mT
        safe = (2 * table.diagonal() > table.sum(1)).nonzero()[:, 0]
        assert len(safe) <= torch.linalg.matrix_rank(table) <= features
        inner = table[safe][:, safe]
        assert len(safe) == 0 or torch.linalg.matrix_rank(inner) == len(safe)


@pytest.mark.parametrize("safe", [False, True])
def test_a_key_is_answered_right_with_any_values_if_and_only_if_it_has_more_than_half(safe):
    """All other keys have the other value: the output is nearer to what has the larger share."""
    weights = torch.tensor([0.6, 0.3, 0.1] if safe else [0.4, 0.3, 0.3])
    for own, other in ((0, 1), (1, 0)):
        values = torch.nn.functional.one_hot(torch.tensor([own, other, other]), 2).float()
        assert ((weights @ values).argmax() == own) == safe


def test_heads_narrower_than_the_output_make_no_kernel_of_full_rank():
    """d/H features a head: what a head adds has rank d/H, and H heads make any matrix."""
    torch.manual_seed(0)
    d, heads = 8, 4
    into, out = torch.randn(heads, d, d // heads), torch.randn(heads, d // heads, d)
    assert all(rank == d // heads for rank in torch.linalg.matrix_rank(into @ out))
    kernel = torch.randn(d, d)
    u, s, v = torch.linalg.svd(kernel)
    parts = [(u[:, i : i + 2] * s[i : i + 2]) @ v[i : i + 2] for i in range(0, d, d // heads)]
    assert torch.allclose(sum(parts), kernel, atol=1e-4)


def test_dates_come_out_right_as_often_as_the_page_says(runs):
    right = {name: [share(run) for run in runs["dates", name]] for name in sequence_models.RATES}
    said = (
        "the GRU with attention read more than 99% of dates right in each of our runs, "
        "the Transformer 92 to 94%"
    )
    assert said in PAGE and "(left), but 95 to 99% of the dates do" in PAGE
    assert min(right["GRU with attention"]) > 0.99
    for name, least, most in (("GRU", 95, 99), ("Transformer", 92, 94)):
        assert [round(100 * min(right[name])), round(100 * max(right[name]))] == [least, most]


def test_the_gru_as_it_comes_learns_the_first_digit_with_more_steps():
    """From 0.98 on it knows it; guessing is 0.1."""
    knows = {0.005: [], 0.01: []}
    for run in json.loads((FOLDER / "patience.json").read_text(encoding="utf-8"))["runs"]:
        knows[run["rate"]].append(next(step for step, share in run["right"] if share > 0.98))
        assert dict(run["right"])[500] < 0.13
    slow, (least, *_, most) = set(knows[0.005]), sorted(knows[0.01])
    told = f"after {slow.pop():,} steps at this rate, after {least} to {most:,} at twice the rate"
    assert not slow and f"knew the digit {told}; after 500 it still guessed" in PAGE
    assert f"with {least} to 2,500 steps the GRU" in PAGE and f"alone, in {least} to 2,500" in PAGE
