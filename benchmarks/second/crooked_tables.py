"""Chapter 5's wrong tables of positions once more: the best step, neighbours, the closest rows.

Run: python -m benchmarks.second crooked_tables. For d = 64 neighbours and closest rows are the
page's to its two digits, and only the cosine with an exponent of its own has no step (off by 0.9).
For d = 16 and 128, and with a table in halves, it is the same (2026-11-27).
"""

import math

import numpy as np
from scipy.linalg import lstsq

N = 512


def table(d: int, speeds: list[float], own: list[float] | None = None) -> np.ndarray:
    """Rows of sines and cosines by turns; `own` are the cosines' speeds, where they differ."""
    rows = np.empty((N, d))
    for p in range(N):
        for i, speed in enumerate(speeds):
            rows[p, 2 * i] = math.sin(p * speed)
            rows[p, 2 * i + 1] = math.cos(p * (own or speeds)[i])
    return rows


def tables(d: int) -> dict[str, np.ndarray]:
    right = [10_000 ** (-2 * i / d) for i in range(d // 2)]
    halves = table(d, right)
    return {
        "right": table(d, right),
        "cosine's own exponent": table(
            d, right, [10_000 ** (-(2 * i + 1) / d) for i in range(d // 2)]
        ),
        "exponent doubled": table(d, [s**2 for s in right]),
        "exponent halved": table(d, [s**0.5 for s in right]),
        "frequency inverted": table(d, [1 / s for s in right]),
        "one speed": table(d, [1.0] * (d // 2)),
        "one slow speed": table(d, [0.01] * (d // 2)),
        "halves": np.concatenate([halves[:, ::2], halves[:, 1::2]], 1),
    }


def numbers(rows: np.ndarray) -> tuple[float, float, float]:
    """The largest miss of the best step, neighbours' mean product, the least distance of two."""
    here, there = rows[:-1], rows[1:]
    solved = lstsq(here, there, cond=1e-12, lapack_driver="gelsy")[0]
    away = np.abs(here @ solved - there).max()
    alike = np.mean([a @ b for a, b in zip(here, there, strict=True)]) / (rows.shape[1] / 2)
    nearest = min(
        np.sqrt(np.square(rows[p + 1 :] - rows[p]).sum(1)).min() for p in range(len(rows) - 1)
    )
    return away, alike, nearest


def main() -> None:
    for d in (16, 64, 128):
        for name, rows in tables(d).items():
            away, alike, nearest = numbers(rows)
            print(
                f"d = {d:3}, {name:22} off {away:8.1e}, alike {alike:5.2f}, closest {nearest:.2f}"
            )
