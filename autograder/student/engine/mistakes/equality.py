"""Whether two answers did the same, one of them a known mistake.

TRUST BOUNDARY. When grading, this runs in the judge's process, where no student's code ever runs.
The records come from outside and are only data; every function here takes them as hostile.
"""

from collections.abc import Sequence

from autograder.student.engine.compare import GRADIENT_FACTOR, agrees, as_if_rounded
from autograder.student.engine.mistakes.match import same_failure
from autograder.student.engine.runs import Record, Run


def equal(
    runs: Sequence[Sequence[Run]],
    records: Sequence[Sequence[Record]],
    others: Sequence[Sequence[Record]],
) -> bool:
    """Whether two answers did the same on every run that is not random, `others` the known one.

    Which runs a simulated device refuses depends on where an answer needs what it made on the CPU.
    """
    return all(
        _refusals(row, left) == _refusals(row, right)
        and all(
            run.random or (run.simulated and _refusals(row, left)) or _same(a, b)
            for run, a, b in zip(row, left, right, strict=True)
        )
        for row, left, right in zip(runs, records, others, strict=True)
    )


def _refusals(row: Sequence[Run], records: Sequence[Record]) -> set[str]:
    """How a simulated device refused some of an aspect's runs."""
    if not any(run.simulated and not run.random for run in row):
        return set()
    return {record.raised.types[0] for record in records if record.raised}


def _same(a: Record, b: Record) -> bool:
    if a.raised is None or b.raised is None:
        if a.raised is not b.raised:
            return False
    else:
        return same_failure(a.raised, b.raised)
    if len(a.values) != len(b.values) or a.changed.keys() != b.changed.keys():
        return False
    if a.gradients.keys() != b.gradients.keys():  # a parameter without a gradient, or none at all
        return False
    pairs = [*zip(a.values, b.values, strict=True)]
    pairs += [(a.changed[k], b.changed[k]) for k in a.changed]
    slopes = [(a.gradients[name], b.gradients[name]) for name in a.gradients]
    return all(agrees(x, as_if_rounded(y)) for x, y in pairs) and all(
        agrees(x, y, slack=GRADIENT_FACTOR) for x, y in slopes
    )
