"""The answers of chapter 10's tables to fill in, computed by other means than the author's."""

from fractions import Fraction
from itertools import product

import torch
import torch.nn.functional as F
from torch import nn

from . import computes


@computes
def making_blanks() -> list:
    text = ["she", "sings", "well", "the", "well", "is", "deep"]
    first = torch.tensor([0.71, 0.08, 0.52, 0.12, 0.33, 0.04, 0.90])
    second = torch.tensor([0.30, 0.45, 0.97, 0.85, 0.05, 0.93, 0.62])
    given = torch.tensor([1, 1 / 4, 1, 1 / 2, 1, 1 / 8, 1])
    what = torch.bucketize(second, torch.tensor([0.8, 0.9]), right=True).tolist()
    chosen = (first < 0.15).tolist()
    rows = []
    for i, word in enumerate(text):
        read = ("blank", word, "blue")[what[i]] if chosen[i] else word
        rows.append(["✓" if chosen[i] else "✗", read])
        if chosen[i]:
            rows[-1].append(-given[i].log2().item())
    rows = rows[1:-1]  # the first and the last stand there
    labels = torch.where(torch.tensor(chosen), 0, -100)
    logits = torch.stack([given, 1 - given], -1).log2() * torch.log(torch.tensor(2.0))
    mean = F.cross_entropy(logits, labels).item() / torch.log(torch.tensor(2.0)).item()
    return [*rows, [mean], [mean * sum(chosen) / len(text)], [0.15 * 0.8], [0.15 * 0.1]]


@computes
def both_neighbours() -> list:
    counts = {"well": (8, 4, 4), "cat": (12, 6, 3), "sea": (4, 2, 2)}
    # how likely: the word, and then each of its neighbours by itself
    whole = sum(times for times, _, _ in counts.values())
    joint = {
        word: Fraction(times, whole) * Fraction(left, times) * Fraction(right, times)
        for word, (times, left, right) in counts.items()
    }
    after = sum(left for _, left, _ in counts.values())
    total = sum(joint.values())
    rows = []
    for word, (_, left, _) in counts.items():
        shares = (Fraction(left, after), joint[word] * whole, joint[word] / total)
        rows.append([float(share) for share in shares])
    return [rows[0][1:], rows[1][2:], rows[2][1:]]  # the other numbers stand there


@computes
def through_two_layers() -> list:
    """Relevance as a sum over all paths: through a layer, or around it."""
    layers = [torch.tensor([[0.0, 1], [2, 0]]), torch.tensor([[1.0, 0], [1, 1]])]

    def paths(depth: int) -> torch.Tensor:
        total = torch.zeros(2, 2)
        for taken in product((False, True), repeat=depth):
            way = torch.eye(2)
            for through, layer in zip(taken, layers, strict=False):
                way = layer @ way if through else way
            total += way
        return total

    one, two = paths(1), paths(2)
    products = [0.5 * 4, 0.5 * -4]
    rows = [one, two - one, two]
    parts = [sum(products) / 2, sum(max(x, 0.0) for x in products) / 2]
    return [*(r.flatten().tolist() for r in rows), *([x] for x in parts)]


@computes
def without_a_head() -> list:
    whole = [nn.Linear(12, 12) for _ in range(4)]
    stay = [feature for feature in range(12) if feature // 4 != 1]
    inner, last = nn.Linear(12, len(stay)), nn.Linear(len(stay), 12)

    def size(*layers: nn.Linear) -> int:
        return sum(p.numel() for layer in layers for p in layer.parameters())

    assert size(*whole) == 624
    return [
        [inner.weight.shape[0]], [inner.weight.shape[1]],
        [last.weight.shape[0]], [last.weight.shape[1]],
        [size(inner)], [size(last)], [3 * size(inner) + size(last)],
        [next(f for f in range(12) if f not in stay)], [next(f for f in stay if f > 4)],
    ]  # fmt: skip


@computes
def half_of_it_stays() -> list:
    def halved(row: list[int], itself: int) -> list[Fraction]:
        return [Fraction(w + (i == itself), 2) for i, w in enumerate(row)]

    first = [halved([1, 0, 0], 0), halved([0, 0, 1], 1), halved([0, 0, 1], 2)]
    last = halved([0, 1, 0], 0)
    rollout = [sum(w * row[j] for w, row in zip(last, first, strict=True)) for j in range(3)]
    return [[float(x) for x in row] for row in (rollout,)]  # the others stand there
