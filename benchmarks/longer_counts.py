"""Chapter 10's typing errors, found by counts of longer runs of letters, without and with labels.

Run: OMP_NUM_THREADS=1 python -m benchmarks.longer_counts [--seeds 0 1] [--rows 80 320 1280]; some
minutes a seed. From the training text come seven scores of each letter: how much likelier another
would make what stands around it, by runs of 2, 3, 4 and 5 letters, and by what stood between the
same one, two and three on each side. `no labels` is the share of errors found at the highest score.
With `labels`, a softmax over a row's places of a weighted sum of the scores there and up to two
places away is fitted to labelled rows, which are left out of the counts; in `counts and BERT`, how
little the untuned model gives to the letter is among the scores. Rows and errors are those of
`fine_tuning.py`.
"""

import argparse
import datetime
import json
import platform
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from attention_by_hand.models.checkpoints import load_or_train
from benchmarks.bert import page_definitions
from benchmarks.fine_tuning import drawn

RESULT = Path(__file__).with_suffix(".json")
NAMES = [f"runs of {n}" for n in (2, 3, 4, 5)] + [f"between {r}" for r in (1, 2, 3)]


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


def windows(rows: torch.Tensor, before: int, after: int) -> np.ndarray:
    """The letters around each, a line for each place within the frame; 0 beyond it."""
    wide = F.pad(rows, (before, after)).numpy()
    around = np.lib.stride_tricks.sliding_window_view(wide, before + 1 + after, axis=1)[:, 1:-1]
    return around.reshape(-1, before + 1 + after).astype(np.int64)


class Counts:
    """Scores of letters from what was counted in some rows."""

    def __init__(self, rows: torch.Tensor, size: int, longest: int = 5, reach: int = 3):
        self.size, self.longest, self.reach = size, longest, reach
        self.after = [Table(windows(rows, n - 1, 0), size + 1) for n in range(1, longest + 1)]
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


def with_neighbours(x: np.ndarray) -> np.ndarray:
    """The numbers of a place and of two on each side."""
    wide = np.pad(x, ((0, 0), (2, 2), (0, 0)))
    return np.concatenate([wide[:, k : k + x.shape[1]] for k in range(5)], -1)


def fit(x: np.ndarray, y: np.ndarray, weight: float) -> np.ndarray:
    """Weights of a sum of numbers, by a softmax over places; `weight` of their squares."""
    inputs, places = torch.from_numpy(x).float(), torch.as_tensor(y)
    w = torch.zeros(x.shape[-1], requires_grad=True)
    lbfgs = torch.optim.LBFGS([w], max_iter=100, line_search_fn="strong_wolfe")

    def cost():
        lbfgs.zero_grad()
        value = F.cross_entropy(inputs @ w, places, reduction="sum") + weight * (w**2).sum()
        value.backward()
        return value

    lbfgs.step(cost)
    return w.detach().numpy()


def by_labels(x: np.ndarray, y: np.ndarray, test: np.ndarray) -> np.ndarray:
    """Guessed places; a fifth of the labelled rows chooses the weight of the squares."""
    mean, size = x.mean((0, 1)), x.std((0, 1)) + 1e-6
    x, test = (x - mean) / size, (test - mean) / size
    cut, tried = len(x) * 4 // 5, []
    for weight in (0.1, 1, 10, 100):
        w = fit(x[:cut], y[:cut], weight)
        tried.append((-float(((x[cut:] @ w).argmax(1) == y[cut:]).mean()), weight))
    return (test @ fit(x, y, min(tried)[1])).argmax(1)


@torch.no_grad()
def by_bert(page: dict, model, rows: torch.Tensor) -> np.ndarray:
    """How little the untuned model gives to each letter: `(rows, places, 1)`."""
    return np.concatenate([page["unlikely"](model, part) for part in rows.split(200)])[..., None]


def measured(page: dict, model, seed: int, sizes: list[int]) -> dict:
    """The shares found of one seed."""
    train, size = page["train"], len(page["letters"])
    learnt, places, asked, true, _ = drawn(page, seed)
    order = torch.randperm(len(train), generator=torch.Generator().manual_seed(seed))
    typed = torch.isin(train, torch.tensor([page["id_of"][x] for x in map(chr, range(97, 123))]))
    labelled = order[typed.any(1)[order]][: max(sizes)]  # rows of the text that got an error
    rest = torch.ones(len(train), dtype=torch.bool)
    rest[labelled] = False
    right = (true - 1).numpy()
    test = Counts(train, size).scores(asked)
    own = Counts(train[rest], size).scores(learnt[: max(sizes)])
    shares = (test.argmax(1) == right[:, None]).mean(0)
    found = {"seed": seed, "no labels": dict(zip(NAMES, shares.round(4).tolist(), strict=True))}
    told, asked_bert = by_bert(page, model, learnt[: max(sizes)]), by_bert(page, model, asked)
    found["labels"] = []
    for n in sizes:
        y, run = (places[:n] - 1).numpy(), {"rows": n}
        both = np.concatenate([own, told], -1)[:n], np.concatenate([test, asked_bert], -1)
        for name, (x, t) in {"counts": (own[:n], test), "counts and BERT": both}.items():
            guess = by_labels(with_neighbours(x), y, with_neighbours(t))
            run[name] = round(float((guess == right).mean()), 4)
        found["labels"].append(run)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=(0, 1))
    parser.add_argument("--rows", type=int, nargs="+", default=(80, 320, 1280))
    args = parser.parse_args()
    torch.set_num_threads(1)
    page = page_definitions()
    model = page["untrained"](0)
    load_or_train("encoder", model, lambda m: {})
    made = {
        "script": "benchmarks/longer_counts.py",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, CPU, one thread",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    runs = []
    for seed in args.seeds:
        runs.append(measured(page, model.eval(), seed, args.rows))
        print(runs[-1], flush=True)
        text = json.dumps({"made": made, "runs": runs}).replace('{"seed', '\n{"seed')
        RESULT.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
