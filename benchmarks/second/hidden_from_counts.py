"""Chapter 10's falls against counts from which the same letter is hidden, on this page's model.

Run: python -m benchmarks.second hidden_from_counts [ROWS]; a minute or two.
The counts see up to three letters on each side. A share of each letter between so many neighbours
is mixed with the mean of its shares where the farthest on the left, or on the right, is left out.
Hiding a letter leaves those that are nearer; how far BERT's answer then falls by the counts is
ranked beside how far it falls by BERT. Of 200 rows: 0.20 ± 0.03, and relevance 0.35 ± 0.03.
"""

import math
from collections import Counter, defaultdict

import numpy as np
import torch
from scipy.stats import spearmanr

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions
from benchmarks.second.rollout import falls, looks, relevance

REACH = 3
SIDES = [(left, right) for left in range(REACH + 1) for right in range(REACH + 1)]


def shares(seen: dict, row: list[int], place: int, letter: int, size: int) -> np.ndarray:
    """Of a letter, between so many neighbours on the left and on the right."""
    p = np.full((REACH + 1, REACH + 1), 1 / size)
    for left, right in SIDES:
        fewer = [p[left - 1, right]] * (left > 0) + [p[left, right - 1]] * (right > 0)
        key = (left, *row[place - left : place], *row[place + 1 : place + 1 + right])
        found = seen.get(key, Counter())
        prior = np.mean(fewer) if fewer else 1 / size
        p[left, right] = (found[letter] + 3 * prior) / (found.total() + 3)
    return p


def main(count: int = 200) -> None:
    page = page_definitions()
    size = len(page["letters"])
    seen: dict[tuple, Counter] = defaultdict(Counter)
    for row in page["train"].tolist():
        for i in range(REACH, len(row) - REACH):
            for left, right in SIDES:
                seen[left, *row[i - left : i], *row[i + 1 : i + 1 + right]][row[i]] += 1
    model = page["untrained"](0)
    load_or_train("encoder", model, lambda _: {})
    model.eval()
    found: dict[str, list] = {"counts": [], "relevance": []}
    draw = np.random.default_rng(0)
    for row in page["test"][3::5][:count]:
        place = int(draw.integers(8, len(row) - 8))
        ids = row.clone()
        ids[place] = page["MASK"]
        weights, slopes = looks(model, ids, place)
        fall = falls(model, ids, place, page["MASK"])
        with torch.no_grad():
            answer = int(model(ids[None])[0, place].argmax())
        p = shares(seen, row.tolist(), place, answer, size)
        told = []
        for j in fall:
            nearer = min(REACH, abs(j - place) - 1)
            left = p[(nearer, REACH) if j < place else (REACH, nearer)]
            told.append(math.log(p[REACH, REACH]) - math.log(left))
        rest = list(fall.values())
        found["counts"].append(spearmanr(told, rest).statistic)
        drawn = relevance(weights, slopes)[place, list(fall)]
        found["relevance"].append(spearmanr(drawn, rest).statistic)
    for name, r in found.items():
        print(f"{name:10} {np.mean(r):.2f} ± {1.96 * np.std(r, ddof=1) / len(r) ** 0.5:.2f}")
