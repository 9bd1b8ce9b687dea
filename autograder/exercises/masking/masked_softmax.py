"""`masked_softmax`: a softmax that obeys a mask."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    describe,
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, Strided, call, tensor
from autograder.exercises.masking.shared import random_mask


def _softmax_plain(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(3, 5, scale=2.0)),
        call(draw.tensor(2, 3, 2, 4), None),
        call(scores=draw.tensor(1, 3)),
        call(Strided(draw.tensor(4, 3)), mask=None),
    ]


def _softmax_masked(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(4, 5, scale=2.0), tensor(random_mask(draw, 4, 5))),
        call(draw.tensor(2, 3, 3, 4), mask=tensor(random_mask(draw, 2, 3, 3, 4))),
        call(Strided(draw.tensor(3, 6)), Strided(tensor(random_mask(draw, 3, 6)))),
        call(mask=tensor(random_mask(draw, 5)), scores=draw.tensor(5)),
    ]


def _softmax_broadcast(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 4, 5), tensor(random_mask(draw, 2, 1, 1, 5))),
        call(draw.tensor(2, 3, 4, 5), tensor(random_mask(draw, 4, 5))),
        call(draw.tensor(3, 3, 3), tensor(random_mask(draw, 3))),
        call(draw.tensor(2, 2, 2, 3), tensor(random_mask(draw, 2, 1, 3))),
    ]


def _softmax_large(draw: Draw) -> Sequence[Run]:
    mask = random_mask(draw, 4, 6)
    near = draw.uniform(-2.0, 2.0, 4, 6)
    low = np.array([[-1e4], [0.0], [-300.0], [9e3]])  # the visible scores of each row, about
    return [
        call(tensor(np.where(mask, near + low, near + 1e4), "float32"), tensor(mask)),
        call(tensor(draw.uniform(-1e4, 1e4, 3, 5), "float32"), tensor(random_mask(draw, 3, 5))),
    ]


def _softmax_infinite(draw: Draw) -> Sequence[Run]:
    scores, mask = draw.normal(3, 5), random_mask(draw, 3, 5)
    for row, allowed in zip(scores, mask, strict=True):
        seen, hidden = np.flatnonzero(allowed), np.flatnonzero(~allowed)
        row[hidden[0]] = -np.inf
        row[seen[1:2]] = -np.inf  # and one that may be seen, where another is left
    alone = draw.normal(3, 4)
    alone[0, 1] = alone[2, :3] = -np.inf
    return [call(tensor(scores, "float32"), tensor(mask)), call(tensor(alone, "float32"))]


def _softmax_nothing(draw: Draw) -> Sequence[Run]:
    mask = random_mask(draw, 4, 5)
    mask[[0, 2]] = False
    lengths = np.array([[[[True, True, False]]], [[[False, False, False]]]])
    return [
        call(draw.tensor(4, 5, scale=2.0), tensor(mask)),
        call(draw.tensor(2, 2, 3, 3), tensor(lengths)),
        call(draw.tensor(2, 3, scale=1e4), tensor(np.zeros((1, 3), bool))),
        call(draw.tensor(2, 1), tensor(np.array([[False], [True]]))),
    ]


def _some_row_sees(run: Run) -> bool:
    """Whether there is a gradient to ask for: constant zeros, a right answer, pass none on."""
    return bool(run.steps[0].args[1].data.any())


def _exact_zeros(run: Run, record: Record) -> str | None:
    args = dict(zip(("scores", "mask"), run.steps[0].args, strict=False)) | run.steps[0].kwargs
    weights, mask = plain(record.value), plain(args["mask"])
    if weights is None or weights.shape != plain(args["scores"]).shape:
        return f"the result is {describe(record.value)}"
    hidden = weights[~np.broadcast_to(mask, weights.shape).astype(bool)]
    if np.isnan(hidden).any():
        return "a key that the mask forbids gets the weight NaN"
    if (hidden != 0).any():
        return f"a key that the mask forbids gets the weight {np.abs(hidden).max():.3g}, not 0"
    sums = weights.sum(-1)
    off = np.abs(sums - np.broadcast_to(mask, weights.shape).any(-1)).max()
    return None if off < 1e-5 else f"a row of weights sums to {sums.flat[0]:.6g}"


def _softmax_dtypes(draw: Draw) -> Sequence[Run]:
    some = tensor(random_mask(draw, 3, 4))
    mask = random_mask(draw, 3, 4)
    mask[1] = False
    return [
        call(draw.tensor(3, 4, dtype="float64"), some),
        call(draw.tensor(3, 4, dtype="float16"), some),
        call(draw.tensor(3, 4, dtype="float16"), tensor(mask)),
        call(draw.tensor(2, 4, dtype="bfloat16")),
    ]


MASKED_SOFTMAX = Exercise(
    "masked_softmax",
    "A softmax that obeys a mask",
    ("scores", "mask"),
    (
        equals_reference(
            "without a mask",
            0.5,
            "Without a mask this is the softmax over the last axis.",
            _softmax_plain,
        ),
        equals_reference(
            "with a mask",
            0.75,
            "Forbidden scores become −∞ before the softmax: the rest then still sums to 1. True "
            "means may attend, and masked_fill fills where it is given True.",
            _softmax_masked,
        ),
        equals_reference(
            "a mask that broadcasts",
            0.5,
            "The mask may be (n_k,), (n_q, n_k), (B, 1, 1, n_k): let torch broadcast it.",
            _softmax_broadcast,
        ),
        has_property(
            "forbidden keys get exactly 0",
            0.5,
            "Nothing finite is small enough to add: a forbidden score of 10,000 beside allowed "
            "ones of −10,000 must still count for nothing. exp(−∞) is 0.",
            lambda draw: [*_softmax_large(draw)[:1], *_softmax_masked(draw)],
            _exact_zeros,
        ),
        equals_reference(
            "scores of ±10,000",
            0.25,
            "torch.softmax subtracts the largest score of a row. Mask before it, so that the "
            "largest is one that counts.",
            _softmax_large,
        ),
        equals_reference(
            "scores of −inf",
            0.25,
            "0 · (−∞) is NaN. Replace forbidden scores (masked_fill, where); never multiply them.",
            _softmax_infinite,
        ),
        equals_reference(
            "a row in which all is forbidden",
            0.75,
            "Nothing to attend to means weights of 0. A row of nothing but −∞ is 0/0 in a softmax, "
            "and one of equal large negative numbers is an average of everything forbidden.",
            _softmax_nothing,
        ),
        gradients_match(
            "finite gradients",
            1.0,
            "Where the softmax has made NaN, its backward pass makes NaN again, whatever you put "
            "over the result. Give such a row harmless scores before the softmax, and zeros after.",
            lambda draw: [
                *_softmax_masked(draw),
                *filter(_some_row_sees, _softmax_nothing(draw)),
                *_softmax_plain(draw),
            ],
        ),
        dtypes_kept(
            0.25,
            "float64 stays float64 and float16 stays float16, in which −1e9 does not exist.",
            _softmax_dtypes,
        ),
        inputs_untouched(0.25, lambda draw: [*_softmax_masked(draw), *_softmax_nothing(draw)]),
    ),
)
