"""`kernel_weights`: other kernels."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call

EXERCISE = Declaration(
    "kernel_weights", "Other kernels", ("query", "key", "kernel", "w"), allows=("softmax",)
)


def _runs(kernel: str):
    def runs(draw: Draw) -> list[Run]:
        key = np.linspace(-1.2, 1.2, 6)[draw.permutation(6)] + draw.uniform(-0.2, 0.2, 6)
        query = key[[4, 0, 5, 1]] + draw.uniform(-0.2, 0.2, 4)  # each with a key in reach
        return [
            call(query, key, kernel, draw.number(1.6, 1.9)),
            call(query, key, kernel, draw.number(0.5, 0.7)),
            call(draw.uniform(-0.5, 0.5, 3), draw.uniform(-0.4, 0.4, 3), kernel),
            call(w=0.8, kernel=kernel, key=key[2:5], query=query[:1]),
            call(query, key[:3], kernel, 0.3).as_views(),
            call(query, key[:1], kernel, 0.3),
            call(np.linspace(-1.0, 1.0, 70), key[:2], kernel, 0.3),
            call(query[:2], np.linspace(-1.0, 1.0, 70), kernel),
        ]

    return runs


EXERCISE.equals(
    "gaussian",
    0.4,
    "exp(−½u²) with u = (x − x_i) w; each row is then divided by its sum over the keys.",
    _runs("gaussian"),
)
EXERCISE.equals(
    "boxcar",
    0.5,
    "1 where |u| ≤ 1, otherwise 0; each row is then divided by its sum. Mind the absolute value.",
    _runs("boxcar"),
)
EXERCISE.equals(
    "epanechnikov",
    0.75,
    "max(0, 1 − u²); each row is then divided by its sum. Without the maximum, distant keys get "
    "negative weights.",
    _runs("epanechnikov"),
)


@EXERCISE.equals("the boxcar includes its edge", 0.25)
def _edge(draw: Draw) -> list[Run]:
    """At exactly |u| = 1 the boxcar is still 1."""
    key = draw.integer(-3, 3) + draw.permutation(7)  # integers, some exactly 2 apart
    return [call(key[draw.permutation(7)[:3]], key, "boxcar", 0.5)]


@EXERCISE.equals("a query with no key in reach", 0.5)
def _nothing(draw: Draw) -> list[Run]:
    """All its weights are 0, and so is their sum: divide by 1 there instead of by 0."""

    # One query with a single key in reach, at a random index, and one with none.
    def run(kernel: str) -> Run:
        query = np.array([0.0, 40.0])[draw.permutation(2)] + draw.uniform(-0.2, 0.2, 2)
        key = np.array([0.0, 3.0, -4.0, 5.0, -7.0, 11.0])[draw.permutation(6)]
        return call(query, key + draw.uniform(-0.2, 0.2, 6), kernel)

    return [run("boxcar"), run("epanechnikov")]


@EXERCISE.equals("gaussian: a query far from every key", 0.1)
def _far(draw: Draw) -> list[Run]:
    """Where all the exponentials vanish, the nearest key still gets its weight: give the exponents
    to your softmax, which subtracts the largest."""
    query = np.array([-500.0, 0.0, 400.0])[draw.permutation(3)] + draw.uniform(-0.2, 0.2, 3)
    return [call(query, draw.normal(4, scale=1e-3), "gaussian", draw.number(1.5, 3.0))]


@EXERCISE.raises("an unknown kernel", 0.25, ValueError)
def _unknown(draw: Draw) -> list[Run]:
    """Raise ValueError for any name other than the three."""
    return [call(draw.normal(2), draw.normal(3), name) for name in ("triangle", "box")]


@EXERCISE.keeps_dtypes(0.1)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32 with every kernel: a comparison, divided by a whole number, is float64.
    Integers give float64."""
    query, key = (draw.uniform(-0.5, 0.5, n, dtype="float32") for n in (3, 4))
    some, whole = np.array([0, 3]), draw.permutation(4)
    runs = []
    for kernel in ("gaussian", "boxcar", "epanechnikov"):
        runs += [call(query, key, kernel, 0.7), call(some, whole, kernel)]
    return runs


EXERCISE.leaves_inputs_alone(0.15, _runs("epanechnikov"))
