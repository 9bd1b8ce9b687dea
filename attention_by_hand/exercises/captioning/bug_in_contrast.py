"""`bug_in_contrast`: two batches for a contrastive loss that looks one way."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_contrast", "Find the bug: one way of looking", ("B", "d"), recorded=False
)

_SHORTEST, _ALIKE = 0.1, 0.9999


def _too_short(arrays: Arrays) -> str | None:
    shortest = min(np.linalg.norm(vectors, axis=1).min() for vectors in arrays)
    if shortest < _SHORTEST:
        return f"a vector of length {shortest:.3g} in it: expected {_SHORTEST} or more"
    return None


def _too_plain(arrays: Arrays) -> str | None:
    images, texts = (v / np.linalg.norm(v, axis=1, keepdims=True) for v in arrays)
    others = ~np.eye(len(images), dtype=bool)
    for what, vectors in (("pictures", images), ("texts", texts)):
        if (vectors @ vectors.T)[others].max() >= _ALIKE:
            return f"two {what} have the same direction: expected all of them to differ"
    if (images * texts).sum(axis=1).max() >= _ALIKE:
        return "a picture has the direction of its own text: expected another one"
    return None


BUG = Bug(
    names=("image_vectors", "text_vectors"),
    shapes=lambda B, d: [(B, d)] * 2,
    function="contrast",
    dull=_too_plain,
    unfit=_too_short,
)


def _sizes(draw: Draw) -> list[Run]:
    """Many: vectors drawn at random show the bug by luck in some sizes, and hardly ever in all."""
    sizes = [(2, 2), (4, 2), (2, 5), (3, 3), (5, 6), (6, 4)]
    return [call(draw.integer(3, 6), draw.integer(3, 6)), *(call(*size) for size in sizes)]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Which of the two questions does the wrong loss ask: which text belongs to this picture, "
    "or which picture belongs to this text? Make one of them easier than the other.",
    hides="Rows and columns of the similarities give the same loss if picture i is to text j what "
    "picture j is to text i. When are cosines that symmetric?",
)
