"""Chapter 12's sums about contrastive losses once more (12.5.1, 12.5.2): by hand and by drawing.

Run: python -m benchmarks.second lost_cosines [SEED]; seconds. Each line has the page's first.
"""

import itertools
import math
from fractions import Fraction

import numpy as np


def losses(cosines, warmth):
    """The mean loss in both directions, summed in a loop."""
    size, total = len(cosines), 0.0
    for i in range(size):
        for line in (cosines[i], cosines[:, i]):
            total += math.log(sum(math.exp((s - cosines[i, i]) / warmth) for s in line))
    return total / 2 / size


def share(own, warmth, others=63):
    return math.exp(own / warmth) / (math.exp(own / warmth) + others)


def at_random(size, wide, warmth, draws, luck):
    found = []
    for _ in range(draws):
        pictures, texts = luck.standard_normal((2, size, wide))
        both = [x / np.sqrt((x * x).sum(1, keepdims=True)) for x in (pictures, texts)]
        found.append(losses(np.einsum("id,jd->ij", *both), warmth))
    return float(np.mean(found))


def first(rows, most):
    """The share of rows whose own column is among the `most` largest."""
    places = [sum(other > row[i] for other in row) for i, row in enumerate(rows)]
    return Fraction(sum(place < most for place in places), len(rows))


def drawn_wrong(row, own, halved=1):
    """The chances of the wrong ones, in powers of 2, exactly."""
    powers = [0 if i == own else Fraction(2) ** (s // halved) for i, s in enumerate(row)]
    return [str(p / sum(powers)) for p in powers]


def twins(size, luck, often=1e-3, draws=4000):
    """Texts in a batch that are the same one: how many, in how many batches two or more, the cost.

    Each of k equal ones has a share of 1/k at best, in both directions.
    """
    same = luck.binomial(size, often, draws)
    cost = np.where(same > 1, same * np.log(np.maximum(same, 1)), 0) / size
    return same.mean(), 1 / np.mean(same > 1), cost.mean()


def main(seed: int = 12) -> None:
    luck = np.random.default_rng(seed)
    for own, warmth, said in ((1, 1, "4.1%"), (0.3, 1, "next to nothing"), (0.3, 0.07, "most")):
        print(f"cosine {own} at {warmth}: page {said}, here {share(own, warmth):.2%}")
    angles = np.arange(4) * np.pi / 2
    square = np.cos(angles[:, None] - angles)
    for warmth, said in ((1, "0.63"), (0.07, "about a millionth")):
        print(f"four in a plane at {warmth}: page {said}, here {losses(square, warmth):.3g}")
    best = min(
        losses(np.cos(angles[:, None] - angles - luck.normal(0, reach, 4)), 1)
        for reach in (0.01, 0.1, 1)
        for _ in range(300)
    )
    print(f"  texts turned at random, the least of 900: {best:.4f}")
    for warmth, said in ((1, "nearly 4.16"), (0.07, "6.8")):
        found = at_random(64, 32, warmth, 20, luck)
        print(f"random, 64 of 32 at {warmth}: page {said}, here {found:.3f}")
    table = [[5, 4, 1], [6, 3, 2], [2, 1, 4]]
    for words, rows in (("picture", table), ("text", list(zip(*table, strict=True)))):
        print(f"{words} looks: at 1 {first(rows, 1)}, at 2 {first(rows, 2)}")
    print("page 2/3 and 1, 1/3 and 1; drawn as wrong, page 8/9 1/9, 16/17 1/17, 2/3 1/3, 4/5:")
    wrong = [drawn_wrong(row, i) for i, row in enumerate(table)]
    print(" ", *wrong, drawn_wrong(table[1], 1, 2)[0])
    bits = [4, 2, 0, 1, 1, 3]  # LATIN SMALL LETTER E [EOS] [PAD]
    means = [Fraction(sum(bits[i:5]), 5 - i) for i in (1, 0, 2)]
    print("bits a word: page 1, with LATIN 8/5, without SMALL 2/3; here", *map(str, means))
    for size, said in ((256, "0.26, one in 36"), (4096, "about 4, nine in ten")):
        mean, every, cost = twins(size, luck)
        print(f"twins of {size}: page {said}, < 0.002; {mean:.2f}, 1 in {every:.2f}, {cost:.4f}")
    pairs = itertools.product(range(4), repeat=2)
    least = np.mean([math.log(2) if a == b else 0 for a, b in pairs])
    print(f"four texts, two in a batch: page 0.17, here {least:.3f}")
