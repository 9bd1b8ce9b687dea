"""`split_heads`: from features to heads."""

from collections.abc import Sequence

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    raises,
)
from autograder.engine.runs import Draw, Exercise, Run, Strided, call, tensor


def _split_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 5, 6), 3),
        call(draw.tensor(1, 4, 8), 2),
        call(draw.tensor(3, 1, 6), 2),
        call(x=draw.tensor(2, 4, 12), num_heads=4),
    ]


def _split_square(draw: Draw) -> Sequence[Run]:
    """As many positions as heads, or as features in a head: every wrong order has a right shape."""
    return [
        call(draw.tensor(2, 3, 9), 3),
        call(draw.tensor(2, 2, 8), 2),
        call(draw.tensor(4, 4, 16), 4),
    ]


def _split_ends(draw: Draw) -> Sequence[Run]:
    return [call(draw.tensor(2, 3, 5), 1), call(draw.tensor(2, 3, 5), 5)]


def _split_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(draw.tensor(2, 5, 6)), 2)]


def _split_dtypes(draw: Draw) -> Sequence[Run]:
    whole = tensor(draw.integers(-9, 9, 2, 3, 4))
    return [call(draw.tensor(2, 3, 4, dtype="float64"), 2), call(whole, 2)]


def _split_uneven(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 14), 4),
        call(draw.tensor(1, 3, 7), 2),
        call(draw.tensor(2, 4, 3), 8),
    ]


SPLIT_HEADS = Exercise(
    "split_heads",
    "From features to heads",
    ("x", "num_heads"),
    (
        equals_reference(
            "each head gets its slice of the features",
            1.0,
            "Two steps. First cut the last axis in two, (B, n, H, d_k), positions still in place; "
            "then exchange two axes, (B, H, n, d_k). Cutting straight to (B, H, n, d_k) has the "
            "right shape and mixes positions.",
            _split_runs,
        ),
        equals_reference(
            "also where a wrong order has the right shape",
            0.75,
            "Number the entries of a small x from 0 and compare by eye: head 0 must hold the first "
            "d_k features of every position, in their order.",
            _split_square,
        ),
        equals_reference(
            "one head, and one feature per head",
            0.25,
            "One head is x with an axis of length 1 added; with d_model heads, d_k = 1.",
            _split_ends,
        ),
        raises(
            "features that the heads cannot share equally",
            0.5,
            "Raise ValueError before reshaping, and name both numbers: d_model and num_heads.",
            _split_uneven,
            ValueError,
            naming=lambda run: (run.steps[0].args[0].data.shape[-1], run.steps[0].args[1]),
        ),
        gradients_match(
            "gradients flow back to x",
            0.25,
            "Views and transposes keep the gradient; NumPy, .data and new tensors do not.",
            _split_runs,
        ),
        equals_reference(
            "a view that is not contiguous",
            0.1,
            "x may be a slice of something larger: reshape copies where a view is impossible.",
            _split_strided,
        ),
        dtypes_kept(0.1, "Moving numbers about changes no dtype.", _split_dtypes),
        inputs_untouched(0.05, _split_runs),
    ),
)
