"""Chapter 2's displays and bits once more, with the scores' sums and slopes written out."""

import numpy as np

SEGMENTS = "1110111 0010010 1011101 1011011 0111010 1101011 1101111 1010010 1111111 1111011"
DISPLAY = np.array([[*map(float, digit)] for digit in SEGMENTS.split()])  # (10, 7)
BITS = np.array([[float(n >> i & 1) for i in range(4)] for n in range(10)])  # (10, 4)


def scores(p: list, kind: str):
    if kind == "bilinear":
        return DISPLAY @ p[0] @ BITS.T, None
    h = np.tanh((DISPLAY @ p[0])[:, None] + (BITS @ p[1])[None])  # (10, 10, h)
    return h @ p[2], h


def least(kind: str, seed: int, steps: int) -> list[float]:
    """The least weight on a right key at the start, after 100 steps and at the end, with Adam."""
    draw = np.random.default_rng(seed)
    shapes = [(7, 4)] if kind == "bilinear" else [(7, 16), (4, 16), (16,)]
    p = [draw.uniform(-1, 1, s) / s[0] ** 0.5 for s in shapes]
    m, v, found = [np.zeros_like(x) for x in p], [np.zeros_like(x) for x in p], []
    for step in range(steps + 1):
        a, h = scores(p, kind)
        w = np.exp(a - a.max(1, keepdims=True))
        w /= w.sum(1, keepdims=True)
        if step in (0, 100, steps):
            found.append(w.diagonal().min())
        d = (w - np.eye(10)) / 10
        if kind == "bilinear":
            slopes = [DISPLAY.T @ d @ BITS]
        else:
            inside = d[..., None] * p[2] * (1 - h**2)
            slopes = [
                DISPLAY.T @ inside.sum(1),
                BITS.T @ inside.sum(0),
                np.einsum("qk,qkh->h", d, h),
            ]
        for i, g in enumerate(slopes):
            m[i], v[i] = 0.9 * m[i] + 0.1 * g, 0.999 * v[i] + 0.001 * g**2
            p[i] -= (
                0.02 * m[i] / (1 - 0.9 ** (step + 1))
                / ((v[i] / (1 - 0.999 ** (step + 1))) ** 0.5 + 1e-8)
            )  # fmt: skip
    return found


def main() -> None:
    for kind, steps in (("additive", 300), ("bilinear", 300), ("bilinear", 5000)):
        for seed in (50, 51, 52):
            found = " ".join(f"{share:.3f}" for share in least(kind, seed, steps))
            print(f"{kind}, seed {seed}, least weight at 0, 100, {steps}: {found}")
