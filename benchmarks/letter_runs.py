"""How often runs of letters stand in a text, and where a row has a letter seldom seen there.

`fine_tuning.py` and `longer_counts.py` find chapter 10's typing errors with it.
"""

import numpy as np
import torch
import torch.nn.functional as F


class Table:
    """How often each run was seen, and how often what it begins with."""

    def __init__(self, runs: np.ndarray, base: int):
        keys = np.zeros(len(runs), dtype=np.int64)
        for column in runs.T:
            pasts, keys = keys, keys * base + column
        self.runs, self.pasts = (np.unique(k, return_counts=True) for k in (keys, pasts))
        self.base = base

    @staticmethod
    def look(table: tuple, keys: np.ndarray) -> np.ndarray:
        known, times = table
        at = np.searchsorted(known, keys).clip(max=len(known) - 1)
        return np.where(known[at] == keys, times[at], 0).astype(np.float32)

    def share(self, past, last, shorter):
        """Of the last letter after a past; a shorter past counts as three times seen."""
        seen = self.look(self.runs, past * self.base + last)
        return (seen + 3 * shorter) / (self.look(self.pasts, past) + 3)


def windows(rows: torch.Tensor, before: int, after: int, frame: bool = False) -> np.ndarray:
    """The letters around each, a line for each place between the frame's ends; 0 beyond these.

    With `frame`, the end of the frame has a line, too.
    """
    wide = F.pad(rows, (before, after + frame)).numpy()
    around = np.lib.stride_tricks.sliding_window_view(wide, before + 1 + after, axis=1)[:, 1:-1]
    return around.reshape(-1, before + 1 + after).astype(np.int64)


class Counts:
    """Scores of letters from what was counted in some rows."""

    def __init__(self, rows: torch.Tensor, size: int, longest: int = 5, reach: int = 3):
        self.size, self.longest, self.reach = size, longest, reach
        runs = (windows(rows, n - 1, 0, frame=True) for n in range(1, longest + 1))
        self.after = [Table(run, size + 1) for run in runs]  # a row's end counts as a letter
        self.between = []
        for r in range(1, reach + 1):
            around = windows(rows, r, r)[:, [*self.nearest(r, r), r]]  # the letter itself is last
            self.between.append(Table(around, size + 1))

    @staticmethod
    def nearest(middle: int, reach: int) -> list[int]:
        """The places around one, from the nearest on."""
        return [k for step in range(1, reach + 1) for k in (middle - step, middle + step)]

    def leads(self, log_p: np.ndarray, own: np.ndarray) -> np.ndarray:
        """How much likelier all letters together are than the one that stands there."""
        most = log_p.max(1)
        total = most + np.log(np.exp(log_p - most[:, None]).sum(1))
        return total - log_p[np.arange(len(own)), own]

    def scores(self, rows: torch.Tensor) -> np.ndarray:
        """`(rows, places, scores)`."""
        return np.concatenate([self._scores(part) for part in rows.split(60)])

    def _scores(self, rows: torch.Tensor) -> np.ndarray:
        middle = max(self.longest, self.reach)
        around = windows(rows, middle, middle)
        own, every = around[:, middle], np.arange(self.size)[None]
        even = np.full((len(own), self.size), 1 / self.size, np.float32)
        sums = {n: np.zeros_like(even) for n in range(2, self.longest + 1)}
        for last in range(middle, middle + self.longest):  # the runs that hold the letter
            p = even
            for n in range(1, self.longest + 1):
                cells = [
                    around[:, [k]] if k != middle else every for k in range(last - n + 1, last + 1)
                ]
                past = np.zeros((1, 1), np.int64)
                for cell in cells[:-1]:
                    past = past * (self.size + 1) + cell
                p = np.broadcast_to(self.after[n - 1].share(past, cells[-1], p), even.shape)
                if n >= 2 and last - middle < n:
                    sums[n] += np.log(p)
        found, p = (
            [self.leads(total, own) for total in sums.values()],
            self.after[0].share(0, every, even),
        )
        for r, table in enumerate(self.between, start=1):
            past = np.zeros((len(own), 1), np.int64)
            for k in self.nearest(middle, r):
                past = past * (self.size + 1) + around[:, [k]]
            p = table.share(past, every, p)
            found.append(self.leads(np.log(p), own))
        return np.stack(found, -1).reshape(len(rows), -1, len(found))
