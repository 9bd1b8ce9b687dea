"""What stands beside chapter 12's captioner.

Heads without language, the nearest picture, marks pasted onto letters, and two projections that
learn to compare what a captioner has learnt without comparing.
"""

from collections.abc import Callable, Sequence
from itertools import product

import torch
from torch import Tensor, nn

from attention_by_hand.data.glyphs import Glyph, bare_in_place
from attention_by_hand.models.captioner import Captioner
from solutions.captioning import contrastive_loss


class Heads(nn.Module):
    """A captioner's encoder, and linear layers on its vectors, side by side."""

    def __init__(self, patches: bool, sizes: list[int]):
        super().__init__()
        self.eyes = Captioner(convolutional=not patches, num_blocks=2 if patches else 1)
        width = self.eyes.places.shape[1] * 8
        self.narrow = nn.Linear(self.eyes.places.shape[2], 8)
        self.heads = nn.ModuleList(nn.Linear(width, size) for size in sizes)

    def forward(self, images: Tensor) -> list[Tensor]:
        vectors = self.narrow(self.eyes.encode(images)).flatten(1)
        return [head(vectors) for head in self.heads]


def projections(
    seen: Tensor, read: Tensor, fit: Callable
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Two linear layers, from pictures and texts to 32 features, fitted by the contrastive loss.

    Returns what gives the vectors of some pairs, chosen by number. `fit` is given the layers and
    the loss of a batch.
    """
    both = nn.ModuleList(nn.Linear(x.shape[1], 32) for x in (seen, read))

    def vectors(chosen: Tensor) -> tuple[Tensor, Tensor]:
        return both[0](seen[chosen]), both[1](read[chosen])

    fit(both, lambda chosen, *_: contrastive_loss(*vectors(chosen)))
    return vectors


def closest(
    names: list[str], known: Tensor, images: Tensor, reach: int = 0
) -> Callable[[Tensor], list[str]]:
    """What gives some of the images, chosen by number, the names of the nearest known pictures.

    Each image is tried where it stands, and up to `reach` pixels away, both ways.
    """
    known = known.flatten(1)
    steps = list(product(range(-reach, reach + 1), repeat=2))

    def write(chosen: Tensor) -> list[str]:
        moved = (images[chosen].roll(step, (1, 2)).flatten(1) for step in steps)
        far, which = zip(*(torch.cdist(one, known).min(1) for one in moved), strict=True)
        best = torch.stack(far).argmin(0)
        return [names[i] for i in torch.stack(which)[best, torch.arange(len(chosen))].tolist()]

    return write


def nearness(
    names: list[str], known: Tensor, images: Tensor, asked: list[str], reach: int = 0
) -> Tensor:
    """How near each image is to the nearest known picture of each name, `(images, asked)`.

    Minus the distance; each image is tried where it stands and up to `reach` pixels away.
    """
    steps = list(product(range(-reach, reach + 1), repeat=2))
    tried = torch.cat([images.roll(step, (1, 2)).flatten(1) for step in steps])
    columns = []
    for name in asked:
        own = known[[i for i, word in enumerate(names) if word == name]].flatten(1)
        columns.append(torch.cdist(tried, own).amin(1).view(len(steps), -1).amin(0))
    return -torch.stack(columns, 1)


def marks_on_letters(
    every: Sequence[Glyph], images: Tensor, train: list[int]
) -> tuple[list[str], Tensor]:
    """Names and pictures of each bare letter, and of each mark on each of its font and case."""
    plain = [i for i in train if not every[i].mark]
    names, pictures = [every[i].name for i in plain], [images[i] for i in plain]
    for i in train:
        if every[i].mark:
            mark = images[i] - torch.from_numpy(bare_in_place(every[i]))
            for j in plain:
                if of_a_kind(every[i], every[j]):
                    names.append(f"{every[j].name} WITH {every[i].mark}")
                    pictures.append((images[j] + mark).clamp(0, 1))
    return names, torch.stack(pictures)


def of_a_kind(one: Glyph, other: Glyph) -> bool:
    """Whether two are of the same font and case."""
    return (one.font, one.name.split()[1]) == (other.font, other.name.split()[1])
