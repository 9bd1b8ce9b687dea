"""`leave_one_out_mse`: how good is a bandwidth?"""

import numpy as np

from attention_by_hand.exercises.kernel_regression.shared import uneven_points
from autograder.student.authoring import Declaration, Draw, Run, call

EXERCISE = Declaration(
    "leave_one_out_mse",
    "How good is a bandwidth?",
    ("x", "y", "w"),
    allows=("softmax", "gaussian_scores"),
)


@EXERCISE.equals("the mean squared error", 1.5)
def _runs(draw: Draw) -> list[Run]:
    """Predict each y_i from the other points: a score of −inf on the diagonal gives the point
    itself no weight, and the rest still sums to 1. Then average the squared errors."""
    return [
        call(draw.uniform(0.0, 3.0, 6), draw.normal(6), draw.number(1.5, 3.0)),
        call(draw.uniform(0.0, 3.0, 9), draw.normal(9), draw.number(0.3, 0.7)),
        call(w=1.0, y=draw.normal(4), x=draw.uniform(0.0, 3.0, 4)),
        call(draw.permutation(5), draw.integers(-5, 5, 5), 1.0),
        call(draw.uniform(0.0, 3.0, 5), draw.normal(5), 0.8).as_views(),
        call(draw.uniform(0.0, 3.0, 70), draw.normal(70), 2.0),
        call(draw.uniform(0.0, 3.0, 5), draw.normal(5, scale=1e-2), 1.0),
    ]


@EXERCISE.equals("far too narrow a bandwidth", 0.5)
def _narrow(draw: Draw) -> list[Run]:
    """With w = 300 every other point is out of the Gaussian's reach. Set the score to −inf before a
    stable softmax instead of setting a weight to 0 after it."""
    x = uneven_points(draw)[draw.permutation(5)]
    return [call(x, draw.normal(5), 300.0), call(np.array([0.0, 1.0]), draw.normal(2), 100.0)]


@EXERCISE.equals("two points at the same place", 0.5)
def _twins(draw: Draw) -> list[Run]:
    """Leave out point i itself, not every point whose x equals x_i."""
    x = draw.uniform(0.0, 3.0, 5)
    x[3] = x[1]
    return [call(x, draw.normal(5), draw.number(1.5, 3.0))]


EXERCISE.keeps_dtypes(0.25, "Return a single float, not an array.", _runs)
EXERCISE.leaves_inputs_alone(0.25, _runs)
