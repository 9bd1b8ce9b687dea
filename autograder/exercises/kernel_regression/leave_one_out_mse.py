"""`leave_one_out_mse`: how good is a bandwidth?"""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import dtypes_kept, equals_reference, inputs_untouched
from autograder.engine.runs import Draw, Exercise, Run, call
from autograder.exercises.kernel_regression.shared import SCORES_BLOCK, SOFTMAX_BLOCK, uneven_points


def _loo_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.uniform(0.0, 3.0, 6), draw.normal(6), draw.number(1.5, 3.0)),
        call(draw.uniform(0.0, 3.0, 9), draw.normal(9), draw.number(0.3, 0.7)),
        call(w=1.0, y=draw.normal(4), x=draw.uniform(0.0, 3.0, 4)),
        call(draw.permutation(5), draw.integers(-5, 5, 5), 1),
    ]


def _loo_narrow(draw: Draw) -> Sequence[Run]:
    x = uneven_points(draw)[draw.permutation(5)]
    return [call(x, draw.normal(5), 300.0), call(np.array([0.0, 1.0]), draw.normal(2), 100.0)]


def _loo_twins(draw: Draw) -> Sequence[Run]:
    x = draw.uniform(0.0, 3.0, 5)
    x[3] = x[1]
    return [call(x, draw.normal(5), draw.number(1.5, 3.0))]


LEAVE_ONE_OUT = Exercise(
    "leave_one_out_mse",
    "How good is a bandwidth?",
    ("x", "y", "w"),
    (
        equals_reference(
            "the mean squared error",
            1.5,
            "Predict each y_i from the other points: a score of −inf on the diagonal gives the "
            "point itself no weight, and the rest still sums to 1. Then the mean of the squares.",
            _loo_runs,
        ),
        equals_reference(
            "a bandwidth far too narrow",
            0.5,
            "With w = 300 every other point is out of the Gaussian's reach. Set the score to −inf "
            "before a stable softmax instead of setting a weight to 0 after it.",
            _loo_narrow,
        ),
        equals_reference(
            "two points at the same place",
            0.5,
            "Leave out point i, not every point whose x equals x_i.",
            _loo_twins,
        ),
        dtypes_kept(0.25, "Return a Python float: float(…) makes one.", _loo_runs),
        inputs_untouched(0.25, _loo_runs),
    ),
    given={**SOFTMAX_BLOCK, **SCORES_BLOCK},
)
