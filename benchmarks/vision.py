"""Chapter 11's small ViT and a convolutional network, against the number of images, and moved.

Run: OMP_NUM_THREADS=1 python -m benchmarks.vision [--seeds 0 1 2 3 4] [--result vision_models.json]
Images, models, training and the ways to look at a model are those of the chapter's page, read from
its cells. A seed holds out its own fifth of the digits, as they stand in the collection, and draws
the training images from the others; all models of a seed read the same ones. `test` is the share of
the held-out images named right, `moved` the same with each image moved by one pixel in the eight
directions. `order` says what was done to all images, once for all: nothing, their pixels put in
another order, or their patches. With the page's recipe, all images and shifts, the ViT is looked
at as well. Seeds that are on file already are kept, so that several runs may share the work.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from benchmarks.command_line import options
from benchmarks.page_cells import run_cells
from benchmarks.results import made_by, runs_in, store

PAGE = Path(__file__).parents[1] / "book" / "11_vision_transformer.md"
# the cells that define what is used here, found by how one of their lines begins
NEEDED = (
    "import math",
    "from solutions.vision_transformer import VisionTransformer",
    "from solutions.vision_transformer import attention_rollout",
    "SIDE, PATCH",
    "def trained",
    "def maps",
    "def agreement",
)
SIZES, SHORT = (100, 400, 1437), 800
LOOKED_AT = 200
RIVALS = {
    "linear": LogisticRegression(max_iter=300),
    "nearest": KNeighborsClassifier(1),
    "svm": SVC(C=10),
}
page_definitions = partial(run_cells, PAGE, NEEDED)


def reordered(page: dict, images: torch.Tensor, order: str) -> torch.Tensor:
    """All images with their pixels, or their patches, in one other order."""
    luck = torch.Generator().manual_seed(17)
    side, patch, grid = page["SIDE"], page["PATCH"], page["GRID"]
    if order == "pixels":
        new = torch.randperm(side * side, generator=luck)
        return images.flatten(1)[:, new].view_as(images)
    if order == "patches":
        new = torch.randperm(grid * grid, generator=luck)
        cut = images.view(-1, grid, patch, grid, patch).transpose(2, 3)
        cut = cut.reshape(-1, grid * grid, patch, patch)[:, new]
        return cut.view(-1, grid, grid, patch, patch).transpose(2, 3).reshape(images.shape)
    return images


class Fitted(torch.nn.Module):
    """A classifier of scikit-learn, asked as the page asks a model."""

    def __init__(self, classifier):
        super().__init__()
        self.classifier = classifier

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        answers = self.classifier.predict(images.flatten(1).numpy())
        return torch.nn.functional.one_hot(torch.as_tensor(answers), 10)


def run_of(page, seed, name, size, *, shifts, steps=SHORT, order="as they are") -> tuple:
    """One model, trained and tested: what is stored, and the model."""
    images, labels = reordered(page, page["pictures"], order), page["labels"]
    rest, held_out = page["fold"](seed)
    torch.manual_seed(seed)
    drawn = rest[torch.randperm(len(rest))[:size]]
    x, y = images[drawn], labels[drawn]
    began = time.process_time()
    if name in ("vit", "cnn"):
        torch.manual_seed(seed)
        model = page["trained"](page[name](), x, y, steps, shifts)
    else:
        steps = None
        if shifts:
            x, y = torch.cat([x, page["eight_moves"](x)]), y.repeat(9)
        model = Fitted(RIVALS[name].fit(x.flatten(1).numpy(), y.numpy()))
    took = time.process_time() - began
    plain, moved = page["right"](model, images[held_out], labels[held_out])
    return {
        "seed": seed, "model": name, "images": len(drawn), "shifts": shifts, "steps": steps,
        "order": order, "test": round(plain, 4), "moved": round(moved, 4),
        "train": round(page["right"](model, images[drawn][:400], labels[drawn][:400])[0], 4),
        "cpu_seconds": round(took, 1),
    }, model  # fmt: skip


def looked_at(page: dict, seed: int, model: torch.nn.Module) -> dict:
    """What the page measures on a trained ViT, here on one more."""
    rest, held_out = page["fold"](seed)
    images = page["pictures"][held_out][:LOOKED_AT]
    cover = page["pictures"][rest].mean(0)
    torch.manual_seed(100 + seed)
    fresh = page["vit"]().eval()
    apart = page["between"][np.triu_indices(25, 1)].numpy()

    def two_dimensional(of) -> float:
        alike = page["likeness"](of.positions)[np.triu_indices(25, 1)].numpy()
        return round(float(np.corrcoef(alike, -apart)[0, 1]), 4)

    found = {
        "agreement": page["agreement"](model, images, cover),
        "agreement, changed": page["agreement"](model, images, cover, page["LEAST"]),
    }
    agreements = {
        key: {name: [*map(mean_and_half, both)] for name, both in ways.items()}
        for key, ways in found.items()
    }
    ahead = {
        key: mean_and_half(ways["rollout"][0] - ways["change of the picture"][0])
        for key, ways in found.items()
    }
    return agreements | {
        "rollout ahead of the change": ahead,
        "distance": rounded(page["distances"](model, images)[0]),
        "distance, never trained": rounded(page["distances"](fresh, images)[0]),
        "positions": two_dimensional(model),
        "positions, never trained": two_dimensional(fresh),
    }


def rounded(table: torch.Tensor) -> list[list[float]]:
    return [[round(x, 3) for x in row] for row in table.tolist()]


def mean_and_half(values: np.ndarray) -> list[float]:
    """The mean, and half of its 95% interval."""
    half = 1.96 * values.std(ddof=1) / len(values) ** 0.5
    return [round(float(values.mean()), 4), round(float(half), 4)]


def runs_of(page: dict, seed: int) -> list[dict]:
    """All runs of a seed, the page's own recipe first."""
    found = []
    for name in ("vit", "cnn"):
        run, model = run_of(page, seed, name, SIZES[-1], shifts=True, steps=page["STEPS"])
        if name == "vit":
            run["looked at"] = looked_at(page, seed, model)
        found.append(run)
        print(run, flush=True)
    found.append(run_of(page, seed, "vit", SIZES[-1], shifts=False, steps=page["STEPS"])[0])
    print(found[-1], flush=True)
    for shifts in (False, True):
        for size in SIZES:
            for name in ("vit", "cnn", *RIVALS):
                found.append(run_of(page, seed, name, size, shifts=shifts)[0])
                print(found[-1], flush=True)
    for order, size in (*(("pixels", size) for size in SIZES), ("patches", SIZES[-1])):
        for name in ("vit", "cnn"):
            found.append(run_of(page, seed, name, size, shifts=False, order=order)[0])
            print(found[-1], flush=True)
    return found


def main() -> None:
    args = options(__doc__, seeds=(0, 1, 2, 3, 4), result="vision_models.json")
    torch.set_num_threads(1)
    page, path = page_definitions(), Path(__file__).with_name(args.result)
    more = {
        "steps": SHORT,
        "steps of the page": page["STEPS"],
        "images looked at": LOOKED_AT,
        "changed by at least": page["LEAST"],
        "parameters": {n: sum(p.numel() for p in page[n]().parameters()) for n in ("vit", "cnn")},
    }
    for seed in args.seeds:
        found = runs_of(page, seed)
        runs = [r for r in runs_in(path) if r["seed"] != seed] + found
        made = made_by("benchmarks/vision.py", **more)
        store(path, made, sorted(runs, key=lambda r: r["seed"]))


if __name__ == "__main__":
    main()
