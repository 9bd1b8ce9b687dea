"""Compares results within tolerances, and says in words where they differ.

TRUST BOUNDARY. When grading, the values come from a student's process. They are only data, of the
kinds that `values.decode` builds: none of them compares or describes itself.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeGuard

import numpy as np

from autograder.student.engine.arrays import Value
from autograder.student.engine.runs import Finding, Names
from autograder.student.engine.values import Array, Opaque
from autograder.student.engine.words import (
    describe,
    describe_index,
    describe_numbers,
    describe_shape,
)

# Relative and absolute tolerance by dtype: wide enough for another order of operations, too narrow
# for a float64 answer rounded to float32 on the way. A GPU adds in yet another order.
TOLERANCE = {
    "float64": (1e-8, 1e-9),
    "float32": (1e-4, 2e-6),
    "float16": (2e-2, 2e-3),
    "bfloat16": (5e-2, 2e-2),
}
LARGEST_ROW = 10.0  # the absolute tolerance is for rows of numbers around 1, and grows up to this
GPU_FACTOR = 10.0
NEARLY = 0.016  # relative to the largest number: four times what rounding to bfloat16 is off by
GRADIENT_FACTOR = 10.0  # a gradient is a sum of terms that nearly cancel


def tolerance(expected: Array) -> tuple[float, float]:
    """Relative and absolute tolerance for the expected array's dtype and device.

    The device that an answer claims does not count: a lie could widen them.
    """
    relative, absolute = TOLERANCE.get(expected.dtype, (0.0, 0.0))
    factor = 1.0 if expected.device == "cpu" else GPU_FACTOR
    return relative * factor, absolute * factor


def compare(
    value: Value,
    expected: Value,
    what: str = "the result",
    *,
    slack: float = 1.0,
    parts: Names = (),
) -> Finding:
    """Whether `value` equals `expected` within `slack` times its dtype's tolerance; if not, why.

    Structure, shape and kind (NumPy, torch) are compared; dtypes are left to another aspect.
    `parts` names the parts of a tuple.
    """
    if isinstance(expected, tuple):
        if not isinstance(value, (tuple, list)):
            return wrong_kind(
                f"{what}: expected {_tuple_of(expected, parts)}, got {describe(value)}"
            )
        if len(value) != len(expected):
            return wrong_kind(
                f"{what}: expected {_tuple_of(expected, parts)}, got {len(value)} items"
            )
        if expected and all(type(item) is str for item in expected):
            same = all(type(v) is str and v == e for v, e in zip(value, expected, strict=True))
            return Finding(True) if same else wrong(expected_got(what, expected, tuple(value)))
        names = names_of(expected, what, parts)
        pairs = zip(value, expected, names, strict=True)
        found = [compare(v, e, n, slack=slack, parts=inner) for v, e, (n, inner) in pairs]
        return _what_is_right(worst(found), [n for n, _ in names], found) if parts else worst(found)
    if isinstance(expected, list):
        if not isinstance(value, (list, tuple)) or len(value) != len(expected):
            return wrong(expected_got(what, expected, value))
        pairs = zip(value, expected, strict=True)
        return worst([compare(v, e, f"{what}[{i}]", slack=slack) for i, (v, e) in enumerate(pairs)])
    if isinstance(expected, dict):
        if not isinstance(value, dict) or value.keys() != expected.keys():
            keys = f"a dict with {', '.join(map(repr, sorted(expected)))}"
            got = [*sorted(value)] if isinstance(value, dict) else value
            return wrong_kind(f"{what}: expected {keys}, got {describe(got)}")
        found = [compare(value[k], e, f"{what}[{k!r}]", slack=slack) for k, e in expected.items()]
        return worst(found)
    if expected is None or isinstance(expected, (str, bool)):
        same = type(value) is type(expected) and value == expected
        return Finding(True) if same else wrong(expected_got(what, expected, value))
    wanted, given = numeric(expected), numeric(value)
    if wanted is None:
        return (
            Finding(True) if type(value) is Opaque else wrong_kind(f"{what} is {describe(value)}")
        )
    if given is None:
        advice = "; is `return` missing?" if value is None else ""
        return wrong_kind(expected_got(what, expected, value) + advice)
    both_arrays = isinstance(value, Array) and isinstance(expected, Array)
    if both_arrays and "torch" in (given.kind, wanted.kind) and given.kind != wanted.kind:
        return wrong_kind(expected_got(what, expected, value))
    if given.data.shape != wanted.data.shape:
        shapes = describe_shape(wanted.data.shape), describe_shape(given.data.shape)
        return wrong(f"{what}: expected shape {shapes[0]}, got {shapes[1]}", "shape")
    return _compare_numbers(given, wanted, what, slack)


def _compare_numbers(given: Array, wanted: Array, what: str, slack: float) -> Finding:
    if wanted.data.size == 0:
        return Finding(True, error=0.0, tolerance=slack * tolerance(wanted)[1])
    if _same_bits(given.data, wanted.data):
        form = wanted.data.dtype, wanted.data.shape, wanted.dtype, wanted.device
        return Finding(True, error=0.0, tolerance=_least(wanted.data.tobytes(), form, slack))
    with np.errstate(invalid="ignore", over="ignore"):
        b, error = _deviation(given, wanted)
        allowed = _allowance(wanted, b, slack)
        excess = error - allowed
        if not _all_finite(error):
            error = np.where(np.isnan(error), np.inf, error)
            excess = np.where(np.isinf(error), np.inf, excess)
    where = tuple(map(int, np.unravel_index(int(np.argmax(excess)), error.shape)))
    error_there, allowed_there = float(error[where]), float(allowed[where])
    if excess[where] <= 0:
        return Finding(True, error=error_there, tolerance=allowed_there)
    place = f" at {describe_index(where)}" if error.shape else ""
    shown = describe_numbers(wanted.data[where], given.data[where])
    message = f"{what}{place}: expected {shown[0]}, got {shown[1]}{_extent(excess > 0)}"
    kind = "nan" if np.isinf(error[where]) and np.isfinite(b[where]) else "value"
    far = _relative(error, b)
    return Finding(False, message, error_there, allowed_there, kind=kind, relative=far)


def _extent(bad: np.ndarray) -> str:
    """How far numbers are right, if all before some index of an axis are, and none after it has
    everything right; or that one index alone has wrong ones. Positions come before features.
    """
    axes = [*reversed(range(bad.ndim))]
    for axis in axes[1:] + axes[:1]:
        wrong = np.asarray(bad.any(axis=tuple(other for other in axes if other != axis)))
        first, n = int(wrong.argmax()), len(wrong)
        if n < 3:
            continue
        if wrong.sum() == 1:
            return f"; index {first} of axis {axis} alone is wrong"
        if first and wrong[first:].all():
            return f"; right up to index {first - 1} of axis {axis}"
    return ""


def agrees(value: Value, expected: Value, *, slack: float = 1.0) -> bool:
    """Whether `compare` passes, without saying why not: several times as fast."""
    if isinstance(expected, (tuple, list)):
        alike = isinstance(value, (tuple, list)) and len(value) == len(expected)
        return alike and all(
            agrees(v, e, slack=slack) for v, e in zip(value, expected, strict=True)
        )
    if isinstance(expected, dict):
        alike = isinstance(value, dict) and value.keys() == expected.keys()
        return alike and all(agrees(value[k], e, slack=slack) for k, e in expected.items())
    if expected is None or isinstance(expected, (str, bool)):
        return type(value) is type(expected) and value == expected
    wanted, given = numeric(expected), numeric(value)
    if wanted is None:
        return type(value) is Opaque
    if given is None or given.data.shape != wanted.data.shape:
        return False
    if isinstance(value, Array) and isinstance(expected, Array):
        kinds = {given.kind, wanted.kind}
        if "torch" in kinds and len(kinds) == 2:
            return False
    if _same_bits(given.data, wanted.data):
        return True
    with np.errstate(invalid="ignore", over="ignore"):
        b, error = _deviation(given, wanted)
        return bool(((error <= _allowance(wanted, b, slack)) & np.isfinite(error)).all())


def _same_bits(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two arrays of a shape hold the same: the usual case, and the one to tell fast."""
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _deviation(given: Array, wanted: Array) -> tuple[np.ndarray, np.ndarray]:
    """The wanted numbers in float64, and how far the given ones are off."""
    a, b = given.data.astype(np.float64), wanted.data.astype(np.float64)
    error = np.abs(a - b)
    if given.data.dtype.kind in "iu" and wanted.data.dtype.kind in "iu":
        return b, np.maximum(error, given.data != wanted.data)  # float64 has 53 bits of their 64
    if not _all_finite(error):
        error = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, error)
    return b, error


def _allowance(wanted: Array, numbers: np.ndarray, slack: float) -> np.ndarray:
    """How far each number may be off.

    A small one among large ones in its row (the last axis) is what is left over of sums of large
    terms, and is off by as much as they are.
    """
    relative, absolute = (slack * t for t in tolerance(wanted))
    size = np.abs(numbers)
    if not _all_finite(size):
        size = np.where(np.isfinite(size), size, 0.0)
    row = size
    if size.size and size.ndim:  # by ufuncs alone, which is several times as fast as mean and clip
        row = np.sqrt(np.add.reduce(size**2, axis=-1, keepdims=True) / size.shape[-1])
    return absolute * np.minimum(np.maximum(row, 1.0), LARGEST_ROW) + relative * size


@lru_cache(maxsize=1 << 12)  # what is expected of a group of students is expected often
def _least(numbers: bytes, form: tuple[np.dtype, tuple[int, ...], str, str], slack: float) -> float:
    """The least that any of some expected numbers may be off."""
    plain, shape, dtype, device = form
    wanted = Array(np.frombuffer(numbers, plain).reshape(shape), "numpy", dtype, device)
    with np.errstate(invalid="ignore", over="ignore"):
        return float(_allowance(wanted, wanted.data.astype(np.float64), slack).min())


def _all_finite(numbers: np.ndarray) -> bool:
    return bool(np.logical_and.reduce(np.isfinite(numbers), axis=None))


def _relative(error: np.ndarray, wanted: np.ndarray) -> float | None:
    """The largest error relative to the largest expected number; None if one is not finite."""
    largest = np.abs(wanted[np.isfinite(wanted)]).max(initial=0.0)
    if not largest or not np.isfinite(error).all():
        return None
    with np.errstate(over="ignore"):
        return float(error.max() / largest)


def _tuple_of(expected: tuple, parts: Names) -> str:
    """A tuple in words: `(output, weights)`, or else by its length."""
    if len(parts) != len(expected):
        return f"a tuple of {len(expected)}"
    return "(" + ", ".join(_name(part)[0].removeprefix("the ") for part in parts) + ")"


def _name(part: str | tuple[str, Names]) -> tuple[str, Names]:
    return part if isinstance(part, tuple) else (part, ())


def names_of(expected: Sequence, what: str, parts: Names) -> list[tuple[str, Names]]:
    """What each part of a tuple is called, and the parts of that part."""
    if len(parts) == len(expected):
        return [_name(part) for part in parts]
    return [(f"item {i} of {what}", ()) for i in range(len(expected))]


def _what_is_right(finding: Finding, names: Sequence[str], found: Sequence[Finding]) -> Finding:
    """The finding, which also says which other parts of the result came out right."""
    right = [name for name, part in zip(names, found, strict=True) if part.passed]
    if finding.passed or not right:
        return finding
    told = " and ".join(right) + " came out right"
    told += ": look at what is done with them" if right == ["the weights"] else ""
    return replace(finding, message=f"{finding.message}; {told}")


def numeric(value: Value) -> Array | None:
    if isinstance(value, Array):
        return value
    if isinstance(value, (bool, int, float)):
        data = np.asarray(value)
        return None if data.dtype == object else Array(data, "number", data.dtype.name)
    return None


def in_fewer_digits(value: Value, expected: Value) -> bool:
    """Whether numbers all fit into a narrower dtype than theirs, which right ones do not."""
    if isinstance(value, tuple | list) and isinstance(expected, tuple | list):
        return any(in_fewer_digits(*pair) for pair in zip(value, expected, strict=False))
    given, wanted = numeric(value), numeric(expected)
    if given is None or wanted is None or given.dtype not in _NARROWER:
        return False
    bits = _NARROWER[given.dtype]
    return _fit(given.data, bits) and not _fit(wanted.data, bits)


def of_float32(value: Value, expected: Value) -> bool:
    """Whether some numbers that are float64 in a right answer are float32, or have its digits."""
    if isinstance(value, tuple | list) and isinstance(expected, tuple | list):
        return any(of_float32(*pair) for pair in zip(value, expected, strict=False))
    given, wanted = numeric(value), numeric(expected)
    if given is None or wanted is None or wanted.dtype != "float64":
        return False
    return given.dtype == "float32" or in_fewer_digits(given, wanted)


_NARROWER = {"float64": 24, "float32": 11}  # the bits of a number in the next narrower dtype


def _fit(numbers: np.ndarray, bits: int) -> bool:
    """Whether so many bits suffice for every number."""
    scaled = np.ldexp(np.frexp(numbers[np.isfinite(numbers)])[0], bits)
    return bool((scaled == np.round(scaled)).all())


def as_if_rounded(known: Value) -> Value:
    """A known result, whose Python numbers may come from float32 or float64, whichever an answer
    computes in."""
    if isinstance(known, float):
        return Array(np.asarray(known), "number", "float32")
    if isinstance(known, tuple | list):
        return type(known)(map(as_if_rounded, known))
    return known


def expected_got(what: str, expected: Value, value: Value) -> str:
    return f"{what}: expected {describe(expected)}, got {describe(value)}"


def wrong(message: str, kind: str = "value") -> Finding:
    """A finding that does not pass, with one line on what is wrong."""
    return Finding(False, message, kind=kind)


def wrong_kind(message: str) -> Finding:
    """For a result that is not even of the right kind."""
    return Finding(False, message, instructive=False, kind="kind")


def all_shaped(
    arrays: Sequence[np.ndarray | None], shape: tuple[int, ...]
) -> TypeGuard[list[np.ndarray]]:
    """Whether each is an array of this shape."""
    return all(array is not None and array.shape == shape for array in arrays)


def worst(findings: Sequence[Finding]) -> Finding:
    """The first finding that fails; if none does, the one with the largest error."""
    failed = [finding for finding in findings if not finding.passed]
    if failed:
        sizes = [finding.relative for finding in failed if finding.relative is not None]
        whole = len(sizes) == len(failed)
        return replace(
            failed[0],
            relative=max(sizes) if whole else None,
            rounded=all(finding.rounded for finding in failed),
            narrow=any(finding.narrow for finding in failed),
        )
    return max(findings, key=lambda f: f.error or 0.0, default=Finding(True))
