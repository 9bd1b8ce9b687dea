"""`interpolate_positions`: learnt positions for a grid of another size."""

from autograder.student.authoring import Array, Declaration, Draw, Run, Strided, call, tensor

EXERCISE = Declaration(
    "interpolate_positions", "Positions for another size", ("positions", "new_grid")
)


def _positions(draw: Draw, g: int, d: int, dtype: str = "float32") -> Array:
    return draw.tensor(1, 1 + g * g, d, dtype=dtype)


@EXERCISE.equals("a larger grid", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Take the class token's row off; make of the others a picture (1, d_model, g, g); interpolate
    that; turn the result into rows again, and put the class token's row in front."""
    return [
        call(_positions(draw, 3, 4), (5, 5)),
        call(new_grid=(4, 4), positions=_positions(draw, 2, 3)),
        call(_positions(draw, 4, 2), (7, 7)),
    ]


@EXERCISE.equals("a grid that is not square", 0.5)
def _oblong(draw: Draw) -> list[Run]:
    """new_grid is (rows, columns), and the rows of the result come row by row."""
    return [
        call(_positions(draw, 3, 4), (4, 6)),
        call(_positions(draw, 3, 4), (5, 2)),
        call(_positions(draw, 4, 3), (4, 5)),
        call(_positions(draw, 4, 3), (2, 8)),
        call(_positions(draw, 2, 2), (1, 3)),
    ]


@EXERCISE.equals("a smaller grid", 0.25)
def _smaller(draw: Draw) -> list[Run]:
    """Bicubic interpolation as it is, with align_corners=False and without antialiasing."""
    return [
        call(_positions(draw, 5, 3), (3, 3)),
        call(_positions(draw, 6, 2), (2, 2)),
        call(_positions(draw, 4, 2), (1, 1)),
    ]


@EXERCISE.equals("the grid that they have", 0.25)
def _same(draw: Draw) -> list[Run]:
    """Then the positions stay what they are, to the last digit."""
    return [call(_positions(draw, g, d), (g, g)) for g, d in ((3, 4), (2, 1), (1, 5), (5, 2))]


@EXERCISE.equals("one patch, one feature, many patches", 0.3)
def _ends(draw: Draw) -> list[Run]:
    """g is the square root of the number of patches, which is one less than the number of rows."""
    return [
        call(_positions(draw, 1, 3), (2, 3)),
        call(_positions(draw, 3, 1), (4, 2)),
        call(_positions(draw, 9, 1), (10, 8)),
        call(_positions(draw, 11, 1), (15, 14)),  # 11 · (15 / 11) is a little less than 15
        call(_positions(draw, 4, 4), (4, 3)),
        call(Strided(_positions(draw, 3, 4)), (2, 4)),
        call(tensor(1e-3 * draw.normal(1, 10, 2), "float32"), (4, 4)),
    ]


@EXERCISE.raises("patches that form no square", 0.3, ValueError)
def _refused(draw: Draw) -> list[Run]:
    """Six patches may be 2 × 3 or 3 × 2, and nothing says which: raise a ValueError. One of the
    rows is the class token's: of nine rows, eight are patches."""
    return [call(draw.tensor(1, 1 + n, 3), (4, 4)) for n in (6, 8, 2, 15)]


EXERCISE.gradients(
    "gradients reach the positions",
    0.2,
    "Stretched positions are trained further: they still depend on those that they were made of.",
    lambda draw: [
        call(_positions(draw, 3, 2, "float64"), (4, 5)),
        call(_positions(draw, 2, 3, "float64"), (2, 2)),
    ],
)


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 positions give float64, float32 ones float32."""
    return [call(_positions(draw, 3, 2, dtype), (4, 4)) for dtype in ("float64", "float32")]


EXERCISE.leaves_inputs_alone(0.05, _runs, _same)
EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _same)
