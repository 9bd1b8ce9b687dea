"""`shift_right`: what the decoder reads in training."""

from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call, tensor

EXERCISE = Declaration("shift_right", "What the decoder reads in training", ("target", "bos_id"))


@EXERCISE.equals("one step to the right", 0.5)
def _runs(draw: Draw) -> list[Run]:
    """bos comes first, then the target without its last token: position i holds what comes before
    token i. The shape stays the same."""
    return [
        call(tensor(draw.integers(3, 9, 2, 5)), 1),
        call(target=tensor(draw.integers(3, 9, 3, 4)), bos_id=11),
        call(tensor([[7, 5, 4, 2, 0, 0], [6, 2, 0, 0, 0, 0]]), draw.integer(8, 10)),
        call(tensor(draw.integers(3, 9, 3, 3)), bos_id=0),
        call(tensor(draw.integers(3, 9, 1, 70)), 1),
    ]


@EXERCISE.equals("a target of one token", 0.15)
def _single(draw: Draw) -> list[Run]:
    """Of a single token, only bos is left."""
    return [call(tensor(draw.integers(3, 9, 3, 1)), 2), call(tensor([[draw.integer(4, 9)]]), 1)]


@EXERCISE.equals("any batch shape", 0.1)
def _shapes(draw: Draw) -> list[Run]:
    """Shift along the last axis, whatever comes before it."""
    return [call(tensor(draw.integers(3, 9, 5)), 1), call(tensor(draw.integers(3, 9, 2, 3, 4)), 2)]


@EXERCISE.equals("a non-contiguous view", 0.05)
def _strided(draw: Draw) -> list[Run]:
    """Any view will do."""
    return [call(StridedArray(tensor(draw.integers(3, 9, 3, 4))), 1)]


@EXERCISE.keeps_dtypes(0.1)
def _dtypes(draw: Draw) -> list[Run]:
    """Token ids keep their integer dtype."""
    narrow = tensor(draw.integers(3, 9, 2, 4), "int32")
    return [call(tensor(draw.integers(3, 9, 2, 4)), 1), call(narrow, 2)]


EXERCISE.leaves_inputs_alone(0.1, _runs)
EXERCISE.follows_its_inputs(_runs)
