"""The answers of chapter 12's tables to fill in, computed by other means than the author's."""

from fractions import Fraction

import numpy as np

from . import computes

TABLE = np.array([[5, 4, 2], [6, 3, 2], [3, 1, 4]])


def shares(scores: list[int]) -> list[float]:
    """Powers of two over their sum."""
    powers = [Fraction(2) ** score for score in scores]
    return [float(power / sum(powers)) for power in powers]


@computes
def another_width() -> list:
    patches, to_keys = (
        np.array([[1, 0, 2], [0, 1, 1], [2, 1, 0]]),
        np.array([[1, 0, 1], [0, 1, -1]]),
    )
    keys = np.einsum("pm,km->pk", patches, to_keys)
    scores = keys.sum(1).tolist()
    rows = [
        [*key, score, 2**score, weight]
        for key, score, weight in zip(keys.tolist(), scores, shares(scores), strict=True)
    ]
    return [*rows, [shares(keys[:, 0].tolist())[2]]]


@computes
def who_finds_whom() -> list:
    rows = []
    for table in (TABLE, TABLE.T):
        places = [sorted(row, reverse=True).index(row[i]) + 1 for i, row in enumerate(table)]
        rows.append([*places, *(sum(p <= k for p in places) / 3 for k in (1, 2))])
    return rows


@computes
def what_the_pair_costs() -> list:
    looks = [shares(line.tolist())[0] for line in (TABLE[0], TABLE[:, 0])]
    bits = [-np.log2(share) for share in looks]
    return [[looks[0]], [looks[1], bits[1]], [np.mean(bits)]]


@computes
def drawn_as_wrong() -> list:
    rows = [shares(np.delete(row, i).tolist()) for i, row in enumerate(TABLE)]
    return [*rows, [shares([3, 1])[0]]]


@computes
def what_is_scored() -> list:
    tokens, prompt, end = 7, 2, 5
    counts = [int(prompt <= position <= end) for position in range(tokens)]
    bits = [int(-np.log2(p)) for p in (1 / 4, 1, 1 / 2, 1 / 2)]
    scored = [[prompt + i - 1, counts[prompt + i], bit] for i, bit in enumerate(bits)]
    return [counts[1:prompt], *scored, counts[end + 1 :], [sum(bits) / sum(counts)]]
