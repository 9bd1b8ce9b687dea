"""`simple_attention`: attention by dot products."""

from attention_by_hand.exercises.attention_scoring.shared import (
    large_scores,
    qkv_arrays,
    rows_sum_to_one,
    score_of_minus_infinity,
)
from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS
from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call

EXERCISE = Declaration(
    "simple_attention",
    "Attention by dot products",
    ("query", "key", "value"),
    returns=OUTPUT_AND_WEIGHTS,
)


@EXERCISE.equals("output and weights", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Scores: the dot product of every query with every key, (n_q, n_k). Weights: a softmax over
    each row. Output: the weighted sum of the values. Return (output, weights), and do not scale the
    scores."""
    query, key, value = qkv_arrays(draw, 2, 5, 3, 4)
    return [
        call(*qkv_arrays(draw, 3, 5, 4, 2)),
        call(*qkv_arrays(draw, 6, 2, 3, 5)),
        call(value=value, key=key, query=query).then(*qkv_arrays(draw, 1, 3, 2, 4)),
    ]


@EXERCISE.equals("all sizes equal", 0.25)
def _square(draw: Draw) -> list[Run]:
    """When all sizes are equal, a wrong order of axes raises no error. Rows are queries, columns
    are keys, and each row sums to 1."""
    return [
        call(*qkv_arrays(draw, 3, 3, 3, 3)),
        call(*qkv_arrays(draw, 2, 2, 2, 2, 2)),
        call(*qkv_arrays(draw, 2, 2, 2, 2, 2, 2)),
    ]


@EXERCISE.equals("leading batch dimensions", 0.5)
def _batches(draw: Draw) -> list[Run]:
    """Work on the last two axes. `.T` reverses all of them; np.swapaxes exchanges two."""
    return [
        call(*qkv_arrays(draw, 3, 4, 5, 2, 2)),
        call(*qkv_arrays(draw, 3, 2, 4, 5, 1)),
        call(*qkv_arrays(draw, 2, 3, 4, 2, 2, 3)),
        call(*map(StridedArray, qkv_arrays(draw, 3, 2, 4, 5, 2))),
        call(*qkv_arrays(draw, 1, 1, 1, 1, 1)),
        call(*qkv_arrays(draw, 70, 2, 1, 1)),
        call(*qkv_arrays(draw, 2, 70, 1, 1)),
    ]


@EXERCISE.equals("scores of ±10,000", 0.5)
def _large(draw: Draw) -> list[Run]:
    """exp(10000) is infinite. Subtract each row's own largest score first."""
    runs = [call(q, k, draw.normal(4, 2)) for q, k in large_scores(draw, 3, 4, 5)]
    return [*runs, call(*score_of_minus_infinity(draw))]


EXERCISE.holds(
    "each row of weights sums to 1",
    0.25,
    rows_sum_to_one,
    "Each query distributes a weight of 1 over the keys: the sum runs over the last axis.",
    lambda draw: [*_runs(draw)[:1], *_batches(draw)[:3:2]],
    only_if_right=True,
)


@EXERCISE.equals("integers", 0.25)
def _integers(draw: Draw) -> list[Run]:
    """Integers give floating-point weights: taking exp of an integer array is fine, writing weights
    back into one is not."""
    shapes = (3, 4), (5, 4), (5, 2)
    return [
        call(*(draw.integers(-2, 2, *shape) for shape in shapes)),
        call(*(draw.integers(0, 2, 3, 3) for _ in "qkv")),
    ]


@EXERCISE.keeps_dtypes(0.15)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32, and integers give float64."""
    single = tuple(a.astype("float32") for a in qkv_arrays(draw, 3, 4, 2, 5))
    return [call(*single), *_integers(draw)[:1]]


EXERCISE.leaves_inputs_alone(0.1, lambda draw: [*_runs(draw)[:2], *_batches(draw)[:1]])
