"""`DecoderLayer`: a layer of the decoder."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects_of_a_module,
)
from autograder.engine.runs import Draw, Exercise, Run, Step, module
from autograder.exercises.transformer.layer_dropout import both_dropouts, inner_dropout
from autograder.exercises.transformer.parameters import (
    DECODER,
    causal,
    layer_run,
    layer_state,
    random_mask,
    training,
)


def _decoder(draw: Draw, d: int, num_heads: int, d_ff: int, **kwargs: Any) -> Run:
    return layer_run(draw, DECODER, d, num_heads, d_ff, **kwargs)


def _two(draw: Draw, B: int, n_q: int, n_k: int, d: int, dtype: str = "float32") -> tuple:
    return draw.tensor(B, n_q, d, dtype=dtype), draw.tensor(B, n_k, d, dtype=dtype)


def _decoder_post(draw: Draw) -> Sequence[Run]:
    named = module(d_model=6, num_heads=3, d_ff=5, state=layer_state(draw, 6, 5, DECODER))
    x, memory = _two(draw, 1, 4, 2, 6)
    return [
        _decoder(draw, 6, 2, 4).then(*_two(draw, 2, 3, 3, 6)),
        _decoder(draw, 8, 2, 12).then(*_two(draw, 2, 3, 5, 8)),
        named.then(memory=memory, x=x),
        _decoder(draw, 4, 1, 7, norm_first=False).then(*_two(draw, 3, 1, 4, 4), None, None),
    ]


def _decoder_pre(draw: Draw) -> Sequence[Run]:
    state = layer_state(draw, 9, 6, DECODER)
    masked = _decoder(draw, 6, 2, 5, norm_first=True)
    masks = causal(3), random_mask(draw, 2, 1, 1, 4)
    return [
        _decoder(draw, 8, 2, 12, norm_first=True).then(*_two(draw, 2, 4, 4, 8)),
        module(9, 3, 6, 0.0, True, state=state).then(*_two(draw, 1, 3, 5, 9)),
        masked.then(*_two(draw, 2, 3, 4, 6), *masks),
        training(replace(masked, init=Step((6, 2, 5, 1.0, True)))).then(*_two(draw, 2, 3, 4, 6)),
    ]


def _decoder_self_masked(draw: Draw) -> Sequence[Run]:
    run = _decoder(draw, 6, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6), causal(4)),
        run.then(*_two(draw, 2, 4, 4, 6), self_mask=random_mask(draw, 2, 1, 4, 4)),
        run.then(*_two(draw, 1, 3, 5, 6), causal(3), None),
    ]


def _decoder_cross_masked(draw: Draw) -> Sequence[Run]:
    run = _decoder(draw, 6, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6), cross_mask=random_mask(draw, 2, 1, 1, 4)),
        run.then(*_two(draw, 2, 4, 4, 6), None, random_mask(draw, 2, 1, 4, 4)),
        run.then(*_two(draw, 2, 3, 5, 6), causal(3), random_mask(draw, 2, 1, 1, 5)),
    ]


def _decoder_dropped(draw: Draw) -> Sequence[Run]:
    return [training(_decoder(draw, 6, 2, 5, dropout=1.0)).then(*_two(draw, 2, 3, 4, 6))]


def _decoder_evaluated(draw: Draw) -> Sequence[Run]:
    return [_decoder(draw, 6, 2, 5, dropout=1.0).then(*_two(draw, 2, 3, 4, 6))]


def _decoder_gradients(draw: Draw) -> Sequence[Run]:
    return [
        _decoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(
            *_two(draw, 2, 3, 3, 4, "float64"), causal(3), random_mask(draw, 2, 1, 1, 3)
        )
        for first in (False, True)
    ]


def _decoder_double(draw: Draw) -> Sequence[Run]:
    return [_decoder(draw, 4, 2, 3, dtype="float64").then(*_two(draw, 1, 3, 3, 4, "float64"))]


DECODER_LAYER = Exercise(
    "DecoderLayer",
    "A layer of the decoder",
    ("x", "memory", "self_mask", "cross_mask"),
    (
        equals_reference(
            "norm after the sum",
            1.0,
            "Three sublayers: self_attn on x, cross_attn with queries from x and keys and values "
            "from the memory, then the feed-forward. Behind each sum stands a norm of its own.",
            _decoder_post,
        ),
        equals_reference(
            "norm before the sublayer",
            0.75,
            "With norm_first, what is normalised is the decoder's own x. The memory comes to every "
            "layer as the encoder left it.",
            _decoder_pre,
        ),
        equals_reference(
            "a mask for self-attention",
            0.6,
            "self_mask says what the target may see of itself. Nothing else gets it.",
            _decoder_self_masked,
        ),
        equals_reference(
            "a mask for cross-attention",
            0.6,
            "cross_mask says what may be seen of the memory: its columns are the memory's "
            "positions.",
            _decoder_cross_masked,
        ),
        equals_reference(
            "dropout after each sublayer",
            0.5,
            "Dropout acts on what each of the three sublayers adds. With p = 1 in training, only x "
            "and the norms are left.",
            _decoder_dropped,
        ),
        has_property(
            "dropout inside the feed-forward",
            0.25,
            "There is one more dropout: between the ReLU and linear2.",
            lambda draw: inner_dropout(draw, DECODER, draw.tensor(2, 3, 4)),
            both_dropouts,
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.2,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _decoder_evaluated,
        ),
        gradients_match(
            "gradients reach x, the memory and every parameter",
            0.75,
            "The encoder learns only through the memory: no detach, and keys and values both come "
            "from it.",
            _decoder_gradients,
        ),
        dtypes_kept(0.1, "A float64 layer with float64 inputs gives float64.", _decoder_double),
        inputs_untouched(0.15, lambda draw: [*_decoder_post(draw), *_decoder_pre(draw)]),
        no_side_effects_of_a_module(0.1, _decoder_post),
    ),
    forbids=("torch.*TransformerDecoder*",),
    uses=("MultiHeadAttention",),
)
