"""`EncoderLayer`: a layer of the encoder."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects_of_a_module,
)
from autograder.engine.runs import Draw, Exercise, Run, Step, Strided, module, tensor
from autograder.exercises.transformer.layer_dropout import both_dropouts, inner_dropout
from autograder.exercises.transformer.parameters import (
    ENCODER,
    causal,
    layer_run,
    layer_state,
    random_mask,
    training,
)


def _encoder(draw: Draw, d: int, num_heads: int, d_ff: int, **kwargs: Any) -> Run:
    return layer_run(draw, ENCODER, d, num_heads, d_ff, **kwargs)


def _encoder_post(draw: Draw) -> Sequence[Run]:
    named = module(d_model=6, num_heads=3, d_ff=5, state=layer_state(draw, 6, 5, ENCODER))
    return [
        _encoder(draw, 8, 2, 12).then(draw.tensor(2, 5, 8)),
        named.then(x=draw.tensor(1, 4, 6)),
        _encoder(draw, 4, 1, 7, norm_first=False).then(draw.tensor(3, 1, 4), None),
        _encoder(draw, 6, 2, 4).then(Strided(draw.tensor(2, 3, 6))).then(draw.tensor(1, 2, 6)),
    ]


def _encoder_pre(draw: Draw) -> Sequence[Run]:
    state = layer_state(draw, 9, 6, ENCODER)
    masked = _encoder(draw, 6, 2, 5, norm_first=True)
    return [
        _encoder(draw, 8, 2, 12, norm_first=True).then(draw.tensor(2, 5, 8)),
        module(9, 3, 6, 0.0, True, state=state).then(x=draw.tensor(1, 3, 9), mask=None),
        masked.then(draw.tensor(2, 4, 6), mask=causal(4)),
        training(replace(masked, init=Step((6, 2, 5, 1.0, True)))).then(draw.tensor(2, 3, 6)),
    ]


def _encoder_masked(draw: Draw) -> Sequence[Run]:
    run, other = _encoder(draw, 6, 3, 8), _encoder(draw, 6, 2, 5)
    return [
        run.then(draw.tensor(2, 4, 6), random_mask(draw, 2, 1, 1, 4)),
        run.then(draw.tensor(2, 3, 6), mask=random_mask(draw, 2, 3, 3, 3)),
        other.then(draw.tensor(2, 4, 6), mask=causal(4)),
        other.then(draw.tensor(1, 5, 6), random_mask(draw, 1, 1, 5, 5)),
    ]


def _encoder_nothing(draw: Draw) -> Sequence[Run]:
    mask = np.array([[True, True, False], [False, False, False]])[:, None, None]
    return [_encoder(draw, 6, 3, 8).then(draw.tensor(2, 3, 6), tensor(mask))]


def _encoder_dropped(draw: Draw) -> Sequence[Run]:
    return [training(_encoder(draw, 6, 2, 5, dropout=1.0)).then(draw.tensor(2, 3, 6))]


def _encoder_evaluated(draw: Draw) -> Sequence[Run]:
    return [_encoder(draw, 6, 2, 5, dropout=1.0).then(draw.tensor(2, 3, 6))]


def _encoder_gradients(draw: Draw) -> Sequence[Run]:
    """In float64, where terms that cancel do so to the last digits."""
    return [
        _encoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(
            draw.tensor(2, 3, 4, dtype="float64"), mask
        )
        for first, mask in ((False, random_mask(draw, 2, 1, 1, 3)), (True, causal(3)))
    ]


def _encoder_double(draw: Draw) -> Sequence[Run]:
    run = _encoder(draw, 4, 2, 3, dtype="float64")
    return [run.then(draw.tensor(1, 3, 4, dtype="float64"))]


ENCODER_LAYER = Exercise(
    "EncoderLayer",
    "A layer of the encoder",
    ("x", "mask"),
    (
        equals_reference(
            "norm after the sum",
            1.25,
            "Two sublayers, one after the other: self-attention, then linear1, ReLU, linear2. Each "
            "adds to what came into it, and the sum is normalised: norm1 for the first, norm2 for "
            "the second.",
            _encoder_post,
        ),
        equals_reference(
            "norm before the sublayer",
            1.0,
            "With norm_first, a sublayer works on the normalised x and its result is added to x "
            "itself: the way around is never normalised.",
            _encoder_pre,
        ),
        equals_reference(
            "under a mask",
            0.6,
            "Hand the mask to self_attn, by name and as it is: True = may attend, as everywhere in "
            "this course.",
            _encoder_masked,
        ),
        equals_reference(
            "a sequence that is nothing but padding",
            0.15,
            "Attention gives zeros there; the rest of the layer goes on as always.",
            _encoder_nothing,
        ),
        equals_reference(
            "dropout after each sublayer",
            0.5,
            "Dropout acts on what a sublayer adds, before it is added. With p = 1 in training, "
            "only x and the norms are left.",
            _encoder_dropped,
        ),
        has_property(
            "dropout inside the feed-forward",
            0.25,
            "There is one more dropout: between the ReLU and linear2.",
            lambda draw: inner_dropout(draw, ENCODER),
            both_dropouts,
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.2,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _encoder_evaluated,
        ),
        gradients_match(
            "gradients reach x and every parameter",
            0.75,
            "Every part takes part: four projections, two linear layers, two norms, and the way "
            "around.",
            _encoder_gradients,
        ),
        dtypes_kept(0.1, "A float64 layer with float64 inputs gives float64.", _encoder_double),
        inputs_untouched(0.1, lambda draw: [*_encoder_post(draw), *_encoder_masked(draw)]),
        no_side_effects_of_a_module(0.1, _encoder_post),
    ),
    forbids=("torch.*TransformerEncoder*",),
    uses=("MultiHeadAttention",),
)
