"""Chapter 5's heads that look for the nearer of two marks, once more: places drawn one by one.

Run: python -m benchmarks.second far_marks [SEED ...]; half a minute a seed.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

TRIALS = ((32, 1, 23), (128, 1, 23), (128, 24, 47), (128, 48, 71), (128, 96, 119))


class Head(nn.Module):
    def __init__(self, way: str, slope: float = 1 / 8):
        super().__init__()
        self.way, self.far, self.words = way, 31, nn.Embedding(21, 64)
        self.slope = slope if way == "ALiBi" else 0.0
        self.q, self.k, self.v = (nn.Linear(64, 64, bias=False) for _ in range(3))
        self.table, self.out = nn.Embedding(63, 64), nn.Linear(64, 10)

    def forward(self, text: Tensor, divided_by: float = 1.0) -> Tensor:
        """What the last token answers, `(B, 10)`."""
        x, at = self.words(text), torch.arange(text.shape[1])
        q, k, back = self.q(x[:, -1]), self.k(x), at[-1] - at
        if self.way == "rotary":  # the key is turned back by the distance
            angle = back[:, None] / divided_by * 10000.0 ** (-torch.arange(0, 64, 2) / 64)
            u, w = k[..., ::2], k[..., 1::2]
            k = torch.stack([u * angle.cos() + w * angle.sin(), w * angle.cos() - u * angle.sin()])
            k = k.permute(1, 2, 3, 0).flatten(-2)
        scores = torch.einsum("bd,bjd->bj", q, k)
        if self.way == "relative":
            scores = scores + q @ self.table.weight[back.clamp(max=self.far) + self.far].T
        scores = scores / math.sqrt(x.shape[-1]) - self.slope * back
        return self.out((scores.softmax(-1)[..., None] * self.v(x)).sum(1))


def marked(n: int, nearest: int, farthest: int, count: int) -> tuple[Tensor, Tensor]:
    text = torch.randint(10, (count, n))
    text[:, -1] = 20
    right = torch.empty(count, dtype=torch.long)
    for row, answer in zip(text, range(count), strict=True):
        near = int(torch.randint(nearest, farthest + 1, ()))
        right[answer] = row[n - 1 - near]
        others = [digit for digit in range(10) if digit != right[answer]]
        row[n - 1 - near] += 10
        row[n - 1 - near - int(torch.randint(1, 9, ()))] = 10 + others[int(torch.randint(9, ()))]
    return text, right


def trained(way: str, seed: int, slope: float = 1 / 8) -> Head:
    torch.manual_seed(seed)
    head = Head(way, slope)
    adam = torch.optim.Adam(head.parameters(), 0.002, betas=(0.9, 0.99))
    for _ in range(1500):
        text, right = marked(32, 1, 23, 64)
        adam.zero_grad()
        F.cross_entropy(head(text), right).backward()
        adam.step()
    return head


@torch.no_grad()
def tested(head: Head, divided_by: float = 1.0) -> str:
    shares = []
    for trial in TRIALS:
        text, right = marked(*trial, 400)
        shares.append((head(text, divided_by).argmax(-1) == right).float().mean().item())
    return " ".join(f"{share:5.0%}" for share in shares)


def main(*seeds: int) -> None:
    for seed in seeds or (21,):
        for way in ("relative", "rotary", "ALiBi"):
            head = trained(way, seed)
            print(f"seed {seed}, {way:9}", tested(head))
            for s in (4, 6) if way == "rotary" else ():
                print(f"          places ÷ {s}  ", tested(head, s))
        for n in (16, 64):
            head = trained("ALiBi", seed, 1 / n)
            print(f"          ALiBi, 1/{n}  ", tested(head))
