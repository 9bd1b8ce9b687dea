"""Chapter 12's classifiers once more (12.6): letter and mark, or whole names, from all 64 places.

Run: python -m benchmarks.second whole_names [STEPS] [SEED ...]; minutes each. Seed 3, 600 steps,
unseen pairs: two classifiers have both right for 87.9% (page, 1,500 steps: 92.3, 87.3 and 84.7);
one for whole names none, its letter for 73.9 (page 64.2, 66.5 and 52.6, from which "a third or
more" are wrong; here a quarter). Of the unseen font 99.1% and 98.2 (page 99.3 to 100).
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand.data import glyphs as drawn
from benchmarks.second.eyes import UNSEEN_FONT, Eyes


class Namer(nn.Module):
    """The places of `Eyes`, laid side by side, and a linear layer for each question."""

    def __init__(self, *classes):
        super().__init__()
        self.eyes = Eyes("convolutions", 1, 1)
        self.ends = nn.ModuleList(nn.Linear(64 * 64, n) for n in classes)

    def forward(self, images):
        x = self.eyes.stem(images[:, None]).flatten(2).mT + self.eyes.places
        x = self.eyes.norm(self.eyes.blocks(x)).flatten(1)
        return [end(x) for end in self.ends]


def learn(images, answers, kinds, steps):
    model = Namer(*kinds)
    adam = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    rates = torch.optim.lr_scheduler.OneCycleLR(adam, 2e-3, steps)
    for _ in range(steps):
        rows = torch.randint(len(images), (48,))
        moves = torch.randint(-2, 3, (48, 2)).tolist()
        seen = [images[i].roll(move, (0, 1)) for i, move in zip(rows, moves, strict=True)]
        told = model(torch.stack(seen))
        loss = sum(F.cross_entropy(t, answers[rows, i]) for i, t in enumerate(told))
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        rates.step()
    return model.eval()


def main(steps: int = 1500, *seeds: int) -> None:
    every = drawn.glyphs()
    images = torch.from_numpy(np.stack([drawn.picture(g) for g in every]))
    parts = [g.name.partition(" WITH ")[::2] for g in every]
    for seed in seeds or (3,):
        out = drawn.held_out(seed)
        new = np.array([g.pair in out for g in every])
        font = ~new & np.array([g.font == UNSEEN_FONT for g in every])
        learnt = ~new & ~font
        names = sorted({parts[i] for i in learnt.nonzero()[0]})
        for words, classes in (
            ("two classifiers", [sorted({p[i] for p in parts}) for i in (0, 1)]),
            ("one for names", [names]),
        ):
            torch.manual_seed(90 + seed)
            two = len(classes) == 2
            answers = torch.tensor([
                [classes[i].index(parts[row][i]) for i in (0, 1)] if two
                else [names.index(parts[row])]
                for row in learnt.nonzero()[0]
            ])  # fmt: skip
            model = learn(images[learnt], answers, [len(c) for c in classes], steps)
            for where, test in (("unseen pairs", new), ("unseen font", font)):
                with torch.no_grad():
                    told = [t.argmax(1).tolist() for t in model(images[test])]
                if two:
                    said = [(classes[0][a], classes[1][b]) for a, b in zip(*told, strict=True)]
                else:
                    said = [names[a] for a in told[0]]
                right = np.array([
                    [a[0] == b[0], a[1] == b[1], a == b]
                    for a, b in zip(said, [parts[i] for i in test.nonzero()[0]], strict=True)
                ])  # fmt: skip
                letter, mark, both = right.mean(0)
                print(f"seed {seed}, {words}, {where}: ", end="")
                print(f"letter {letter:.1%}, mark {mark:.1%}, both {both:.1%}")
