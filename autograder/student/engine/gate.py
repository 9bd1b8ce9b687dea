"""The gate between an answer and its verdict: nothing gets past that is too large to compare.

What comes back from a call is measured against what was expected of it before anything converts,
walks, matches or formats it. The bounds are wide, so that a wrong result of another shape, kind or
length is still compared, named and described; what is beyond them becomes a description.

TRUST BOUNDARY. When grading, this runs in the judge's process, where no student's code ever runs.
The records come from outside: each is only data, of the kinds that `values.decode` builds, but may
refer to one array a thousand times, or hold what no call could have returned.
"""

from collections.abc import Callable, Mapping
from itertools import islice

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.observe import MOST
from autograder.student.engine.runs import RaisedException, Record, Run
from autograder.student.engine.state import MEMORY, STATE
from autograder.student.engine.values import (
    MAX_TEXT,
    Array,
    Opaque,
    Previous,
    Recipe,
    StridedArray,
    TooLarge,
    describe_size,
    extent,
)

ITEMS, NUMBERS = 10_000, 1 << 21  # what a record may hold, whatever was expected
TIMES = 16  # and as many times what was expected and given
_NAMES = 20  # classes of an exception; parameters that the reference has not
_NAME = 200  # characters
_EFFECTS = frozenset((*STATE, MEMORY))


def admit(record: Record, run: Run, expected: Record) -> Record:
    """The record of a run, with descriptions in place of whatever is too large to compare.

    Of made-up names one at most is left, without its words. `expected` is the reference's record.
    """
    room = _Room(lambda: _size([expected.values, expected.gradients, _arguments_of(run)]))
    arguments = {
        f"{i}.{name}"
        for i, step in enumerate(run.steps)
        for name in (*range(len(step.args)), *step.kwargs)
    }
    changed = {name if name in arguments else "": at for name, at in record.changed.items()}
    effects = (e if e in _EFFECTS else "global state" for e in record.side_effects)
    ran = islice(record.operations.items(), MOST)
    return Record(
        room.fill(record.values[: len(run.steps) + 1]),
        record.raised and _cut(record.raised),
        room.fill(_slopes(record, expected) if run.gradients else {}),
        room.fill(changed),
        tuple(dict.fromkeys(effects)),
        {name[:_NAME]: place[:_NAME] for name, place in ran},
    )


def _cut(raised: RaisedException) -> RaisedException:
    types = tuple(name[:_NAME] for name in raised.types[:_NAMES])
    texts = (raised.message[:MAX_TEXT], raised.traceback[:MAX_TEXT], raised.during[:_NAME])
    return RaisedException(types, *texts)


def _slopes(record: Record, expected: Record) -> dict[str, Value]:
    """The gradients that were asked for: those that the reference has, too, and those with respect
    to a few parameters of the answer's own."""
    right = expected.gradients
    own = (name for name in record.gradients if name.startswith("parameter ") and name not in right)
    asked = {*right, *islice(own, _NAMES)}
    return {name: slope for name, slope in record.gradients.items() if name in asked}


def _arguments_of(run: Run) -> list[Value]:
    return [part for step in run.steps for part in (step.args, step.kwargs)]


def _size(value: Value) -> tuple[int, int]:
    """How many items and how many numbers a value of ours holds."""
    value = value.array if isinstance(value, StridedArray) else value
    data = value.data if isinstance(value, Array) else value
    if isinstance(data, np.ndarray):
        return 1, extent(data.shape)
    if not isinstance(value, list | tuple | Mapping):
        return 1, len(value) if isinstance(value, str) else 0
    sizes = [_size(part) for part in (value.values() if isinstance(value, Mapping) else value)]
    return 1 + sum(items for items, _ in sizes), sum(numbers for _, numbers in sizes)


class _Room:
    """How much more a record may hold: items, which are walked one by one, and numbers in arrays,
    or characters, as often as they are referred to.

    What was expected, and given, is measured only for a record that is larger than most.
    """

    def __init__(self, measure: Callable[[], tuple[int, int]]):
        self.items, self.numbers = ITEMS, NUMBERS
        self.measure: Callable[[], tuple[int, int]] | None = measure

    def _holds(self, items: int, numbers: int) -> bool:
        if (items > self.items or numbers > self.numbers) and self.measure is not None:
            expected, self.measure = self.measure(), None
            self.items += TIMES * expected[0]
            self.numbers += TIMES * expected[1]
        return items <= self.items and numbers <= self.numbers

    def fill(self, value: Value) -> Value:
        """The value as far as there is room; what is not, in words."""
        items = numbers = 0
        if isinstance(value, Array):
            numbers = extent(value.data.shape)
        elif isinstance(value, str):
            numbers = len(value)
        elif isinstance(value, list | tuple | Mapping):
            items = len(value)
        elif isinstance(value, StridedArray | Previous | Recipe):  # goes in, and never comes back
            return Opaque(type(value).__name__)
        if not self._holds(items, numbers):
            return TooLarge(describe_size(value))
        self.items -= items
        self.numbers -= numbers
        if isinstance(value, Mapping):
            return {name: self.fill(part) for name, part in value.items()}
        if isinstance(value, list | tuple):
            parts = map(self.fill, value)
            return tuple(parts) if isinstance(value, tuple) else list(parts)
        return value
