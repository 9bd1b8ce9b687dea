"""What is left to chance: other seeds of the global generators make other draws.

TRUST BOUNDARY. When grading, this runs in the judge's process; the records are only data.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from autograder.student.engine.aspects import same_results
from autograder.student.engine.compare import wrong
from autograder.student.engine.runs import Aspect, Draw, Finding, Run, Trial
from autograder.student.engine.words import describe_call

_OTHERS = "under another seed of the global generators, expected other draws, got the same"
_AGAIN = "under the same seed of torch's generator, expected the same draws, got others"


def draws_afresh(aspect: Aspect, with_torchs: bool = False) -> Aspect:
    """The aspect, whose first random run is also made under another seed of the global generators,
    of which something else must come, and, `with_torchs`, once more under the same seed."""

    def runs(draw: Draw) -> Sequence[Run]:
        given = aspect.runs(draw)
        first = next(run for run in given if run.random)
        return [*given, replace(first, seed=first.seed + 1), *[first] * with_torchs]

    return replace(aspect, runs=runs, judge=partial(_judge, aspect, with_torchs))


def _judge(aspect: Aspect, with_torchs: bool, trials: Sequence[Trial]) -> Finding:
    finding = aspect.judge(trials)
    if not finding.passed:
        return finding
    first = next(trial for trial in trials if trial.run.random)
    call = describe_call(first.run, first.arguments)
    *_, other, again = [*trials, first] if not with_torchs else trials
    for trial, alike, told in ((other, False, _OTHERS), (again, True, _AGAIN)):
        if same_results(replace(trial, expected=first.record)).passed != alike:
            return replace(wrong(f"{told} ({call})"), call=call)
    return finding
