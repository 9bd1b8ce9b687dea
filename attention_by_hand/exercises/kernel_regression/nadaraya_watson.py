"""`nadaraya_watson`: the kernel regression estimate."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Record, Run, call, part
from autograder.student.engine.aspects import not_rows_of_one

EXERCISE = Declaration(
    "nadaraya_watson",
    "The kernel regression estimate",
    ("query", "key", "value", "w"),
    allows=("softmax", "gaussian_scores"),
    returns=("the prediction", "the weights"),
)


@EXERCISE.equals("predictions and weights", 1.25)
def _runs(draw: Draw) -> list[Run]:
    """The weights are the softmax of the Gaussian scores over the keys (the last axis); the
    prediction is the weighted sum of the values. Return both, prediction first."""
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5), draw.number(1.5, 3.0)),
        call(draw.normal(6), draw.normal(2), draw.normal(2), draw.number(0.3, 0.7)),
        call(draw.normal(4), draw.normal(4), draw.normal(4)),
        call(value=draw.normal(3), key=draw.normal(3), query=draw.normal(2), w=1.0),
        call(draw.integers(-3, 3, 3), draw.integers(-3, 3, 4), draw.integers(-9, 9, 4)),
        call(draw.normal(70), draw.normal(2), draw.normal(2)),
        call(draw.normal(2), draw.normal(70), draw.normal(70)),
        call(draw.normal(3), draw.normal(1), draw.normal(1)),
    ]


@EXERCISE.equals("values that are vectors", 0.5)
def _vectors(draw: Draw) -> list[Run]:
    """Matrix multiplication works for values of shape (n_k,) and (n_k, d_v) alike."""
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5, 2), draw.number(1.5, 3.0)),
        call(draw.normal(2), draw.normal(3), draw.normal(3, 1)),
        call(draw.normal(1), draw.normal(3), draw.normal(3, 1)),
        call(draw.normal(4), draw.normal(4), draw.normal(4, 4)),
        call(draw.normal(4), draw.normal(3), draw.normal(3, 2), 0.7).as_views(),
    ]


def _rows(run: Run, record: Record) -> str | None:
    return not_rows_of_one(part(record.value, 1))


EXERCISE.holds(
    "each row of weights sums to 1",
    0.25,
    _rows,
    "Each query distributes a total weight of 1 over the keys: the sum runs over the keys.",
    _runs,
    only_if_right=True,
)


@EXERCISE.equals("a query far from every key", 0.75)
def _far(draw: Draw) -> list[Run]:
    """exp(−½·1000²) is 0 in floating point, and 0/0 is NaN. A softmax that subtracts the largest
    score still gives the nearest key its weight."""
    far = np.array([-500.0, 400.0]) + draw.normal(2)
    key = draw.normal(4, scale=1e-3)  # so close together that more than one of them gets weight
    return [call(far, key, draw.normal(4), draw.number(1.5, 3.0))]


@EXERCISE.keeps_dtypes(0.1)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32, and integers give float64."""
    single = [draw.normal(n, dtype="float32") for n in (3, 4, 4)]
    return [call(*single, 0.7), call(*(draw.integers(-3, 3, n) for n in (2, 3, 3)))]


EXERCISE.leaves_inputs_alone(0.15, _runs)
