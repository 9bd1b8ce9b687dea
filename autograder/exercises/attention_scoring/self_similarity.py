"""`self_similarity`: a sequence attends to itself."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import dtypes_kept, equals_reference, has_property, inputs_untouched
from autograder.engine.runs import Draw, Exercise, Run, Strided, call
from autograder.exercises.attention_scoring.shared import permutes


def _similarity_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(5, 3)),
        call(draw.normal(2, 6)),
        call(x=draw.normal(4, 4)),
        call(draw.normal(1, 3)).then(draw.normal(3, 2)),
    ]


def _similarity_batches(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(2, 4, 3)),
        call(draw.normal(1, 2, 5)),
        call(draw.normal(2, 2, 2)),
        call(draw.normal(2, 3, 2, 1)),
        call(Strided(draw.normal(2, 3, 2))),
    ]


def _similarity_large(draw: Draw) -> Sequence[Run]:
    level = 50 + 0.01 * draw.normal(3, 4)
    return [call(level), call(60 * draw.normal(4, 3)), call(np.r_[level, 0.1 * level[:2]])]


def _similarity_permuted(draw: Draw) -> Sequence[Run]:
    x, order = draw.normal(6, 3), np.roll(draw.permutation(6), 1)
    order = order if (order != np.arange(6)).any() else order[::-1]
    return [call(x).then(x[order])]


SELF_SIMILARITY = Exercise(
    "self_similarity",
    "A sequence attends to itself",
    ("x",),
    (
        equals_reference(
            "output and weights",
            0.75,
            "x is query, key and value at once. You have written the rest already.",
            _similarity_runs,
        ),
        equals_reference(
            "leading batch dimensions",
            0.35,
            "Each x[b] attends to itself alone; `.T` would turn the batch round as well.",
            _similarity_batches,
        ),
        has_property(
            "reordered rows come out reordered",
            0.25,
            "Nothing here knows of positions: the same rows in another order give the same outputs "
            "in that order.",
            _similarity_permuted,
            permutes,
            only_if_right=True,
        ),
        equals_reference(
            "scores of ±10,000",
            0.35,
            "A long row has a large dot product with itself. Subtract each row's largest score.",
            _similarity_large,
        ),
        dtypes_kept(
            0.2,
            "float32 stays float32, and integers give float64.",
            lambda draw: [
                call(draw.normal(3, 4, dtype="float32")),
                call(draw.integers(-2, 2, 4, 3)),
            ],
        ),
        inputs_untouched(
            0.1, lambda draw: [*_similarity_runs(draw)[:2], *_similarity_batches(draw)[:1]]
        ),
    ),
)
