"""`bug_in_convolution`: two inputs for a convolution whose kernel is turned round."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_convolution",
    "Find the bug: the kernel",
    ("d_in", "d_out", "k"),
    recorded=False,
)


def _nothing_to_see(arrays: Arrays) -> str | None:
    x, weight = arrays
    if np.ptp(x, axis=1).max(axis=(0, 1)) < 0.1:
        return "x is the same at all positions: expected some feature of it to differ by 0.1"
    if np.ptp(weight, axis=2).min() < 0.1:
        return "a kernel is the same at all its steps: expected each to differ by 0.1"
    return None


BUG = Bug(
    names=("x", "weight"),
    shapes=lambda d_in, d_out, k: [("B", "n", d_in), (d_out, d_in, k)],
    function="convolution",
    dull=_nothing_to_see,
)


def _sizes(draw: Draw) -> list[Run]:
    return [
        call(1, 1, 3),
        call(draw.integer(2, 4), draw.integer(5, 7), 5),
        call(draw.integer(5, 8), draw.integer(2, 4), 7),
    ]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Let x be zero but at one position, and look at where its number goes: to one side with "
    "one function, to which side with the other?",
    hides="Which kernels, other than constant ones, look the same from either end?",
)
