"""Chapter 6's tokens on their way through random attention once more, with torch and other draws.

Run: python -m benchmarks.second growing_alike [DRAWS]; seconds. What is left after 24 layers of
what tokens do not have in common, and how far pre-norm is ahead of the others.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

KINDS = ("none", "pre-norm", "post-norm")


def through(x: Tensor, matrices: Tensor, kind: str, path: bool = True) -> Tensor:
    """The tokens `(n, d)` after as many layers as there are fours of matrices."""
    norm = lambda y: F.layer_norm(y, y.shape[-1:])  # noqa: E731
    x = norm(x) if kind == "post-norm" else x
    for q, k, v, out in matrices:
        y = norm(x) if kind == "pre-norm" else x
        found = F.scaled_dot_product_attention(y @ q, y @ k, y @ v) @ out
        x = x + found if path else found
        x = norm(x) if kind == "post-norm" else x
    return x


def left(x: Tensor) -> float:
    """The share of the tokens' length that they do not have in common."""
    return (x.std(0, correction=0).norm() / x.square().mean(0).sqrt().norm()).item()


def main(draws: int = 400) -> None:
    found = []
    for seed in range(draws):
        luck = torch.Generator().manual_seed(60 + seed)
        draw = lambda *size, by=luck: torch.randn(*size, generator=by, dtype=torch.double)  # noqa: E731
        x, matrices = draw(8, 12), draw(24, 4, 12, 12) / 12**0.5
        x[5] = x[2] + 0.6 * draw(12)
        after = [through(x, matrices, kind) for kind in KINDS]
        bare = [
            max(left(through(x, matrices[:n], kind, path=False)) for kind in KINDS) for n in (6, 24)
        ]
        found.append([*map(left, after), *bare, (after[0].norm() / x.norm()).item()])
    found = torch.tensor(found)
    rows = (*KINDS, "six without the path", "24 without the path", "size, none")
    for words, column in zip(rows, found.T, strict=True):
        low, middle, high = column.quantile(torch.tensor([0, 0.5, 1])).tolist()
        print(f"{words:22}{low:10.1e} to {high:.1e}, half below {middle:.1e}; ", end="")
        print(f"more than a billionth in {(column > 1e-9).sum()}")
    leads = found[:, 1] / found[:, [0, 2]].max(1).values
    print(
        f"pre-norm ahead: the first eight {leads[:8].min():.1f} times or more; of {draws}, ", end=""
    )
    print(f"half {leads.median():.0f} or more, {(leads < 7).sum()} below 7, ", end="")
    print(f"{(leads < 1).sum()} below 1")
