"""What the right answers and the known wrong ones give on a set of runs.

TRUST BOUNDARY. Everything here is our own code, run in the judge's process; no student's code and
none of its objects ever come here.
"""

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from autograder.exercises.declaration import Record, Run
from autograder.probe import probe
from autograder.verdict import Mistake
from solutions.mistakes import banks, cause

Rows = Sequence[Sequence[Run]]


def reference(slug: str, name: str) -> Callable[..., Any]:
    """The reference implementation of an exercise."""
    return getattr(import_module(f"solutions.{slug}"), name)


def records(answer: Callable[..., Any], runs: Rows, device: str = "cpu") -> list[list[Record]]:
    """What a trusted answer gives on each run of each aspect."""
    with np.errstate(all="ignore"):  # known mistakes overflow and divide by zero on purpose
        return [[probe(answer, run, device) for run in row] for row in runs]


def expected(slug: str, name: str, runs: Rows, device: str = "cpu") -> list[list[Record]]:
    """What the reference gives on each run of each aspect."""
    return records(reference(slug, name), runs, device)


def known_mistakes(slug: str, name: str, runs: Rows, device: str = "cpu") -> Iterator[Mistake]:
    """The bank's mistakes for an exercise, each with its records; made one by one, as asked for."""
    for title, answer in banks(slug)[name].mistakes.items():
        yield Mistake(title, cause(answer), records(answer, runs, device))
