"""Chapter 6's gradients without loss, stacks that learn or do not, and chunks, once more.

Run: python -m benchmarks.second paths_around [SEED]; some three minutes, most of it for the stacks,
which are those of `deep_stacks.py`. The gradients are written out in NumPy.
Seed 66: no path, 0.24 a layer, 8e-11 after 16; with it 2.4 after 32, and 2e4 with a gain of 4.
Twelve layers after 150 steps: pre-norm 0.01, post-norm 2.31, with a warm-up 2.10, with a tenth of
the rate 1.98. One, two and four layers 0.00 to 0.01 in both, six 1.95 and 0.00. Chunks save nothing
of what is kept.
"""

import time

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.second.deep_stacks import Tower


def go_back(draw: np.random.Generator, layers: int, around: bool, gain: float = 1.0):
    """What arrives of a gradient's length, and how long tokens have become, `layers` up."""
    x, slope = draw.normal(size=(2, 16, 64))
    start, length, kept = np.linalg.norm(x), np.linalg.norm(slope), []
    for _ in range(layers):
        bound = 64**-0.5
        first, bias = draw.uniform(-bound, bound, (64, 256)), draw.uniform(-bound, bound, 256)
        bound = 256**-0.5
        second, shift = draw.uniform(-bound, bound, (256, 64)), draw.uniform(-bound, bound, 64)
        hidden = x @ first + bias
        kept.append((first, gain * second, hidden > 0))
        x = around * x + np.maximum(hidden, 0) @ (gain * second) + shift
    for first, second, open_ in reversed(kept):
        slope = around * slope + (slope @ second.T * open_) @ first.T
    return np.linalg.norm(slope) / length, np.linalg.norm(x) / start


def tell_gradients(seed: int) -> None:
    for around in (False, True):
        for layers in (1, 4, 16, 32):
            found = [go_back(np.random.default_rng([seed, i]), layers, around) for i in range(10)]
            arrives, size = np.exp(np.log(found).mean(0))
            print(f"   {'with' if around else 'no'} path, {layers:2} layers: {arrives:.1e}", end="")
            print(
                f" arrives, {arrives ** (1 / layers):.3f} a layer; tokens {size:.2f} times as long"
            )
    for gain in (1, 2, 4, 8):
        arrives = go_back(np.random.default_rng(seed), 32, True, gain)[0]
        print(f"   with path, 32 layers, gain {gain}: {arrives:.1e}")


def learn(layers: int, kind: str, seed: int, rate: float, warm: int = 0, steps: int = 150) -> str:
    """The loss of naming the digit before each of eight, every 50 steps."""
    torch.manual_seed(seed)
    model, digit, place = (
        Tower(layers, kind),
        nn.Embedding(10, 32),
        nn.Parameter(torch.randn(8, 32)),
    )
    adam = torch.optim.Adam([*model.parameters(), *digit.parameters(), place], rate, (0.9, 0.98))
    said, recent = [], []
    for step in range(steps):
        for group in adam.param_groups:
            group["lr"] = rate * min(1, (step + 1) / warm) if warm else rate
        digits = torch.randint(10, (16, 8))
        told = model(digit(digits) + place).flatten(0, 1)
        loss = F.cross_entropy(told, digits.roll(1, 1).flatten())
        adam.zero_grad()
        loss.backward()
        adam.step()
        recent.append(loss.item())
        if step % 50 == 49:
            said.append(f"{np.mean(recent[-10:]):.2f}")
    return ", ".join(said)


def cut_in_chunks() -> None:
    """BERT base's feed-forward layer over 512 tokens: what each size of chunk keeps and takes."""
    x, up, down = torch.randn(512, 768), nn.Linear(768, 3072), nn.Linear(3072, 768)
    whole = down(F.relu(up(x)))
    for size in (512, 128, 32, 1):
        kept = {}

        def pack(t):
            kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()  # noqa: B023
            return t

        run = lambda: torch.cat([down(F.relu(up(part))) for part in x.split(size)])  # noqa: B023, E731
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            off = (run() - whole).abs().max().item()
        start = time.process_time()
        with torch.no_grad():
            run()
        took = time.process_time() - start
        print(
            f"   chunks of {size:3}: hidden {size * 3072 * 4 / 2**20:.2f} MiB, kept",
            end=" ",
        )
        print(f"{sum(kept.values()) / 2**20:.1f} MiB, {1000 * took:.0f} ms, off by {off:.0e}")


def main(seed: int = 66) -> None:
    tell_gradients(seed)
    equal = next(n for n in range(1, 10_000) if 12 * n * n >= n * 3072)
    print(f"   12 heads: the scores are as large as the hidden tensor from {equal} tokens on")
    cut_in_chunks()
    ways = (("pre", 3e-3, 0), ("post", 3e-3, 0), ("post", 3e-3, 100), ("post", 3e-4, 0))
    for kind, rate, warm in ways:
        told = learn(12, kind, seed, rate, warm)
        print(f"   12 layers, {kind}, rate {rate:g}, warm-up {warm}: {told}")
    for layers in (1, 2, 4, 6):
        for kind in ("post", "pre"):
            told = learn(layers, kind, seed, 3e-3)
            print(f"   {layers} layers, {kind}: {told}")
