"""`shift_right`: what the decoder reads in training."""

from collections.abc import Sequence

from autograder.engine.aspects import dtypes_kept, equals_reference, inputs_untouched
from autograder.engine.runs import Draw, Exercise, Run, Strided, call, tensor


def _shift_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.integers(3, 9, 2, 5)), 1),
        call(target=tensor(draw.integers(3, 9, 3, 4)), bos_id=11),
        call(tensor([[7, 5, 4, 2, 0, 0], [6, 2, 0, 0, 0, 0]]), draw.integer(8, 10)),
        call(tensor(draw.integers(3, 9, 3, 3)), bos_id=0),
    ]


def _shift_single(draw: Draw) -> Sequence[Run]:
    return [call(tensor(draw.integers(3, 9, 3, 1)), 2), call(tensor([[draw.integer(4, 9)]]), 1)]


def _shift_shapes(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.integers(3, 9, 5)), 1),
        call(tensor(draw.integers(3, 9, 2, 3, 4)), 2),
    ]


def _shift_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(tensor(draw.integers(3, 9, 3, 4))), 1)]


def _shift_dtypes(draw: Draw) -> Sequence[Run]:
    narrow = tensor(draw.integers(3, 9, 2, 4), "int32")
    return [call(tensor(draw.integers(3, 9, 2, 4)), 1), call(narrow, 2)]


SHIFT_RIGHT = Exercise(
    "shift_right",
    "What the decoder reads in training",
    ("target", "bos_id"),
    (
        equals_reference(
            "one step to the right",
            0.5,
            "bos comes first, then the target without its last token: at position i stands what "
            "comes before token i. The shape stays.",
            _shift_runs,
        ),
        equals_reference(
            "a target of one token",
            0.15,
            "Of one token nothing is left but bos.",
            _shift_single,
        ),
        equals_reference(
            "any batch shape",
            0.1,
            "Shift along the last axis, whatever stands before it.",
            _shift_shapes,
        ),
        equals_reference(
            "a view that is not contiguous", 0.05, "Any view will do.", _shift_strided
        ),
        dtypes_kept(0.1, "Token ids stay integers of their dtype.", _shift_dtypes),
        inputs_untouched(0.1, _shift_runs),
    ),
)
