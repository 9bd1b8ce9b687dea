"""What the right answers and the known wrong ones give on a set of runs.

TRUST BOUNDARY. Everything here is our own code, run in the judge's process; no student's code and
none of its objects ever get here.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from autograder.engine.probe import probe_within, undisturbed
from autograder.engine.runs import Record, Run
from autograder.engine.verdict import Mistake
from solutions.mistakes import banks, cause

Rows = Sequence[Sequence[Run]]


def reference(slug: str, name: str) -> Callable[..., Any]:
    """The reference implementation of an exercise."""
    return getattr(import_module(f"solutions.{slug}"), name)


def records(answer: Callable[..., Any], runs: Rows, device: str = "cpu") -> list[list[Record]]:
    """What a trusted answer gives on each run of each aspect."""
    # Known mistakes overflow and divide by zero on purpose.
    with undisturbed(), np.errstate(all="ignore"):
        return [[probe_within(answer, run, device) for run in row] for row in runs]


def expected(slug: str, name: str, runs: Rows, device: str = "cpu") -> list[list[Record]]:
    """What the reference gives on each run of each aspect."""
    return records(reference(slug, name), runs, device)


def on_demand(
    answer: Callable[..., Any], runs: Rows, device: str = "cpu"
) -> list[Sequence[Record]]:
    """As `records`, each made on first access: for use `with undisturbed()`."""
    return [_Lazily(answer, row, device) for row in runs]


def known_mistakes(slug: str, name: str, runs: Rows, device: str = "cpu") -> Iterator[Mistake]:
    """The bank's mistakes for an exercise, each with its records, made on first access.

    Most mistakes differ from an answer in the first run or two, so most records are never made.
    Making them advances the global random generators: `with undisturbed()` restores them.
    """
    for title, answer in banks(slug)[name].mistakes.items():
        yield Mistake(title, cause(answer), on_demand(answer, runs, device))


class _Lazily(Sequence[Record]):
    """A trusted answer's records on some runs, each made on first access."""

    def __init__(self, answer: Callable[..., Any], runs: Sequence[Run], device: str):
        self.answer, self.runs, self.device = answer, runs, device
        self.made: dict[int, Record] = {}

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, index: int) -> Record:
        if index >= len(self.runs):
            raise IndexError(index)
        if index not in self.made:
            with np.errstate(all="ignore"):
                self.made[index] = probe_within(self.answer, self.runs[index], self.device)
        return self.made[index]
