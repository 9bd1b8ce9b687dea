"""Chapter 6's stacks once more, of torch's own layers, with seeds of their own.

Run: python -m benchmarks.second deep_stacks [FIRST SEED]; less than a minute.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Tower(nn.Module):
    """Torch's encoder layers with Xavier's matrices, ten classes on top; `bare` leaves x out."""

    def __init__(self, layers: int, kind: str):
        super().__init__()
        self.bare = kind == "bare"
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(32, 2, 128, 0.0, batch_first=True, norm_first=kind == "pre")
            for _ in range(layers)
        )
        self.top = nn.LayerNorm(32) if kind == "pre" else nn.Identity()
        self.out = nn.Linear(32, 10)
        for layer in self.layers:
            attention = layer.self_attn
            matrices = [*attention.in_proj_weight.data.chunk(3), attention.out_proj.weight]
            for matrix in (*matrices, layer.linear1.weight, layer.linear2.weight):
                nn.init.xavier_uniform_(matrix)
            for bias in (attention.in_proj_bias, attention.out_proj.bias):
                nn.init.uniform_(bias, -(32**-0.5), 32**-0.5)
        nn.init.xavier_uniform_(self.out.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            if self.bare:
                gathered = layer.self_attn(x, x, x, need_weights=False)[0]
                x = layer.linear2(F.relu(layer.linear1(gathered)))
            else:
                x = layer(x)
        return self.out(self.top(x))


def spread(kind: str, seed: int, steps: int) -> float:
    """What is left after some steps of the spread of a stack of twelve, as a share."""
    torch.manual_seed(seed)
    model, digit, place = Tower(12, kind), nn.Embedding(10, 32), nn.Parameter(torch.randn(8, 32))
    parameters = [*model.parameters(), *digit.parameters(), place]
    adam, found = torch.optim.Adam(parameters, 3e-3, betas=(0.9, 0.98)), []
    for _ in range(steps + 1):
        digits = torch.randint(10, (16, 8))
        said = model(digit(digits) + place).flatten(0, 1)
        wanted = torch.cat([digits[:, -1:], digits[:, :-1]], 1).flatten()
        adam.zero_grad()
        F.cross_entropy(said, wanted).backward()
        adam.step()
        found.append(said.std(0).mean().item())
    return found[-1] / found[0]


def at_first(layers: int, kind: str, seed: int) -> tuple[float, float, float]:
    """Logarithms: the gradient of the first layer's W₂, of the last's, and the output's move."""
    torch.manual_seed(seed)
    model, x, wanted = Tower(layers, kind), torch.randn(8, 12, 32), torch.randint(10, (96,))
    ends = [model.layers[i].linear2.weight for i in (0, -1)]
    slopes = torch.autograd.grad(F.cross_entropy(model(x).flatten(0, 1), wanted), ends)
    with torch.no_grad():
        before = model(x)
        for p in model.parameters():
            p.add_(1e-4 * (2 * torch.randint(2, p.shape) - 1))
        move = (model(x) - before).norm() / before.norm()
    return *(math.log(g.norm()) for g in slopes), 2 * math.log(move)


def main(first: int = 50) -> None:
    for steps in (10, 20):
        left = sorted(spread("post", first + k, steps) for k in range(16))
        print(f"post-norm, left of the spread after {steps} steps:", *(f"{x:.0e}" for x in left))
    for kind in ("bare", "post", "pre"):
        print(f"{kind}: layers, first gradient, last gradient, squared move")
        for layers in (2, 6, 12, 24):
            found = np.exp(np.mean([at_first(layers, kind, first + k) for k in range(4)], axis=0))
            print(f"   {layers:2}", *(f"{x:.1e}" for x in found))
