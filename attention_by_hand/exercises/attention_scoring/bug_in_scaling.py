"""`bug_in_scaling`: two inputs for an attention that is scaled by the size of the wrong vectors."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration("bug_in_scaling", "Find the bug: the scale", ("d_k",), recorded=False)


def _uniform(arrays: Arrays) -> str | None:
    query, key, value = arrays
    if np.ptp(query @ key.T, axis=-1).min() < 0.1:
        return "for some query all scores are alike, whatever the scale: expected them to differ"
    if np.ptp(value, axis=0).max() < 0.1:
        return "all values are alike, so every average is the same: expected them to differ"
    return None


BUG = Bug(
    names=("query", "key", "value"),
    shapes=lambda d_k: [("n_q", d_k), ("n_k", d_k), ("n_k", "d_v")],
    function="scale",
    dull=_uniform,
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(draw.integer(2, 5)), call(draw.integer(6, 12)), call(draw.integer(13, 40))]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Which size does the formula take the root of, and which one does the code? Make these "
    "two sizes differ; then make the scores large enough for the scale to matter.",
    hides="Two wrongs that look alike: for which d_v is √d_v the right divisor?",
)
