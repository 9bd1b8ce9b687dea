"""`self_similarity`: a sequence attends to itself."""

import numpy as np

from attention_by_hand.exercises.attention_scoring.shared import permutes
from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS
from autograder.student.authoring import Declaration, Draw, Run, Strided, call

EXERCISE = Declaration(
    "self_similarity", "A sequence attends to itself", ("x",), returns=OUTPUT_AND_WEIGHTS
)


@EXERCISE.equals("output and weights", 0.75)
def _runs(draw: Draw) -> list[Run]:
    """x is query, key and value at once. You have already written the rest."""
    return [
        call(draw.normal(5, 3)),
        call(draw.normal(2, 6)),
        call(x=draw.normal(4, 4)),
        call(draw.normal(1, 3)).then(draw.normal(3, 2)),
    ]


@EXERCISE.equals("leading batch dimensions", 0.35)
def _batches(draw: Draw) -> list[Run]:
    """Each x[b] attends only to itself; `.T` would reverse the batch axes as well."""
    return [
        call(draw.normal(2, 4, 3)),
        call(draw.normal(1, 2, 5)),
        call(draw.normal(2, 2, 2)),
        call(draw.normal(2, 3, 2, 1)),
        call(Strided(draw.normal(2, 3, 2))),
        call(draw.normal(70, 1).round()),  # few distinct rows: what is stored stays small
    ]


@EXERCISE.holds("permuting the rows permutes the output", 0.25, permutes, only_if_right=True)
def _permuted(draw: Draw) -> list[Run]:
    """Nothing here knows about positions: the same rows in another order give the same outputs in
    that order."""
    x, order = draw.normal(6, 3), np.roll(draw.permutation(6), 1)
    order = order if (order != np.arange(6)).any() else order[::-1]
    return [call(x).then(x[order])]


@EXERCISE.equals("scores of ±10,000", 0.35)
def _large(draw: Draw) -> list[Run]:
    """A long row has a large dot product with itself. Subtract each row's largest score."""
    level = 50 + 0.01 * draw.normal(3, 4)
    return [call(level), call(60 * draw.normal(4, 3)), call(np.r_[level, 0.1 * level[:2]])]


EXERCISE.keeps_dtypes(
    0.2,
    "float32 stays float32, and integers give float64.",
    lambda draw: [call(draw.normal(3, 4, dtype="float32")), call(draw.integers(-2, 2, 4, 3))],
)
EXERCISE.leaves_inputs_alone(0.1, lambda draw: [*_runs(draw)[:2], *_batches(draw)[:1]])
