"""Chapter 8's recall once more, and trained for longer than the page has time for.

Run: python -m benchmarks.second recall [STEPS ...]
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

KEYS, VALUES = 64, 16


class Memory(nn.Module):
    """One look at pairs of a key and a value, by a softmax or by products of positive features."""

    def __init__(self, features: int, linear: bool):
        super().__init__()
        self.linear = linear
        self.q, self.k = nn.Embedding(KEYS, features), nn.Embedding(KEYS, features)
        self.v, self.out = nn.Embedding(VALUES, 32), nn.Linear(32, VALUES)

    def forward(self, keys: Tensor, values: Tensor, asked: Tensor) -> Tensor:
        q, k = self.q(asked), self.k(keys)
        if self.linear:
            shares = torch.einsum("bf,bnf->bn", F.elu(q) + 1, F.elu(k) + 1)
            weights = shares / shares.sum(1, keepdim=True)
        else:
            weights = (torch.einsum("bf,bnf->bn", q, k) / q.shape[1] ** 0.5).softmax(1)
        return self.out(torch.einsum("bn,bnd->bd", weights, self.v(values)))


def pairs(size: int, n: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Keys that differ, their values, the key to look up, and the answer."""
    keys = torch.rand(size, KEYS).argsort(1)[:, :n]
    values, which = torch.randint(VALUES, (size, n)), torch.randint(n, (size, 1))
    return keys, values, keys.gather(1, which)[:, 0], values.gather(1, which)[:, 0]


def recalled(features: int, linear: bool, steps: int, seed: int) -> str:
    torch.manual_seed(seed)
    model = Memory(features, linear)
    adam = torch.optim.Adam(model.parameters(), 0.02)
    for step in range(steps):
        adam.param_groups[0]["lr"] = 0.02 * (1 - step / steps)
        *seen, answer = pairs(128, int(torch.randint(1, 33, ())))
        loss = F.cross_entropy(model(*seen), answer)
        adam.zero_grad()
        loss.backward()
        adam.step()
    with torch.no_grad():
        found = []
        for n in (8, 16, 32, 64):
            *seen, answer = pairs(2000, n)
            found.append(f"{n}: {(model(*seen).argmax(1) == answer).float().mean():.0%}")
    return "  ".join(found)


def main(*counts: int) -> None:
    for steps in counts or (300, 3000):
        for words, features, linear in (
            ("softmax", 16, False),
            ("linear", 16, True),
            ("linear", 64, True),
        ):
            told = recalled(features, linear, steps, 90)
            print(f"{steps} steps, {words}, {features} features: {told}")
