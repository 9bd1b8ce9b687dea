"""`simple_attention`: attention by dot products."""

from collections.abc import Sequence

from autograder.engine.aspects import dtypes_kept, equals_reference, has_property, inputs_untouched
from autograder.engine.runs import Draw, Exercise, Run, Strided, call
from autograder.exercises.attention_scoring.shared import (
    large_scores,
    qkv_arrays,
    rows_sum_to_one,
    score_of_minus_infinity,
)


def _simple_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = qkv_arrays(draw, 2, 5, 3, 4)
    return [
        call(*qkv_arrays(draw, 3, 5, 4, 2)),
        call(*qkv_arrays(draw, 6, 2, 3, 5)),
        call(value=value, key=key, query=query).then(*qkv_arrays(draw, 1, 3, 2, 4)),
    ]


def _simple_square(draw: Draw) -> Sequence[Run]:
    return [
        call(*qkv_arrays(draw, 3, 3, 3, 3)),
        call(*qkv_arrays(draw, 2, 2, 2, 2, 2)),
        call(*qkv_arrays(draw, 2, 2, 2, 2, 2, 2)),
    ]


def _simple_batches(draw: Draw) -> Sequence[Run]:
    return [
        call(*qkv_arrays(draw, 3, 4, 5, 2, 2)),
        call(*qkv_arrays(draw, 3, 2, 4, 5, 1)),
        call(*qkv_arrays(draw, 2, 3, 4, 2, 2, 3)),
        call(*map(Strided, qkv_arrays(draw, 3, 2, 4, 5, 2))),
        call(*qkv_arrays(draw, 1, 1, 1, 1, 1)),
    ]


def _simple_large(draw: Draw) -> Sequence[Run]:
    runs = [call(q, k, draw.normal(4, 2)) for q, k in large_scores(draw, 3, 4, 5)]
    return [*runs, call(*score_of_minus_infinity(draw))]


def _simple_integers(draw: Draw) -> Sequence[Run]:
    shapes = (3, 4), (5, 4), (5, 2)
    return [
        call(*(draw.integers(-2, 2, *shape) for shape in shapes)),
        call(*(draw.integers(0, 2, 3, 3) for _ in "qkv")),
    ]


def _simple_dtypes(draw: Draw) -> Sequence[Run]:
    single = tuple(a.astype("float32") for a in qkv_arrays(draw, 3, 4, 2, 5))
    return [call(*single), *_simple_integers(draw)[:1]]


SIMPLE_ATTENTION = Exercise(
    "simple_attention",
    "Attention by dot products",
    ("query", "key", "value"),
    (
        equals_reference(
            "output and weights",
            1.0,
            "Scores: the dot product of every query with every key, (n_q, n_k). Weights: a softmax "
            "along each row. Output: weights @ value. Return (output, weights), and scale nothing.",
            _simple_runs,
        ),
        equals_reference(
            "as many of everything",
            0.25,
            "When all sizes are equal, no wrong order of axes is an error. Rows are queries, "
            "columns are keys, and each row sums to 1.",
            _simple_square,
        ),
        equals_reference(
            "leading batch dimensions",
            0.5,
            "Work on the last two axes. `.T` turns all axes round; np.swapaxes exchanges two.",
            _simple_batches,
        ),
        equals_reference(
            "scores of ±10,000",
            0.5,
            "exp(10000) is infinite. Subtract each row's own largest score first.",
            _simple_large,
        ),
        has_property(
            "each row of weights sums to 1",
            0.25,
            "Each query spreads a weight of 1 over the keys: the sum runs over the last axis.",
            lambda draw: [*_simple_runs(draw)[:1], *_simple_batches(draw)[:3:2]],
            rows_sum_to_one,
            only_if_right=True,
        ),
        equals_reference(
            "whole numbers",
            0.25,
            "Integers give floating-point weights: exp of an integer array is fine, writing "
            "weights back into an integer array is not.",
            _simple_integers,
        ),
        dtypes_kept(0.15, "float32 stays float32, and integers give float64.", _simple_dtypes),
        inputs_untouched(0.1, lambda draw: [*_simple_runs(draw)[:2], *_simple_batches(draw)[:1]]),
    ),
)
