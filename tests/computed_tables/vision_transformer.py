"""The answers of chapter 11's tables to fill in, computed by other means than the author's."""

import torch
import torch.nn.functional as F

from . import computes


@computes
def cutting_up() -> list:
    picture = torch.tensor([[1.0, 2, 3, 0], [0, 4, 1, 2], [5, 1, 2, 2], [3, 0, 0, 6]])
    weights = torch.tensor([1.0, -1, 2, 0])
    patches = F.unfold(picture[None, None], kernel_size=2, stride=2)[0].T
    first, second, *rest = [[*row.tolist(), (row @ weights).item()] for row in patches]
    given = [first[4:], [*second[1:3], second[4]]]  # the other numbers stand there
    left, right = rest
    return [*given, left, right[4:], [(picture.flatten()[:4] @ weights).item()]]


@computes
def counting_tokens() -> list:
    rows = []
    for side, channels, patch in ((224, 3, 32), (224, 3, 16)):
        cut = F.unfold(torch.zeros(1, channels, side, side), kernel_size=patch, stride=patch)
        _, numbers, patches = cut.shape
        rows.append([patches + 1, numbers, (patches + 1) ** 2])
    return rows[1:]  # the first stands there


@computes
def how_far_it_looks() -> list:
    heads = ([1, 2, 1, 0], [1, 1, 1, 1], [0, 0, 0, 4])
    from_one = [sum(w * abs(j - 1) for j, w in enumerate(head)) / 4 for head in heads]
    return [*([x] for x in from_one), [sum(range(4)) / 4]]


@computes
def a_gap() -> list:
    said, moved = (torch.tensor(numbers) for numbers in ([0.0, 2, 4], [1.0, 3, 2]))
    gaps = []
    for scale in (1, 0.01):
        astray = F.mse_loss(scale * moved, scale * said)
        apart = torch.pdist(scale * said[:, None]).square().mean()
        gaps.append((astray / apart).sqrt().item())
    astray, apart = F.mse_loss(moved, said), torch.pdist(said[:, None]).square().mean()
    return [[astray.item()], [apart.item()], [gaps[0]], [gaps[1]]]
