"""`bug_in_patches`: images for patches that come column by column."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, call
from autograder.student.authoring.counterexample import Arrays, Bug

EXERCISE = Declaration(
    "bug_in_patches", "Find the bug: the order of the patches", ("image_size",), recorded=False
)

_PATCH = 2


def _too_plain(arrays: Arrays) -> str | None:
    (images,) = arrays
    B, C, size, _ = images.shape
    cut = images.reshape(B, C, size // _PATCH, _PATCH, size // _PATCH, _PATCH)
    means = cut.mean((3, 5))
    for axis, kind in ((3, "row"), (2, "column")):
        if np.ptp(means, axis=axis).min() < 0.1:
            return (
                f"in a {kind} of patches, all means are alike: expected two that differ by 0.1 or "
                f"more in every {kind}"
            )
    return None


BUG = Bug(
    names=("images",),
    shapes=lambda image_size: [("B", "C", image_size, image_size)],
    function="patch_means",
    dull=_too_plain,
    extra_arguments=lambda image_size: (_PATCH,),
)


def _sizes(draw: Draw) -> list[Run]:
    return [call(4), call(6), call(2 * draw.integer(4, 8))]


BUG.declare(
    EXERCISE,
    _sizes,
    shows="Which patch is the second one for each function? Let these two differ.",
    hides="Write down the numbers that both functions give the patches of a 3 × 3 grid. Which "
    "patches have to agree, so that nobody notices?",
)
