"""Chapter 10's *letters*, and counts with labels on top, against typing errors once more.

Run: python -m benchmarks.second labelled_letters [SEED] [ROWS ...]; minutes.
Rows and errors are those of `typing_errors.py`. *Letters* has one penalty, 3, with and without
pairs of letters. Labels weigh scores of runs of up to two, three, four and five, of a letter and of
its two neighbours; they are the first 320, and 500 other rows are tried. Seed 79: with pairs 16.4,
35.1 and 46.7% of the errors from 80, 320 and 1,280 rows, without them 18.4, 28.5 and 31.5. Counts
of up to four and five without labels 81.0 and 84.6, weighed by 320 labels 81.8: the labelled rows
stand in the text that was counted, where the longest runs are never in doubt.
"""

import math
import string
from functools import cache
from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

from attention_by_hand.data import python_manual
from benchmarks.second.typing_errors import WIDTH, chances_of, misprints

LONGEST = (2, 3, 4, 5)


def plain(text):
    """As the page writes its text: small letters, single spaces, at most three marks alike."""
    from benchmarks.second.bert_controls import LETTERS, as_ids

    return "".join((LETTERS + "\0\0")[i] for i in as_ids(text).tolist())


def cut(found, with_pairs):
    """For each letter of each row: what it and two on either side are, and is it the wrong one?"""
    around, wrong, of = [], [], []
    for number, (row, place, _) in enumerate(found):
        wide = "\1\1" + row + "\1\1"
        for i in range(WIDTH):
            if row[i] in string.ascii_lowercase:
                five = wide[i : i + 5]
                pairs = [a + b for a, b in combinations(five, 2)] if with_pairs else []
                around.append([*five, *pairs])
                wrong.append(i == place)
                of.append(number)
    return np.array(around), np.array(wrong), np.array(of)


def hits(scores, wrong, of):
    """The share of rows whose highest score is the wrong letter's."""
    return np.mean([wrong[of == n][scores[of == n].argmax()] for n in np.unique(of)])


def letters(labelled, new, with_pairs):
    x, y, _ = cut(labelled, with_pairs)
    encoder = OneHotEncoder(handle_unknown="ignore")
    model = LogisticRegression(C=3, max_iter=300).fit(encoder.fit_transform(x), y)
    x, y, of = cut(new, with_pairs)
    return hits(model.decision_function(encoder.transform(x)), y, of)


def doubts(texts, found):
    """Of each letter of each row, by runs of each length: how much likelier is any other?"""
    chance = chances_of(texts, LONGEST[-1])

    @cache
    def log_chance(past, symbol):
        return math.log(chance(past, symbol))

    table = np.zeros((len(found), WIDTH, len(LONGEST)))
    for number, (row, *_) in enumerate(found):
        for i in range(WIDTH):
            for k, most in enumerate(LONGEST):
                ends = range(i, min(i + most, WIDTH))
                odds = {}
                for x in {*string.ascii_lowercase, row[i]}:
                    new = row[:i] + x + row[i + 1 :]
                    odds[x] = sum(log_chance(new[max(0, e - most + 1) : e], new[e]) for e in ends)
                own = odds[row[i]]
                table[number, i, k] = math.log(sum(math.exp(each - own) for each in odds.values()))
    return table


def weighed(table, places):
    """The table with each letter's neighbours, and the weights that name the places best."""
    wide = np.pad(table, ((0, 0), (1, 1), (0, 0)))
    x = np.concatenate([wide[:, k : k + WIDTH] for k in range(3)], -1)

    def loss(w):
        scores = x @ w
        scores -= scores.max(1, keepdims=True)
        p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        rows = np.arange(len(x))
        slope = (p[..., None] * x).sum(1) - x[rows, places]
        return -np.log(p[rows, places]).mean() + 1e-3 * w @ w, slope.mean(0) + 2e-3 * w

    return x, minimize(loss, np.zeros(x.shape[-1]), jac=True).x


def main(seed: int = 79, *sizes: int) -> None:
    draw = np.random.default_rng(seed)
    texts = {
        part: [plain(text) for text in python_manual.documents(part).values()]
        for part in ("train", "test")
    }
    new = misprints(texts["test"], 1000, draw)
    for size in sizes or (80, 320, 1280):
        labelled = misprints(texts["train"], size, draw)
        for pairs in (False, True):
            found = letters(labelled, new, pairs)
            print(f"{size} rows, letters{' and pairs' * pairs}: {found:.1%}")
    asked = new[:500]
    places = np.array([place for _, place, _ in asked])
    table = doubts(texts["train"], asked)
    for k, most in enumerate(LONGEST):
        right = np.mean(table[..., k].argmax(1) == places)
        print(f"runs of up to {most}, no labels: {right:.1%}")
    labelled = labelled[:320]
    _, weights = weighed(
        doubts(texts["train"], labelled), np.array([place for _, place, _ in labelled])
    )
    x, _ = weighed(table, places)
    print(f"weighed by {len(labelled)} labels: {np.mean((x @ weights).argmax(1) == places):.1%}")
