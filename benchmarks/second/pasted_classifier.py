"""Chapter 12's scissors, and a classifier that learns from the pasted pictures.

Run: python -m benchmarks.second pasted_classifier [SEED ...]; minutes for each. Writes
benchmarks/pasted_classifier.json. The convolutions of `eyes.py`, and on the mean of all places a
class for each letter, each mark and each whole name; the pasted pictures of `pasted_marks.py` and
the training's own; 1,500 steps. What is counted are unseen pairs: the letter right, the mark, both,
and the whole name by its own class.
"""

from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from attention_by_hand.data import glyphs as drawn
from benchmarks.noisy_captions import store
from benchmarks.second.eyes import UNSEEN_FONT, Eyes
from benchmarks.second.pasted_marks import pasted

RESULT = Path(__file__).parents[1] / "pasted_classifier.json"
STEPS = 1500


def parts(name: str) -> tuple[str, str, str]:
    letter, _, mark = name.partition(" WITH ")
    return letter, mark, name


def main(*seeds: int) -> None:
    for seed in seeds or (0, 1, 2):
        out = drawn.held_out(seed)
        asked = [g for g in drawn.glyphs() if g.pair in out]
        own = [g for g in drawn.glyphs() if g.pair not in out and g.font != UNSEEN_FONT]
        names, made = pasted(seed)
        names += [g.name for g in own]
        images = torch.from_numpy(np.concatenate([made, [drawn.picture(g) for g in own]]))
        kinds = [sorted(set(column)) for column in zip(*map(parts, names), strict=True)]
        number = [{word: i for i, word in enumerate(kind)} for kind in kinds]
        right = torch.tensor([[n[w] for n, w in zip(number, parts(x), strict=True)] for x in names])
        torch.manual_seed(40 + seed)
        model = Eyes("convolutions", len(kinds[0]), len(kinds[1]))
        model.heads.append(torch.nn.Linear(64, len(kinds[2])))
        adam = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
        rates = torch.optim.lr_scheduler.OneCycleLR(adam, 2e-3, STEPS)
        for _ in range(STEPS):
            rows = torch.randint(len(images), (48,))
            step = torch.randint(-2, 3, (2,)).tolist()
            said = model(images[rows].roll(step, (1, 2)))
            loss = sum(F.cross_entropy(s, right[rows, i]) for i, s in enumerate(said))
            adam.zero_grad()
            loss.backward()
            adam.step()
            rates.step()
        model.eval()
        new = torch.from_numpy(np.stack([drawn.picture(g) for g in asked]))
        with torch.no_grad():
            best = [s.argmax(1).tolist() for s in model(new)]
        said = [[kind[i] for i in column] for kind, column in zip(kinds, best, strict=True)]
        both = zip(zip(*said, strict=True), map(parts, (g.name for g in asked)), strict=True)
        found = np.array([[s == w for s, w in zip(*one, strict=True)] for one in both])
        shares = (*found.mean(0), found[:, :2].all(1).mean())
        kept = dict(zip(("letter", "mark", "whole name", "both"), shares, strict=True))
        run = {"seed": seed, "pictures": len(images), "names": len(kinds[2])}
        run |= {key: round(float(share), 4) for key, share in kept.items()}
        store(RESULT, "benchmarks/second/pasted_classifier.py", run)
        print(run)
