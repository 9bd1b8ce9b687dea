"""The kinds of aspect: comparison with the reference, and properties that need no reference."""

import re
from collections.abc import Callable, Container, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.runs import (
    APPLY,
    Aspect,
    Draw,
    Finding,
    Raised,
    Record,
    Run,
    Step,
    Trial,
)
from autograder.engine.state import MEMORY
from autograder.engine.values import Array, Opaque, Previous, Recipe, Strided, as_array

Runs = Callable[[Draw], Sequence[Run]]

# Relative and absolute tolerance by dtype: wide enough for another order of operations, too narrow
# for a float64 answer rounded to float32 on the way. A GPU adds in yet another order.
TOLERANCE = {
    "float64": (1e-8, 1e-9),
    "float32": (1e-4, 2e-6),
    "float16": (2e-2, 2e-3),
    "bfloat16": (5e-2, 2e-2),
}
GPU_FACTOR = 10.0
GRADIENT_FACTOR = 10.0  # a gradient is a sum of terms that nearly cancel


def tolerance(expected: Array) -> tuple[float, float]:
    """Relative and absolute tolerance for the expected array's dtype and device.

    The device that an answer claims does not count: a lie could widen them.
    """
    relative, absolute = TOLERANCE.get(expected.dtype, (0.0, 0.0))
    factor = 1.0 if expected.device == "cpu" else GPU_FACTOR
    return relative * factor, absolute * factor


# --- comparing values ---------------------------------------------------------------------------


def compare(value: Any, expected: Any, what: str = "the result", *, slack: float = 1.0) -> Finding:
    """Whether `value` equals `expected` within `slack` times its dtype's tolerance; if not, why.

    Structure, shape and kind (NumPy, torch) are compared; dtypes are left to another aspect.
    """
    if isinstance(expected, tuple):
        if not isinstance(value, (tuple, list)):
            return _kind(f"{what}: expected a tuple of {len(expected)}, got {describe(value)}")
        if len(value) != len(expected):
            return _kind(f"{what}: expected {len(expected)} parts, got {len(value)}")
        parts = [
            compare(v, e, f"part {i} of {what}", slack=slack)
            for i, (v, e) in enumerate(zip(value, expected, strict=True))
        ]
        return worst(parts)
    if isinstance(expected, list):
        if not isinstance(value, (list, tuple)) or len(value) != len(expected):
            return _wrong(_expected(what, expected, value))
        pairs = zip(value, expected, strict=True)
        return worst([compare(v, e, f"{what}[{i}]", slack=slack) for i, (v, e) in enumerate(pairs)])
    if expected is None or isinstance(expected, (str, bool)):
        same = type(value) is type(expected) and value == expected
        return Finding(True) if same else _wrong(_expected(what, expected, value))
    wanted, given = _numeric(expected), _numeric(value)
    if wanted is None:
        return Finding(True) if isinstance(value, Opaque) else _kind(f"{what} is {describe(value)}")
    if given is None:
        advice = "; is `return` missing?" if value is None else ""
        return _kind(_expected(what, expected, value) + advice)
    both_arrays = isinstance(value, Array) and isinstance(expected, Array)
    if both_arrays and "torch" in (given.kind, wanted.kind) and given.kind != wanted.kind:
        return _kind(_expected(what, expected, value))
    if given.data.shape != wanted.data.shape:
        shapes = _shape(wanted.data.shape), _shape(given.data.shape)
        return _wrong(f"{what}: expected shape {shapes[0]}, got {shapes[1]}")
    return _compare_numbers(given, wanted, what, slack)


def _compare_numbers(given: Array, wanted: Array, what: str, slack: float) -> Finding:
    relative, absolute = (slack * t for t in tolerance(wanted))
    a, b = given.data.astype(np.float64), wanted.data.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        error = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.abs(a - b))
        allowed = absolute + relative * np.where(np.isfinite(b), np.abs(b), 0.0)
    if error.size == 0:
        return Finding(True, error=0.0, tolerance=absolute)
    error = np.where(np.isnan(error), np.inf, error)
    excess = np.where(np.isinf(error), np.inf, error - allowed)
    where = np.unravel_index(int(np.argmax(excess)), error.shape)
    error_there, allowed_there = float(error[where]), float(allowed[where])
    if excess[where] <= 0:
        return Finding(True, error=error_there, tolerance=allowed_there)
    place = f" at {_index(where)}" if error.shape else ""
    shown = _numbers(wanted.data[where], given.data[where])
    message = f"{what}{place}: expected {shown[0]}, got {shown[1]}"
    return Finding(False, message, error_there, allowed_there)


def _numeric(value: Any) -> Array | None:
    if isinstance(value, Array):
        return value
    if isinstance(value, (bool, int, float)):
        data = np.asarray(value)
        return None if data.dtype == object else Array(data, "number", data.dtype.name)
    return None


def describe(value: Any) -> str:
    """A value in a few words, for a message: `None`, `a list`, `an array of shape (3, 4)`."""
    if isinstance(value, Array):
        name = {"torch": "a tensor", "scalar": "a NumPy number"}.get(value.kind, "an array")
        shape = "" if value.kind == "scalar" else f" of shape {_shape(value.data.shape)}"
        return f"{name}{shape} ({value.dtype})"
    if isinstance(value, Opaque):
        return f"an object of type {value.type_name}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, int) and value.bit_length() > 64:
        return "a huge integer"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)[:60]
    return f"an object of type {type(value).__name__}"


def describe_call(run: Run, arguments: Sequence[str]) -> str:
    """The last call of a run in a few words: `query (3,), key (5,), w 1.7`."""
    called = [step for step in run.steps if step.method != APPLY] or run.steps
    step = called[-1] if called else None
    named = [*zip(arguments, step.args, strict=False), *step.kwargs.items()] if step else []
    shown = [f"{name} {_brief(value)}" for name, value in named]
    init = run.init or Step()
    built = [_brief(value) for value in init.args]
    built += [f"{name} {_brief(value)}" for name, value in init.kwargs.items()]
    made = [f"built with {', '.join(built)}"] if built else []
    return "; ".join(made + ([", ".join(shown)] if shown else []))


def _brief(value: Any) -> str:
    value = value.array if isinstance(value, Strided) else value
    if isinstance(value, Array | np.ndarray):
        data = value.data if isinstance(value, Array) else value
        return _shape(data.shape) if data.ndim else f"{data.item():g}"
    if isinstance(value, Recipe):
        return value.name.rpartition(":")[2]
    if isinstance(value, Previous):
        return "from the call before"
    if isinstance(value, tuple | list):
        return f"({', '.join(map(_brief, value))})"
    return repr(value)[:40]


def _shape(shape: tuple[int, ...]) -> str:
    return str(tuple(int(n) for n in shape))


def _index(where: tuple) -> str:
    return "[" + ", ".join(str(int(i)) for i in where) + "]"


def _numbers(*values: Any) -> list[str]:
    """Numbers with enough digits to show that they differ, six at least."""
    for digits in (6, 10, 17):
        shown = [f"{v + 0.0:.{digits}g}" if v.dtype.kind == "f" else str(v) for v in values]
        if len({*shown}) == len(shown):
            break
    return shown


def _expected(what: str, expected: Any, value: Any) -> str:
    return f"{what}: expected {describe(expected)}, got {describe(value)}"


def _wrong(message: str) -> Finding:
    return Finding(False, message)


def _kind(message: str) -> Finding:
    """For a result that is not even of the right kind."""
    return Finding(False, message, instructive=False)


def worst(findings: Sequence[Finding]) -> Finding:
    """The first finding that fails; if none does, the one with the largest error."""
    for finding in findings:
        if not finding.passed:
            return finding
    return max(findings, key=lambda f: f.error or 0.0, default=Finding(True))


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
    return _kind(text)


def each(judge: Callable[[Trial], Finding]) -> Callable[[Sequence[Trial]], Finding]:
    """Judge every trial on its own; an exception fails; the worst trial decides."""

    def judge_all(trials: Sequence[Trial]) -> Finding:
        if not trials:
            return _wrong("nothing was run")
        return worst([_judge_one(t, judge) for t in trials])

    return judge_all


def _judge_one(trial: Trial, judge: Callable[[Trial], Finding]) -> Finding:
    if trial.record.raised:
        return raised_finding(trial.record.raised)
    if len(trial.record.values) != len(trial.run.steps):
        return _wrong(f"expected {len(trial.run.steps)} results, got {len(trial.record.values)}")
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
        return _wrong(problem) if problem else Finding(True)

    return Aspect(title, points, hint, runs, each(judge), only_if_right, looks)


def inputs_untouched(points: float, runs: Runs) -> Aspect:
    """The call leaves its arguments unchanged."""

    def judge(trial: Trial) -> Finding:
        for key in trial.record.changed:
            name = _argument(key.rpartition(".")[2], trial.arguments)
            return _wrong(f"the call changed its argument {name} in place")
        hidden = MEMORY in trial.record.side_effects
        return _wrong(f"the call changed {MEMORY}") if hidden else Finding(True)

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
        return _wrong(f"the call changed {', '.join(left)}") if left else Finding(True)

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
            return _wrong(_expected(what, expected, value))
        pairs = zip(value, expected, strict=True)
        return worst([_same_dtype(v, e, f"part {i} of {what}") for i, (v, e) in enumerate(pairs)])
    if isinstance(expected, Array):
        given = value.dtype if isinstance(value, Array) else describe(value)
        same = given == expected.dtype
        return Finding(True) if same else _wrong(f"{what}: expected {expected.dtype}, got {given}")
    if isinstance(expected, float):
        is_float = isinstance(value, float) or (
            isinstance(value, Array) and value.kind == "scalar" and value.dtype == "float64"
        )
        message = f"{what}: expected a float, got {describe(value)}"
        return Finding(True) if is_float else _wrong(message)
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
        return _wrong(
            f"returned {describe(trial.record.value)} instead of raising {error.__name__}"
        )
    if error.__name__ not in raised.types:
        return _wrong(f"expected {error.__name__}, got {raised}")
    missing = [str(part) for part in naming if not _names(raised.message, part)]
    if missing:
        return _wrong(
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
                    _wrong(f"no gradient reaches {what.removeprefix('the gradient of ')}")
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
    array = _numeric(value) or as_array(value)
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
