"""How far chapter 11's models go astray when pictures are shifted, mirrored or turned.

Run: OMP_NUM_THREADS=1 python -m benchmarks.vision_gaps
Images, models and training are those of the chapter's page, read from its cells, and the gap is
`equivariance_gap`. Each seed holds out its own fifth of the digits and trains on all others, for as
many steps as `benchmarks/vision.py`; the gaps are those of held-out digits that have no ink within
two pixels of the left or right edge, so that a shift by one or two pixels loses none of it. What is
expected of the answers is that nothing happens to them. `never` stands for models with their random
numbers; some of these show what holds by definition: `no positions` is a ViT whose positions are 0
and stay so (it is also taught, to see what it names without them), `circular` the convolutional
network with padding that goes round, `unpooled` the same without its pooling.
"""

import argparse
from pathlib import Path

import torch
from torch import nn

from benchmarks.results import made_by, store
from benchmarks.vision import SHORT, page_definitions
from solutions.vision_transformer import equivariance_gap

SEEDS = (0, 1, 2)
TAUGHT = ("never", "as they stand", "moved")
SHOWN = {"no positions": TAUGHT[:2], "unpooled": TAUGHT[:1]}  # all others are taught in each way


def same(x: torch.Tensor) -> torch.Tensor:
    return x


# what is done to the images; the answers should stay
CHANGES = {
    "right by a patch": lambda x: x.roll(2, -1),
    "right by a pixel": lambda x: x.roll(1, -1),
    "mirrored": lambda x: x.flip(-1),
    "a quarter turn": lambda x: x.rot90(1, (-2, -1)),
}


def linear() -> nn.Module:
    """Logistic regression."""
    return nn.Sequential(nn.Flatten(), nn.Linear(100, 10))


def without_positions(page: dict) -> nn.Module:
    """The page's ViT, whose positions are 0 and stay so."""
    model = page["vit"]()
    model.positions.requires_grad_(False).zero_()
    return model


def circular(page: dict) -> nn.Module:
    """The page's convolutional network, in which a kernel at the right edge sees the left one."""
    model = page["cnn"]()
    for layer in model:
        if isinstance(layer, nn.Conv2d):
            layer.padding_mode = "circular"
            layer._reversed_padding_repeated_twice = [1, 1, 1, 1]
    return model


def unpooled(page: dict) -> nn.Module:
    """The same without its pooling."""
    return nn.Sequential(*(p for p in circular(page) if not isinstance(p, nn.MaxPool2d)))


def makers(page: dict) -> dict:
    return {
        "linear": linear,
        "vit": page["vit"],
        "no positions": lambda: without_positions(page),
        "cnn": page["cnn"],
        "circular": lambda: circular(page),
        "unpooled": lambda: unpooled(page),
    }


def held_out_with_room(page: dict, seed: int) -> torch.Tensor:
    """The held-out digits without ink in the two columns of pixels at each side."""
    images = page["pictures"][page["fold"](seed)[1]]
    return images[images[:, 0][:, :, [0, 1, -2, -1]].sum((1, 2)) == 0]


def gaps(model: nn.Module, images: torch.Tensor) -> list[float]:
    changes = [(change, same) for change in CHANGES.values()]
    return [round(gap, 6) for gap in equivariance_gap(model, images, changes).tolist()]


@torch.no_grad()
def apart(model: nn.Module, images: torch.Tensor) -> float:
    """What a gap is divided by: how far the answers to two images are apart."""
    return round(torch.pdist(model(images)).square().mean().sqrt().item(), 4)


def runs_of(page: dict, seed: int) -> list[dict]:
    rest, held_out = page["fold"](seed)
    images, labels = page["pictures"], page["labels"]
    looked_at, found = held_out_with_room(page, seed), []
    for name, make in makers(page).items():
        for taught in SHOWN.get(name, TAUGHT):
            torch.manual_seed(seed)
            model = make()
            torch.manual_seed(seed)
            if taught != "never":
                x, y = images[rest], labels[rest]
                model = page["trained"](model, x, y, SHORT, shifts=taught == "moved")
            right = page["right"](model.eval(), images[held_out], labels[held_out])[0]
            found.append({
                "seed": seed, "model": name, "taught": taught, "images": len(looked_at),
                "test": round(right, 4), "apart": apart(model, looked_at),
                "gaps": gaps(model, looked_at),
            })  # fmt: skip
            print(found[-1], flush=True)
    return found


def main() -> None:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    torch.set_num_threads(1)
    page, path = page_definitions(), Path(__file__).with_name("vision_gaps.json")
    made = made_by("benchmarks/vision_gaps.py", steps=SHORT, changes=[*CHANGES])
    store(path, made, [run for seed in SEEDS for run in runs_of(page, seed)])


if __name__ == "__main__":
    main()
