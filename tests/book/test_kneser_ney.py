"""Counts beside chapter 9's GPT are smoothed as Chen and Goodman wrote."""

import random
from collections import Counter

import numpy as np
import pytest
import torch

from benchmarks import kneser_ney, sentences
from benchmarks.second import counted_english

EDGE = 3


def chance(read: list[list[int]], past: tuple[int, ...], symbol: int, discounts: list) -> float:
    """By the formula, run by run; each text begins with as many zeros as runs are long at most."""
    n = len(past) + 1
    ends = [(text, i) for text in read for i in range(EDGE + 1, len(text) + 1)]
    if n == len(discounts):
        counts = Counter(tuple(text[i - n : i]) for text, i in ends)
    else:
        counts = Counter(run[1:] for run in {tuple(text[i - n - 1 : i]) for text, i in ends})
    behind = {run[-1]: times for run, times in counts.items() if run[:-1] == past}
    shorter = chance(read, past[1:], symbol, discounts) if past else 1 / 3
    if not behind:
        return shorter
    taken = {last: discounts[n - 1][min(times, 3) - 1] for last, times in behind.items()}
    kept = behind.get(symbol, 0) - taken.get(symbol, 0)
    return (kept + sum(taken.values()) * shorter) / sum(behind.values())


@pytest.mark.parametrize("goes_on", [False, True])
@pytest.mark.parametrize("longest", [1, 2, 3])
def test_runs_are_smoothed_as_the_formula_says(longest, goes_on):
    luck = random.Random(longest)
    train, new = ([0] * EDGE + luck.choices((0, 1, 2), (5, 2, 1), k=n) for n in (30, 30))
    discounts = torch.rand(longest, 3, dtype=torch.double) * kneser_ney.MOST
    texts = [np.array(text[EDGE:]) for text in (train, new)]
    (counts,) = kneser_ney.count(texts, longest, goes_on)
    costs = kneser_ney.bits(counts, discounts, 3).tolist()
    for i, cost in enumerate(costs, EDGE + 1):
        past = tuple(new[i - longest + 1 : i])
        read = [train, new[:i]] if goes_on else [train]
        every = [chance(read, past, symbol, discounts.tolist()) for symbol in range(3)]
        assert sum(every) == pytest.approx(1)
        assert 2**-cost == pytest.approx(every[new[i]])


def test_the_discounts_are_fitted():
    luck = random.Random(0)
    texts = [np.array(luck.choices((0, 1, 2), (5, 2, 1), k=n)) for n in (300, 200)]
    (counts,) = kneser_ney.count(texts, 2)
    best = kneser_ney.fit(counts, 2, 3)
    cost = kneser_ney.bits(counts, best, 3).sum()
    for _ in range(20):
        other = (best + 0.1 * torch.randn(2, 3)).clamp(min=0).minimum(kneser_ney.MOST)
        assert kneser_ney.bits(counts, other, 3).sum() > cost - 1e-4


def test_the_other_code_s_bits_are_added_up_by_document():
    symbols, costs = np.array([0, 5, 5, 0, 7, 0, 0, 8]), [1, 2, 4, 8, 16, 32, 64]
    assert counted_english.of_documents(symbols, costs).tolist() == [3, 12, 16, 96]


@pytest.mark.parametrize("longest", [1, 2, 3])
def test_counts_that_write_give_each_symbol_the_same_chance(longest):
    luck = random.Random(longest)
    train, new = (luck.choices((0, 1, 2), (5, 2, 1), k=n) for n in (40, 12))
    discounts = torch.rand(longest, 3, dtype=torch.double) * kneser_ney.MOST
    model = sentences.Counted(np.array(train), discounts.tolist(), 3)
    for i in range(1, 13):
        found = model(torch.tensor([new[:i]], dtype=torch.long)).softmax(-1).flatten()
        past = tuple([-2] * EDGE + new[:i])[EDGE + i - longest + 1 :]
        right = [chance([[-1] * EDGE + train], past, s, discounts.tolist()) for s in range(3)]
        assert found.tolist() == pytest.approx(right)
