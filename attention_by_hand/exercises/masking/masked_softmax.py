"""`masked_softmax`: a softmax that obeys a mask."""

import numpy as np

from attention_by_hand.exercises.shared import random_mask
from autograder.student.authoring import (
    Declaration,
    Draw,
    Record,
    Run,
    StridedArray,
    call,
    describe,
    plain,
    tensor,
)
from autograder.student.engine.aspects import numbers_of

EXERCISE = Declaration(
    "masked_softmax",
    "A softmax that obeys a mask",
    ("scores", "mask"),
    forbids=("attention", "softmax_with_mask"),
)


@EXERCISE.equals("without a mask", 0.5)
def _plain(draw: Draw) -> list[Run]:
    """Without a mask this is the plain softmax over the last axis."""
    return [
        call(draw.tensor(3, 5, scale=2.0)),
        call(draw.tensor(2, 3, 2, 4), None),
        call(scores=draw.tensor(1, 3)),
        call(StridedArray(draw.tensor(4, 3)), mask=None),
        call(draw.tensor(2, 70)),
    ]


@EXERCISE.equals("with a mask", 0.75)
def _masked(draw: Draw) -> list[Run]:
    """Forbidden scores become −∞ before the softmax, so that the rest still sums to 1. True means
    may attend, whereas masked_fill fills where it is given True."""
    return [
        call(draw.tensor(4, 5, scale=2.0), tensor(random_mask(draw, 4, 5))),
        call(draw.tensor(2, 3, 3, 4), mask=tensor(random_mask(draw, 2, 3, 3, 4))),
        call(StridedArray(draw.tensor(3, 6)), StridedArray(tensor(random_mask(draw, 3, 6)))),
        call(mask=tensor(random_mask(draw, 5)), scores=draw.tensor(5)),
    ]


@EXERCISE.equals("a mask that broadcasts", 0.5)
def _broadcast(draw: Draw) -> list[Run]:
    """The mask may be (n_k,), (n_q, n_k) or (B, 1, 1, n_k): let torch broadcast it."""
    return [
        call(draw.tensor(2, 3, 4, 5), tensor(random_mask(draw, 2, 1, 1, 5))),
        call(draw.tensor(2, 3, 4, 5), tensor(random_mask(draw, 4, 5))),
        call(draw.tensor(3, 3, 3), tensor(random_mask(draw, 3))),
        call(draw.tensor(2, 2, 2, 3), tensor(random_mask(draw, 2, 1, 3))),
    ]


def _exact_zeros(run: Run, record: Record) -> str | None:
    args = dict(zip(("scores", "mask"), run.steps[0].args, strict=False)) | run.steps[0].kwargs
    weights, mask = plain(record.value), numbers_of(args["mask"])
    if weights is None or weights.shape != numbers_of(args["scores"]).shape:
        shape = numbers_of(args["scores"]).shape
        return f"the result: expected shape {shape}, got {describe(record.value)}"
    hidden = weights[~np.broadcast_to(mask, weights.shape).astype(bool)]
    if np.isnan(hidden).any():
        return "a forbidden key gets the weight NaN"
    if (hidden != 0).any():
        return f"the weight of a forbidden key: expected 0, got {np.abs(hidden).max():.3g}"
    sums = weights.sum(-1)
    off = np.abs(sums - np.broadcast_to(mask, weights.shape).any(-1)).max()
    return None if off < 1e-5 else f"a row of weights sums to {sums.flat[0]:.6g}"


def _large(draw: Draw) -> list[Run]:
    mask = random_mask(draw, 4, 6)
    near = draw.uniform(-2.0, 2.0, 4, 6)
    low = np.array([[-1e4], [0.0], [-300.0], [9e3]])  # about the visible scores of each row
    return [
        call(tensor(np.where(mask, near + low, near + 1e4), "float32"), tensor(mask)),
        call(tensor(draw.uniform(-1e4, 1e4, 3, 5), "float32"), tensor(random_mask(draw, 3, 5))),
    ]


EXERCISE.holds(
    "forbidden keys get exactly 0",
    0.5,
    _exact_zeros,
    "No finite number is small enough to add: a forbidden score of 10,000 next to allowed ones of "
    "−10,000 must still count for nothing. exp(−∞) is 0.",
    lambda draw: [*_large(draw)[:1], *_masked(draw)],
)
EXERCISE.equals(
    "scores of ±10,000",
    0.25,
    "torch.softmax subtracts a row's largest score. Apply the mask first, so that the largest is "
    "one that counts.",
    _large,
)


@EXERCISE.equals("scores of −inf", 0.25)
def _infinite(draw: Draw) -> list[Run]:
    """0 · (−∞) is NaN. Replace forbidden scores; never multiply them."""
    scores, mask = draw.normal(3, 5), random_mask(draw, 3, 5)
    for row, allowed in zip(scores, mask, strict=True):
        seen, hidden = np.flatnonzero(allowed), np.flatnonzero(~allowed)
        row[hidden[0]] = -np.inf
        row[seen[1:2]] = -np.inf  # and an allowed one, where another allowed one is left
    alone = draw.normal(3, 4)
    alone[0, 1] = alone[2, :3] = -np.inf
    return [call(tensor(scores, "float32"), tensor(mask)), call(tensor(alone, "float32"))]


@EXERCISE.equals("a fully masked row", 0.75)
def _nothing(draw: Draw) -> list[Run]:
    """With nothing to attend to, the weights are 0. A row of −∞ only is 0/0 in a softmax, and a row
    of equal large negative numbers gives the average of everything forbidden."""
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
    """Whether gradients can be compared: constant zeros, which are right, pass none on."""
    return bool(run.steps[0].args[1].data.any())


EXERCISE.gradients(
    "finite gradients",
    1.0,
    "Stay in torch from start to end. What the mask forbids gets a gradient of 0, and so does a "
    "row that may attend to nothing.",
    lambda draw: [*_masked(draw), *filter(_some_row_sees, _nothing(draw)), *_plain(draw)],
    if_nan="Once the softmax has produced NaN, its backward pass produces NaN again, whatever you "
    "write over the result. Give such a row harmless scores before the softmax, and zeros after "
    "it.",
)


@EXERCISE.keeps_dtypes(0.25)
def _dtypes(draw: Draw) -> list[Run]:
    """float64 stays float64 and float16 stays float16, in which −1e9 does not exist and 1e-30 is
    0, so that dividing by it gives NaN."""
    some = tensor(random_mask(draw, 3, 4))
    mask = random_mask(draw, 3, 4)
    mask[1] = False
    return [
        call(draw.double(3, 4), some),
        call(draw.tensor(3, 4, dtype="float16"), some),
        call(draw.tensor(3, 4, dtype="float16"), tensor(mask)),
        call(draw.tensor(2, 4, dtype="bfloat16")),
        call(draw.tensor(2, 4)),
    ]


EXERCISE.leaves_inputs_alone(0.25, _masked, _nothing)
EXERCISE.follows_its_inputs(_masked, _nothing)
