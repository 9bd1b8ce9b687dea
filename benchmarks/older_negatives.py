"""Chapter 12's control of the queue: do older vectors help as wrong answers in a small batch?

Run: OMP_NUM_THREADS=1 python -m benchmarks.older_negatives. Writes older_negatives.json; under two
minutes of processor time.

Pictures of 16 × 16 pixels and captions of three words, as in `benchmarks.noisy_captions`. Two small
encoders, one for each, learn from the contrastive loss alone, in batches of 16. Compared,
from the same beginning and, where nothing else is said, in equally many steps of the same batches:

* batch: the wrong answers are those of the batch
* queue: those of a queue, too, of the last 320 vectors of pictures and of texts, as the encoders
  made them when these were in the batch (20 batches, as in BLIP)
* copy: all that is looked for is made by a copy of the encoders, which before each step goes a
  hundredth of the way to them (BLIP: a two-hundredth); nothing is learnt through the copy
* queue, copy: both
* batch of 64: the wrong answers are those of a batch of four times the size
* four times the steps: those of the batch of 16, which so reads as many pairs as that of 64
* 64 in groups of 16: the batch of 64, but the wrong answers are those of one's own sixteen

A wrong answer with the same caption as the right one is left out in all of them. What is counted is
recall at 1, mean of both ways, among all names of unseen pairs of letter and mark (`new`), and
among all names in a font that was not read (`font`), a picture for each.
"""

import argparse
import copy
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data.glyphs import glyphs, held_out
from benchmarks.noisy_captions import collection, store
from solutions.captioning import recall_at

RESULT = Path(__file__).with_suffix(".json")
FONT = "DejaVuSerif-BoldItalic"
WIDTH, SHARED, STEPS, BATCH, RATE, TEMPERATURE = 128, 32, 800, 16, 2e-3, 0.07
QUEUE, MOMENTUM = 320, 0.99
CASES = {
    "batch": {},
    "queue": {"queue": QUEUE},
    "copy": {"momentum": MOMENTUM},
    "queue, copy": {"queue": QUEUE, "momentum": MOMENTUM},
    "batch of 64": {"batch": 64},
    "four times the steps": {"steps": 4 * STEPS},
    "64 in groups of 16": {"batch": 64, "groups": 4},
}


class Encoders(nn.Module):
    """Pictures and captions → vectors of length one."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(
            nn.Linear(256, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(),
            nn.Linear(WIDTH, SHARED),
        )  # fmt: skip
        self.words = nn.ModuleList(nn.Embedding(size, WIDTH) for size in collection()[2])
        self.text = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, SHARED))

    def forward(self, x: Tensor, texts: Tensor) -> tuple[Tensor, Tensor]:
        said = sum(table(texts[:, k]) for k, table in enumerate(self.words))
        return F.normalize(self.image(x), dim=-1), F.normalize(self.text(said), dim=-1)


def one_way(asked: Tensor, answers: Tensor, same: Tensor) -> Tensor:
    """The loss of finding answer i for i; other answers with the same caption are left out."""
    own = torch.eye(*same.shape).bool()
    logits = (asked @ answers.T / TEMPERATURE).masked_fill(same & ~own, -torch.inf)
    return F.cross_entropy(logits, torch.arange(len(asked)))


def learn(
    train: Tensor,
    *,
    batch: int = BATCH,
    groups: int = 1,
    queue: int = 0,
    momentum: float = 0.0,
    steps: int = STEPS,
) -> Encoders:
    images, texts, _ = collection()
    model = Encoders()
    follower = copy.deepcopy(model).requires_grad_(False)
    optimiser = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.05, fused=True)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    older = torch.empty(0, SHARED), torch.empty(0, SHARED), torch.empty(0, 3, dtype=torch.long)
    for _ in range(steps):
        rows = train[torch.randint(len(train), (64,))[:batch]]
        x, y = images[rows], texts[rows]
        seen, said = new = model(x, y)
        if momentum:
            with torch.no_grad():
                for slow, fast in zip(follower.parameters(), model.parameters(), strict=True):
                    slow.lerp_(fast, 1 - momentum)
                new = follower(x, y)
        answers = [torch.cat(both) for both in zip((*new, y), older, strict=True)]
        same = (y[:, None] == answers[2]).all(-1)
        if groups > 1:  # what is in another group is left out, too
            group = torch.arange(batch) * groups // batch
            same |= group[:, None] != group
        loss = (one_way(seen, answers[1], same) + one_way(said, answers[0], same)) / 2
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        falling.step()
        if queue:
            older = tuple(each[:queue].detach() for each in answers)
    return model


def tests(seed: int) -> dict[str, Tensor]:
    """What is read in training, and a picture for each name of what is not."""
    every, out = glyphs(), held_out(seed)
    parts: dict[str, list[int]] = {"train": [], "new": [], "font": []}
    for i, glyph in enumerate(every):
        place = "new" if glyph.pair in out else "font" if glyph.font == FONT else "train"
        parts[place].append(i)
    order = torch.randperm(len(parts["new"])).tolist()
    one_each = {every[parts["new"][k]].name: parts["new"][k] for k in order}
    return {k: torch.tensor(v) for k, v in (parts | {"new": list(one_each.values())}).items()}


@torch.no_grad()
def found(model: Encoders, chosen: Tensor) -> float:
    seen, said = model(collection()[0][chosen], collection()[1][chosen])
    return round(sum(recall_at(seen @ said.T, 1)) / 2, 4)


def run_of(seed: int, only: Sequence[str] = ()) -> dict:
    """All cases, or some, beside what is on file of the others."""
    began = time.process_time()
    torch.manual_seed(seed)
    parts = tests(seed)
    result: dict = {"seed": seed, "names": {k: len(parts[k]) for k in ("new", "font")}}
    if only:
        runs = json.loads(RESULT.read_text("utf-8"))["runs"]
        result = next(run for run in runs if run["seed"] == seed)
    for name in only or CASES:
        torch.manual_seed(1000 + seed)
        model = learn(parts["train"], **CASES[name])
        result[name] = {part: found(model, parts[part]) for part in ("new", "font")}
    took = time.process_time() - began
    return result if only else result | {"cpu_seconds": round(took, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1, 2))
    parser.add_argument("--only", nargs="+", default=(), choices=CASES, help="cases to make again")
    args = parser.parse_args()
    torch.set_num_threads(1)
    for seed in args.seeds:
        store(RESULT, "benchmarks/older_negatives.py", run_of(seed, args.only))


if __name__ == "__main__":
    main()
