"""`DecoderLayer`: a layer of the decoder."""

from dataclasses import replace
from typing import Any

from attention_by_hand.exercises.layer_dropout import (
    both_dropouts,
    inner_dropout,
    read_in_training,
)
from attention_by_hand.exercises.parameters import causal, layer_run, layer_state
from attention_by_hand.exercises.shared import random_mask
from attention_by_hand.exercises.transformer.parameters import DECODER
from autograder.student.authoring import Declaration, Draw, Run, Step, module, tensor

EXERCISE = Declaration(
    "DecoderLayer",
    "A layer of the decoder",
    ("x", "memory", "self_mask", "cross_mask"),
    forbids=("transformer",),
    uses=("MultiHeadAttention",),
)


def _decoder(draw: Draw, d: int, num_heads: int, d_ff: int, **kwargs: Any) -> Run:
    return layer_run(draw, DECODER, d, num_heads, d_ff, **kwargs)


def _two(draw: Draw, B: int, n_q: int, n_k: int, d: int, dtype: str = "float32") -> tuple:
    return draw.tensor(B, n_q, d, dtype=dtype), draw.tensor(B, n_k, d, dtype=dtype)


@EXERCISE.equals("norm after the sum", 1.0)
def _post(draw: Draw) -> list[Run]:
    """There are three sublayers: self_attn on x, cross_attn with queries from x and keys and values
    from the memory, then the feed-forward layer. Each sum is followed by a norm of its own."""
    named = module(d_model=6, num_heads=3, d_ff=5, state=layer_state(draw, 6, 5, DECODER))
    x, memory = _two(draw, 1, 4, 2, 6)
    return [
        _decoder(draw, 6, 2, 4).then(*_two(draw, 2, 3, 3, 6)),
        _decoder(draw, 8, 2, 12).then(*_two(draw, 2, 3, 5, 8)),
        named.then(memory=memory, x=x),
        _decoder(draw, 6, 2, 5).then(*_two(draw, 2, 3, 4, 6)).as_views(),
        _decoder(draw, 1, 1, 1).then(*_two(draw, 2, 3, 2, 1)),
        _decoder(draw, 4, 2, 3).then(*_two(draw, 2, 3, 1, 4)),
        _decoder(draw, 2, 2, 2, dtype="float64").then(*_two(draw, 1, 70, 2, 2, "float64")),
        _decoder(draw, 2, 2, 2, dtype="float64").then(*_two(draw, 1, 2, 70, 2, "float64")),
        _decoder(draw, 4, 1, 7, norm_first=False).then(*_two(draw, 3, 1, 4, 4), None, None),
    ]


@EXERCISE.equals("norm before the sublayer", 0.75)
def _pre(draw: Draw) -> list[Run]:
    """With norm_first, it is the decoder's own x that is normalised. The memory reaches every layer
    as the encoder left it."""
    state = layer_state(draw, 9, 6, DECODER)
    masked = _decoder(draw, 6, 2, 5, norm_first=True)
    masks = causal(3), tensor(random_mask(draw, 2, 1, 1, 4))
    return [
        _decoder(draw, 8, 2, 12, norm_first=True).then(*_two(draw, 2, 4, 4, 8)),
        module(9, 3, 6, 0.0, True, state=state).then(*_two(draw, 1, 3, 5, 9)),
        masked.then(*_two(draw, 2, 3, 4, 6), *masks),
        replace(masked, init=Step((6, 2, 5, 1.0, True)))
        .in_training()
        .then(*_two(draw, 2, 3, 4, 6)),
    ]


@EXERCISE.equals("a mask for self-attention", 0.6)
def _self_masked(draw: Draw) -> list[Run]:
    """self_mask says what the target may see of itself. Nothing else uses it."""
    run = _decoder(draw, 6, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6), causal(4)),
        run.then(*_two(draw, 2, 4, 4, 6), self_mask=tensor(random_mask(draw, 2, 1, 4, 4))),
        run.then(*_two(draw, 1, 3, 5, 6), causal(3), None),
    ]


@EXERCISE.equals("a mask for cross-attention", 0.6)
def _cross_masked(draw: Draw) -> list[Run]:
    """cross_mask says what may be seen of the memory: its columns are the memory's positions."""
    run = _decoder(draw, 6, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6), cross_mask=tensor(random_mask(draw, 2, 1, 1, 4))),
        run.then(*_two(draw, 2, 4, 4, 6), None, tensor(random_mask(draw, 2, 1, 4, 4))),
        run.then(*_two(draw, 2, 3, 5, 6), causal(3), tensor(random_mask(draw, 2, 1, 1, 5))),
        run.then(
            *_two(draw, 2, 3, 4, 6), causal(3), tensor(random_mask(draw, 2, 1, 3, 4))
        ).as_views(),
    ]


@EXERCISE.equals("dropout after each sublayer", 0.5)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts on the output of each of the three sublayers. With p = 1 in training, only x and
    the norms are left."""
    return [_decoder(draw, 6, 2, 5, dropout=1.0).in_training().then(*_two(draw, 2, 3, 4, 6))]


EXERCISE.holds(
    "dropout inside the feed-forward layer",
    0.25,
    both_dropouts,
    "There is one more dropout: between the ReLU and linear2.",
    lambda draw: inner_dropout(draw, DECODER, draw.tensor(2, 3, 4), norm_first=True),
    only_if_right=True,
)
EXERCISE.draws_anew()


@EXERCISE.equals("no sublayer reads what was dropped", 0.05, forgeable=True)
def _whole(draw: Draw) -> list[Run]:
    """Dropout acts on what a sublayer gives, not on what it reads: in training, too, that is x, the
    memory, or what a norm gives, with every number."""
    return [
        read_in_training(
            _decoder(draw, 6, 2, 5, dropout=0.5, norm_first=first),
            draw.tensor(2, 3, 6),
            draw.tensor(2, 4, 6),
        )
        for first in (False, True)
    ]


@EXERCISE.equals("no dropout in eval mode", 0.2)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    runs = _decoder(draw, 6, 2, 5, dropout=1.0), _decoder(draw, 6, 2, 5).in_training()
    return [run.then(*_two(draw, 2, 3, 4, 6)) for run in runs]


@EXERCISE.gradients("gradients reach x, the memory and every parameter", 0.75)
def _gradients(draw: Draw) -> list[Run]:
    """The encoder learns only through the memory: do not detach it, and take both keys and values
    from it."""
    return [
        _decoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(
            *_two(draw, 2, 3, 3, 4, "float64"), causal(3), tensor(random_mask(draw, 2, 1, 1, 3))
        )
        for first in (False, True)
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 layer with float64 inputs gives float64, a float32 layer float32."""
    ways = (
        (False, None, None),
        (True, None, None),
        (False, causal(3), None),
        (False, None, causal(3)),
    )
    return [
        _decoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(
            *_two(draw, 1, 3, 3, 4, "float64"), *masks
        )
        for first, *masks in ways
    ]


EXERCISE.leaves_inputs_alone(0.15, _post, _pre)
EXERCISE.leaves_state_alone(0.05, _post, of_a_module=True)
EXERCISE.follows_its_inputs(_post, _self_masked, _cross_masked)
