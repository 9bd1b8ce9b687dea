"""The kind of aspect in which a call has to end in an exception that says why."""

import re
from collections.abc import Callable, Sequence

from autograder.student.engine.aspects import Runs, raised_finding, with_call
from autograder.student.engine.compare import worst, wrong
from autograder.student.engine.runs import Aspect, Finding, Run, Trial
from autograder.student.engine.words import MISMATCH, describe


def raises(
    title: str,
    points: float,
    hint: str,
    runs: Runs,
    error: type[Exception],
    *,
    naming: Callable[[Run], Sequence[object]] = lambda run: (),
) -> Aspect:
    """Each run ends in `error`, whose text holds everything that `naming(run)` lists."""

    def judge(trials: Sequence[Trial]) -> Finding:
        return worst([_with_its_call(trial, error, naming(trial.run)) for trial in trials])

    return Aspect(title, points, hint, runs, judge)


def _with_its_call(trial: Trial, error: type[Exception], naming: Sequence[object]) -> Finding:
    finding = _raises(trial, error, naming)
    told = finding.passed or finding.kind == "mismatch"
    return finding if told else with_call(finding, trial, len(trial.record.values))


def _raises(trial: Trial, error: type[Exception], naming: Sequence[object]) -> Finding:
    raised = trial.record.raised
    if raised is None:
        return wrong(f"expected {_a(error)}, got {describe(trial.record.value)}")
    if raised.types[0] == MISMATCH:
        return raised_finding(raised)
    if error.__name__ not in raised.types:
        return wrong(f"expected {_a(error)}, got {raised}")
    missing = [str(part) for part in naming if not _names(raised.message, part)]
    if missing:
        return wrong(
            f"the {error.__name__} does not name {' and '.join(missing)}: {raised.message}"
        )
    return Finding(True)


def _a(error: type[Exception]) -> str:
    return f"{'an' if error.__name__[0] in 'AEIO' else 'a'} {error.__name__}"


def _names(message: str, part: object) -> bool:
    """Whether a message contains a word, or a number as a whole: 4 is not in 14, 40 or 4.5."""
    number = isinstance(part, int | float)
    text = re.escape(str(part))
    pattern = rf"(?<!\d)(?<!\d\.){text}(?!\d|\.\d*[1-9])" if number else text
    return re.search(pattern, message) is not None
