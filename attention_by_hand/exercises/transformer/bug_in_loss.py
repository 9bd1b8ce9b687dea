"""`bug_in_loss`: two batches for a loss that is averaged twice."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration("bug_in_loss", "Find the bug: the loss", ("vocab_size",), recorded=False)


def _no_targets(arrays: Arrays) -> str | None:
    logits, target = arrays
    if target.min() < 0 or target.max() >= logits.shape[-1]:
        return f"target: expected ids from 0 to {logits.shape[-1] - 1}"
    if (target == 0).all(axis=1).any():
        return "target: a row is padding only, and has no loss"
    return None


def _too_plain(arrays: Arrays) -> str | None:
    logits, target = arrays
    if len(target) < 2:
        return "a batch of one row has nothing to average twice: expected B of 2 or more"
    if (target != 0).all():
        return "there is no padding in the batch: expected some"
    shifted = logits - logits.max(axis=-1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    token = np.take_along_axis(log_p, target[..., None], axis=-1)[..., 0]
    losses = np.where(target != 0, -token, 0.0).sum(axis=1) / (target != 0).sum(axis=1)
    if np.ptp(losses) < 0.1:
        return "all rows have the same loss, however they are averaged: expected them to differ"
    return None


BUG = Bug(
    names=("logits", "target"),
    shapes=lambda vocab_size: [("B", "n", vocab_size), ("B", "n")],
    function="loss",
    dull=_too_plain,
    unfit=_no_targets,
    ids=("target",),
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(draw.integer(2, 4)), call(draw.integer(5, 9)), call(draw.integer(10, 40))]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="How much does one token count in a row of two, and how much in a row of ten? Let the "
    "loss be high where the rows are short.",
    hides="A mean of means is the mean of all where every part has the same size. Padding may be "
    "there all the same.",
)
