"""`EncoderLayer`: a layer of the encoder."""

from dataclasses import replace
from typing import Any

import numpy as np

from attention_by_hand.exercises.layer_dropout import (
    both_dropouts,
    inner_dropout,
    read_in_training,
)
from attention_by_hand.exercises.parameters import causal, layer_run, layer_state
from attention_by_hand.exercises.shared import random_mask
from attention_by_hand.exercises.transformer.parameters import ENCODER
from autograder.student.authoring import Declaration, Draw, Run, Step, StridedArray, module, tensor

EXERCISE = Declaration(
    "EncoderLayer",
    "A layer of the encoder",
    ("x", "mask"),
    forbids=("transformer",),
    uses=("MultiHeadAttention",),
)


def _encoder(draw: Draw, d: int, num_heads: int, d_ff: int, **kwargs: Any) -> Run:
    return layer_run(draw, ENCODER, d, num_heads, d_ff, **kwargs)


@EXERCISE.equals("norm after the sum", 1.25)
def _post(draw: Draw) -> list[Run]:
    """There are two sublayers, one after the other: self-attention, then linear1, ReLU, linear2.
    The output of each is added to its input, and the sum is normalised: by norm1 for the first, by
    norm2 for the second."""
    named = module(d_model=6, num_heads=3, d_ff=5, state=layer_state(draw, 6, 5, ENCODER))
    return [
        _encoder(draw, 8, 2, 12).then(draw.tensor(2, 5, 8)),
        named.then(x=draw.tensor(1, 4, 6)),
        _encoder(draw, 4, 1, 7, norm_first=False).then(draw.tensor(3, 1, 4), None),
        _encoder(draw, 1, 1, 1).then(draw.tensor(2, 3, 1)),
        _encoder(draw, 2, 2, 2, dtype="float64").then(draw.double(1, 70, 2)),
        _encoder(draw, 6, 2, 4).then(StridedArray(draw.tensor(2, 3, 6))).then(draw.tensor(1, 2, 6)),
    ]


@EXERCISE.equals("norm before the sublayer", 1.0)
def _pre(draw: Draw) -> list[Run]:
    """With norm_first, a sublayer works on the normalised x and its output is added to x itself:
    the residual path is never normalised."""
    state = layer_state(draw, 9, 6, ENCODER)
    masked = _encoder(draw, 6, 2, 5, norm_first=True)
    return [
        _encoder(draw, 8, 2, 12, norm_first=True).then(draw.tensor(2, 5, 8)),
        module(9, 3, 6, 0.0, True, state=state).then(x=draw.tensor(1, 3, 9), mask=None),
        masked.then(draw.tensor(2, 4, 6), mask=causal(4)),
        replace(masked, init=Step((6, 2, 5, 1.0, True))).in_training().then(draw.tensor(2, 3, 6)),
    ]


@EXERCISE.equals("under a mask", 0.6)
def _masked(draw: Draw) -> list[Run]:
    """Pass the mask to self_attn, by name and unchanged: True = may attend, as everywhere in this
    course."""
    run, other = _encoder(draw, 6, 3, 8), _encoder(draw, 6, 2, 5)
    return [
        run.then(draw.tensor(2, 4, 6), tensor(random_mask(draw, 2, 1, 1, 4))),
        run.then(draw.tensor(2, 3, 6), mask=tensor(random_mask(draw, 2, 3, 3, 3))),
        other.then(draw.tensor(2, 4, 6), mask=causal(4)),
        other.then(draw.tensor(1, 5, 6), tensor(random_mask(draw, 1, 1, 5, 5))),
        other.then(draw.tensor(2, 4, 6), tensor(random_mask(draw, 2, 1, 4, 4))).as_views(),
    ]


@EXERCISE.equals("a sequence of padding only", 0.15)
def _nothing(draw: Draw) -> list[Run]:
    """Attention gives zeros there; the rest of the layer works as usual."""
    mask = np.array([[True, True, False], [False, False, False]])[:, None, None]
    return [_encoder(draw, 6, 3, 8).then(draw.tensor(2, 3, 6), tensor(mask))]


@EXERCISE.equals("dropout after each sublayer", 0.5)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts on a sublayer's output before it is added. With p = 1 in training, only x and
    the norms are left."""
    return [_encoder(draw, 6, 2, 5, dropout=1.0).in_training().then(draw.tensor(2, 3, 6))]


EXERCISE.holds(
    "dropout inside the feed-forward layer",
    0.25,
    both_dropouts,
    "There is one more dropout: between the ReLU and linear2.",
    lambda draw: inner_dropout(draw, ENCODER, norm_first=True),
    only_if_right=True,
)
EXERCISE.draws_anew()


@EXERCISE.equals("no sublayer reads what was dropped", 0.05, forgeable=True)
def _whole(draw: Draw) -> list[Run]:
    """Dropout acts on what a sublayer gives, not on what it reads: in training, too, that is x or
    what a norm gives, with every number."""
    return [
        read_in_training(
            _encoder(draw, 6, 2, 5, dropout=0.5, norm_first=first), draw.tensor(2, 3, 6)
        )
        for first in (False, True)
    ]


@EXERCISE.equals("no dropout in eval mode", 0.2)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    runs = _encoder(draw, 6, 2, 5, dropout=1.0), _encoder(draw, 6, 2, 5).in_training()
    return [run.then(draw.tensor(2, 3, 6)) for run in runs]


@EXERCISE.gradients("gradients reach x and every parameter", 0.75)
def _gradients(draw: Draw) -> list[Run]:
    """Every part contributes: four projections, two linear layers, two norms, and the residual
    path."""
    # In float64, where terms that cancel do so to the last digit.
    return [
        _encoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(draw.double(2, 3, 4), mask)
        for first, mask in ((False, tensor(random_mask(draw, 2, 1, 1, 3))), (True, causal(3)))
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 layer with float64 inputs gives float64, a float32 layer float32."""
    return [
        _encoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(draw.double(1, 3, 4), mask)
        for first, mask in ((False, None), (True, None), (False, causal(3)))
    ]


EXERCISE.leaves_inputs_alone(0.1, _post, _masked)
EXERCISE.leaves_state_alone(0.05, _post, of_a_module=True)
EXERCISE.follows_its_inputs(_post, _masked, _dropped)
