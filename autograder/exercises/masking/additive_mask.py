"""`additive_mask`: a mask to add."""

from collections.abc import Sequence

from autograder.engine.aspects import dtypes_kept, equals_reference, inputs_untouched, raises
from autograder.engine.runs import Draw, Exercise, Run, Strided, call, tensor
from autograder.exercises.masking.shared import random_mask, torch_dtype


def _additive_runs(draw: Draw) -> Sequence[Run]:
    nothing = random_mask(draw, 3, 4)
    nothing[1] = False
    return [
        call(tensor(nothing)),
        call(mask=tensor(random_mask(draw, 2, 1, 1, 5))),
        call(Strided(tensor(random_mask(draw, 4, 3)))),
        call(tensor(random_mask(draw, 6)), torch_dtype("float32")),
    ]


def _additive_narrow(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(random_mask(draw, 3, 5)), torch_dtype("float16")),
        call(tensor(random_mask(draw, 2, 4)), dtype=torch_dtype("bfloat16")),
    ]


def _additive_wide(draw: Draw) -> Sequence[Run]:
    return [call(tensor(random_mask(draw, 3, 5)), dtype=torch_dtype("float64"))]


def _additive_whole(draw: Draw) -> Sequence[Run]:
    mask = tensor(random_mask(draw, 2, 3))
    return [call(mask, torch_dtype("int64")), call(mask, dtype=torch_dtype("bool"))]


ADDITIVE_MASK = Exercise(
    "additive_mask",
    "A mask to add",
    ("mask", "dtype"),
    (
        equals_reference(
            "in float32",
            1.0,
            "0 where the mask is True, torch.finfo(dtype).min where it is False: the most negative "
            "number there is, and finite.",
            _additive_runs,
        ),
        equals_reference(
            "in float16 and bfloat16",
            0.75,
            "Each dtype has an end of its own: float16 ends at 65504, and what lies beyond is "
            "infinite there. Ask torch.finfo for the dtype you are given.",
            _additive_narrow,
        ),
        equals_reference(
            "in float64",
            0.25,
            "The least float32 is a rather middling float64.",
            _additive_wide,
        ),
        raises(
            "a dtype without fractions",
            0.5,
            "Scores are floating-point: an integer or boolean dtype is a TypeError.",
            _additive_whole,
            TypeError,
        ),
        dtypes_kept(
            0.25,
            "The result has the dtype that the caller names.",
            lambda draw: [*_additive_runs(draw), *_additive_narrow(draw), *_additive_wide(draw)],
        ),
        inputs_untouched(0.25, _additive_runs),
    ),
)
