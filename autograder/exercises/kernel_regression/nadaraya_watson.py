"""`nadaraya_watson`: the kernel regression estimate."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    equals_reference,
    has_property,
    inputs_untouched,
    not_rows_of_one,
    part,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, call
from autograder.exercises.kernel_regression.shared import SCORES_BLOCK, SOFTMAX_BLOCK


def _nw_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5), draw.number(1.5, 3.0)),
        call(draw.normal(6), draw.normal(2), draw.normal(2), draw.number(0.3, 0.7)),
        call(draw.normal(4), draw.normal(4), draw.normal(4)),
        call(value=draw.normal(3), key=draw.normal(3), query=draw.normal(2), w=1.0),
        call(draw.integers(-3, 3, 3), draw.integers(-3, 3, 4), draw.integers(-9, 9, 4)),
    ]


def _nw_vectors(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5, 2), draw.number(1.5, 3.0)),
        call(draw.normal(2), draw.normal(3), draw.normal(3, 1)),
        call(draw.normal(1), draw.normal(3), draw.normal(3, 1)),
        call(draw.normal(4), draw.normal(4), draw.normal(4, 4)),
    ]


def _nw_far(draw: Draw) -> Sequence[Run]:
    far = np.array([-500.0, 400.0]) + draw.normal(2)
    key = draw.normal(4, scale=1e-3)  # so close together that more than one of them counts
    return [call(far, key, draw.normal(4), draw.number(1.5, 3.0))]


def _nw_rows(run: Run, record: Record) -> str | None:
    return not_rows_of_one(part(record.value, 1))


NADARAYA_WATSON = Exercise(
    "nadaraya_watson",
    "The kernel regression estimate",
    ("query", "key", "value", "w"),
    (
        equals_reference(
            "predictions and weights",
            1.25,
            "weights = softmax of the Gaussian scores along the keys (the last axis); "
            "prediction = weights @ value. Return both, prediction first.",
            _nw_runs,
        ),
        equals_reference(
            "values that are vectors",
            0.5,
            "`weights @ value` works for values of shape (n_k,) and (n_k, d_v) alike.",
            _nw_vectors,
        ),
        has_property(
            "each row of weights sums to 1",
            0.25,
            "Each query spreads a total weight of 1 over the keys: the sum runs over the keys.",
            _nw_runs,
            _nw_rows,
            only_if_right=True,
        ),
        equals_reference(
            "a query far from every key",
            0.75,
            "exp(−½·1000²) is 0 in floating point, and 0/0 is NaN. A softmax that subtracts the "
            "largest score gives the nearest key its due.",
            _nw_far,
        ),
        inputs_untouched(0.25, _nw_runs),
    ),
    given={**SOFTMAX_BLOCK, **SCORES_BLOCK},
)
