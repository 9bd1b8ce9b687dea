"""`label_smoothed_cross_entropy`: a loss that is never quite sure."""

import numpy as np

from attention_by_hand.exercises.parameters import padded, token_ids
from autograder.student.authoring import Array, Declaration, Draw, Run, StridedArray, call, tensor

EXERCISE = Declaration(
    "label_smoothed_cross_entropy",
    "A loss that is never quite sure",
    ("logits", "target", "smoothing", "pad_id"),
)


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, scale=2.0, dtype=dtype)


def _sure(draw: Draw) -> Array:
    """Logits of a model that is all but sure of tokens 1 and 3, and right."""
    logits = draw.normal(1, 2, 4, scale=0.2)
    logits[0, [0, 1], [1, 3]] += 9.0
    return tensor(logits, "float32")


@EXERCISE.equals("the loss of random logits", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Each of the V tokens gets ε/V of the probability, and the right one 1 − ε on top. The loss is
    minus the sum of these shares times the log-softmax of the logits, averaged over the tokens."""
    return [
        call(_logits(draw, 2, 4, 7), token_ids(draw, 2, 4, 7)),
        call(_logits(draw, 5, 6), tensor(draw.integers(1, 5, 5)), 0.3),
        call(logits=_logits(draw, 1, 3, 4), target=token_ids(draw, 1, 3, 4), smoothing=0.2),
        call(_logits(draw, 2, 3, 5), tensor([[0, 4, 1], [1, 0, 2]]), 0.1, 3),
        call(_sure(draw), tensor([[1, 3]]), 0.0),
        call(_logits(draw, 2, 3, 1), tensor(np.zeros((2, 3), int)), 0.1, 3),
    ]


@EXERCISE.equals("smoothing 0 and smoothing 1", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """With ε = 0 this is plain cross-entropy; with ε = 1 the target does not matter."""
    return [
        call(_logits(draw, 2, 4, 7), token_ids(draw, 2, 4, 7), 0.0),
        call(_logits(draw, 2, 3, 5), token_ids(draw, 2, 3, 5), smoothing=1.0),
    ]


@EXERCISE.equals("padding does not count", 0.9)
def _padded(draw: Draw) -> list[Run]:
    """Leave out the positions whose target is pad_id, both from the sum and from the number it is
    divided by. All tokens of all rows count alike."""
    return [
        call(_logits(draw, 3, 5, 6), padded(draw, (5, 2, 1), 6)),
        call(_logits(draw, 2, 4, 6), padded(draw, (4, 1), 6, 2), 0.2, pad_id=2),
        call(_logits(draw, 2, 3, 5), padded(draw, (1, 3), 5), smoothing=0.0),
        call(_logits(draw, 2, 3, 5), tensor([[draw.integer(1, 4), 0, 0], [0, 0, 0]])),
    ]


@EXERCISE.equals("padding only", 0.4)
def _nothing(draw: Draw) -> list[Run]:
    """A mean over nothing is 0/0. Return 0 instead."""
    return [
        call(_logits(draw, 2, 3, 5), tensor(np.zeros((2, 3), int))),
        call(_logits(draw, 2, 4), tensor([2, 2]), 0.1, 2),
    ]


@EXERCISE.equals("logits of ±10,000", 0.3)
def _large(draw: Draw) -> list[Run]:
    """log_softmax in one step stays finite; the logarithm of a softmax is −∞ where that has
    underflowed to 0."""
    return [
        call(draw.tensor(2, 3, 5, scale=1e4), token_ids(draw, 2, 3, 5)),
        call(tensor(300.0 + draw.normal(2, 3, 5), "float32"), padded(draw, (3, 2), 5), 0.2),
    ]


EXERCISE.gradients(
    "gradients reach the logits",
    0.6,
    "At a token: softmax minus smoothed target, divided by the number of tokens; at padding: 0.",
    _padded,
    _nothing,
)


@EXERCISE.keeps_dtypes(0.2)
def _double(draw: Draw) -> list[Run]:
    """float64 logits give a float64 loss, float32 logits a float32 loss."""
    return [call(_logits(draw, 2, 3, 5, dtype="float64"), padded(draw, (3, 2), 5))]


EXERCISE.leaves_inputs_alone(0.1, _runs, _padded)


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view."""
    return [call(StridedArray(_logits(draw, 2, 3, 5)), StridedArray(token_ids(draw, 2, 3, 5)))]


EXERCISE.follows_its_inputs(_runs, _padded)
