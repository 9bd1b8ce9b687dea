"""Chapter 8's first of many digits once more: cells written out, seeds of their own.

Run: python -m benchmarks.second first_digit [SEED ...]; a minute for each.
"""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WAYS = ("plain", "orthogonal", "GRU", "GRU, open")


class Reader(nn.Module):
    def __init__(self, way: str, inputs: int = 32, d: int = 64):
        super().__init__()
        self.gates, self.d = way.startswith("GRU"), d
        uniform = partial(nn.init.uniform_, a=-(d**-0.5), b=d**-0.5)
        width = 3 * d if self.gates else d
        self.table, self.out = nn.Embedding(10, inputs), nn.Linear(d, 10)
        self.x, self.h = (nn.Linear(size, width) for size in (inputs, d))
        for p in (*self.x.parameters(), *self.h.parameters()):
            uniform(p)
        if way == "orthogonal":
            nn.init.orthogonal_(self.h.weight)
        if way == "GRU, open":
            self.x.bias.data[d : 2 * d] += 3  # of the update gate

    def last(self, x: Tensor) -> Tensor:
        """The state `(B, d)` after vectors `(B, n, inputs)`."""
        state = torch.zeros(len(x), self.d)
        for seen in self.x(x).unbind(1):
            if self.gates:
                (r, z, new), (r_, z_, kept) = seen.chunk(3, -1), self.h(state).chunk(3, -1)
                keep = (z + z_).sigmoid()
                state = keep * state + (1 - keep) * (new + (r + r_).sigmoid() * kept).tanh()
            else:
                state = (seen + self.h(state)).tanh()
        return state

    def forward(self, digits: Tensor) -> Tensor:
        return self.out(self.last(self.table(digits)))


def brought_back(way: str, seed: int, steps: int) -> float:
    """Length of the gradient at an input so many steps back, as a share of the last input's."""
    torch.manual_seed(seed)
    x = torch.randn(64, 50, 32, requires_grad=True)
    Reader(way).last(x).sum().backward()
    lengths = x.grad.norm(dim=-1).mean(0)
    return (lengths[-1 - steps] / lengths[-1]).item()


def named(way: str, seed: int, n: int, rate: float, steps: int = 250) -> float:
    """The share of texts of `n` digits whose first one is named."""
    torch.manual_seed(seed)
    model = Reader(way)
    adam = torch.optim.Adam(model.parameters(), rate)
    for _ in range(steps):
        digits = torch.randint(10, (64, n))
        adam.zero_grad()
        F.cross_entropy(model(digits), digits[:, 0]).backward()
        adam.step()
    with torch.no_grad():
        digits = torch.randint(10, (1000, n))
        return (model(digits).argmax(1) == digits[:, 0]).float().mean().item()


def main(*seeds: int) -> None:
    for seed in seeds or (61, 62, 63):
        for way in WAYS:
            back = " ".join(f"{brought_back(way, seed, steps):.0e}" for steps in (10, 20, 40))
            for n, rate in ((30, 0.003), (30, 0.01), (50, 0.003)):
                if n == 30 or way == "GRU, open":
                    share = named(way, seed, n, rate)
                    print(f"{seed} {way:10} {n} digits, rate {rate}: {share:4.0%}; {back}")
