"""`bug_in_shifting`: two batches for a loss that is not shifted."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_shifting", "Find the bug: the shift", ("vocab_size",), recorded=False
)


def _no_text(arrays: Arrays) -> str | None:
    logits, ids = arrays
    if ids.min() < 0 or ids.max() >= logits.shape[-1]:
        return f"ids: expected ids from 0 to {logits.shape[-1] - 1}"
    return "n = 1: nothing is predicted, expected n of 2 or more" if ids.shape[1] < 2 else None


def _too_plain(arrays: Arrays) -> str | None:
    logits, ids = arrays
    if (np.ptp(ids, axis=1) == 0).any():
        return "a row repeats one token, which hides any shift: expected two different ones"
    if (np.ptp(logits, axis=-1) < 0.1).any():
        return "where all logits are alike, so is the loss of every token: expected them to differ"
    return None


BUG = Bug(
    names=("logits", "ids"),
    shapes=lambda vocab_size: [("B", "n", vocab_size), ("B", "n")],
    function="next_token_loss",
    dull=_too_plain,
    unfit=_no_text,
    ids=("ids",),
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(draw.integer(2, 4)), call(draw.integer(5, 9)), call(draw.integer(10, 40))]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Which tokens does the wrong loss look up in the logits, and which does the right one? "
    "Let the logits be kind to the ones and not to the others.",
    hides="Take a model that ignores what it reads, with the same logits at every position: then "
    "only which tokens are looked up counts, not where. Of which tokens does one sum have "
    "more than the other?",
)
