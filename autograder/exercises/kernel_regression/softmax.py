"""`softmax`: scores into weights."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    has_property,
    inputs_untouched,
    not_rows_of_one,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, Strided, call


def _softmax_random(draw: Draw) -> Sequence[Run]:
    return [call(draw.normal(3, 5, scale=2.0)), call(draw.normal(1, 4)), call(draw.normal(4, 1))]


def _softmax_axes(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(4)),
        call(draw.normal(2, 3, 4), axis=1),
        call(draw.normal(3, 4), 0),
        call(draw.normal(2, 3, 2, 5), axis=-2),
        call(Strided(draw.normal(4, 3))),
        call(scores=draw.normal(3, 3)).then(draw.normal(3, 3)),
        call(draw.integers(-3, 3, 3, 3), axis=0),
    ]


def _softmax_large(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.uniform(-1.0, 1.0, 3, 4) + 1e4),
        call(draw.uniform(-1.0, 1.0, 3, 4) - 1e4),
        call(draw.uniform(-1.0, 1.0, 3, 3) + np.array([[1e4], [0.0], [-1e4]])),
        call(draw.uniform(-1e4, 1e4, 4, 6)),
    ]


def _softmax_masked(draw: Draw) -> Sequence[Run]:
    scores = draw.normal(4, 5)
    scores[0, 1:3] = scores[2, 4] = -np.inf
    return [call(scores), call(scores - 600.0)]


def _softmax_nothing(draw: Draw) -> Sequence[Run]:
    scores = draw.normal(4, 5)
    scores[1] = -np.inf
    return [call(scores), call(np.full(3, -np.inf)), call(scores.T.copy(), axis=0)]


def _softmax_dtypes(draw: Draw) -> Sequence[Run]:
    return [call(draw.normal(3, 4, dtype="float32")), call(draw.integers(-3, 3, 2, 5))]


def _exact_zeros(run: Run, record: Record) -> str | None:
    scores, weights = plain(run.steps[0].args[0]), plain(record.value)
    if weights is None or weights.shape != scores.shape:
        return "the result has not the shape of the scores"
    there = weights[np.isneginf(scores)]
    if np.isnan(there).any():
        return "an entry of −inf gives NaN"
    if (there != 0).any():
        return f"an entry of −inf gives {there.max():.3g}, not exactly 0"
    return not_rows_of_one(weights)


SOFTMAX = Exercise(
    "softmax",
    "Scores into weights",
    ("scores", "axis"),
    (
        equals_reference(
            "weights of random scores",
            1.0,
            "exp of each score, divided by the sum of exp over the last axis. Keep that axis in "
            "the sum (keepdims=True), so that every row is divided by its own sum.",
            _softmax_random,
        ),
        equals_reference(
            "any number of dimensions, any axis",
            0.5,
            "Sum along `axis`, which may be any, and let keepdims=True keep the shapes in line.",
            _softmax_axes,
        ),
        equals_reference(
            "scores of ±10,000",
            0.5,
            "exp(10000) is infinite, exp(−10000) is zero, and ∞/∞ and 0/0 are NaN. Subtract each "
            "row's largest score first: the weights stay the same, and the largest exp is 1.",
            _softmax_large,
        ),
        has_property(
            "−inf gets exactly 0",
            0.25,
            "A score of −inf is a key that must not be looked at. Its exp is 0; nothing may be "
            "added to it.",
            _softmax_masked,
            _exact_zeros,
        ),
        equals_reference(
            "a row of nothing but −inf",
            0.25,
            "Nothing to attend to gives all-zero weights. Its largest score is −inf, and "
            "−inf − (−inf) is NaN: put 0 there first, and divide by 1 where the sum is 0.",
            _softmax_nothing,
        ),
        dtypes_kept(
            0.25,
            "float32 stays float32 and integers become float64: build on the array you are given.",
            _softmax_dtypes,
        ),
        inputs_untouched(0.25, lambda draw: [*_softmax_random(draw), *_softmax_masked(draw)]),
    ),
)
