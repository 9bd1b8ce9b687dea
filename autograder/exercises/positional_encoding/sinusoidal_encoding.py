"""`sinusoidal_encoding`: the table of sines and cosines."""

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


def _table_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(6, 8),
        call(draw.integer(7, 9), 4),
        call(max_len=4, d_model=draw.integer(5, 6) * 2),
        call(8, 6, 10000.0),
    ]


def _table_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(7, 6, draw.number(20.0, 90.0)),
        call(5, 8, base=draw.number(300.0, 900.0)),
        call(6, 4, base=100),
    ]


def _table_odd(draw: Draw) -> Sequence[Run]:
    return [call(6, 7), call(5, 3, draw.number(50.0, 500.0)), call(4, 1), call(3, 9)]


def _table_ends(_: Draw) -> Sequence[Run]:
    return [call(1, 6), call(4, 2)]


def _on_circles(run: Run, record: Record) -> str | None:
    table = plain(record.value)
    args = dict(zip(("max_len", "d_model"), run.steps[0].args, strict=False)) | run.steps[0].kwargs
    if table is None or table.shape != (args["max_len"], args["d_model"]):
        return f"the result is {describe(record.value)}"
    radius = np.hypot(table[:, 0::2], table[:, 1::2])
    pos, i = np.unravel_index(np.abs(radius - 1).argmax(), radius.shape)
    if abs(radius[pos, i] - 1) > 1e-5:
        return (
            f"at position {pos}, columns {2 * i} and {2 * i + 1} are no sine and cosine of one "
            f"angle: their squares sum to {radius[pos, i] ** 2:.4g}"
        )
    return None


SINUSOIDAL_ENCODING = Exercise(
    "sinusoidal_encoding",
    "The table of sines and cosines",
    ("max_len", "d_model", "base"),
    (
        equals_reference(
            "one row per position",
            1.0,
            "Positions count from 0. Columns 2i and 2i + 1 have the same angle, "
            "pos / base^(2i/d_model): the even column is its sine, the odd one its cosine. The "
            "first pair turns by 1 radian per position, later ones ever more slowly.",
            _table_runs,
        ),
        has_property(
            "a sine and its cosine share their angle",
            0.5,
            "sin² + cos² is 1 in every pair of columns (2i, 2i + 1), at every position. The i in "
            "the exponent counts pairs, not columns.",
            _table_runs,
            _on_circles,
        ),
        equals_reference(
            "another base",
            0.5,
            "`base` stands where the paper has 10000.",
            _table_bases,
        ),
        equals_reference(
            "an odd d_model",
            0.5,
            "The last column is a sine without a cosine; its angle is as it would be with the "
            "cosine there, and d_model in the exponent stays the odd number.",
            _table_odd,
        ),
        equals_reference(
            "one position, two columns",
            0.25,
            "At position 0 all angles are 0: sines 0, cosines 1. The table keeps both its axes.",
            _table_ends,
        ),
        dtypes_kept(
            0.15,
            "The table is float32, whatever the angles were computed in.",
            _table_runs,
        ),
        no_side_effects(0.1, _table_runs),
    ),
)
