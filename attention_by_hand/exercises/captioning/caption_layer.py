"""`CaptionLayer`: a layer of BLIP's text side."""

import numpy as np

from attention_by_hand.exercises.dropped import WIDTH, by_factors, named, over_column, steps
from attention_by_hand.exercises.layer_dropout import read_in_training
from attention_by_hand.exercises.parameters import causal, layer_state
from attention_by_hand.exercises.shared import State, linear_state, random_mask
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Run,
    module,
    tensor,
)
from autograder.student.engine.runs import made_by

EXERCISE = Declaration(
    "CaptionLayer",
    "A layer that reads and looks",
    ("x", "memory", "self_mask", "memory_mask"),
    forbids=("transformer",),
    allows=("CrossAttention",),
    uses=("MultiHeadAttention",),
)

_ATTENTIONS = ("self_attn", "cross_attn")


def caption_state(draw: Draw, d: int, d_encoder: int, d_ff: int, dtype: str = "float32") -> State:
    state = layer_state(draw, d, d_ff, _ATTENTIONS, dtype)
    for name in ("cross_attn.W_k", "cross_attn.W_v"):
        state |= linear_state(draw, name, d, d_encoder, dtype, scale=1.2, bias=0.4)
    return state


def _layer(
    draw: Draw,
    d: int,
    d_encoder: int,
    num_heads: int,
    d_ff: int,
    dtype: str = "float32",
    **kwargs: object,
) -> Run:
    state = caption_state(draw, d, d_encoder, d_ff, dtype)
    return module(d, d_encoder, num_heads, d_ff, state=state, **kwargs)


def _two(
    draw: Draw, B: int, n: int, n_k: int, d: int, d_encoder: int, dtype: str = "float32"
) -> tuple[Array, Array]:
    return draw.tensor(B, n, d, dtype=dtype), draw.tensor(B, n_k, d_encoder, dtype=dtype)


@EXERCISE.equals("three sublayers, a norm after each sum", 1.1)
def _runs(draw: Draw) -> list[Run]:
    """self_attn on x, then cross_attn with queries from what came of it and keys and values from
    the memory, then linear1, GELU, linear2. Each is added to what it works on, and each sum goes
    through a norm of its own."""
    sizes = {"d_model": 6, "d_encoder": 6, "num_heads": 3, "d_ff": 5}
    by_name, (x, memory) = (
        module(**sizes, state=caption_state(draw, 6, 6, 5)),
        _two(draw, 1, 4, 4, 6, 6),
    )
    return [
        _layer(draw, 8, 8, 2, 12).then(*_two(draw, 2, 3, 3, 8, 8)),
        by_name.then(memory=memory, x=x),
        _layer(draw, 6, 10, 2, 7).then(*_two(draw, 2, 3, 5, 6, 10)),
        _layer(draw, 8, 3, 4, 6).then(*_two(draw, 3, 4, 2, 8, 3), None, None),
    ]


@EXERCISE.equals("one key, one token, one feature, many of them", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """A text and a picture have lengths of their own, and widths of their own."""
    return [
        _layer(draw, 4, 5, 1, 3).then(*_two(draw, 1, 3, 1, 4, 5)),
        _layer(draw, 4, 3, 2, 1).then(*_two(draw, 3, 1, 4, 4, 3)),
        _layer(draw, 1, 2, 1, 2, "float64").then(*_two(draw, 2, 2, 2, 1, 2, "float64")),
        _layer(draw, 2, 1, 2, 2, "float64").then(*_two(draw, 1, 70, 2, 2, 1, "float64")),
        _layer(draw, 2, 1, 2, 2, "float64").then(*_two(draw, 1, 2, 70, 2, 1, "float64")),
        _layer(draw, 6, 4, 2, 5)
        .then(*_two(draw, 2, 3, 4, 6, 4), tensor(random_mask(draw, 2, 1, 3, 3)))
        .as_views(),
    ]


@EXERCISE.equals("text alone", 0.8)
def _alone(draw: Draw) -> list[Run]:
    """Without a memory, x goes from norm1 straight to the feed-forward: the cross-attention is left
    out, and so is its norm2."""
    run = _layer(draw, 6, 4, 3, 5)
    one = run.then(draw.tensor(2, 3, 6))
    return [
        one,
        run.then(draw.tensor(2, 4, 6), None, causal(4)),
        run.then(x=draw.tensor(1, 3, 6), self_mask=tensor(random_mask(draw, 1, 1, 1, 3))),
        one.then(*_two(draw, 1, 3, 2, 6, 4)).then(draw.tensor(1, 2, 6)),
        _layer(draw, 4, 4, 1, 4).then(draw.tensor(2, 1, 4), None, None, None),
    ]


@EXERCISE.equals("a mask for self-attention", 0.5)
def _self_masked(draw: Draw) -> list[Run]:
    """self_mask says what the text may see of itself: with a causal mask it is written, with one
    for padding it is read. Nothing else uses it."""
    run = _layer(draw, 6, 4, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6, 4), causal(4)),
        run.then(*_two(draw, 2, 4, 4, 6, 4), self_mask=tensor(random_mask(draw, 2, 3, 4, 4))),
        run.then(*_two(draw, 1, 3, 5, 6, 4), causal(3), None),
    ]


@EXERCISE.equals("a mask for cross-attention", 0.5)
def _memory_masked(draw: Draw) -> list[Run]:
    """memory_mask says what may be seen of the memory: its columns are the memory's positions."""
    run = _layer(draw, 6, 4, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6, 4), memory_mask=tensor(random_mask(draw, 2, 1, 1, 4))),
        run.then(*_two(draw, 2, 4, 4, 6, 4), None, tensor(random_mask(draw, 2, 1, 4, 4))),
        run.then(*_two(draw, 2, 3, 5, 6, 4), causal(3), tensor(random_mask(draw, 2, 1, 1, 5))),
    ]


@EXERCISE.equals("a picture of padding only", 0.15)
def _nothing(draw: Draw) -> list[Run]:
    """Cross-attention gives zeros there, and norm2 works as usual."""
    mask = np.array([[True, True, False], [False, False, False]])[:, None, None]
    return [_layer(draw, 6, 4, 3, 5).then(*_two(draw, 2, 2, 3, 6, 4), None, tensor(mask))]


@EXERCISE.equals("the exact GELU", 0.3)
def _activated(draw: Draw) -> list[Run]:
    """GELU is x·Φ(x), with Φ the normal distribution function. The tanh formula only comes near
    it."""
    runs = []
    for d, d_ff in ((4, 16), (6, 9)):
        state = caption_state(draw, d, 3, d_ff, "float64")
        state["linear1.weight"] = draw.double(d_ff, d, scale=1.5)
        runs.append(module(d, 3, 2, d_ff, state=state).then(draw.double(2, 3, d)))
    return runs


@EXERCISE.equals("dropout after each sublayer", 0.4)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts on the output of each sublayer before it is added. With p = 1 in training, only
    x and the norms are left: three of them, or two for text alone."""
    run = _layer(draw, 6, 4, 2, 5, dropout=1.0).in_training()
    x, memory = _two(draw, 2, 3, 4, 6, 4)
    return [run.then(x, memory), run.then(x)]


def _steps(draw: Draw, scale: float) -> State:
    """Parameters with which text alone shows what the feed-forward adds; norm3 is its second."""
    found = {n.replace("norm2", "norm3"): v for n, v in steps(draw, scale, ("self_attn",)).items()}
    return caption_state(draw, WIDTH, 1, 1) | found


@by_factors
def _inner(factor: np.ndarray, p: float) -> str | None:
    """What the one hidden unit gives is dropped at once, and the sum feature by feature."""
    dropped = np.abs(factor) < 1e-3
    whole = float(dropped.all(-1).mean())
    if abs(whole - p) > 0.25:
        return f"the unit between linear1 and linear2: expected dropped {p:.0%}, got {whole:.0%}"
    share, twice = 1 - (1 - p) ** 2, 1 / (1 - p) ** 2
    if abs(dropped.mean() - share) > 0.2:
        return f"numbers dropped: expected {share:.0%}, two dropouts, got {dropped.mean():.0%}"
    farthest = factor[~dropped][np.abs(factor[~dropped] - twice).argmax()]
    if abs(farthest - twice) > 0.02 * twice:
        return f"the factor of what is kept: expected {twice:.3g}, got {farthest:.3g}"
    return None


@EXERCISE.holds("dropout inside the feed-forward", 0.25, _inner, only_if_right=True)
def _drawn(draw: Draw) -> list[Run]:
    """There is one more dropout: between the GELU and linear2."""
    state = _steps(draw, 20.0)
    x = draw.tensor(3, 20, WIDTH)
    run = module(WIDTH, 1, 2, 1, dropout=0.4, state=state).in_training()
    over = made_by(over_column, state["linear2.weight"], state["linear1.bias"])
    return [run.then(x).then(x).at_random(draw), named(run, draw, over, x)]


EXERCISE.draws_anew()


@EXERCISE.equals("no sublayer reads what was dropped", 0.05, forgeable=True)
def _whole(draw: Draw) -> list[Run]:
    """Dropout acts on what a sublayer gives, not on what it reads: in training, too, that is x, the
    memory, or what a norm gives, with every number."""
    run, (x, memory) = _layer(draw, 6, 4, 2, 5, dropout=0.5), _two(draw, 2, 3, 4, 6, 4)
    return [read_in_training(run, x, memory), read_in_training(run, x)]


@EXERCISE.equals("no dropout in eval mode", 0.2)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    runs = _layer(draw, 6, 4, 2, 5, dropout=1.0), _layer(draw, 6, 4, 2, 5).in_training()
    return [run.then(*_two(draw, 2, 3, 4, 6, 4)) for run in runs]


@EXERCISE.gradients("gradients reach x, the memory and every parameter", 0.6)
def _gradients(draw: Draw) -> list[Run]:
    """The encoder learns only through the memory: do not detach it, and take both keys and values
    from it. Text alone teaches neither cross_attn nor norm2."""
    # In float64, where terms that cancel do so to the last digit.
    run, masks = _layer(draw, 4, 3, 2, 3, "float64"), (causal(3), None)
    mask = tensor(random_mask(draw, 2, 1, 1, 3))
    return [
        run.then(*_two(draw, 2, 3, 3, 4, 3, "float64"), causal(3), mask),
        run.then(*_two(draw, 2, 3, 3, 4, 3, "float64")[:1], None, *masks),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 layer with float64 inputs gives float64, a float32 layer float32."""
    run = _layer(draw, 4, 3, 2, 3, "float64")
    x, memory = _two(draw, 1, 3, 2, 4, 3, "float64")
    return [run.then(x, memory), run.then(x), run.then(x, memory, causal(3))]


EXERCISE.leaves_inputs_alone(0.1, _runs, _alone)
EXERCISE.leaves_state_alone(0.05, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _self_masked, _memory_masked, _alone)
