"""Chapter 10's tables mixed instead of asked in turn.

Run: python -m benchmarks.second mixed_tables; a minute. Between so many neighbours, a letter's
share is mixed with the mean of its shares where the farthest on the left, or on the right, is left
out, which counts as if it had been seen once. Up to two, three and four on each side: 73.8, 79.7
and 80.7% of all gaps are filled in right, and 45, 50 and 51% where two were never seen.
"""

import numpy as np

from benchmarks.second.bert_controls import SIZE, rows_of


def keys(rows: np.ndarray, left: int, right: int) -> np.ndarray:
    """A number for what stands around each letter."""
    wide = np.pad(rows + 1, ((0, 0), (left, right)))
    found = np.zeros(rows.shape, np.int64)
    for k in (k for k in range(left + 1 + right) if k != left):
        found = found * (SIZE + 1) + wide[:, k : k + rows.shape[1]]
    return found.ravel()


def counts(learnt: np.ndarray, rows: np.ndarray, left: int, right: int) -> np.ndarray:
    """How often each letter was seen between the neighbours of each: `(letters, SIZE)`."""
    known, places = np.unique(keys(learnt, left, right), return_inverse=True)
    asked = keys(rows, left, right)
    at = np.searchsorted(known, asked).clip(max=len(known) - 1)
    pairs, times = np.unique(places * SIZE + learnt.ravel(), return_counts=True)
    wanted = at[:, None] * SIZE + np.arange(SIZE)
    where = np.searchsorted(pairs, wanted).clip(max=len(pairs) - 1)
    seen = (pairs[where] == wanted) & (known[at] == asked)[:, None]
    return np.where(seen, times[where], 0).astype(np.float32)


def main() -> None:
    learnt, rows = (rows_of(part).numpy() for part in ("train", "test"))
    p: dict[tuple[int, int], np.ndarray] = {}
    for size in range(9):
        for left in range(max(0, size - 4), min(size, 4) + 1):
            fewer = [
                p[pair] for pair in ((left - 1, size - left), (left, size - left - 1)) if pair in p
            ]
            prior = np.mean(fewer, axis=0) if fewer else 1 / SIZE
            seen = counts(learnt, rows, left, size - left)
            total = seen.sum(1, keepdims=True)
            p[left, size - left] = (seen + prior) / (total + 1)
            if (left, size) == (2, 4):
                never = total[:, 0] == 0
            if 4 <= size == 2 * left:
                right = p[left, left].argmax(1) == rows.ravel()
                print(f"{left} on each side: {right.mean():.1%}; where two were", end=" ")
                print(f"never seen {right[never].mean():.1%}")
