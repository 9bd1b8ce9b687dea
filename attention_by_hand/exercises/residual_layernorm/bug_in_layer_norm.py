"""`bug_in_layer_norm`: two inputs for a layer norm that normalises whole sequences."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_layer_norm", "Find the bug: the norm", ("n", "d_model"), recorded=False
)


def _nothing_to_normalise(arrays: Arrays) -> str | None:
    flat = np.ptp(arrays[0], axis=-1).min() < 0.1
    return "the features of some token are alike: expected them to differ by 0.1" if flat else None


BUG = Bug(
    names=("x",),
    shapes=lambda n, d_model: [("B", n, d_model)],
    function="norm",
    dull=_nothing_to_normalise,
)


def _sizes(draw: Draw) -> list[Run]:
    return [
        call(2, draw.integer(2, 5)),
        call(draw.integer(3, 6), draw.integer(6, 9)),
        call(draw.integer(7, 20), draw.integer(10, 20)),
    ]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Which numbers share a mean and a variance here, and which should? Give the tokens of "
    "one sequence different means, or spreads.",
    hides="When is the mean of a whole sequence the mean of each of its tokens, and its variance "
    "theirs? The tokens need not be equal for that.",
)
