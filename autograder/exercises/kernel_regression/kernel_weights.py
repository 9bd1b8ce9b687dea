"""`kernel_weights`: other kernels."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import equals_reference, inputs_untouched, raises
from autograder.engine.runs import Draw, Exercise, Run, call
from autograder.exercises.kernel_regression.shared import SOFTMAX_BLOCK


def _kernel_runs(kernel: str):
    def runs(draw: Draw) -> Sequence[Run]:
        key = np.linspace(-1.2, 1.2, 6)[draw.permutation(6)] + draw.uniform(-0.2, 0.2, 6)
        query = key[[4, 0, 5, 1]] + draw.uniform(-0.2, 0.2, 4)  # each with a key in reach
        return [
            call(query, key, kernel, draw.number(1.6, 1.9)),
            call(query, key, kernel, draw.number(0.5, 0.7)),
            call(draw.uniform(-0.5, 0.5, 3), draw.uniform(-0.4, 0.4, 3), kernel),
            call(w=0.8, kernel=kernel, key=key[2:5], query=query[:1]),
        ]

    return runs


def _kernel_edge(draw: Draw) -> Sequence[Run]:
    key = draw.integer(-3, 3) + draw.permutation(7)  # whole numbers, some exactly 2 apart
    return [call(key[draw.permutation(7)[:3]], key, "boxcar", 0.5)]


def _kernel_nothing(draw: Draw) -> Sequence[Run]:
    """One query with a single key in reach, whose place is drawn, and one without any."""

    def run(kernel: str) -> Run:
        query = np.array([0.0, 40.0])[draw.permutation(2)] + draw.uniform(-0.2, 0.2, 2)
        key = np.array([0.0, 3.0, -4.0, 5.0, -7.0, 11.0])[draw.permutation(6)]
        return call(query, key + draw.uniform(-0.2, 0.2, 6), kernel)

    return [run("boxcar"), run("epanechnikov")]


def _kernel_unknown(draw: Draw) -> Sequence[Run]:
    return [call(draw.normal(2), draw.normal(3), name) for name in ("triangle", "box")]


KERNEL_WEIGHTS = Exercise(
    "kernel_weights",
    "Other kernels",
    ("query", "key", "kernel", "w"),
    (
        equals_reference(
            "gaussian",
            0.5,
            "exp(−½u²), each row divided by its sum over the keys; u = (x − x_i) w.",
            _kernel_runs("gaussian"),
        ),
        equals_reference(
            "boxcar",
            0.5,
            "1 where |u| ≤ 1, else 0; then each row divided by its sum. Mind the absolute value.",
            _kernel_runs("boxcar"),
        ),
        equals_reference(
            "epanechnikov",
            0.75,
            "max(0, 1 − u²), then each row divided by its sum. Without the max, far keys get "
            "negative weights.",
            _kernel_runs("epanechnikov"),
        ),
        equals_reference(
            "boxcar includes its edge",
            0.25,
            "At |u| = 1 exactly the boxcar is still 1: ≤, not <.",
            _kernel_edge,
        ),
        equals_reference(
            "a query without any key in reach",
            0.5,
            "All its weights are 0 and so is their sum: divide by 1 there instead of by 0.",
            _kernel_nothing,
        ),
        raises(
            "an unknown kernel",
            0.25,
            "Raise ValueError for any name but the three.",
            _kernel_unknown,
            ValueError,
        ),
        inputs_untouched(0.25, _kernel_runs("epanechnikov")),
    ),
    given=SOFTMAX_BLOCK,
)
