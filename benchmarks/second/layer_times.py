"""Chapter 8's times of four layers against the length once more, by other code, in batches, too.

Run: python -m benchmarks.second layer_times [LONGEST]; up to 2,048 (2026-11-27, on a busy machine):
at 64 the recurrence takes longest. Attention overtakes it between 1,024 and 2,048, in batches of
eight between 256 and 512, and is then the slowest of the four. Beyond 256
a doubling takes it 2 to 7 times as long. It is slower than the convolution at every length;
on the page only from 133 on.
"""

import itertools
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

D = 64
NAMES = ("recurrence", "convolution", "attention", "linear attention")


def layers(draw: torch.Generator) -> dict[str, Callable[[Tensor], Tensor]]:
    """Each as a function of inputs `(B, n, D)`; its matrices have gradients, too."""
    a, b, c = (
        (torch.randn(D, D, generator=draw) / D**0.5).requires_grad_() for _ in range(3)
    )  # of queries, keys and values, or of inputs and states
    kernel = (torch.randn(D, D, 3, generator=draw) / (3 * D) ** 0.5).requires_grad_()

    def recurrence(x: Tensor) -> Tensor:
        h, states = x.new_zeros(len(x), D), []
        for read in (x @ a).unbind(1):
            h = (read + h @ b).tanh()
            states.append(h)
        return torch.stack(states, 1)

    def convolution(x: Tensor) -> Tensor:
        return F.conv1d(x.mT, kernel, padding=1).mT

    def attention(x: Tensor) -> Tensor:
        return ((x @ a) @ (x @ b).mT / D**0.5).softmax(-1) @ (x @ c)

    def linear(x: Tensor) -> Tensor:
        q, k = F.elu(x @ a) + 1, F.elu(x @ b) + 1
        return q @ (k.mT @ (x @ c)) / (q @ k.sum(1)[..., None])

    return dict(zip(NAMES, (recurrence, convolution, attention, linear), strict=True))


def seconds(layer: Callable[[Tensor], Tensor], x: Tensor) -> float:
    began = time.process_time()
    layer(x).sum().backward()
    return time.process_time() - began


def main(longest: int = 4096) -> None:
    draw = torch.Generator().manual_seed(91)
    every = layers(draw)
    for batch in (1, 8):
        lengths = [n for n in (2**k for k in range(4, 13)) if n * batch <= 2 * longest]
        lengths, spent = [n for n in lengths if n <= longest], {}
        for n in lengths:
            x = torch.randn(batch, n, D, generator=draw, requires_grad=True)
            rounds = [
                {name: seconds(layer, x) for name, layer in every.items()}
                for _ in range(max(3, 4096 // (n * batch)) + 1)
            ]  # the layers take turns; the first round warms up
            for name in NAMES:
                spent[name, n] = statistics.median(one[name] for one in rounds[1:])
            told = ", ".join(f"{name} {1e3 * spent[name, n]:.2f}" for name in NAMES)
            print(f"batch {batch}, n = {n:4}, ms: {told}")
        for name in NAMES:
            double = (spent[name, m] / spent[name, n] for n, m in itertools.pairwise(lengths))
            print(f"   {name}: doubling the length takes", *(f"{d:.1f}" for d in double))
