"""Chapter 11's ViT on larger pictures, letters: what its positions learn, how far its heads look.

Run: OMP_NUM_THREADS=1 python -m benchmarks.vision_letters [--seeds 0 1 2] [--steps N] [--result F]
Pictures of 32 × 32 pixels are those of chapter 12, letters bare or with marks, a third larger, so
that fewer patches are empty; what does not fit is cut off. They are cut into patches of 4 × 4. What
has to be named is the letter, A to Z, whatever its case, mark and font. Fonts of DejaVu are read
in training, moved by up to two pixels both ways; those of STIX are the test, not moved. `cnn` is
the page's convolutional network with 26 answers, trained alike. `order` is
`pixels` where the pixels of all pictures, moved as they are, were put into one other order, drawn
for each seed. `nearest` gives the letter of the most similar training picture; `nearest, moved`
tries each test picture up to two pixels away as well. `twins` is how far apart the two most similar
pictures of training and test are, so moved.

Weights are rounded to half precision before anything is measured. Seed 0's, and the position tables
of all seeds, are kept in an .npz beside the result. Runs that are on file are kept.
"""

import itertools
import json
import math
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data.glyphs import SIZE, glyphs, picture
from benchmarks import results
from benchmarks.caption_rivals import closest
from benchmarks.command_line import options
from benchmarks.vision import page_definitions
from solutions.vision_transformer import VisionTransformer

PATCH, GRID, CLASSES = 4, SIZE // 4, 26
PLACES = torch.cartesian_prod(torch.arange(GRID), torch.arange(GRID)).float()
BETWEEN = torch.cdist(PLACES, PLACES)
EM, REACH, BATCH, STEPS, RATE = 29, 2, 32, 1000, 3e-3  # EM and REACH in pixels
WIDTH, HEADS, LAYERS = 32, 4, 3
LOOKED_AT = 200
ORDERS = ("as they are", "pixels")


@cache
def collection() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Pictures `(n, 1, 32, 32)` for the training, their letters; and the same for the test."""
    found: list[Tensor] = []
    for chosen in (False, True):
        part = [glyph for glyph in glyphs() if glyph.font.startswith("STIX") == chosen]
        found.append(torch.from_numpy(np.stack([picture(glyph, EM) for glyph in part]))[:, None])
        found.append(torch.tensor([ord(glyph.base) - ord("A") for glyph in part]))
    images, letters, held_out, answers = found
    return images, letters, held_out, answers


def vit() -> VisionTransformer:
    return VisionTransformer(SIZE, PATCH, 1, CLASSES, WIDTH, HEADS, LAYERS)


def cnn(page: dict) -> nn.Sequential:
    """The page's network for the digits, with a head for letters."""
    model = page["cnn"]()
    model[-1] = nn.Linear(model[-1].in_features, CLASSES)
    return model


def reordered(images: Tensor, order: str, seed: int) -> Tensor:
    """The pictures with all their pixels in one other order, or as they are."""
    if order == "as they are":
        return images
    new = torch.randperm(SIZE * SIZE, generator=torch.Generator().manual_seed(1000 + seed))
    return images.flatten(1)[:, new].view_as(images)


def trained(model: nn.Module, order: str, seed: int, steps: int) -> nn.Module:
    """AdamW with a warm-up of 100 steps and a cosine that ends at 0; weights rounded to halves."""
    images, letters, *_ = collection()
    adam = torch.optim.AdamW(model.parameters(), weight_decay=0.05, fused=True)
    model.train()
    for step in range(1, steps + 1):
        drawn = torch.randint(len(letters), (BATCH,))
        wide = F.pad(images[drawn], (REACH,) * 4)
        corners = torch.randint(2 * REACH + 1, (BATCH, 2)).tolist()
        cut = [x[:, i : i + SIZE, j : j + SIZE] for x, (i, j) in zip(wide, corners, strict=True)]
        loss = F.cross_entropy(model(reordered(torch.stack(cut), order, seed)), letters[drawn])
        falling = (1 + math.cos(math.pi * step / steps)) / 2
        adam.param_groups[0]["lr"] = RATE * min(step / 100, falling)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        if step % 250 == 0:
            print(f"step {step}, loss {loss.item():.2f}", flush=True)
    return model.half().float().eval()


@torch.no_grad()
def right(model: nn.Module, images: Tensor, letters: Tensor) -> float:
    said = torch.cat([model(some).argmax(-1) for some in images.split(256)])
    return round((said == letters).float().mean().item(), 4)


def nearness(likeness: Tensor) -> float:
    """How the likeness of two places goes with their being near: a correlation over all pairs."""
    pairs = np.triu_indices(GRID * GRID, 1)
    return round(float(np.corrcoef(likeness[pairs].numpy(), -BETWEEN[pairs].numpy())[0, 1]), 4)


def looked_at(page: dict, model: VisionTransformer, images: Tensor) -> dict:
    """Positions, and distances over test pictures drawn once for all."""
    own, mixed = page["distances"](model, some_of(images), BETWEEN)
    return {
        "positions": nearness(page["likeness"](model.positions)),
        "distance": [[round(x, 3) for x in row] for row in own.tolist()],
        "distance, whoever asks": [[round(x, 3) for x in row] for row in mixed.tolist()],
    }


def some_of(images: Tensor) -> Tensor:
    luck = torch.Generator().manual_seed(0)
    return images[torch.randperm(len(images), generator=luck)[:LOOKED_AT]]


def run_of(page: dict, seed: int, order: str, steps: int) -> tuple[dict, VisionTransformer]:
    """One model, trained, tested and looked at; and the model."""
    images, letters, held_out, answers = collection()
    held_out = reordered(held_out, order, seed)
    torch.manual_seed(seed)
    model = vit()
    found: dict = {"seed": seed, "model": "vit", "order": order, "steps": steps}
    found["untrained"] = looked_at(page, model.eval(), held_out)
    began = time.process_time()
    model = trained(model, order, seed, steps)
    found["cpu_seconds"] = round(time.process_time() - began, 1)
    found["test"] = right(model, held_out, answers)
    found["train"] = right(model, reordered(images, order, seed), letters)
    return found | looked_at(page, model, held_out), model


def rival(page: dict, seed: int, steps: int) -> dict:
    """The convolutional network, trained and tested as the ViT is."""
    images, letters, held_out, answers = collection()
    torch.manual_seed(seed)
    began, model = time.process_time(), trained(cnn(page), "as they are", seed, steps)
    return {
        "seed": seed,
        "model": "cnn",
        "order": "as they are",
        "steps": steps,
        "parameters": sum(p.numel() for p in model.parameters()),
        "cpu_seconds": round(time.process_time() - began, 1),
        "test": right(model, held_out, answers),
        "train": right(model, images, letters),
    }


def nearest() -> list[dict]:
    """What the nearest training picture says, and how near the nearest of all is."""
    images, letters, held_out, answers = collection()
    found = []
    for name, reach in (("nearest", 0), ("nearest, moved", REACH)):
        write = closest(letters.tolist(), images[:, 0], held_out[:, 0], reach)
        said = torch.tensor(write(torch.arange(len(answers))))
        test = round((said == answers).float().mean().item(), 4)
        found.append({"seed": None, "model": name, "order": "as they are", "test": test})
    return [*found, {"seed": None, "model": "twins", "order": "as they are", "apart": twins()}]


def twins() -> float:
    """The distance of the two most similar pictures of training and test, moved by up to REACH."""
    images, _, held_out, _ = collection()
    steps = itertools.product(range(-REACH, REACH + 1), repeat=2)
    moved = (held_out.roll(step, (2, 3)).flatten(1) for step in steps)
    return round(min(torch.cdist(x, images.flatten(1)).min().item() for x in moved), 3)


def main() -> None:
    args = options(__doc__, seeds=(0, 1, 2), steps=STEPS, result="vision_letters.json")
    torch.set_num_threads(1)
    result = Path(__file__).with_name(args.result)
    page, weights = page_definitions(), {}
    if result.with_suffix(".npz").exists():
        weights = dict(np.load(result.with_suffix(".npz")))
    runs = json.loads(result.read_text("utf-8"))["runs"] if result.exists() else []
    done = [(run["seed"], run["order"], run["model"]) for run in runs]
    for order, seed in itertools.product(ORDERS, args.seeds):
        if (seed, order, "vit") in done:
            continue
        found, model = run_of(page, seed, order, args.steps)
        print(found, flush=True)
        runs.append(found)
        kept = {"positions": model.positions.detach()} if order == "pixels" or seed else {}
        for part, value in (kept or model.state_dict()).items():
            weights[f"{seed}, {order}: {part}"] = value.numpy().astype(np.float16)
        store(result, runs, weights)
    for seed in args.seeds:
        if (seed, "as they are", "cnn") not in done:
            runs.append(rival(page, seed, args.steps))
            print(runs[-1], flush=True)
            store(result, runs, weights)
    if not any(run["model"] == "nearest" for run in runs):
        store(result, [*runs, *nearest()], weights)


def store(result: Path, runs: list[dict], weights: dict) -> None:
    _, letters, held_out, _ = collection()
    more = {
        "pictures": {"train": len(letters), "test": len(held_out)},
        "parameters": sum(p.numel() for p in vit().parameters()),
        "pictures looked at": LOOKED_AT,
    }
    results.store(result, results.made_by("benchmarks/vision_letters.py", **more), runs)
    with result.with_suffix(".npz").open("wb") as file:
        np.savez_compressed(file, **weights)


if __name__ == "__main__":
    main()
