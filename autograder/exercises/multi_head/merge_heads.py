"""`merge_heads`: from heads back to features."""

from collections.abc import Sequence

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
)
from autograder.engine.runs import Draw, Exercise, Run, Strided, call, tensor


def _merge_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 5, 2)),
        call(draw.tensor(1, 2, 4, 4)),
        call(x=draw.tensor(3, 4, 1, 2)),
        call(draw.tensor(2, 1, 3, 5)),
    ]


def _merge_square(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 3, 2)),
        call(draw.tensor(2, 2, 4, 2)),
        call(draw.tensor(3, 3, 3, 3)),
    ]


def _merge_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(draw.tensor(2, 3, 4, 2)))]


def _merge_dtypes(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 2, 3, 4, dtype="float64")),
        call(tensor(draw.integers(-9, 9, 1, 2, 3, 2))),
    ]


MERGE_HEADS = Exercise(
    "merge_heads",
    "From heads back to features",
    ("x",),
    (
        equals_reference(
            "the heads' features stand side by side",
            0.75,
            "Undo the two steps of the split in reverse: exchange the axes of heads and positions, "
            "(B, n, H, d_k), then join the last two.",
            _merge_runs,
        ),
        equals_reference(
            "also where a wrong order has the right shape",
            0.75,
            "Joining without exchanging the axes first mixes positions. "
            "merge_heads(split_heads(x, H)) must be x, number for number.",
            _merge_square,
        ),
        gradients_match(
            "gradients flow back to x",
            0.25,
            "Views and transposes keep the gradient; NumPy, .data and new tensors do not.",
            _merge_runs,
        ),
        equals_reference(
            "a view that is not contiguous",
            0.1,
            "x may be a slice of something larger: reshape copies where a view is impossible.",
            _merge_strided,
        ),
        dtypes_kept(0.1, "Moving numbers about changes no dtype.", _merge_dtypes),
        inputs_untouched(0.05, _merge_runs),
    ),
)
