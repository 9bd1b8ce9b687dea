"""`bug_in_softmax`: two tables of scores for a softmax that sums down the columns."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_softmax", "Find the bug: the weights", ("n",), uses=("softmax",), recorded=False
)


def _all_alike(arrays: Arrays) -> str | None:
    if np.ptp(arrays[0], axis=-1).min() < 0.1:
        return "all scores of a row are alike: expected them to differ by 0.1 somewhere"
    return None


BUG = Bug(
    names=("scores",),
    shapes=lambda n: [(n, n)],
    function="softmax",
    dull=_all_alike,
    largest=100.0,
    numpy=True,
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(draw.integer(2, 5)), call(draw.integer(6, 9)), call(draw.integer(10, 30))]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Sum each row of the weights, then each column. Which of the two does the function "
    "bring to 1? Any table in which these sums differ tells the two apart.",
    hides="The two agree where every column has the same sum of exponentials as every row. Take "
    "one row of scores, and let every other row hold the same scores in another order.",
)
