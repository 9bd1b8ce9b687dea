"""`rotary_embedding`: rotate by position."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autograder.engine.aspects import (
    describe,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    plain,
)
from autograder.engine.runs import Aspect, Draw, Exercise, Finding, Record, Run, Trial, call
from autograder.exercises.positional_encoding.shared import float64_tensor


def _rotary_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(5, 6)),
        call(draw.tensor(2, 3, 4, 8)),
        call(x=draw.tensor(3, 6, 4)),
        call(draw.tensor(4, 4, 4), 10000.0, 0),
    ]


def _rotary_offsets(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 6), offset=draw.integer(2, 5)),
        call(draw.tensor(1, 2, 1, 4), offset=draw.integer(6, 9)),
        call(draw.tensor(4, 4), 10000.0, 3),
    ]


def _rotary_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(4, 6), draw.number(20.0, 90.0)),
        call(draw.tensor(2, 5, 8), base=draw.number(300.0, 900.0), offset=1),
    ]


def _rotary_ends(draw: Draw) -> Sequence[Run]:
    return [call(draw.tensor(2, 1, 6)), call(draw.tensor(3, 2)), call(draw.tensor(1, 1, 2))]


def _rotary_shifted(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 5, 8)
    shifts = [draw.integer(1, 9), draw.integer(10, 40)]
    run = call(x)
    for shift in shifts:
        run = run.then(x, offset=shift)
    return [run]


def _rotary_distances(run: Run, record: Record) -> str | None:
    """All dot products between rotated rows, q and k in one, are the same wherever they start."""
    x = plain(run.steps[0].args[0])
    rotated = [plain(value) for value in record.values]
    if any(r is None or r.shape != x.shape for r in rotated):
        return f"the result is {describe(record.value)}"
    tables = [r @ r.swapaxes(-2, -1) for r in rotated]
    scale = np.linalg.norm(x, axis=-1).max() ** 2
    for step, table in zip(run.steps[1:], tables[1:], strict=True):
        off = np.abs(table - tables[0]).max() / scale
        if not off < 1e-5:
            shift = step.kwargs["offset"]
            return f"shifting all positions by {shift} changes a dot product by {off * scale:.2g}"
    unchanged = np.abs(rotated[0] - x).max() < 1e-3
    return "nothing is rotated" if unchanged else None


def _rotary_lengths(run: Run, record: Record) -> str | None:
    step = run.steps[0]
    x, turned = plain(step.args[0] if step.args else step.kwargs["x"]), plain(record.value)
    if turned is None or turned.shape != x.shape:
        return f"the result is {describe(record.value)}"
    before, after = (np.hypot(a[..., 0::2], a[..., 1::2]) for a in (x, turned))
    off = np.abs(after - before).max()
    return None if off < 1e-5 else f"a pair (2i, 2i + 1) changes its length by {off:.2g}"


def _rotary_gradients(draw: Draw) -> Sequence[Run]:
    return [*_rotary_runs(draw)[:2], *_rotary_offsets(draw)[:1]]


def _rotary_dtypes(draw: Draw) -> Sequence[Run]:
    """Angles may be computed in float32, so results differ in its last digits."""
    double, half = float64_tensor(draw, 2, 4, 6), draw.tensor(3, 4, dtype="bfloat16")
    return [replace(call(x, offset=2), random=True) for x in (double, half)]


def _rotary_dtype_kept(trial: Trial) -> Finding:
    found, wanted = trial.record.value, trial.expected.value
    if getattr(found, "dtype", None) != wanted.dtype:
        return Finding(False, f"x is {wanted.dtype}, the result {describe(found)}")
    numbers, right = plain(found), plain(wanted)
    if numbers.shape != right.shape:
        return Finding(False, f"the result is {describe(found)}")
    within = 1e-5 if wanted.dtype == "float64" else 0.1
    off = np.abs(numbers - right).max()
    return Finding(bool(off < within), f"the result is off by {off:.2g}", float(off), within)


ROTARY_EMBEDDING = Exercise(
    "rotary_embedding",
    "Rotate by position",
    ("x", "base", "offset"),
    (
        equals_reference(
            "each pair turns by its angle",
            1.25,
            "Positions run along the last axis but one. Pair (2i, 2i + 1), neighbours, is a point "
            "(u, v) that goes to (u cos θ − v sin θ, u sin θ + v cos θ), θ = pos · base^(−2i/d).",
            _rotary_runs,
        ),
        equals_reference(
            "an offset",
            0.5,
            "The first row of x stands at position `offset`.",
            _rotary_offsets,
        ),
        has_property(
            "the dot product depends on the distance only",
            0.75,
            "Rotate two vectors by the same angle more and the angle between them stays. Shifting "
            "all positions must leave every dot product as it was.",
            _rotary_shifted,
            _rotary_distances,
            only_if_right=True,
        ),
        has_property(
            "lengths stay as they are",
            0.25,
            "A rotation moves a pair (2i, 2i + 1) along a circle.",
            lambda d: [*_rotary_runs(d), *_rotary_offsets(d)],
            _rotary_lengths,
            only_if_right=True,
        ),
        equals_reference(
            "another base",
            0.25,
            "`base` stands where the paper has 10000.",
            _rotary_bases,
        ),
        equals_reference(
            "one position, one pair",
            0.1,
            "Position 0 stays as it is. With d = 2 there is one pair, turning by 1 radian.",
            _rotary_ends,
        ),
        gradients_match(
            "gradients flow back to x",
            0.5,
            "The gradient is rotated back. NumPy, .data and .detach() cut it off.",
            _rotary_gradients,
        ),
        Aspect(
            "dtype",
            0.25,
            "The result has x's dtype: bring cosines and sines to it before multiplying.",
            _rotary_dtypes,
            each(_rotary_dtype_kept),
            only_if_right=True,
        ),
        inputs_untouched(0.1, lambda d: [*_rotary_runs(d), *_rotary_offsets(d)]),
        no_side_effects(0.05, _rotary_runs),
    ),
)
