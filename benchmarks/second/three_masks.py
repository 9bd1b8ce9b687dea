"""Chapter 7's stack under three masks, and its count of the paper's parameters, once more.

Run: python -m benchmarks.second three_masks [SEED]; seconds. Attention in NumPy, two layers of it;
the parameters are added up by a formula instead of made. Pairs that move 64, 36 and 46, and every
row as on the page: base 63.1 million, rows that fit all but *big* 40,931 to 41,161 (2026-11-29).
"""

import math

import numpy as np

N, SOURCE = 8, 5
PAPER = {  # millions, and what a row of Table 3 changes
    "base": (65, {}),
    "d_k = 16": (58, {"d_k": 16}),
    "d_k = 32": (60, {"d_k": 32}),
    "N = 2": (36, {"layers": 2}),
    "N = 4": (50, {"layers": 4}),
    "N = 8": (80, {"layers": 8}),
    "d_model = 256": (28, {"d": 256, "d_k": 32, "d_v": 32}),
    "d_model = 1024": (168, {"d": 1024, "d_k": 128, "d_v": 128}),
    "d_ff = 1024": (53, {"d_ff": 1024}),
    "d_ff = 4096": (90, {"d_ff": 4096}),
    "big": (213, {"d": 1024, "d_ff": 4096, "heads": 16}),
}


def pairs_that_move(sees: np.ndarray, draw: np.random.Generator) -> int:
    matrices = draw.normal(size=(2, 4, 6, 6)) / math.sqrt(6)

    def run(x):
        for q, k, v, o in matrices:
            worth = np.where(sees, np.exp((x @ q) @ (x @ k).T / math.sqrt(6)), 0)
            x = x + worth @ x @ v @ o / worth.sum(1, keepdims=True)
        return x

    x, other, moved = draw.normal(size=(N, 6)), draw.normal(size=(N, 6)), 0
    for j in range(N):
        changed = np.where(np.arange(N)[:, None] == j, other, x)
        moved += (run(changed) != run(x)).any(1).sum()
    return moved


def in_layers(d=512, d_ff=2048, heads=8, d_k=64, d_v=64, layers=6) -> int:
    """Matrices and biases of an encoder layer and a decoder layer, so many of each."""
    attention = heads * (2 * d_k + d_v) * (d + 1) + (heads * d_v + 1) * d
    feed_forward = d * d_ff + d_ff + d_ff * d + d
    return layers * (3 * attention + 2 * feed_forward + 5 * 2 * d)


def main(seed: int = 77) -> None:
    draw, i = np.random.default_rng(seed), np.arange(N)
    past = i[:, None] >= i
    for name, sees in (("none", past | True), ("past", past), ("source", past | (i < SOURCE))):
        print(f"mask {name}: {pairs_that_move(sees, draw)} of 64 pairs")
    fits = []
    for name, (paper, changes) in PAPER.items():
        d, count = changes.get("d", 512), in_layers(**changes)
        rows = [((paper + half) * 1e6 - count) / d for half in (-0.5, 0.5)]
        fits += [rows] if name != "big" else []
        print(
            f"{name:14} layers {count / 1e6:.1f}, ours {(count + 37_000 * d) / 1e6:.1f},", end=" "
        )
        print(f"paper {paper}; rows that fit {rows[0]:,.0f} to {rows[1]:,.0f}")
    low, high = max(low for low, _ in fits), min(high for _, high in fits)
    print(f"all but big: {low:,.0f} to {high:,.0f}")
