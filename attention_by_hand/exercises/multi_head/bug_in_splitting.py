"""`bug_in_splitting`: two inputs for a `split_heads` that only reshapes."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_splitting", "Find the bug: the heads", ("num_heads", "d_k"), recorded=False
)


def _nothing_to_mix(arrays: Arrays) -> str | None:
    (x,) = arrays
    if x.shape[1] < 2:
        return "a sequence of one position has nothing to mix: expected n of 2 or more"
    if any(len(np.unique(sequence)) < 2 for sequence in x):
        return "all numbers of a sequence are alike: expected at least two that differ"
    return None


BUG = Bug(
    names=("x",),
    shapes=lambda num_heads, d_k: [("B", "n", num_heads * d_k)],
    function="split",
    dull=_nothing_to_mix,
    extra_arguments=lambda num_heads, d_k: (num_heads,),
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(draw.integer(low, low + 2), draw.integer(2, 9)) for low in (2, 4, 7)]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Number the entries of a small x from 0, and print what each of the two makes of it. The "
    "shapes are the same; compare the numbers.",
    hides="The function hands each head a run of d_k numbers from the wrong place. If every such "
    "run in x holds the same d_k numbers, the place does not matter.",
)
