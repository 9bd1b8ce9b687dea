"""`shift_matrix`: a step is a rotation."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    describe,
    dtypes_kept,
    equals_reference,
    has_property,
    no_side_effects,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, call


def _shift_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(1, 6),
        call(draw.integer(2, 4), 8),
        call(offset=draw.integer(5, 9), d_model=4),
        call(draw.integer(2, 3), 10, 10000.0),
    ]


def _shift_back(draw: Draw) -> Sequence[Run]:
    return [call(-draw.integer(1, 3), 6), call(offset=-draw.integer(4, 9), d_model=4), call(0, 8)]


def _shift_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(2, 6, draw.number(20.0, 90.0)),
        call(3, 8, base=draw.number(300.0, 900.0)),
    ]


def _shift_pair(draw: Draw) -> Sequence[Run]:
    return [call(draw.integer(1, 6), 2), call(-1, 2)]


def _shift_chains(draw: Draw) -> Sequence[Run]:
    a, b = draw.integer(2, 5), draw.integer(6, 9)
    return [call(a, 6).then(b, 6).then(a + b, 6).then(-a, 6), call(b, 4).then(-a, 4).then(b - a, 4)]


def _shifts_add_up(run: Run, record: Record) -> str | None:
    d = run.steps[0].args[1]
    matrices = [plain(value) for value in record.values]
    if any(m is None or m.shape != (d, d) or not np.isfinite(m).all() for m in matrices):
        return f"the result is {describe(record.value)}"
    first, second, both = matrices[:3]
    a, b = (step.args[0] for step in run.steps[:2])
    if np.abs(first @ second - both).max() > 1e-5:
        return f"a shift by {a} and one by {b} are not a shift by {a + b}"
    if np.abs(first @ first.T - np.eye(d)).max() > 1e-5:
        return "the matrix changes lengths: M Mᵀ is not the identity"
    back = matrices[3] if len(matrices) > 3 else first.T
    return None if np.abs(back - first.T).max() < 1e-5 else "the way back is not the transpose"


SHIFT_MATRIX = Exercise(
    "shift_matrix",
    "A step is a rotation",
    ("offset", "d_model", "base"),
    (
        equals_reference(
            "a shift forwards",
            1.25,
            "Write sin(a + b) and cos(a + b) with the addition theorems: the pair (sin, cos) at "
            "p + offset is a 2 × 2 matrix times the pair at p, and the angle in it is offset times "
            "the pair's frequency. The matrices stand along the diagonal.",
            _shift_runs,
        ),
        equals_reference(
            "a shift backwards, and none",
            0.5,
            "A negative offset turns the other way; offset 0 gives the identity.",
            _shift_back,
        ),
        has_property(
            "shifts add up",
            0.5,
            "Rotations chain: M(a) M(b) = M(a + b), the inverse is the transpose.",
            _shift_chains,
            _shifts_add_up,
            only_if_right=True,
        ),
        equals_reference(
            "another base",
            0.25,
            "`base` stands where the paper has 10000.",
            _shift_bases,
        ),
        equals_reference(
            "a single pair",
            0.25,
            "With d_model = 2 there is one frequency, 1 radian per position.",
            _shift_pair,
        ),
        dtypes_kept(0.15, "The matrix is float32, like the table.", _shift_runs),
        no_side_effects(0.1, _shift_runs),
    ),
)
