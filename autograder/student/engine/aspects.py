"""The kinds of aspect: comparison with the reference, and properties that need no reference."""

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

import numpy as np

from autograder.student.engine.arrays import Array, Value, as_array
from autograder.student.engine.compare import (
    GRADIENT_FACTOR,
    NEARLY,
    as_if_rounded,
    compare,
    expected_got,
    in_fewer_digits,
    names_of,
    numeric,
    worst,
    wrong,
)
from autograder.student.engine.rounding import PRECISION, with_rounding
from autograder.student.engine.runs import (
    Aspect,
    Draw,
    Finding,
    Names,
    RaisedException,
    Record,
    Run,
    Runs,
    Trial,
)
from autograder.student.engine.simulated_device import (
    ELSEWHERE,
    NOT_ON_THE_CPU,
    SIMULATED,
    TWO_DEVICES,
)
from autograder.student.engine.state import MEMORY, NUMBERS
from autograder.student.engine.values import StridedArray
from autograder.student.engine.words import MISMATCH, describe, describe_call, describe_exception


def raised_finding(raised: RaisedException) -> Finding:
    """The finding for a call that raised where a result was expected."""
    kind = "mismatch" if raised.types[0] == MISMATCH else "raised"
    return Finding(False, describe_exception(raised), instructive=False, kind=kind)


def judge_each(
    judge: Callable[[Trial], Finding], own: Sequence[str] = ()
) -> Callable[[Sequence[Trial]], Finding]:
    """Judge every trial on its own; an exception fails; the worst trial decides, one that fails in
    its `own` kind before others."""

    def judge_all(trials: Sequence[Trial]) -> Finding:
        if not trials:
            return wrong("nothing was run")
        found = [_judge_one(trial, judge) for trial in trials]
        # A hint is about all of an aspect's runs: none if only those in training mode fail.
        other = {trial.run.training for trial, f in zip(trials, found, strict=True) if not f.passed}
        fits = other != {True} or all(trial.run.training for trial in trials)
        finding = worst(sorted(found, key=lambda one: one.kind not in own))
        return finding if fits else replace(finding, instructive=False)

    return judge_all


def _judge_one(trial: Trial, judge: Callable[[Trial], Finding]) -> Finding:
    raised, given = trial.record.raised, len(trial.record.values)
    if raised:
        finding = raised_finding(raised)
        return finding if raised.during == "load" else with_call(finding, trial, given)
    if given != len(trial.run.steps):
        return wrong(f"expected {len(trial.run.steps)} results, got {given}")
    finding = judge(trial)
    if finding.passed:
        return finding
    return with_rounding(with_call(finding, trial, finding.step), trial)


def with_call(finding: Finding, trial: Trial, step: int | None) -> Finding:
    """The finding, whose message also says for which call it is."""
    call = describe_call(trial.run, trial.arguments, step)
    told = f"{finding.message} ({call})" if call else finding.message
    return replace(finding, message=told, call=call)


def same_results(trial: Trial, slack: float = 1.0) -> Finding:
    """Each step's result equals the reference's, within `slack` times the tolerance."""
    return worst(results_found(trial, slack))


def results_found(trial: Trial, slack: float = 1.0) -> list[Finding]:
    """The same for each step on its own."""
    wanted = values_wanted(trial.run, trial.expected)
    pairs = enumerate(zip(trial.record.values, wanted, strict=True))
    found = [(i, compare(v, e, parts=trial.returns, slack=slack)) for i, (v, e) in pairs]
    return [f if f.passed else replace(f, step=i) for i, f in found]


def values_wanted(run: Run, expected: Record) -> Value:
    """What results are compared with: a Python number that comes of tensors in float32 has their
    digits."""
    some = any(isinstance(value, float) for value in expected.values)
    narrow = some and run.in_float64() and not run.in_float32()
    return as_if_rounded(expected.values) if narrow else expected.values


# --- the kinds of aspect ------------------------------------------------------------------------


def equals_reference(
    title: str, points: float, hint: str, runs: Runs, *, part: int | None = None
) -> Aspect:
    """The results equal those of the reference. `part` selects one part of a tuple."""
    if part is None:
        return Aspect(title, points, hint, runs, judge_each(same_results))

    def judge(trial: Trial) -> Finding:
        findings = []
        for i, value in enumerate(trial.record.values):
            name = trial.returns[part] if trial.returns else f"item {part} of the result"
            name, inner = name if isinstance(name, tuple) else (name, ())
            given = value[part] if isinstance(value, (tuple, list)) and len(value) > part else value
            wanted = trial.expected.values[i][part]
            findings.append(replace(compare(given, wanted, name, parts=inner), step=i))
        return worst(findings)

    return Aspect(title, points, hint, runs, judge_each(judge))


def has_property(
    title: str,
    points: float,
    hint: str,
    runs: Runs,
    holds: Callable[[Run, Record], str | None],
    *,
    only_if_right: bool = False,
    forgeable: bool = False,
) -> Aspect:
    """A property of the result: `holds(run, record)` returns one line on what is wrong, or None."""

    def judge(trial: Trial) -> Finding:
        problem = holds(trial.run, trial.record)
        return wrong(problem) if problem else Finding(True)

    return Aspect(title, points, hint, runs, judge_each(judge), only_if_right, forgeable)


def inputs_untouched(points: float, runs: Runs) -> Aspect:
    """The call leaves its arguments unchanged."""

    def judge(trial: Trial) -> Finding:
        for key in trial.record.changed:
            name = _argument(key.rpartition(".")[2], trial.arguments)
            return wrong(f"the call changed its argument {name} in place")
        hidden = MEMORY in trial.record.side_effects
        return wrong(f"the call changed {MEMORY}") if hidden else Finding(True)

    hint = "Work on a new array: `a = a - b` makes one, `a -= b` writes into the caller's."
    return Aspect(
        "leaves its inputs untouched", points, hint, runs, judge_each(judge), True, forgeable=True
    )


def no_side_effects(points: float, runs: Runs, writes: bool = False) -> Aspect:
    """Global state (random generators, default dtype, grad mode) and what modules that are passed
    in hold are left unchanged; `writes` allows for other numbers in their parameters."""
    hint = "A function that others call must not seed generators or switch global settings."
    return _state_left_alone(points, runs, hint, {MEMORY, NUMBERS} if writes else {MEMORY})


def no_side_effects_of_a_module(points: float, runs: Runs) -> Aspect:
    """The same for a class, whose hint is another one."""
    hint = (
        "A module must not seed generators or switch global settings, nor its own mode, and it "
        "leaves a module that it is given as it is."
    )
    return _state_left_alone(points, runs, hint, {MEMORY})


def _state_left_alone(points: float, runs: Runs, hint: str, allowed: Container[str]) -> Aspect:
    def judge(trial: Trial) -> Finding:
        left = [effect for effect in trial.record.side_effects if effect not in allowed]
        return wrong(f"the call changed {', '.join(left)}") if left else Finding(True)

    return Aspect(
        "leaves global state alone", points, hint, runs, judge_each(judge), True, forgeable=True
    )


def dtypes_kept(points: float, hint: str, runs: Runs) -> Aspect:
    """Every array in the result has the reference's dtype and precision, the result its type.

    Runs with float64 tensors are made with float32 ones as well.
    """

    def draw_both(draw: Draw) -> Sequence[Run]:
        given = runs(draw)
        return [*given, *filter(None, (run.in_float32() for run in given))]

    def judge(trial: Trial) -> Finding:
        pairs = [*zip(trial.record.values, trial.expected.values, strict=True)]
        findings = [
            replace(_same_dtype(v, e, parts=trial.returns), step=i)
            for i, (v, e) in enumerate(pairs)
        ]
        values = Finding(True) if trial.run.random else same_results(trial)
        near = values.relative is not None and values.relative < NEARLY
        if values.kind == "value" and near and any(in_fewer_digits(v, e) for v, e in pairs):
            values = replace(values, kind="digits")
        else:
            values = replace(values, instructive=False)
        return worst([*findings, values])

    hints = {"digits": _PRECISION, "nan": hint}
    judged = judge_each(judge, PRECISION)
    return Aspect("dtype", points, hint, draw_both, judged, True, hints=hints, own=("dtype",))


_PRECISION = (
    "The dtype of the result is right, its digits are those of another: it is computed in that one "
    "and converted at the end."
)


def _same_dtype(
    value: Value, expected: Value, what: str = "the result", parts: Names = ()
) -> Finding:
    if isinstance(expected, (tuple, list)):
        if not isinstance(value, (tuple, list)) or len(value) != len(expected):
            return wrong(expected_got(what, expected, value), "kind")
        trios = zip(value, expected, names_of(expected, what, parts), strict=True)
        return worst([_same_dtype(v, e, name, inner) for v, e, (name, inner) in trios])
    if isinstance(expected, Array):
        given = value.dtype if isinstance(value, Array) else describe(value)
        same = given == expected.dtype
        message = f"{what}: expected {expected.dtype}, got {given}"
        return Finding(True) if same else wrong(message, "dtype")
    if isinstance(expected, float):
        is_float = isinstance(value, float) or (
            isinstance(value, Array) and value.kind == "scalar" and value.dtype == "float64"
        )
        message = f"{what}: expected a float, got {describe(value)}"
        return Finding(True) if is_float else wrong(message, "dtype")
    return Finding(True)


def on_the_inputs_device(points: float, runs: Runs) -> Aspect:
    """The call works on the device of its inputs and leaves its results there: a simulated device.

    Only what the simulation itself refuses counts. An operation that it does not know, and anything
    else that fails there, counts as untried, and passes: other aspects judge the rest.
    """

    def draw_simulated(draw: Draw) -> list[Run]:
        return [replace(r, gradients=False, random=False, simulated=True) for r in runs(draw)]

    def judge(trials: Sequence[Trial]) -> Finding:
        found = [(trial, _stays(trial)) for trial in trials]
        return worst([f if f.passed else with_call(f, t, f.step) for t, f in found])

    title = "runs on the device of its inputs"
    return Aspect(title, points, _DEVICE, draw_simulated, judge, True, forgeable=True)


_DEVICE = (
    "What you make on the way belongs where the arguments are: torch.arange(n, device=x.device), "
    "x.new_zeros(n). Ask x.device, not torch.cuda.is_available() or whether its type is cuda. What "
    "a module keeps moves with it as a parameter or a buffer. (No GPU is needed here: the tensors "
    "only say that they are on one.)"
)


def _names_two_devices(message: str) -> bool:
    """Whether a check of torch's own has seen two devices."""
    rest = message.partition("same device")[2]
    return "meta" in rest and "cpu" in rest


def _stays(trial: Trial) -> Finding:
    raised = trial.record.raised
    if raised is not None:
        refused = raised.types[0] in (TWO_DEVICES, NOT_ON_THE_CPU)
        if not refused and not _names_two_devices(raised.message):
            return Finding(True)
        line = raised.traceback.splitlines()[-1] if raised.traceback else ""
        place, _, code = line.partition(", in ")
        code = code.partition(": ")[2]
        where = f"{place or 'this'} would fail" + (f" ({code})" if code else "")
        message = raised.message.replace(SIMULATED, "cuda:0")
        finding = wrong(f"on a GPU, {where}: {message}", "device")
        return replace(finding, step=len(trial.record.values))
    for i, pair in enumerate(zip(trial.record.values, trial.expected.values, strict=False)):
        left = _left_behind(*pair, parts=trial.returns)
        if left:
            return replace(wrong(f"on a GPU, {left} would be on the CPU", "device"), step=i)
    return Finding(True)


def _left_behind(value: Value, expected: Value, what: str = "the result", parts: Names = ()) -> str:
    """What part of a result is on the CPU and should be elsewhere; empty if none.

    A list is a report to read, such as the best sequences: that may lie anywhere.
    """
    if isinstance(expected, tuple):
        if not isinstance(value, (tuple, list)) or len(value) != len(expected):
            return ""
        trios = zip(value, expected, names_of(expected, what, parts), strict=True)
        return next(filter(None, (_left_behind(v, e, *name) for v, e, name in trios)), "")
    return what if expected == ELSEWHERE and value == "cpu" else ""


def gradients_match(title: str, points: float, hint: str, runs: Runs, if_nan: str = "") -> Aspect:
    """The gradients with respect to every argument and parameter equal the reference's.

    `if_nan` is the hint for a gradient that is not finite.
    """

    def judge(trial: Trial) -> Finding:
        findings = []
        for name, expected in trial.expected.gradients.items():
            given = trial.record.gradients.get(name)
            what = _gradient_name(name, trial.arguments)
            if expected is None:
                findings.append(Finding(True))
            elif given is None:
                whose = what.removeprefix("the gradient of ")
                findings.append(wrong(f"no gradient reaches {whose}", "missing"))
            else:
                found = compare(given, expected, what, slack=GRADIENT_FACTOR)
                if found.kind == "value":  # what is nearly right is not cut off
                    cut = found.relative is None or found.relative > NEARLY
                    found = replace(found, kind="gradient", instructive=cut)
                findings.append(found)
        return worst(findings)

    hints = {"nan": if_nan} if if_nan else {}
    made = lambda draw: [run.with_gradients() for run in runs(draw)]  # noqa: E731
    return Aspect(title, points, hint, made, judge_each(judge), hints=hints)


def _gradient_name(name: str, arguments: Sequence[str]) -> str:
    if name.startswith("parameter "):
        return f"the gradient of {name}"
    return f"the gradient of {_argument(name.rpartition('.')[2], arguments)}"


def _argument(name: str, arguments: Sequence[str]) -> str:
    """The name of an argument that a record lists by position or by name."""
    known = dict(zip(map(str, range(len(arguments))), arguments, strict=True))
    return known.get(name, name[:40])


# --- helpers for declarations -------------------------------------------------------------------


def plain(value: Value) -> np.ndarray | None:
    """The numbers of a result or an argument as float64, or None if it holds none."""
    value = value.array if isinstance(value, StridedArray) else value
    array = numeric(value) or as_array(value)
    return None if array is None else array.data.astype(np.float64)


def numbers_of(value: Value) -> np.ndarray:
    """The same, where there are some for certain."""
    assert (found := plain(value)) is not None, type(value).__name__
    return found


def part(value: Value, index: int) -> Value:
    """One part of a tuple; None where there is no such part."""
    return value[index] if isinstance(value, (tuple, list)) and len(value) > index else None


def not_rows_of_one(weights: Value) -> str | None:
    """Why weights are not non-negative with rows that sum to 1; None if they are."""
    numbers = plain(weights)
    if numbers is None:
        return f"the weights are {describe(weights)}"
    if not np.isfinite(numbers).all():
        return "some weights are not finite"
    if (numbers < 0).any():
        return f"a weight is negative ({numbers.min():.3g})"
    if numbers.ndim == 0:
        return "the weights are a single number"
    sums = numbers.sum(axis=-1).ravel()
    if not sums.size:
        return "there are no weights"
    worst_sum = float(sums[np.abs(sums - 1).argmax()])
    return f"a row of weights sums to {worst_sum:.3g}" if abs(worst_sum - 1) > 1e-5 else None
