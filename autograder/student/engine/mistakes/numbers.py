"""Whether numbers say much: whether another answer would hardly have them by chance.

TRUST BOUNDARY. When grading, this runs in the judge's process, where no student's code ever runs.
The records come from outside and are only data; every function here takes them as hostile.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.compare import GRADIENT_FACTOR, agrees
from autograder.student.engine.runs import Record
from autograder.student.engine.values import Array


def says_much(record: Record, right: Record) -> bool:
    """Whether another answer would hardly have, by chance, the numbers of a record that are not a
    right answer's."""
    both = [
        (slope, right.gradients[name])
        for name, slope in record.gradients.items()
        if slope is not None and right.gradients.get(name) is not None
    ]
    pairs = [(record.values, right.values), *both] if record.raised is None else []
    numbers = [n for pair in pairs for wrong in _differing(*pair) for n in _numbers(wrong)]
    finite = [n[np.isfinite(n)] for n in numbers]
    return any(n.size and np.ptp(n) > 0 for n in finite) or any(
        n.size == 1 and n[0] not in (0, 1) for n in finite
    )


def _differing(value: Value, right: Value) -> Iterable[Value]:
    """The parts of a value that are not those of a right one."""
    kinds = tuple | list
    if isinstance(value, kinds) and isinstance(right, kinds) and len(value) == len(right):
        for one, other in zip(value, right, strict=True):
            yield from _differing(one, other)
    elif isinstance(value, dict) and isinstance(right, dict) and value.keys() == right.keys():
        yield from _differing([*value.values()], [right[key] for key in value])
    elif not agrees(value, right, slack=GRADIENT_FACTOR):
        yield value


def _numbers(value: Value) -> Iterable[np.ndarray]:
    if isinstance(value, Array):
        yield value.data.astype(np.float64).ravel()
    elif isinstance(value, tuple | list):
        for item in value[:100]:
            yield from _numbers(item)
    elif isinstance(value, Mapping):
        yield from _numbers([*value.values()])
    elif isinstance(value, int | float) and abs(value) < 1e300:
        yield np.array([float(value)])
