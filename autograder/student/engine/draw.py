"""Draws the inputs of runs from a seed.

TRUST BOUNDARY. This is the course's code, but it also runs in the process of an answer, where it
knows the inputs and nothing else.
"""

import hashlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.values import Array

if TYPE_CHECKING:
    from autograder.student.engine.runs import Run


class Draw:
    """Seeded inputs. NumPy promises that `RandomState` gives the same stream in every version."""

    def __init__(self, seed: bytes, shared: "dict[Runs, list[Run]] | None" = None):
        self.random = np.random.RandomState(np.frombuffer(hashlib.sha256(seed).digest(), "<u4"))
        self._shared = shared

    def draw_once(self, function: "Runs") -> "Sequence[Run]":
        """What a function draws: for all aspects of an exercise the same runs."""
        if self._shared is None:
            return function(self)
        if function not in self._shared:
            self._shared[function] = [*function(self)]
        return self._shared[function]

    def anew(self, function: "Runs") -> "Sequence[Run]":
        """What a function draws next, whatever it has drawn before."""
        shared, self._shared = self._shared, None
        try:
            return function(self)
        finally:
            self._shared = shared

    def normal(self, *shape: int, scale: float = 1.0, dtype: str = "float64") -> np.ndarray:
        """Standard normal numbers times `scale`."""
        return (scale * self.random.standard_normal(shape)).astype(dtype)

    def uniform(self, low: float, high: float, *shape: int, dtype: str = "float64") -> np.ndarray:
        """Uniform numbers from `low` up to `high`."""
        return self.random.uniform(low, high, shape).astype(dtype)

    def number(self, low: float, high: float) -> float:
        """One uniform number, rounded to two digits so that a message can show it."""
        return round(float(self.random.uniform(low, high)), 2)

    def integer(self, low: int, high: int) -> int:
        """One integer from `low` to `high`, both included."""
        return int(self.random.randint(low, high + 1))

    def integers(self, low: int, high: int, *shape: int) -> np.ndarray:
        """Integers (int64) from `low` to `high`, both included."""
        return self.random.randint(low, high + 1, shape).astype(np.int64)

    def permutation(self, n: int) -> np.ndarray:
        """The integers 0 … n−1 in random order."""
        return self.random.permutation(n).astype(np.int64)

    def tensor(self, *shape: int, scale: float = 1.0, dtype: str = "float32") -> Array:
        """Standard normal numbers times `scale`, to arrive as a torch tensor."""
        return tensor(self.normal(*shape, scale=scale), dtype)

    def double(self, *shape: int, scale: float = 1.0) -> Array:
        """The same in float64."""
        return self.tensor(*shape, scale=scale, dtype="float64")


Runs = Callable[[Draw], Sequence["Run"]]  # draws the runs of an aspect


def tensor(data: Value, dtype: str | None = None) -> Array:
    """An array that arrives as a torch tensor, of the given dtype or else its own."""
    data = np.asarray(data)
    data = data if dtype is None or dtype == "bfloat16" else data.astype(dtype)
    return Array(data, "torch", dtype or data.dtype.name)
