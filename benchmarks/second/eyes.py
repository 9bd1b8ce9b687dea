"""Chapter 12's heads on convolutions and on patches once more, reading the mean of all places.

Run: python -m benchmarks.second eyes [SEED ...]; minutes for each. Unseen
pairs, letter and mark both right, seeds 0 to 2: convolutions 78, 71, 72%, patches 2, 8, 4%.
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attention_by_hand.data import glyphs as drawn

UNSEEN_FONT = "DejaVuSerif-BoldItalic"


class Eyes(nn.Module):
    """Pictures to 8 × 8 vectors of 64, mixed by blocks; their mean names letter and mark."""

    def __init__(self, kind: str, letters: int, marks: int):
        super().__init__()
        if kind == "patches":
            self.stem, blocks = nn.Conv2d(1, 64, 4, 4), 2
        else:
            layers = []
            for one, other in ((1, 32), (32, 32), (32, 64)):
                layers += [nn.Conv2d(one, other, 3, padding=1), nn.BatchNorm2d(other), nn.ReLU()]
                layers += [nn.MaxPool2d(2)] if other == 32 else []
            self.stem, blocks = nn.Sequential(*layers), 1
        self.places = nn.Parameter(0.1 * torch.randn(64, 64))
        self.blocks = nn.Sequential(
            *(
                nn.TransformerEncoderLayer(
                    64, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True
                )
                for _ in range(blocks)
            )
        )
        self.norm = nn.LayerNorm(64)
        self.heads = nn.ModuleList([nn.Linear(64, letters), nn.Linear(64, marks)])

    def forward(self, images: Tensor) -> list[Tensor]:
        x = self.stem(images[:, None]).flatten(2).mT + self.places
        x = self.norm(self.blocks(x)).mean(1)
        return [head(x) for head in self.heads]


def main(*seeds: int) -> None:
    every = drawn.glyphs()
    images = torch.from_numpy(np.stack([drawn.picture(g) for g in every]))
    names = [[" ".join(g.name.split()[1:4]), g.mark] for g in every]
    kinds = [sorted({name[i] for name in names}) for i in (0, 1)]
    right = torch.tensor([[kinds[i].index(name[i]) for i in (0, 1)] for name in names])
    for seed in seeds or (0,):
        out = drawn.held_out(seed)
        new = torch.tensor([g.pair in out for g in every])
        old = ~new & torch.tensor([g.font != UNSEEN_FONT for g in every])
        learnt = old.nonzero()[:, 0]
        for kind in ("convolutions", "patches"):
            torch.manual_seed(40 + seed)
            model = Eyes(kind, len(kinds[0]), len(kinds[1]))
            adam = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
            rates = torch.optim.lr_scheduler.OneCycleLR(adam, 2e-3, 1500)
            for _ in range(1500):
                rows = learnt[torch.randint(len(learnt), (48,))]
                step = torch.randint(-2, 3, (2,)).tolist()
                told = model(images[rows].roll(step, (1, 2)))
                loss = sum(F.cross_entropy(t, right[rows, i]) for i, t in enumerate(told))
                adam.zero_grad()
                loss.backward()
                adam.step()
                rates.step()
            model.eval()
            with torch.no_grad():
                found = torch.stack([t.argmax(1) for t in model(images[new])], 1) == right[new]
            letter, mark = found.float().mean(0).tolist()
            both = found.all(1).float().mean()
            print(f"seed {seed}, {kind}: letter {letter:.0%}, mark {mark:.0%}, both {both:.0%}")
