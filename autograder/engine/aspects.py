"""The kinds of aspect: comparison with the reference, and properties that need no reference."""

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.compare import (
    GRADIENT_FACTOR,
    compare,
    describe,
    describe_call,
    expected_got,
    numeric,
    worst,
    wrong,
    wrong_kind,
)
from autograder.engine.runs import Aspect, Draw, Finding, Raised, Record, Run, Trial
from autograder.engine.state import MEMORY
from autograder.engine.values import Array, Strided, as_array

Runs = Callable[[Draw], Sequence[Run]]


def raised_finding(raised: Raised) -> Finding:
    """The finding for a call that raised where a result was expected."""
    where = f" ({raised.traceback.splitlines()[-1]})" if raised.traceback else ""
    doing = {
        "build": "building it",
        "load": "loading its parameters",
        "backward": "the backward pass",
    }
    stage = doing.get(raised.during)
    text = f"{stage} raised {raised}{where}" if stage else f"raised {raised}{where}"
    return wrong_kind(text)


def each(judge: Callable[[Trial], Finding]) -> Callable[[Sequence[Trial]], Finding]:
    """Judge every trial on its own; an exception fails; the worst trial decides."""

    def judge_all(trials: Sequence[Trial]) -> Finding:
        if not trials:
            return wrong("nothing was run")
        return worst([_judge_one(t, judge) for t in trials])

    return judge_all


def _judge_one(trial: Trial, judge: Callable[[Trial], Finding]) -> Finding:
    if trial.record.raised:
        return raised_finding(trial.record.raised)
    if len(trial.record.values) != len(trial.run.steps):
        return wrong(f"expected {len(trial.run.steps)} results, got {len(trial.record.values)}")
    finding = judge(trial)
    call = describe_call(trial.run, trial.arguments)
    if finding.passed or not call or not finding.instructive:
        return finding
    return replace(finding, message=f"{finding.message} [{call}]")


# --- the kinds of aspect ------------------------------------------------------------------------


def equals_reference(
    title: str, points: float, hint: str, runs: Runs, *, part: int | None = None
) -> Aspect:
    """The results equal those of the reference. `part` selects one part of a tuple."""

    def judge(trial: Trial) -> Finding:
        values, expected = trial.record.values, trial.expected.values
        if part is not None:
            values = [
                v[part] if isinstance(v, (tuple, list)) and len(v) > part else v for v in values
            ]
            expected = [e[part] for e in expected]
        return worst([compare(v, e) for v, e in zip(values, expected, strict=True)])

    return Aspect(title, points, hint, runs, each(judge))


def has_property(
    title: str,
    points: float,
    hint: str,
    runs: Runs,
    holds: Callable[[Run, Record], str | None],
    *,
    only_if_right: bool = False,
    looks: bool = False,
) -> Aspect:
    """A property of the result: `holds(run, record)` returns one line on what is wrong, or None."""

    def judge(trial: Trial) -> Finding:
        problem = holds(trial.run, trial.record)
        return wrong(problem) if problem else Finding(True)

    return Aspect(title, points, hint, runs, each(judge), only_if_right, looks)


def inputs_untouched(points: float, runs: Runs) -> Aspect:
    """The call leaves its arguments unchanged."""

    def judge(trial: Trial) -> Finding:
        for key in trial.record.changed:
            name = _argument(key.rpartition(".")[2], trial.arguments)
            return wrong(f"the call changed its argument {name} in place")
        hidden = MEMORY in trial.record.side_effects
        return wrong(f"the call changed {MEMORY}") if hidden else Finding(True)

    hint = "Work on a new array: `a = a - b` makes one, `a -= b` writes into the caller's."
    return Aspect("leaves its inputs untouched", points, hint, runs, each(judge), True, looks=True)


def no_side_effects(points: float, runs: Runs) -> Aspect:
    """Global state (random generators, default dtype, grad mode, train/eval) is left unchanged."""
    hint = "A function that others call must not seed generators or switch global settings."
    return _state_left_alone(points, runs, hint, {MEMORY})


def no_side_effects_of_a_module(points: float, runs: Runs) -> Aspect:
    """The same for a class, which may draw its initial parameters from torch's generator."""
    hint = "A module must not seed generators or switch global settings, nor its own mode."
    return _state_left_alone(points, runs, hint, {MEMORY, "torch's random state"})


def _state_left_alone(points: float, runs: Runs, hint: str, allowed: Container[str]) -> Aspect:
    def judge(trial: Trial) -> Finding:
        left = [effect for effect in trial.record.side_effects if effect not in allowed]
        return wrong(f"the call changed {', '.join(left)}") if left else Finding(True)

    return Aspect("leaves global state alone", points, hint, runs, each(judge), True, looks=True)


def dtypes_kept(points: float, hint: str, runs: Runs) -> Aspect:
    """Every array in the result has the reference's dtype and precision, the result its type.

    Runs with float64 tensors are made with float32 ones as well.
    """

    def both(draw: Draw) -> Sequence[Run]:
        given = runs(draw)
        return [*given, *filter(None, (run.in_float32() for run in given))]

    def judge(trial: Trial) -> Finding:
        pairs = [*zip(trial.record.values, trial.expected.values, strict=True)]
        findings = [_same_dtype(v, e) for v, e in pairs]
        if not trial.run.random:
            findings += [compare(v, e) for v, e in pairs]
        return worst(findings)

    return Aspect("dtype", points, hint, both, each(judge), True)


def _same_dtype(value: Any, expected: Any, what: str = "the result") -> Finding:
    if isinstance(expected, (tuple, list)):
        if not isinstance(value, (tuple, list)) or len(value) != len(expected):
            return wrong(expected_got(what, expected, value))
        pairs = zip(value, expected, strict=True)
        return worst([_same_dtype(v, e, f"part {i} of {what}") for i, (v, e) in enumerate(pairs)])
    if isinstance(expected, Array):
        given = value.dtype if isinstance(value, Array) else describe(value)
        same = given == expected.dtype
        return Finding(True) if same else wrong(f"{what}: expected {expected.dtype}, got {given}")
    if isinstance(expected, float):
        is_float = isinstance(value, float) or (
            isinstance(value, Array) and value.kind == "scalar" and value.dtype == "float64"
        )
        message = f"{what}: expected a float, got {describe(value)}"
        return Finding(True) if is_float else wrong(message)
    return Finding(True)


def raises(
    title: str,
    points: float,
    hint: str,
    runs: Runs,
    error: type[Exception],
    *,
    naming: Callable[[Run], Sequence[Any]] = lambda run: (),
) -> Aspect:
    """Each run ends in `error`, whose text holds everything that `naming(run)` lists."""

    def judge(trials: Sequence[Trial]) -> Finding:
        return worst([_raises(trial, error, naming(trial.run)) for trial in trials])

    return Aspect(title, points, hint, runs, judge)


def _raises(trial: Trial, error: type[Exception], naming: Sequence[Any]) -> Finding:
    raised = trial.record.raised
    if raised is None:
        return wrong(f"returned {describe(trial.record.value)} instead of raising {error.__name__}")
    if error.__name__ not in raised.types:
        return wrong(f"expected {error.__name__}, got {raised}")
    missing = [str(part) for part in naming if not _names(raised.message, part)]
    if missing:
        return wrong(
            f"the {error.__name__} does not name {' and '.join(missing)}: {raised.message}"
        )
    return Finding(True)


def _names(message: str, part: Any) -> bool:
    """Whether a message contains a word, or a number as a whole: 4 is not in 14, 40 or 4.5."""
    number = isinstance(part, int | float)
    text = re.escape(str(part))
    pattern = rf"(?<!\d)(?<!\d\.){text}(?!\d|\.\d*[1-9])" if number else text
    return re.search(pattern, message) is not None


def gradients_match(title: str, points: float, hint: str, runs: Runs) -> Aspect:
    """The gradients with respect to every argument and parameter equal the reference's."""

    def judge(trial: Trial) -> Finding:
        findings = []
        for name, expected in trial.expected.gradients.items():
            given = trial.record.gradients.get(name)
            what = _gradient_name(name, trial.arguments)
            if expected is None:
                findings.append(Finding(True))
            elif given is None:
                findings.append(
                    wrong(f"no gradient reaches {what.removeprefix('the gradient of ')}")
                )
            else:
                findings.append(compare(given, expected, what, slack=GRADIENT_FACTOR))
        return worst(findings)

    return Aspect(title, points, hint, lambda d: [r.with_gradients() for r in runs(d)], each(judge))


def _gradient_name(name: str, arguments: Sequence[str]) -> str:
    if name.startswith("parameter "):
        return f"the gradient of {name}"
    return f"the gradient of {_argument(name.rpartition('.')[2], arguments)}"


def _argument(name: str, arguments: Sequence[str]) -> str:
    """The name of an argument that a record lists by position or by name."""
    known = dict(zip(map(str, range(len(arguments))), arguments, strict=True))
    return known.get(name, name[:40])


# --- helpers for declarations -------------------------------------------------------------------


def plain(value: Any) -> np.ndarray | None:
    """The numbers of a result or an argument as float64, or None if it holds none."""
    value = value.array if isinstance(value, Strided) else value
    array = numeric(value) or as_array(value)
    return None if array is None else array.data.astype(np.float64)


def part(value: Any, index: int) -> Any:
    """One part of a tuple; None where there is no such part."""
    return value[index] if isinstance(value, (tuple, list)) and len(value) > index else None


def not_rows_of_one(weights: Any, axis: int = -1) -> str | None:
    """Why weights are not non-negative and summing to 1 along `axis`; None if they are."""
    numbers = plain(weights)
    if numbers is None:
        return f"the weights are {describe(weights)}"
    if not np.isfinite(numbers).all():
        return "some weights are not finite"
    if (numbers < 0).any():
        return f"a weight is negative ({numbers.min():.3g})"
    if numbers.ndim == 0:
        return "the weights are a single number"
    sums = numbers.sum(axis=axis).ravel()
    if not sums.size:
        return "there are no weights"
    worst_sum = float(sums[np.abs(sums - 1).argmax()])
    return f"a row of weights sums to {worst_sum:.3g}" if abs(worst_sum - 1) > 1e-5 else None
