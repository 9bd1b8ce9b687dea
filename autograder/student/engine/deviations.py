"""An answer's deviations: what else is wrong than its values: dtypes, arguments, gradients, errors.

TRUST BOUNDARY. When grading, this runs in the judge's process, where no student's code ever runs.
The records come from outside and are only data; every function here takes them as hostile.
"""

from collections.abc import Sequence

from autograder.student.engine.arrays import Value
from autograder.student.engine.runs import Record, Run
from autograder.student.engine.state import MEMORY
from autograder.student.engine.values import Array

_IN_PLACE = ("in-place operation", "inplace operation")

Deviation = tuple[str, str]  # what differs besides the values: its kind, and what or whose it is


def deviations(record: Record, right: Record) -> frozenset[Deviation]:
    """What a record shows besides its values that the reference's does not show."""
    if record.raised is not None:
        if right.raised is not None:
            same = record.raised.types[0] == right.raised.types[0]
            return frozenset() if same else frozenset({("raises", record.raised.types[0])})
        return frozenset({("changed", "")}) if stopped_by_autograd(record) else frozenset()
    found = {("changed", key) for key in record.changed if key not in right.changed}
    extra = {*record.side_effects} - {*right.side_effects} - {MEMORY}
    found |= {("effect", effect) for effect in extra}
    pairs = zip(record.values, right.values, strict=False)
    found |= {("dtype", dtype) for x, y in pairs for dtype in _other_dtypes(x, y)}
    found |= {
        ("gradient", name)
        for name, slope in right.gradients.items()
        if slope is not None and record.gradients.get(name) is None
    }
    return frozenset(found)


def stopped_by_autograd(record: Record) -> bool:
    """Whether autograd refused to go on because of a change in place."""
    raised = record.raised
    return raised is not None and any(words in raised.message for words in _IN_PLACE)


def _other_dtypes(value: Value, expected: Value) -> set[str]:
    if isinstance(value, Array) and isinstance(expected, Array):
        return {value.dtype} - {expected.dtype}
    if isinstance(value, tuple | list) and isinstance(expected, tuple | list):
        return set().union(*(_other_dtypes(x, y) for x, y in zip(value, expected, strict=False)))
    return set()


def same_deviations(
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    others: Sequence[Sequence[Record]],
    expected: Sequence[Sequence[Record]],
) -> bool:
    """Whether two answers have the same deviations; on random runs, the same dtypes."""

    def same(run: Run, a: Record, b: Record, right: Record) -> bool:
        one, other = deviations(a, right), deviations(b, right)
        return {s for s in one ^ other if s[0] == "dtype" or not run.random} == set()

    return all(
        same(*trial)
        for rows in zip(runs, records, others, expected, strict=True)
        for trial in zip(*rows, strict=True)
    )
