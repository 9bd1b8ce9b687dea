"""`softmax`: scores into weights."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Record, Run, StridedArray, call, plain
from autograder.student.engine.aspects import not_rows_of_one, numbers_of

EXERCISE = Declaration("softmax", "Scores into weights", ("scores", "axis"))


@EXERCISE.equals("weights of random scores", 1.0)
def _random(draw: Draw) -> list[Run]:
    """Take exp of each score and divide by the sum of exp over the last axis. Keep that axis when
    you sum, so that every row is divided by its own sum."""
    return [call(draw.normal(3, 5, scale=2.0)), call(draw.normal(1, 4)), call(draw.normal(4, 1))]


@EXERCISE.equals("any number of dimensions, any axis", 0.5)
def _axes(draw: Draw) -> list[Run]:
    """Sum along `axis`, whichever it is, and keep it as an axis of length 1, so that the shapes
    still broadcast."""
    return [
        call(draw.normal(4)),
        call(draw.normal(2, 3, 4), axis=1),
        call(draw.normal(3, 4), 0),
        call(draw.normal(2, 3, 2, 5), axis=-2),
        call(StridedArray(draw.normal(4, 3))),
        call(scores=draw.normal(3, 3)).then(draw.normal(3, 3)),
        call(draw.integers(-3, 3, 3, 3), axis=0),
        call(draw.uniform(-9.0, 9.0, 2, 70), axis=1),
    ]


@EXERCISE.equals("scores of ±10,000", 0.5)
def _large(draw: Draw) -> list[Run]:
    """exp(10000) overflows to infinity, exp(−10000) underflows to 0, and ∞/∞ and 0/0 are NaN.
    Subtract each row's largest score first: the weights stay the same, and the largest exp is 1."""
    return [
        call(draw.uniform(-1.0, 1.0, 3, 4) + 1e4),
        call(draw.uniform(-1.0, 1.0, 3, 4) - 1e4),
        call(draw.uniform(-1.0, 1.0, 3, 3) + np.array([[1e4], [0.0], [-1e4]])),
        call(draw.uniform(-1e4, 1e4, 4, 6)),
    ]


def _exact_zeros(run: Run, record: Record) -> str | None:
    scores, weights = numbers_of(run.steps[0].args[0]), plain(record.value)
    if weights is None or weights.shape != scores.shape:
        return "the result does not have the shape of the scores"
    there = weights[np.isneginf(scores)]
    if np.isnan(there).any():
        return "an entry of −inf gives NaN"
    if (there != 0).any():
        return f"an entry of −inf gives {there.max():.3g}, not exactly 0"
    return not_rows_of_one(weights)


@EXERCISE.holds("−inf gets exactly 0", 0.25, _exact_zeros)
def _masked(draw: Draw) -> list[Run]:
    """A score of −inf marks a key that must be ignored. Its exp is 0; add nothing to it."""
    scores = draw.normal(4, 5)
    scores[0, 1:3] = scores[2, 4] = -np.inf
    return [call(scores), call(scores - 600.0)]


@EXERCISE.equals("a row of −inf only", 0.25)
def _nothing(draw: Draw) -> list[Run]:
    """With nothing to attend to, all weights are 0. The largest score is −inf, and −inf − (−inf) is
    NaN: subtract 0 there instead, and divide by 1 where the sum is 0."""
    scores = draw.normal(4, 5)
    scores[1] = -np.inf
    return [call(scores), call(np.full(3, -np.inf)), call(scores.T.copy(), axis=0)]


@EXERCISE.keeps_dtypes(0.25)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32 and integers become float64: compute with the array you are given,
    without fixing a dtype."""
    return [call(draw.normal(3, 4, dtype="float32")), call(draw.integers(-3, 3, 2, 5))]


EXERCISE.leaves_inputs_alone(0.25, _random, _masked)
