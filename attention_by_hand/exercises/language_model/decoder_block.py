"""`DecoderBlock`: a layer of GPT-2."""

from typing import Any

import numpy as np

from attention_by_hand.exercises.layer_dropout import (
    both_dropouts,
    inner_dropout,
    read_in_training,
)
from attention_by_hand.exercises.parameters import causal, layer_run, layer_state
from attention_by_hand.exercises.shared import random_mask
from autograder.student.authoring import (
    Declaration,
    Draw,
    Previous,
    Run,
    StridedArray,
    module,
    tensor,
)

EXERCISE = Declaration(
    "DecoderBlock",
    "A layer of GPT-2",
    ("x", "mask"),
    forbids=("transformer",),
    uses=("MultiHeadAttention",),
)

ATTENTION = ("attn",)


def _block(draw: Draw, d: int, num_heads: int, d_ff: int, **kwargs: Any) -> Run:
    return layer_run(draw, ATTENTION, d, num_heads, d_ff, **kwargs)


@EXERCISE.equals("two sublayers, each behind a norm", 1.4)
def _runs(draw: Draw) -> list[Run]:
    """The first sublayer is attn, on norm1 of x; the second is linear1, GELU, linear2, on norm2 of
    what the first has made. What a sublayer gives is added to x itself: the sum is not
    normalised."""
    named = module(d_model=6, num_heads=3, d_ff=5, state=layer_state(draw, 6, 5, ATTENTION))
    silent = layer_state(draw, 4, 6, ATTENTION)  # both sublayers give 0, and x passes as it is
    last = [f"{layer}.{part}" for layer in ("attn.W_o", "linear2") for part in ("weight", "bias")]
    silent |= {name: tensor(0 * silent[name].data) for name in last}
    return [
        _block(draw, 8, 2, 12).then(draw.tensor(2, 5, 8)),
        named.then(x=draw.tensor(1, 4, 6)),
        _block(draw, 4, 1, 7).then(draw.tensor(3, 1, 4), None),
        _block(draw, 1, 1, 1).then(draw.tensor(2, 3, 1)),
        _block(draw, 2, 2, 2, dtype="float64").then(draw.double(1, 70, 2)),
        _block(draw, 6, 2, 4).then(StridedArray(draw.tensor(2, 3, 6))).then(draw.tensor(1, 2, 6)),
        module(4, 2, 6, state=silent).then(draw.tensor(2, 3, 4, scale=1e-3)),
    ]


@EXERCISE.equals("the exact GELU", 0.35)
def _activated(draw: Draw) -> list[Run]:
    """GELU is x·Φ(x), with Φ the normal distribution function. The tanh formula only comes near
    it."""
    runs = []
    for d, d_ff in ((4, 16), (6, 9)):
        state = layer_state(draw, d, d_ff, ATTENTION, "float64")
        state["linear1.weight"] = draw.double(d_ff, d, scale=1.5)
        runs.append(module(d, 2, d_ff, state=state).then(draw.double(2, 3, d)))
    return runs


@EXERCISE.equals("under a mask", 0.6)
def _masked(draw: Draw) -> list[Run]:
    """Pass the mask to attn, by name and unchanged: True = may attend, as everywhere in this
    course."""
    run, other = _block(draw, 6, 3, 8), _block(draw, 6, 2, 5)
    return [
        run.then(draw.tensor(2, 4, 6), causal(4)),
        run.then(draw.tensor(2, 4, 6), tensor(random_mask(draw, 2, 1, 1, 4))),
        run.then(draw.tensor(2, 3, 6), mask=tensor(random_mask(draw, 2, 3, 3, 3))),
        other.then(draw.tensor(1, 5, 6), tensor(random_mask(draw, 1, 1, 5, 5))),
        other.then(draw.tensor(2, 4, 6), tensor(random_mask(draw, 2, 1, 4, 4))).as_views(),
    ]


@EXERCISE.equals("a sequence of padding only", 0.15)
def _nothing(draw: Draw) -> list[Run]:
    """Attention gives zeros there; the rest of the layer works as usual."""
    mask = np.array([[True, True, False], [False, False, False]])[:, None, None]
    return [_block(draw, 6, 3, 8).then(draw.tensor(2, 3, 6), tensor(mask))]


@EXERCISE.equals("dropout after each sublayer", 0.5, only_if_right=True)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts on a sublayer's output before it is added. With p = 1 in training, only x is
    left."""
    return [_block(draw, 6, 2, 5, dropout=1.0).in_training().then(draw.tensor(2, 3, 6))]


EXERCISE.holds(
    "dropout inside the feed-forward layer",
    0.25,
    both_dropouts,
    "There is one more dropout: between the GELU and linear2.",
    lambda draw: inner_dropout(draw, ATTENTION, inside=20.0),
    only_if_right=True,
)
EXERCISE.draws_anew()


@EXERCISE.equals("no dropout on the attention weights", 0.15, only_if_right=True)
def _weights_whole(draw: Draw) -> list[Run]:
    """Build attn without dropout of its own: what it adds is dropped as a whole, afterwards."""
    run = _block(draw, 6, 2, 5, dropout=1.0).in_training().then_method("get_submodule", "attn")
    x = draw.tensor(2, 3, 6)
    return [run.then_apply(Previous(0), x, x, x)]


@EXERCISE.equals("no sublayer reads what was dropped", 0.05, forgeable=True)
def _whole(draw: Draw) -> list[Run]:
    """Dropout acts on what a sublayer gives, not on what it reads: in training, too, that is what
    a norm gives, with every number."""
    return [read_in_training(_block(draw, 6, 2, 5, dropout=0.5), draw.tensor(2, 3, 6))]


@EXERCISE.equals("no dropout in eval mode", 0.2)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    runs = _block(draw, 6, 2, 5, dropout=1.0), _block(draw, 6, 2, 5).in_training()
    return [run.then(draw.tensor(2, 3, 6)) for run in runs]


@EXERCISE.gradients("gradients reach x and every parameter", 0.6)
def _gradients(draw: Draw) -> list[Run]:
    """Every part contributes: four projections, two linear layers, two norms, and the residual
    path."""
    # In float64, where terms that cancel do so to the last digit.
    masks = tensor(random_mask(draw, 2, 1, 1, 3)), causal(3)
    return [_block(draw, 4, 2, 3, dtype="float64").then(draw.double(2, 3, 4), m) for m in masks]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 layer with float64 inputs gives float64, a float32 layer float32."""
    run = _block(draw, 4, 2, 3, dtype="float64")
    return [run.then(draw.double(1, 3, 4), mask) for mask in (None, causal(3))]


EXERCISE.leaves_inputs_alone(0.1, _runs, _masked)
EXERCISE.leaves_state_alone(0.05, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _masked, _dropped)
