"""Whether a large number that stands for infinity is to blame: what if it were infinite?

TRUST BOUNDARY. As in `counterfactual`: runs a copy of the answer, and what comes out is a hint.
"""

import io
from collections.abc import Sequence
from contextlib import redirect_stdout

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.compare import compare
from autograder.student.engine.locator.counterfactual import Case, Change
from autograder.student.engine.locator.instrument import Site
from autograder.student.engine.locator.instrumented_copy import copy_answer
from autograder.student.engine.locator.leaves import leaves_of
from autograder.student.engine.locator.locate import problem_of
from autograder.student.engine.locator.signatures import FILLED, signature
from autograder.student.engine.locator.trace import Budget, BudgetExceeded, span
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.probe import probe
from autograder.student.engine.runs import Record

_MOST_FINE = 8  # runs that are right


def does_as_well(
    answer: Value, site: Site, failing: Case, fine: Sequence[Case], device: str, seconds: float
) -> bool:
    """Whether a large number is not to blame for a failing run: with an infinite one in its place,
    that run does the same, or something that was right goes wrong, there or in another run.

    True, too, where that cannot be found out in time. Raises `NoCopy`.
    """
    budget = Budget(seconds)
    copy, recorder = copy_answer(answer, budget)
    here = (span(site.node), site.kind, site.function)
    sites = [(span(s.node), s.kind, s.function) for s in recorder.sites]
    if here not in sites:
        return True
    change = Change(sites.index(here), "infinite", lambda count, value: infinite(value), budget)
    recorder.change = change
    try:
        with redirect_stdout(io.StringIO()):
            run, record, expected = failing
            seen = probe(copy, run, device)
            if problem_of(run, seen, expected) is None:
                return False
            if equal([[run]], [[record]], [[seen]]) or has_nan(seen) and not has_nan(record):
                return True
            parts = ([*leaves_of([*r.values])] for r in (record, seen, expected))
            rows = zip(*parts, strict=False)
            if any(compare(a, e).passed and not compare(b, e).passed for a, b, e in rows):
                return True
            for run, _, expected in fine[:_MOST_FINE]:
                if problem_of(run, probe(copy, run, device), expected) is not None:
                    return True
    except BudgetExceeded:
        return True
    return False


def has_nan(record: Record) -> bool:
    return any(found.nan for value in leaves_of([*record.values]) if (found := signature(value)))


def infinite(value: Value) -> Value:
    """An array in which numbers that stand for infinity are infinite; anything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        return np.where(np.abs(value) >= FILLED, np.copysign(np.inf, value), value)
    if hasattr(value, "masked_fill") and value.is_floating_point():
        return value.masked_fill(value >= FILLED, np.inf).masked_fill(value <= -FILLED, -np.inf)
    return value
