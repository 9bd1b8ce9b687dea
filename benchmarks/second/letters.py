"""Chapter 3's guesser once more: other code, other contexts kept back, other seeds.

Run: python -m benchmarks.second letters [STEPS] [SEED ...]; a minute with 300.
"""

import math
import random
import re
from pydoc_data.topics import topics

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LETTERS = " abcdefghijklmnopqrstuvwxyz"
MODELS = ((1, ""), (8, ""), (32, ""), (1, "places"), (32, "blind"), (1, "fed"), (32, "fed"))


def cut(seed: int) -> tuple[Tensor, Tensor]:
    """Windows of five to learn from, and those of a tenth of all contexts."""
    text = re.sub("[^a-z]+", " ", " ".join(topics.values()).lower())
    windows = [text[i : i + 5] for i in range(len(text) - 4)]
    contexts = sorted({w[:2] + w[3:] for w in windows})
    kept = set(random.Random(seed).sample(contexts, len(contexts) // 10))
    parts = [[w for w in windows if (w[:2] + w[3:] in kept) == back] for back in (False, True)]
    learnt, asked = (torch.tensor([[LETTERS.index(c) for c in w] for w in part]) for part in parts)
    return learnt, asked


class Blanks(nn.Module):
    """The middle of five from the other four; `gates` multiply what the heads gather."""

    def __init__(self, heads: int, kind: str, d: int = 32):
        super().__init__()
        self.heads, self.kind = heads, kind
        self.table, self.places = nn.Embedding(28, d), nn.Parameter(torch.randn(5, d))
        self.q, self.k, self.o = (nn.Linear(d, d) for _ in range(3))
        self.v = nn.ModuleList(nn.Linear(d, d) for _ in range(5 if kind == "places" else 1))
        self.own = nn.Parameter(torch.randn(5, d))
        self.wide, self.back, self.out = nn.Linear(d, 128), nn.Linear(128, d), nn.Linear(d, 27)

    def gathered(self, windows: Tensor) -> Tensor:
        """What each head brings to the blank, `(B, H, d / H)`."""
        x = self.table(torch.where(torch.arange(5) == 2, 27, windows)) + self.places
        keys = self.own.expand_as(x) if self.kind == "blind" else self.k(x)
        values = torch.stack([self.v[j % len(self.v)](x[:, j]) for j in range(5)], 1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)) for t in (self.q(x[:, 2]), keys, values))
        scores = torch.einsum("bhc,bjhc->bjh", q, k) / math.sqrt(q.shape[-1])
        return torch.einsum("bjh,bjhc->bhc", scores.softmax(1), v)

    def forward(self, windows: Tensor, gates: Tensor | float = 1.0) -> Tensor:
        y = self.o((self.gathered(windows) * gates).flatten(1))
        return self.out(y + self.back(F.relu(self.wide(y))) if self.kind == "fed" else y)


def trained(
    learnt: Tensor, heads: int, kind: str, seed: int, steps: int, make: type[Blanks] = Blanks
) -> Blanks:
    torch.manual_seed(seed)
    model = make(heads, kind)
    adam = torch.optim.Adam(model.parameters())
    rates = torch.optim.lr_scheduler.OneCycleLR(adam, 0.01, steps)
    for _ in range(steps):
        batch = learnt[torch.randint(len(learnt), (256,))]
        adam.zero_grad()
        F.cross_entropy(model(batch), batch[:, 2]).backward()
        adam.step()
        rates.step()
    return model


def right(model: Blanks, windows: Tensor, gates: Tensor | float = 1.0) -> float:
    with torch.no_grad():
        return 100 * (model(windows, gates).argmax(1) == windows[:, 2]).float().mean().item()


def guides(model: Blanks, asked: Tensor) -> tuple[float, float]:
    """Correlations: length of a head's part with points lost, mean size of a slope with loss."""
    n, whole, lost, costs = model.heads, right(model, asked), [], []
    with torch.no_grad():
        blocks = model.o.weight.unflatten(1, (n, -1))
        parts = torch.einsum("bhc,ehc->bhe", model.gathered(asked), blocks)
        for h in range(n):
            gates = 1.0 - torch.eye(n)[h][:, None]
            lost.append(whole - right(model, asked, gates))
            costs.append(F.cross_entropy(model(asked, gates), asked[:, 2]).item())
    some = asked[::40]
    gates = torch.ones(len(some), n, 1, requires_grad=True)
    F.cross_entropy(model(some, gates), some[:, 2], reduction="sum").backward()
    sizes = gates.grad.abs().mean((0, 2))
    moved = np.corrcoef(parts.norm(dim=-1).mean(0), lost)[0, 1]
    return moved, np.corrcoef(sizes, costs)[0, 1]


def main(steps: int = 300, *seeds: int) -> None:
    for seed in seeds or (71, 72):
        learnt, asked = cut(seed)
        for heads, kind in MODELS:
            model = trained(learnt, heads, kind, seed, steps)
            print(f"{steps} steps, seed {seed}: {heads:2} heads {kind:6}", end=" ")
            print(f"{right(model, asked):.1f}% kept back, {right(model, learnt[::9]):.1f}% learnt")
            if heads == 8:
                print("   guides: {:.2f} and {:.2f}".format(*guides(model, asked)))
