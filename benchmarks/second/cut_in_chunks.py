"""Chapter 4's cache, its sizes and its masks of numbers once more, in NumPy and by plain sums.

Run: python -m benchmarks.second cut_in_chunks [SEED]; half a minute, most of it for the times. What
torch's attention answers is put to torch.
All is as on the page (2026-11-29); a prompt of 2,048 tokens takes as long as 9.9 tokens after it.
"""

import time
from itertools import combinations, pairwise

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

NEW = np.newaxis


class Layer:
    """Four matrices; keys and values of what came before are kept."""

    def __init__(self, d: int, heads: int, draw: np.random.Generator, dtype=float):
        self.heads = heads
        made = draw.normal(size=(4, d, d)) / d**0.5
        self.q, self.k, self.v, self.o = made.astype(dtype)
        self.rows = self.scores = 0

    def split(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(len(x), self.heads, -1).transpose(1, 0, 2)

    def __call__(self, x, kept=None, hide=True):
        q, k, v = (self.split(x @ w) for w in (self.q, self.k, self.v))
        if kept:
            k, v = (np.concatenate(pair, 1) for pair in zip(kept, (k, v), strict=True))
        self.rows, self.scores = self.rows + len(x), self.scores + q.shape[1] * k.shape[1]
        scores = q @ k.swapaxes(1, 2) / q.shape[2] ** 0.5
        if hide:
            ahead = np.arange(k.shape[1]) > np.arange(k.shape[1] - len(x), k.shape[1])[:, NEW]
            scores = np.where(ahead, -np.inf, scores)
        weights = np.exp(scores - scores.max(2, keepdims=True))
        weights /= weights.sum(2, keepdims=True)
        return (weights @ v).swapaxes(0, 1).reshape(x.shape) @ self.o, (k, v)


def measure_cache(draw: np.random.Generator) -> None:
    layer, x, n = Layer(16, 4, draw), draw.normal(size=(12, 16)), 12
    whole, worst, ways = layer(x)[0], 0.0, 0
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            kept, parts = None, []
            for start, end in pairwise((0, *cuts, n)):
                part, kept = layer(x[start:end], kept)
                parts.append(part)
            worst, ways = max(worst, abs(np.concatenate(parts) - whole).max()), ways + 1
    print(f"{n} positions cut in {ways} ways: off by {worst:.0e} at most")
    bare, _ = layer(x[10:], layer(x[:10])[1], hide=False)
    print("two at once without the mask: off by", abs(bare - whole[10:]).max(1))
    for n in (12, 48, 192):
        x, told = draw.normal(size=(n, 16)), []
        for cached in (False, True):
            layer.rows, layer.scores, kept = 0, 0, None
            for i in range(n):
                _, kept = layer(x[i : i + 1], kept) if cached else layer(x[: i + 1])
            told.append((layer.rows, layer.scores))
        print(f"{n:4} tokens, again and with a cache: rows and scores", *told)
    layer, x = Layer(512, 8, draw, np.float32), draw.normal(size=(520, 512)).astype(np.float32)
    for at in (32, 128, 512):
        again = -time.perf_counter()
        for i in range(at, at + 4):
            layer(x[:i])
        again += time.perf_counter()
        kept = layer(x[:at])[1]
        cached = -time.perf_counter()
        for i in range(at, at + 4):
            _, kept = layer(x[i : i + 1], kept)
        cached += time.perf_counter()
        print(
            f"at token {at}: {4 / again:,.0f} tokens a second again, {4 / cached:,.0f} with a cache"
        )


def add_up_sizes() -> None:
    d, layers, heads, reads = 12_288, 96, 96, 100
    parameters = layers * (4 * d * d + 2 * d * 4 * d) + 50_257 * d
    token, context = 2 * layers * d * 2, 2048  # bytes
    print(
        f"GPT-3: parameters {2 * parameters / 1e9:.0f} GB, {token / 1e6:.2f} MB a token;", end=" "
    )
    print(f"as much in {2 * parameters / token:,.0f} tokens,", end=" ")
    print(f"{2 * parameters / token / context:.1f} texts; shares of the cache:", end="")
    for batch, n in ((1, 128), (1, 2048), (1, 131_072), (16, 2048), (36, 2048), (256, 2048)):
        print(f" {batch * n * token / (batch * n * token + 2 * parameters):.1%}", end="")
    prompt = context * (layers * 12 * d * d)
    step = (2 * parameters + context * token) * reads  # products in the time it takes to read
    print(
        f"\na prompt computes {prompt:.1e} products, as long as {prompt / step:.1f} tokens after it"
    )
    ways = ((heads, context), (8, context), (1, context), (heads, 256), (8, 256))
    print("caches in GB:", *(f"{n * token * sets / heads / 1e9:.2f}" for sets, n in ways))


def brain(numbers) -> np.ndarray:
    """Numbers rounded to bfloat16: the upper half of a float32, to the nearest, ties to even."""
    bits = np.float32(numbers).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16
    return bits.astype(np.uint32).view(np.float32)


def add_numbers(draw: np.random.Generator) -> None:
    for added in (-100, -1e4, -1e9, -np.inf):
        with np.errstate(over="ignore"):
            told = [1 / (1 + np.exp(-(lead + added))) for lead in (50, 101, 9990, 10_010)]
        print(f"{added:g} added, weight of a hidden key:", *(f"{weight:.2g}" for weight in told))
    for number in (-100, -1e4, -65_504, -1e6, -1e9):
        with np.errstate(over="ignore"):
            half = np.float16(number)
        print(f"   {number:g} is {brain(number):g} in bfloat16, {half:g} in float16")
    pads, start = np.arange(4) < 2, draw.normal(size=(4, 3)).astype(np.float32)
    masks = [
        np.broadcast_to(pads, (4, 4)),
        np.broadcast_to(pads[:, NEW], (4, 4)),
        ~np.tri(4, dtype=bool),
    ]
    least = np.finfo(np.float32).min
    with np.errstate(over="ignore", invalid="ignore"):
        added = sum(np.where(mask, least, np.float32(0)) for mask in masks)
        once = np.where(np.any(masks, 0), least, np.float32(0))
        for name, mask in (("added up", added), ("converted once", once)):
            x = start.copy()
            for layer in (1, 2):
                scores = x @ x.T / np.float32(3**0.5) + mask
                worth = np.exp(scores - scores.max(1, keepdims=True))
                x = worth / worth.sum(1, keepdims=True) @ x
                lost = ["NaN" if np.isnan(row).any() else "numbers" for row in x]
                print(f"   {name}, layer {layer}: {lost}")


def ask_torch() -> None:
    """Values 1 and 2 under equal scores: what `[True, False]` gives, and what two hidden keys."""
    q, k, v = (
        torch.zeros(1, 1, 1, 1),
        torch.zeros(1, 1, 2, 1),
        torch.tensor([1.0, 2.0]).view(1, 1, 2, 1),
    )
    whom, none = torch.tensor([[True, False]]), torch.tensor([[False, False]])
    fused = lambda mask: F.scaled_dot_product_attention(q, k, v, mask).item()  # noqa: E731
    print(f"SDPA: {fused(whom)}; nothing: {fused(none)}", end="; ")
    for number in (-torch.inf, torch.finfo().min):
        print(f"{number:.2g} added: {fused(torch.full((1, 2), number))}", end="; ")
    module = nn.MultiheadAttention(1, 1, batch_first=True).eval()
    nn.init.ones_(module.in_proj_weight)
    nn.init.ones_(module.out_proj.weight)
    for need in (True, False):
        with torch.no_grad():
            ask = lambda mask: module(q[0], v[0], v[0], attn_mask=mask, need_weights=need)[0].item()  # noqa: E731, B023
            print(
                f"\nMultiheadAttention, weights {need}: {ask(whom)}; nothing: {ask(~none)}", end=""
            )
    print()


def main(seed: int = 42) -> None:
    draw = np.random.default_rng(seed)
    measure_cache(draw)
    add_up_sizes()
    add_numbers(draw)
    ask_torch()
