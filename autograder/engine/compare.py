"""Compares results within tolerances, and says in words where they differ.

TRUST BOUNDARY. When grading, the values come from a student's process. They are only data, of the
kinds that `values.decode` builds, and are never asked to compare or describe themselves.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from autograder.engine.runs import APPLY, Finding, Run, Step
from autograder.engine.values import Array, Opaque, Previous, Recipe, Strided

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


def compare(value: Any, expected: Any, what: str = "the result", *, slack: float = 1.0) -> Finding:
    """Whether `value` equals `expected` within `slack` times its dtype's tolerance; if not, why.

    Structure, shape and kind (NumPy, torch) are compared; dtypes are left to another aspect.
    """
    if isinstance(expected, tuple):
        if not isinstance(value, (tuple, list)):
            return wrong_kind(f"{what}: expected a tuple of {len(expected)}, got {describe(value)}")
        if len(value) != len(expected):
            return wrong_kind(f"{what}: expected {len(expected)} parts, got {len(value)}")
        parts = [
            compare(v, e, f"part {i} of {what}", slack=slack)
            for i, (v, e) in enumerate(zip(value, expected, strict=True))
        ]
        return worst(parts)
    if isinstance(expected, list):
        if not isinstance(value, (list, tuple)) or len(value) != len(expected):
            return wrong(expected_got(what, expected, value))
        pairs = zip(value, expected, strict=True)
        return worst([compare(v, e, f"{what}[{i}]", slack=slack) for i, (v, e) in enumerate(pairs)])
    if expected is None or isinstance(expected, (str, bool)):
        same = type(value) is type(expected) and value == expected
        return Finding(True) if same else wrong(expected_got(what, expected, value))
    wanted, given = numeric(expected), numeric(value)
    if wanted is None:
        return (
            Finding(True)
            if isinstance(value, Opaque)
            else wrong_kind(f"{what} is {describe(value)}")
        )
    if given is None:
        advice = "; is `return` missing?" if value is None else ""
        return wrong_kind(expected_got(what, expected, value) + advice)
    both_arrays = isinstance(value, Array) and isinstance(expected, Array)
    if both_arrays and "torch" in (given.kind, wanted.kind) and given.kind != wanted.kind:
        return wrong_kind(expected_got(what, expected, value))
    if given.data.shape != wanted.data.shape:
        shapes = _shape(wanted.data.shape), _shape(given.data.shape)
        return wrong(f"{what}: expected shape {shapes[0]}, got {shapes[1]}")
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


def numeric(value: Any) -> Array | None:
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


def expected_got(what: str, expected: Any, value: Any) -> str:
    return f"{what}: expected {describe(expected)}, got {describe(value)}"


def wrong(message: str) -> Finding:
    return Finding(False, message)


def wrong_kind(message: str) -> Finding:
    """For a result that is not even of the right kind."""
    return Finding(False, message, instructive=False)


def worst(findings: Sequence[Finding]) -> Finding:
    """The first finding that fails; if none does, the one with the largest error."""
    for finding in findings:
        if not finding.passed:
            return finding
    return max(findings, key=lambda f: f.error or 0.0, default=Finding(True))
