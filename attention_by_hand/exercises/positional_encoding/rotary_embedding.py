"""`rotary_embedding`: rotate by position."""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.shared import transposed
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Record,
    Run,
    Trial,
    call,
    describe,
    plain,
)
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped
from autograder.student.engine.runs import made_by

EXERCISE = Declaration("rotary_embedding", "Rotate by position", ("x", "base", "offset"))


@EXERCISE.equals("each pair is rotated by its angle", 1.25)
def _runs(draw: Draw) -> list[Run]:
    """Positions run along the second-to-last axis. The neighbours 2i and 2i + 1 form a point (u, v)
    that goes to (u cos θ − v sin θ, u sin θ + v cos θ), with θ = pos · base^(−2i/d)."""
    return [
        call(draw.tensor(5, 6)),
        call(draw.tensor(2, 3, 4, 8)),
        call(x=draw.tensor(3, 6, 4)),
        call(draw.tensor(4, 4, 4), 10000.0, 0),
        call(draw.tensor(70, 2)),
        call(draw.tensor(3, 4, scale=1e-3)),
    ]


@EXERCISE.equals("an offset", 0.5)
def _offsets(draw: Draw) -> list[Run]:
    """The first row of x is at position `offset`."""
    return [
        call(draw.tensor(2, 3, 6), offset=draw.integer(2, 5)),
        call(draw.tensor(1, 2, 1, 4), offset=draw.integer(6, 9)),
        call(draw.tensor(4, 4), 10000.0, 3),
    ]


def _distances(run: Run, record: Record) -> str | None:
    """All dot products between rotated rows are the same, wherever the positions start."""
    x = numbers_of(run.steps[0].args[0])
    rotated = [plain(value) for value in record.values]
    if not all_shaped(rotated, x.shape):
        return f"the result: expected shape {x.shape}, got {describe(record.value)}"
    tables = [r @ r.swapaxes(-2, -1) for r in rotated]
    scale = np.linalg.norm(x, axis=-1).max() ** 2
    for step, table in zip(run.steps[1:], tables[1:], strict=True):
        off = np.abs(table - tables[0]).max() / scale
        if not off < 1e-5:
            shift = step.kwargs["offset"]
            return f"shifting all positions by {shift} changes a dot product by {off * scale:.2g}"
    unchanged = np.abs(rotated[0] - x).max() < 1e-3
    return "nothing is rotated" if unchanged else None


@EXERCISE.holds(
    "the dot product depends only on the distance", 0.75, _distances, only_if_right=True
)
def _shifted(draw: Draw) -> list[Run]:
    """Rotating two vectors by the same extra angle keeps the angle between them. Shifting all
    positions must leave every dot product unchanged."""
    x = draw.tensor(2, 5, 8)
    shifts = [draw.integer(1, 9), draw.integer(10, 40)]
    run = call(x)
    for shift in shifts:
        run = run.then(x, offset=shift)
    return [run]


def _lengths(run: Run, record: Record) -> str | None:
    step = run.steps[0]
    x, turned = numbers_of(step.args[0] if step.args else step.kwargs["x"]), plain(record.value)
    if turned is None or turned.shape != x.shape:
        return f"the result: expected shape {x.shape}, got {describe(record.value)}"
    before, after = (np.hypot(a[..., 0::2], a[..., 1::2]) for a in (x, turned))
    off = np.abs(after - before).max()
    return None if off < 1e-5 else f"the length of a pair (2i, 2i + 1) changes by {off:.2g}"


EXERCISE.holds(
    "lengths are preserved",
    0.25,
    _lengths,
    "A rotation moves a pair (2i, 2i + 1) along a circle.",
    _runs,
    _offsets,
    only_if_right=True,
)


@EXERCISE.equals("another base", 0.25)
def _bases(draw: Draw) -> list[Run]:
    """`base` takes the place of the paper's 10000."""
    return [
        call(draw.tensor(4, 6), draw.number(20.0, 90.0)),
        call(draw.tensor(2, 5, 8), base=draw.number(300.0, 900.0), offset=1),
    ]


@EXERCISE.equals("one position, one pair", 0.1)
def _ends(draw: Draw) -> list[Run]:
    """Position 0 is left unchanged. With d = 2 there is one pair, which turns by 1 radian per
    position."""
    return [call(draw.tensor(2, 1, 6)), call(draw.tensor(3, 2)), call(draw.tensor(1, 1, 2))]


@EXERCISE.gradients("gradients reach x", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """The gradient is rotated back. NumPy, .data and .detach() cut it off."""
    return [*_runs(draw)[:2], *_offsets(draw)[:1]]


def _dtype_kept(trial: Trial) -> Finding:
    found, wanted = trial.record.value, trial.expected.value
    if getattr(found, "dtype", None) != wanted.dtype:
        return Finding(False, f"the result: expected {wanted.dtype}, got {describe(found)}")
    numbers, right = numbers_of(found), numbers_of(wanted)
    if numbers.shape != right.shape:
        return Finding(False, f"the result: expected shape {right.shape}, got {describe(found)}")
    within = 1e-5 if wanted.dtype == "float64" else 0.1
    off = np.abs(numbers - right).max()
    return Finding(bool(off < within), f"the result is off by {off:.2g}", float(off), within)


@EXERCISE.aspect("dtype", 0.25, _dtype_kept, only_if_right=True)
def _dtypes(draw: Draw) -> list[Run]:
    """The result has x's dtype: convert cosines and sines to it before multiplying."""
    # Angles may be computed in float32, so right answers differ in its last digits.
    double, half = draw.double(2, 4, 6), draw.tensor(3, 4, dtype="bfloat16")
    return [replace(call(x, offset=2), random=True) for x in (double, half, draw.tensor(3, 4))]


@EXERCISE.equals("a non-contiguous view", 0.05)
def _strided(draw: Draw) -> list[Run]:
    """x may be a head that was split off: reshape copies where a view is impossible."""
    return [call(made_by(transposed, draw.tensor(2, 3, 4)), offset=1)]


EXERCISE.leaves_inputs_alone(0.05, _runs, _offsets)
EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _offsets)
