"""`patchify`: images as rows of patches."""

from collections.abc import Sequence

import numpy as np

from attention_by_hand.exercises.vision_transformer.parameters import images
from autograder.student.authoring import Declaration, Draw, Run, call, tensor

EXERCISE = Declaration("patchify", "Patches", ("images", "patch_size"))


@EXERCISE.equals("patch after patch, channel after channel", 1.2)
def _runs(draw: Draw) -> list[Run]:
    """Give the rows and the columns of the patches axes of their own, next to those of the pixels
    in a patch; move the axes into the order of the result, and only then join them."""
    return [
        call(images(draw, 2, 3, 4, 4), 2),
        call(patch_size=3, images=images(draw, 1, 2, 6, 6)),
        call(images(draw, 3, 1, 6, 6), 2),
    ]


@EXERCISE.equals("images that are not square", 0.5)
def _oblong(draw: Draw) -> list[Run]:
    """The axes are batch, channels, height, width: there are height/p rows of patches, and width/p
    patches in each of them."""
    return [
        call(images(draw, 2, 3, 4, 6), 2),
        call(images(draw, 2, 2, 9, 3), 3),
        call(images(draw, 1, 3, 2, 8), 2),
        call(images(draw, 4, 1, 8, 4), 4),
    ]


@EXERCISE.equals("one patch, one pixel, one channel, many of each", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """A patch may be the whole image or a single pixel. Equal sizes hide swapped axes."""
    return [
        call(images(draw, 2, 3, 4, 4), 4),
        call(images(draw, 2, 3, 3, 4), 1),
        call(images(draw, 1, 1, 2, 2), 2),
        call(images(draw, 2, 2, 2, 2), 1),
        call(images(draw, 1, 66, 2, 4), 2),
        call(images(draw, 1, 1, 66, 2), 2),
        call(images(draw, 1, 1, 1, 66), 1),
        call(images(draw, 66, 1, 1, 1), 1),
    ]


def _sizes(run: Run) -> Sequence[int]:
    """The patch size, and the sides that it does not divide."""
    given, p = run.steps[0].args
    return (*{side for side in given.data.shape[2:] if side % p}, p)


@EXERCISE.raises("sides that patch_size does not divide", 0.35, ValueError, naming=_sizes)
def _refused(draw: Draw) -> list[Run]:
    """Nothing is cut off or filled up: raise a ValueError with the side that does not fit, and with
    patch_size. Either side may be the one."""
    return [
        call(images(draw, 2, 3, 5, 5), 2),
        call(images(draw, 1, 1, 4, 6), 4),
        call(images(draw, 1, 2, 7, 6), 3),
        call(images(draw, 1, 1, 2, 8), 4),
        call(images(draw, 1, 2, 9, 1), 3),
        call(images(draw, 1, 1, 2, 2), 3),
    ]


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view; view does not."""
    return [
        call(images(draw, 2, 3, 4, 6), 2).as_views(),
        call(images(draw, 1, 2, 3, 3), 3).as_views(),
    ]


EXERCISE.gradients(
    "gradients reach the images",
    0.15,
    "Every number goes to one place, and its gradient comes back from there.",
    lambda draw: [call(images(draw, 2, 2, 4, 6, dtype="float64"), 2)],
)


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """Numbers are moved, nothing is computed: pixels keep their dtype, whichever it is."""
    bytes_ = draw.integers(0, 255, 2, 3, 4, 4)
    return [
        call(images(draw, 2, 2, 4, 4, dtype="float64"), 2),
        call(tensor(bytes_, "uint8"), 2),
        call(tensor(bytes_.astype(np.int64)), 4),
    ]


EXERCISE.leaves_inputs_alone(0.1, _runs, _ends)
EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _oblong)
