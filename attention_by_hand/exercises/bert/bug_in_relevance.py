"""`bug_in_relevance`: maps for a relevance that averages the heads too early."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_relevance",
    "Find the bug: heads that disagree",
    ("num_heads", "n"),
    recorded=False,
)


def _no_maps(arrays: Arrays) -> str | None:
    weights = arrays[0]
    if (weights < 0).any():
        return f"weights: expected none below 0, got {weights.min():.3g}"
    off = np.abs(weights.sum(-1) - 1.0).max()
    return f"weights: expected rows that sum to 1, got one off by {off:.3g}" if off > 1e-4 else None


def _too_plain(arrays: Arrays) -> str | None:
    product = arrays[0] * arrays[1]
    per_head = np.moveaxis(product, 1, 0).reshape(product.shape[1], -1)
    if not ((per_head > 1e-3).any(1) & (per_head < -1e-3).any(1)).all():
        return (
            "a head whose products of weight and gradient are not of both signs tells little: "
            "expected some above 0.001 and some below −0.001 in every head"
        )
    if np.ptp(product, axis=1).max() < 0.1:
        return "the heads are alike: expected products that differ by 0.1 somewhere"
    return None


BUG = Bug(
    names=("weights", "gradients"),
    shapes=lambda num_heads, n: [("B", num_heads, n, n)] * 2,
    function="relevance",
    dull=_too_plain,
    unfit=_no_maps,
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(2, 2), call(draw.integer(3, 5), draw.integer(3, 6)), call(4, 4)]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Let one head gain where another one loses: what does each function make of the two?",
    hides="The two orders agree wherever no head's positive product is averaged with another one's "
    "negative product. Both signs may still occur in every head.",
)
