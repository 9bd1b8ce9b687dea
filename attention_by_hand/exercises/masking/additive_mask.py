"""`additive_mask`: a mask to add."""

from attention_by_hand.exercises.masking.shared import torch_dtype
from attention_by_hand.exercises.shared import random_mask
from autograder.student.authoring import Declaration, Draw, Run, Strided, call, tensor

EXERCISE = Declaration("additive_mask", "A mask to add", ("mask", "dtype"))


@EXERCISE.equals("in float32", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """0 where the mask is True; where it is False, the most negative finite number of the dtype,
    which torch.finfo knows."""
    nothing = random_mask(draw, 3, 4)
    nothing[1] = False
    return [
        call(tensor(nothing)),
        call(mask=tensor(random_mask(draw, 2, 1, 1, 5))),
        call(Strided(tensor(random_mask(draw, 4, 3)))),
        call(tensor(random_mask(draw, 6)), torch_dtype("float32")),
    ]


@EXERCISE.equals("in float16 and bfloat16", 0.75)
def _narrow(draw: Draw) -> list[Run]:
    """Each dtype has limits of its own: float16 ends at 65504, and anything beyond is infinite. Ask
    torch.finfo about the dtype you are given."""
    return [
        call(tensor(random_mask(draw, 3, 5)), torch_dtype("float16")),
        call(tensor(random_mask(draw, 2, 4)), dtype=torch_dtype("bfloat16")),
    ]


@EXERCISE.equals("in float64", 0.25)
def _wide(draw: Draw) -> list[Run]:
    """The most negative float32 is far from the most negative float64."""
    return [call(tensor(random_mask(draw, 3, 5)), dtype=torch_dtype("float64"))]


@EXERCISE.raises("a dtype that is not floating-point", 0.5, TypeError)
def _whole(draw: Draw) -> list[Run]:
    """Scores are floating-point: raise TypeError for an integer or boolean dtype."""
    mask = tensor(random_mask(draw, 2, 3))
    return [call(mask, torch_dtype("int64")), call(mask, dtype=torch_dtype("bool"))]


EXERCISE.keeps_dtypes(
    0.25, "The result has the dtype that the caller passes.", _runs, _narrow, _wide
)
EXERCISE.leaves_inputs_alone(0.25, _runs)
EXERCISE.follows_its_inputs(_runs)
