"""`label_smoothed_cross_entropy`: a loss that is never quite sure."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
)
from autograder.engine.runs import Array, Draw, Exercise, Run, Strided, call, tensor
from autograder.exercises.transformer.parameters import padded, token_ids


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, scale=2.0, dtype=dtype)


def _loss_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 2, 4, 7), token_ids(draw, 2, 4, 7)),
        call(_logits(draw, 5, 6), tensor(draw.integers(1, 5, 5)), 0.3),
        call(logits=_logits(draw, 1, 3, 4), target=token_ids(draw, 1, 3, 4), smoothing=0.2),
        call(_logits(draw, 2, 3, 5), tensor([[0, 4, 1], [1, 0, 2]]), 0.1, 3),
    ]


def _loss_ends(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 2, 4, 7), token_ids(draw, 2, 4, 7), 0.0),
        call(_logits(draw, 2, 3, 5), token_ids(draw, 2, 3, 5), smoothing=1.0),
    ]


def _loss_padded(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 3, 5, 6), padded(draw, (5, 2, 1), 6)),
        call(_logits(draw, 2, 4, 6), padded(draw, (4, 1), 6, 2), 0.2, pad_id=2),
        call(_logits(draw, 2, 3, 5), padded(draw, (1, 3), 5), smoothing=0.0),
    ]


def _loss_nothing(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 2, 3, 5), tensor(np.zeros((2, 3), int))),
        call(_logits(draw, 2, 4), tensor([2, 2]), 0.1, 2),
    ]


def _loss_large(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 5, scale=1e4), token_ids(draw, 2, 3, 5)),
        call(tensor(300.0 + draw.normal(2, 3, 5), "float32"), padded(draw, (3, 2), 5), 0.2),
    ]


def _loss_double(draw: Draw) -> Sequence[Run]:
    return [call(_logits(draw, 2, 3, 5, dtype="float64"), padded(draw, (3, 2), 5))]


def _loss_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(_logits(draw, 2, 3, 5)), Strided(token_ids(draw, 2, 3, 5)))]


LABEL_SMOOTHED_CROSS_ENTROPY = Exercise(
    "label_smoothed_cross_entropy",
    "A loss that is never quite sure",
    ("logits", "target", "smoothing", "pad_id"),
    (
        equals_reference(
            "the loss of some logits",
            1.0,
            "Every one of the V tokens gets ε/V of the probability, the right one 1 − ε on top. "
            "The loss is minus the sum of these shares times log-softmax of the logits, averaged "
            "over the tokens.",
            _loss_runs,
        ),
        equals_reference(
            "no smoothing, and nothing but smoothing",
            0.4,
            "With ε = 0 this is the cross-entropy itself; with ε = 1 the target does not matter.",
            _loss_ends,
        ),
        equals_reference(
            "padding does not count",
            0.9,
            "Leave out the positions whose target is pad_id: both of the sum and of the number it "
            "is divided by. All tokens of all rows count alike.",
            _loss_padded,
        ),
        equals_reference(
            "nothing but padding",
            0.4,
            "A mean over nothing is 0/0. Here it is to be 0.",
            _loss_nothing,
        ),
        equals_reference(
            "logits of ±10,000",
            0.3,
            "log_softmax in one step stays finite; the logarithm of a softmax is −∞ where that "
            "has become 0.",
            _loss_large,
        ),
        gradients_match(
            "gradients to the logits",
            0.6,
            "At a token: softmax minus smoothed target, over the number of tokens; at padding: 0.",
            lambda draw: [*_loss_padded(draw), *_loss_nothing(draw)],
        ),
        dtypes_kept(0.2, "float64 logits give a float64 loss.", _loss_double),
        inputs_untouched(0.1, lambda draw: [*_loss_runs(draw), *_loss_padded(draw)]),
        equals_reference(
            "views that are not contiguous", 0.1, "reshape takes any view.", _loss_strided
        ),
    ),
)
