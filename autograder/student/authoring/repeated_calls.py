"""Further calls of the same function or object: nothing may be kept from one for the next."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from autograder.student.engine.aspects import Runs, each, results_found
from autograder.student.engine.compare import NEARLY, worst
from autograder.student.engine.runs import (
    APPLY,
    KEPT,
    Aspect,
    Draw,
    Finding,
    Previous,
    Run,
    Step,
    Trial,
)
from autograder.student.engine.values import encode
from autograder.student.engine.words import describe_call

_SLACK = 3.0  # times the tolerance: how near a result is has been judged by then
_HINT = (
    "A result, mask or table that is kept from one call is wrong for the next, whose numbers are "
    "others even where its shapes are the same. Compute from the arguments of each call."
)


def follows_from_each_call(source: Aspect, points: float, compared: Sequence[Runs]) -> Aspect:
    """Calls with other numbers of the same shapes as those of `source`, whose judge judges them.

    Of a class, an object as the first of `source` and one as the first of each set of runs that are
    `compared` with the reference's: each gets all calls of objects that are built alike, but for
    their parameters, longer and shorter ones in turn, and that twice.
    """
    every = [source.runs, *(runs for runs in compared if runs is not source.runs)]

    def drawn(draw: Draw) -> Sequence[Run]:
        first = [*draw.anew(source.runs)]
        if first[0].init is None:  # the process has made calls of these shapes before
            return first
        ones, others = ([[*filter(_plain, draw.anew(runs))] for runs in every] for _ in range(2))
        objects = {_built(runs[0]): runs[0] for runs in ones if runs}
        rounds = [
            [*_of_each_shapes(run for runs in some for run in runs if _built(run) == built)]
            for built in objects
            for some in (ones, others)
        ]
        return [_in_a_row([*a, *b, a[0]]) for a, b in zip(rounds[::2], rounds[1::2], strict=True)]

    def judge(trials: Sequence[Trial]) -> Finding:
        if trials[0].run.init is None:  # judged only where the calls of `source` are right
            finding = source.judge(trials)
            return finding if finding.passed else _kept(finding)
        return _all_equal(trials)

    return Aspect("further calls", points, _HINT, drawn, judge, only_if_right=True, own=(KEPT,))


def _kept(finding: Finding) -> Finding:
    """A finding on a call that is wrong although such calls were right before, unless it is nearly
    right."""
    if finding.relative is not None and finding.relative < NEARLY:
        return finding
    told = f"earlier calls were right, this one is not: {finding.message}"
    return replace(finding, message=told, kind=KEPT, instructive=True)


def _all_equal(trials: Sequence[Trial]) -> Finding:
    """Whether all calls of all objects are right. What is wrong later is kept from earlier calls
    where the whole first round is right: a wrong formula may be right once, by its numbers."""
    sound = all(_begins_right(trial) for trial in trials)

    def judge(trial: Trial) -> Finding:
        finding = worst(results_found(trial, _SLACK))
        later = sound and finding.step in _counterparts(trial.run)
        return _kept(finding) if not finding.passed and later else finding

    return each(judge, (KEPT,))(trials)


def _begins_right(trial: Trial) -> bool:
    """Whether all calls of the first round are right, and none raises."""
    if trial.record.raised or len(trial.record.values) != len(trial.run.steps):
        return False
    found = results_found(trial, _SLACK)
    return all(found[i].passed for i in _counterparts(trial.run).values())


def _counterparts(run: Run) -> dict[int, int]:
    """For each step of calls in a row, the step of the first round that it is made after."""
    shapes = [describe_call(replace(run, steps=(step,)), ()) for step in run.steps]
    for period in range((len(shapes) - 1) // 2, 0, -1):  # two rounds, and the first run again
        if all(shapes[i] == shapes[i % period] for i in range(period, len(shapes))):
            return {i: i % period for i in range(period, len(shapes))}
    return {}


def _plain(run: Run) -> bool:
    """Whether a run is of calls alone, whose results are the same in every right answer."""
    if run.random or run.gradients or run.elsewhere:
        return False
    return all(step.method not in (APPLY, "train") for step in run.steps)


def _built(run: Run) -> tuple[bytes, bool]:
    return encode([run.constructor.args, dict(run.constructor.kwargs)]), run.training


def _of_each_shapes(runs: Iterable[Run]) -> list[Run]:
    """The first run of those whose calls are alike but for the numbers."""
    found: dict[str, Run] = {}
    for run in runs:
        found.setdefault(describe_call(replace(run, init=None), ()), run)
    return [*found.values()]


def _in_a_row(runs: Sequence[Run]) -> Run:
    """The calls of all runs, one after the other, of the object of the first."""
    steps: list[Step] = []
    for run in runs:
        steps += [_moved(step, len(steps)) for step in run.steps]
    return replace(runs[0], steps=tuple(steps))


def _moved(step: Step, by: int) -> Step:
    """A step whose results of previous steps are those of `by` steps later."""

    def moved(value: object) -> object:
        return replace(value, step=value.step + by) if isinstance(value, Previous) else value

    kwargs = {name: moved(value) for name, value in step.kwargs.items()}
    return replace(step, args=tuple(map(moved, step.args)), kwargs=kwargs)
