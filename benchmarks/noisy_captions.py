"""Chapter 12's control of CapFilt: does it pay to clean noisy captions with a model's own help?

Run: OMP_NUM_THREADS=1 python -m benchmarks.noisy_captions [--seeds 0 1 …]. Writes
noisy_captions.json; some ten seconds of processor time for a seed.

Small stand-ins, so that a seed costs seconds: a picture is 16 × 16 pixels, read by two layers; a
caption is what the names differ in, its case, letter and mark. The writer chooses the three from
what it has seen; the matcher gets picture and caption, and says yes or no.

A seed draws 3,000 pictures of the glyphs ("the web"), half of whose captions are replaced by that
of another of these pictures, and 200 others with their own. A first model learns writing and
matching from all of them; two copies of it learn on from the 200 alone, one to write, one to match,
as in BLIP. Then a new writer learns from each of these, always with the 200, in equally many steps:

* the few alone
* noisy: the web as it is
* fewer at random: as many of the web's pairs as the matcher keeps, drawn at random
* filtered: those of the web's pairs that the matcher keeps
* written: each picture of the web with what the first writer says, unfiltered
* filtered and written: all pairs, found or written, that the matcher keeps
* clean: each picture of the web with its own caption

`writer` is the first writer itself, after it has learnt from the 200. What is counted are captions
that are right as a whole, for 1,000 other pictures.
"""

import copy
import time
from functools import cache
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data.glyphs import glyphs, picture
from benchmarks import results
from benchmarks.command_line import options

RESULT = Path(__file__).with_suffix(".json")
WEB, FEW, OTHER, WRONG = 3000, 200, 1000, 0.5
WIDTH, STEPS, FINE, BATCH, RATE = 128, 600, 100, 64, 3e-3

Pairs = tuple[Tensor, Tensor]  # pictures, and a caption for each


@cache
def collection() -> tuple[Tensor, Tensor, tuple[int, ...]]:
    """All pictures `(n, 256)`, their captions `(n, 3)`, and how many words there are for each."""
    every = glyphs()
    images = torch.from_numpy(np.stack([picture(glyph) for glyph in every]))
    columns = zip(*((" SMALL " in g.name, g.base, g.mark) for g in every), strict=True)
    words = [sorted(set(column)) for column in columns]
    texts = [
        [words[0].index(" SMALL " in g.name), words[1].index(g.base), words[2].index(g.mark)]
        for g in every
    ]
    return F.avg_pool2d(images, 2).flatten(1), torch.tensor(texts), tuple(map(len, words))


class Model(nn.Module):
    """Reads a picture, writes a caption, and judges one."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes = collection()[2]
        self.read = nn.Sequential(
            nn.Linear(256, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()
        )
        self.write = nn.Linear(WIDTH, sum(self.sizes))
        self.words = nn.ModuleList(nn.Embedding(size, WIDTH) for size in self.sizes)
        self.judge = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2))

    def writing(self, x: Tensor, texts: Tensor) -> Tensor:
        """The loss of the writer, `(B, 256)`, `(B, 3)` → `()`."""
        logits = self.write(self.read(x)).split(self.sizes, -1)
        return torch.stack([F.cross_entropy(z, texts[:, k]) for k, z in enumerate(logits)]).sum()

    def written(self, x: Tensor) -> Tensor:
        logits = self.write(self.read(x)).split(self.sizes, -1)
        return torch.stack([one.argmax(-1) for one in logits], -1)

    def match(self, x: Tensor, texts: Tensor) -> Tensor:
        """Logits of no and of yes, `(B, 2)`."""
        seen = self.read(x)
        said = torch.stack([table(texts[:, k]) for k, table in enumerate(self.words)]).sum(0)
        return self.judge(torch.cat([seen, seen * said], -1))

    def matching(self, x: Tensor, texts: Tensor) -> Tensor:
        """Yes to each pair; no to the caption of another, and to one with a word of another."""
        swapped, column = texts.clone(), torch.randint(3, (len(x),))
        row = torch.arange(len(x))
        swapped[row, column] = texts.roll(2, 0)[row, column]
        tried = torch.cat([texts, texts.roll(1, 0), swapped])
        truth = (tried == texts.repeat(3, 1)).all(1).long()
        return F.cross_entropy(self.match(x.repeat(3, 1), tried), truth)


def learn(model: Model, pairs: Pairs, *losses: str, steps: int) -> Model:
    optimiser = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.05, fused=True)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        rows = torch.randint(len(pairs[0]), (BATCH,))
        optimiser.zero_grad()
        for loss in losses:
            getattr(model, loss)(pairs[0][rows], pairs[1][rows]).backward()
        optimiser.step()
        falling.step()
    return model


def joined(*pairs: Pairs) -> Pairs:
    images, texts = zip(*pairs, strict=True)
    return torch.cat(images), torch.cat(texts)


def kept(pairs: Pairs, keep: Tensor) -> Pairs:
    return pairs[0][keep], pairs[1][keep]


def share(found: Tensor) -> float:
    return round(found.float().mean().item(), 4)


def run_of(seed: int) -> dict:
    began = time.process_time()
    torch.manual_seed(seed)
    images, texts, _ = collection()
    web, few, other = torch.randperm(len(images))[: WEB + FEW + OTHER].split([WEB, FEW, OTHER])
    found = images[web], texts[web].clone()
    some = torch.randperm(WEB)[: round(WRONG * WEB)]
    found[1][some] = texts[web[some.roll(1)]]
    good = images[few], texts[few]

    first = learn(Model(), joined(found, good), "writing", "matching", steps=STEPS)
    writer, matcher = (
        learn(copy.deepcopy(first), good, loss, steps=FINE) for loss in ("writing", "matching")
    )
    with torch.no_grad():
        made = found[0], writer.written(found[0])
        keep, keep_made = (matcher.match(*p).diff()[:, 0] > 0 for p in (found, made))
    at_random = torch.randperm(WEB)[: int(keep.sum())]
    cases: dict[str, tuple[Pairs, ...]] = {
        "the few alone": (),
        "noisy": (found,),
        "fewer at random": (kept(found, at_random),),
        "filtered": (kept(found, keep),),
        "written": (made,),
        "filtered and written": (kept(found, keep), kept(made, keep_made)),
        "clean": ((found[0], texts[web]),),
    }

    def right(model: Model) -> float:
        with torch.no_grad():
            return share((model.written(images[other]) == texts[other]).all(1))

    shares = {"writer": right(writer)}
    for name, pairs in cases.items():
        torch.manual_seed(1000 + seed)
        shares[name] = right(learn(Model(), joined(good, *pairs), "writing", steps=STEPS))
    true, true_made = ((p[1] == texts[web]).all(1) for p in (found, made))
    return {
        "seed": seed,
        "right": shares,
        "pairs": {name: sum(len(p[0]) for p in pairs) for name, pairs in cases.items()},
        "kept of the right": share(keep[true]),
        "kept of the wrong": share(keep[~true]),
        "written right": share(true_made),
        "kept of the written, right": share(keep_made[true_made]),
        "kept of the written, wrong": share(keep_made[~true_made]),
        "cpu_seconds": round(time.process_time() - began, 1),
    }


def store(path: Path, script: str, run: dict) -> None:
    """Put a seed's results into the file, in place of what was there for it."""
    others = [r for r in results.runs_in(path) if r["seed"] != run["seed"]]
    results.store(path, results.made_by(script), sorted([*others, run], key=lambda r: r["seed"]))


def main() -> None:
    args = options(__doc__, seeds=(0, 1, 2, 3, 4))
    torch.set_num_threads(1)
    for seed in args.seeds:
        store(RESULT, "benchmarks/noisy_captions.py", run_of(seed))


if __name__ == "__main__":
    main()
