"""`sinusoidal_encoding`: the table of sines and cosines."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Record, Run, call, describe, plain

EXERCISE = Declaration(
    "sinusoidal_encoding", "The table of sines and cosines", ("max_len", "d_model", "base")
)


@EXERCISE.equals("one row per position", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Positions count from 0. Columns 2i and 2i + 1 share the angle pos / base^(2i/d_model): the
    even column is its sine, the odd one its cosine. The first pair turns by 1 radian per position,
    later ones ever more slowly."""
    return [
        call(6, 8),
        call(draw.integer(7, 9), 4),
        call(max_len=4, d_model=draw.integer(5, 6) * 2),
        call(8, 6, 10000.0),
        call(70, 2),
    ]


def _on_circles(run: Run, record: Record) -> str | None:
    table = plain(record.value)
    args = dict(zip(("max_len", "d_model"), run.steps[0].args, strict=False)) | run.steps[0].kwargs
    shape = args["max_len"], args["d_model"]
    if table is None or table.shape != shape:
        return f"the result: expected shape {shape}, got {describe(record.value)}"
    radius = np.hypot(table[:, 0::2], table[:, 1::2])
    pos, i = np.unravel_index(np.abs(radius - 1).argmax(), radius.shape)
    if abs(radius[pos, i] - 1) > 1e-5:
        return (
            f"at position {pos}, columns {2 * i} and {2 * i + 1} are not sine and cosine of one "
            f"angle: their squares sum to {radius[pos, i] ** 2:.4g}"
        )
    return None


EXERCISE.holds(
    "a sine and its cosine share their angle",
    0.5,
    _on_circles,
    "sin² + cos² is 1 in every pair of columns (2i, 2i + 1), at every position. The i in "
    "the exponent counts pairs, not columns.",
    _runs,
)


@EXERCISE.equals("another base", 0.5)
def _bases(draw: Draw) -> list[Run]:
    """`base` takes the place of the paper's 10000."""
    return [
        call(7, 6, draw.number(20.0, 90.0)),
        call(5, 8, base=draw.number(300.0, 900.0)),
        call(6, 4, base=100.0),
    ]


@EXERCISE.equals("an odd d_model", 0.5)
def _odd(draw: Draw) -> list[Run]:
    """The last column is a sine without a cosine; its angle is what it would be with the cosine
    there, and d_model in the exponent stays the odd number."""
    return [call(6, 7), call(5, 3, draw.number(50.0, 500.0)), call(4, 1), call(3, 9)]


@EXERCISE.equals("one position, two columns", 0.25)
def _ends(_: Draw) -> list[Run]:
    """At position 0 all angles are 0: the sines are 0, the cosines 1. The table keeps both axes."""
    return [call(1, 6), call(4, 2)]


EXERCISE.keeps_dtypes(
    0.15, "The table is float32, whatever dtype the angles were computed in.", _runs
)
EXERCISE.leaves_state_alone(0.1, _runs)
