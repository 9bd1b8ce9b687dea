"""`shift_matrix`: a step is a rotation."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Record, Run, call, describe, plain
from autograder.student.engine.compare import all_shaped

EXERCISE = Declaration("shift_matrix", "A step is a rotation", ("offset", "d_model", "base"))


@EXERCISE.equals("a forward shift", 1.25)
def _runs(draw: Draw) -> list[Run]:
    """Write sin(a + b) and cos(a + b) with the angle addition formulas: the pair (sin, cos) at p +
    offset is a 2 × 2 matrix times the pair at p, and the angle in it is offset times the pair's
    frequency. The matrices lie along the diagonal."""
    return [
        call(1, 6),
        call(draw.integer(2, 4), 8),
        call(offset=draw.integer(5, 9), d_model=4),
        call(draw.integer(2, 3), 10, 10000.0),
        call(1, 20),
    ]


@EXERCISE.equals("a backward shift, and none", 0.5)
def _back(draw: Draw) -> list[Run]:
    """A negative offset rotates the other way; offset 0 gives the identity."""
    return [call(-draw.integer(1, 3), 6), call(offset=-draw.integer(4, 9), d_model=4), call(0, 8)]


def _shifts_add_up(run: Run, record: Record) -> str | None:
    d = run.steps[0].args[1]
    matrices = [plain(value) for value in record.values]
    if not all_shaped(matrices, (d, d)) or not np.isfinite(matrices).all():
        return f"the result: expected finite numbers ({d}, {d}), got {describe(record.value)}"
    first, second, both = matrices[:3]
    a, b = (step.args[0] for step in run.steps[:2])
    if np.abs(first @ second - both).max() > 1e-5:
        return f"a shift by {a} and one by {b} do not make a shift by {a + b}"
    if np.abs(first @ first.T - np.eye(d)).max() > 1e-5:
        return "the matrix changes lengths: M Mᵀ is not the identity"
    back = matrices[3] if len(matrices) > 3 else first.T
    return None if np.abs(back - first.T).max() < 1e-5 else "the inverse shift is not the transpose"


@EXERCISE.holds("shifts add up", 0.5, _shifts_add_up, only_if_right=True)
def _chains(draw: Draw) -> list[Run]:
    """Rotations compose: M(a) M(b) = M(a + b), and the inverse is the transpose."""
    a, b = draw.integer(2, 5), draw.integer(6, 9)
    return [call(a, 6).then(b, 6).then(a + b, 6).then(-a, 6), call(b, 4).then(-a, 4).then(b - a, 4)]


@EXERCISE.equals("another base", 0.25)
def _bases(draw: Draw) -> list[Run]:
    """`base` takes the place of the paper's 10000."""
    return [call(2, 6, draw.number(20.0, 90.0)), call(3, 8, base=draw.number(300.0, 900.0))]


@EXERCISE.equals("a single pair", 0.25)
def _pair(draw: Draw) -> list[Run]:
    """With d_model = 2 there is one frequency, 1 radian per position."""
    return [call(draw.integer(1, 6), 2), call(-1, 2)]


EXERCISE.keeps_dtypes(0.15, "The matrix is float32, like the table.", _runs)
EXERCISE.leaves_state_alone(0.1, _runs)
