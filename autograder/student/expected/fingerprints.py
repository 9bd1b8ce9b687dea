"""Fingerprints of runs: whether stored results belong to the inputs that are drawn here.

The last digits of an input depend on the processor, the math library and NumPy's version, so no
bits of floats are hashed. A fingerprint is a hash of everything else (shapes, dtypes, whole
numbers, texts, names) and, of each run, an average of its floats, compared with a tolerance.
"""

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.records import run_tree
from autograder.student.engine.runs import Run
from autograder.student.engine.values import Array, Previous, Recipe, StridedArray, encode

_DIGITS, _NEAR = 7, 1e-5  # other inputs differ by more, the last digits of float32 by less
_PRIME = 1_000_003


def fingerprint(runs: Sequence[Sequence[Run]]) -> str:
    """The fingerprint of the runs of each aspect, in one line."""
    floats: list[np.ndarray] = []
    whole = hashlib.sha256()
    averages: list[float] = []
    for row in runs:
        whole.update(b"%d " % len(row))
        for run in row:
            floats.clear()
            whole.update(encode(_without_floats(run_tree(run), floats)))
            averages.append(_average(np.concatenate([np.zeros(1), *floats])))
    return " ".join([whole.hexdigest(), *(f"{x:.{_DIGITS}f}" for x in averages)])


def same_runs(one: str, other: str) -> bool:
    """Whether two fingerprints are of the same runs, but for the last digits of their floats."""
    (first, *left), (second, *right) = one.split(), other.split()
    pairs = zip(map(float, left), map(float, right), strict=False)
    return (first, len(left)) == (second, len(right)) and all(abs(a - b) < _NEAR for a, b in pairs)


def _without_floats(value: Value, floats: list[np.ndarray]) -> Value:
    """A run's tree with the form of its floats alone; their numbers are added to a list."""
    if isinstance(value, Array):
        return [value.kind, value.dtype, _without_floats(value.data, floats)]
    if isinstance(value, np.ndarray | np.generic | float):
        data = np.asarray(value)
        if data.dtype.kind != "f":
            return value
        if data.dtype != np.float16:  # whose last digit is a thousandth
            floats.append(data.astype(np.float64).ravel())
        return [type(value).__name__, data.dtype.name, *data.shape]
    if isinstance(value, StridedArray):
        return ["strided", _without_floats(value.array, floats)]
    if isinstance(value, Recipe):
        parts = (value.name, value.args, value.kwargs, value.state)
        return ["recipe", *(_without_floats(part, floats) for part in parts)]
    if isinstance(value, Mapping):
        return {name: _without_floats(part, floats) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_without_floats(part, floats) for part in value)
    return value if not isinstance(value, Previous) else ["previous", value.step, *value.path]


def _average(numbers: np.ndarray) -> float:
    """A weighted average of some numbers, made small; what is not finite counts as 2 or 3. Only
    what every processor rounds alike is done to them."""
    finite = np.where(np.isfinite(numbers), numbers, 0.0)
    small = finite / (1 + np.abs(finite))
    small += np.select([np.isnan(numbers), np.isposinf(numbers), np.isneginf(numbers)], [3, 2, -2])
    places = np.arange(1, numbers.size + 1, dtype=np.int64)
    return float((small * (places * places * _PRIME % 8191 / 4096.0 - 1.0)).mean())
