"""`BertLayer`: a layer of BERT."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attention_by_hand.exercises.dropped import WIDTH, by_factors, named, over_column, steps
from attention_by_hand.exercises.parameters import causal, layer_state
from attention_by_hand.exercises.shared import State, makes_nothing_larger, random_mask
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Run,
    Step,
    StridedArray,
    as_argument,
    module,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.runs import made_by

EXERCISE = Declaration(
    "BertLayer",
    "A layer of BERT",
    ("x", "mask"),
    forbids=("transformer",),
    uses=("MultiHeadAttention",),
)

ATTENTION = ("attention",)


BIG, SMALL = 3.0, 0.1  # sizes of the sums: the norms' eps makes no difference, or always does


def _state(draw: Draw, d: int, d_ff: int, dtype: str = "float32", size: float = BIG) -> State:
    """Parameters for inputs that are `size` large, with sums as large as these."""
    state = layer_state(draw, d, d_ff, ATTENTION, dtype)
    factors = {"attention.W_o": size, "norm1": size, "linear2": size}
    for name, factor in factors.items():
        for which in ("weight", "bias"):
            state[f"{name}.{which}"] = tensor(factor * state[f"{name}.{which}"].data, dtype)
    for name in ("attention.W_q", "attention.W_k", "attention.W_v", "linear1"):
        state[f"{name}.weight"] = tensor(state[f"{name}.weight"].data / size, dtype)
    return state


def _layer(
    draw: Draw,
    d: int,
    num_heads: int,
    d_ff: int,
    dtype: str = "float32",
    size: float = BIG,
    **kwargs: object,
) -> Run:
    return module(d, num_heads, d_ff, state=_state(draw, d, d_ff, dtype, size), **kwargs)


def _x(draw: Draw, *shape: int, dtype: str = "float32", size: float = BIG) -> Array:
    return draw.tensor(*shape, scale=size, dtype=dtype)


@EXERCISE.equals("two sublayers, a norm after each sum", 1.2)
def _runs(draw: Draw) -> list[Run]:
    """Attention on x, added to x, then norm1; linear1, GELU, linear2 on what comes of it, added to
    that, then norm2."""
    named = module(d_model=6, num_heads=3, d_ff=5, state=_state(draw, 6, 5))
    return [
        _layer(draw, 8, 2, 12).then(_x(draw, 2, 5, 8)),
        named.then(x=_x(draw, 1, 4, 6)),
        _layer(draw, 7, 1, 7).then(_x(draw, 3, 1, 7), None),
        _layer(draw, 1, 1, 1).then(_x(draw, 2, 3, 1)),
        _layer(draw, 1, 1, 2).then(_x(draw, 1, 66, 1)),
        _layer(draw, 6, 2, 4).then(StridedArray(_x(draw, 2, 3, 6))).then(_x(draw, 1, 2, 6)),
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


@EXERCISE.equals("under a mask", 0.5)
def _masked(draw: Draw) -> list[Run]:
    """Pass the mask to attention, by name and unchanged: True = may attend, as everywhere in this
    course."""
    run, other = _layer(draw, 6, 3, 8), _layer(draw, 6, 2, 5)
    return [
        run.then(_x(draw, 2, 4, 6), tensor(random_mask(draw, 2, 1, 1, 4))),
        run.then(_x(draw, 2, 4, 6), causal(4)),
        run.then(_x(draw, 2, 3, 6), mask=tensor(random_mask(draw, 2, 3, 3, 3))),
        other.then(_x(draw, 1, 5, 6), tensor(random_mask(draw, 1, 1, 5, 5))),
        other.then(_x(draw, 2, 4, 6), tensor(random_mask(draw, 2, 1, 4, 4))).as_views(),
    ]


@EXERCISE.equals("a sequence of padding only", 0.15)
def _nothing(draw: Draw) -> list[Run]:
    """Attention gives zeros there; the rest of the layer works as usual."""
    mask = np.array([[True, True, False], [False, False, False]])[:, None, None]
    return [_layer(draw, 6, 3, 8).then(_x(draw, 2, 3, 6), tensor(mask))]


@EXERCISE.equals("the norms' eps is 1e-12", 0.3)
def _faint(draw: Draw) -> list[Run]:
    """Both norms of BERT's layer have an eps of 1e-12, not torch's 1e-5, in the `__init__` that is
    given. It shows where the sums are small."""
    runs = []
    for scale in (1e-2, 1e-3, 1e-6):
        for small in (("attention.W_o",), ("norm1", "linear2")):
            state = layer_state(draw, 6, 5, ATTENTION)
            names = [f"{name}.{kind}" for name in small for kind in ("weight", "bias")]
            state |= {n: tensor(scale * state[n].data, "float32") for n in names}
            x = draw.tensor(2, 3, 6, scale=scale if len(small) == 1 else 1.0)
            runs.append(module(6, 2, 5, state=state).then(x))
    return runs


@EXERCISE.equals("in chunks, equal to one go", 0.4)
def _chunked(draw: Draw) -> list[Run]:
    """The feed-forward network works on each position alone. Cut its input along axis 1 into pieces
    of chunk_size positions, the last of which may be shorter, and join what comes of them along the
    same axis."""
    named = module(6, 2, 5, chunk_size=2, state=_state(draw, 6, 5))
    runs = [named.then(_x(draw, 2, 5, 6), causal(5))]
    runs.append(_layer(draw, 6, 2, 5, chunk_size=66).then(_x(draw, 1, 3, 6)))
    for size, B, n in ((1, 2, 3), (3, 2, 6), (3, 4, 4), (4, 1, 3), (5, 3, 1)):
        run = module(8, 2, 6, 0.0, size, state=_state(draw, 8, 6))
        runs.append(run.then(_x(draw, B, n, 8)))
    return runs


def _wide(draw: Draw) -> list[Run]:
    """Layers in which nothing is as large as what stands between linear1 and linear2."""
    runs = []
    for size, B, n in ((3, 2, 12), (2, 3, 10), (1, 6, 5)):
        state = layer_state(draw, 4, 256, ATTENTION)
        runs.append(module(4, 4, 256, chunk_size=size, state=state).then(draw.tensor(B, n, 4)))
    return runs


def _one_chunk(run: Run) -> int:
    return (
        run.steps[0].args[0].data.shape[0]
        * run.constructor.kwargs["chunk_size"]
        * run.constructor.args[2]
    )


EXERCISE.add(
    makes_nothing_larger(
        "never more than chunk_size positions at a time",
        0.2,
        "What chunks save is memory between linear1 and linear2: both linear layers and the GELU "
        "must see one chunk at a time, of chunk_size positions of all sequences in the batch.",
        _wide,
        _one_chunk,
    )
)


def changed_before_attention(layer: Value, x: Value) -> float:
    """How far what goes through W_q, W_k and W_v in training is from x, where these are called."""
    found = [0.0]

    def look(_: object, inputs: tuple) -> None:
        if inputs[0].shape == x.shape:
            found.append(float((inputs[0] - x).abs().max()))

    for name in ("W_q", "W_k", "W_v"):
        getattr(layer.attention, name).register_forward_pre_hook(look)
    layer.train()(x)
    return max(found)


@EXERCISE.equals("dropout after each sublayer", 0.35)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts on a sublayer's output before it is added. With p = 1 in training, x alone goes
    through the two norms."""
    run = _layer(draw, 6, 2, 5, dropout=1.0)
    chunked = _layer(draw, 6, 2, 5, dropout=1.0, chunk_size=2)
    return [r.in_training().then(_x(draw, 2, 3, 6)) for r in (run, chunked)]


@EXERCISE.equals("nothing is dropped before attention", 0.05, forgeable=True)
def _undropped(draw: Draw) -> list[Run]:
    """What goes into attention is x itself, in training, too. Dropout acts on what a sublayer adds,
    and on the attention weights."""
    layer = replace(_layer(draw, 6, 2, 5, dropout=0.5), steps=(Step((True,), {}, "train"),))
    seen = layer.then_apply(as_argument(changed_before_attention), Previous(0), _x(draw, 2, 3, 6))
    return [seen]


def chunks_seen(layer: Value, x: Value) -> list[tuple[int, ...]]:
    """The shapes of what goes through the two linear layers, where these are called."""
    seen: list[tuple[int, ...]] = []
    for part in (layer.linear1, layer.linear2):
        part.register_forward_hook(lambda _, inputs, output: seen.append((*output.shape,)))
    layer(x)
    return seen


@by_factors
def _added(factor: np.ndarray, p: float) -> str | None:
    """Dropout inside the feed-forward network, as in chapter 7, is as right as none."""
    dropped = np.abs(factor) < 1e-3
    gone = dropped.all(-1)  # tokens whose only hidden feature is dropped
    inside = gone.mean() >= p / 2
    wanted = 1 / (1 - p) ** (2 if inside else 1)
    if abs(dropped[~gone].mean() - p) > 0.1 or inside and abs(gone.mean() - p) > 0.25:
        return f"numbers dropped of what the feed-forward adds: expected {p:.0%}, " + (
            f"got {dropped.mean():.0%}"
        )
    farthest = factor[~dropped][np.abs(factor[~dropped] - wanted).argmax()]
    if abs(farthest - wanted) > 0.02 * wanted:
        return f"the factor of what is kept: expected {wanted:.3g}, got {farthest:.3g}"
    return None


@EXERCISE.holds("each number of it is dropped on its own", 0.2, _added, only_if_right=True)
def _drawn(draw: Draw) -> list[Run]:
    """nn.Dropout(p) drops every number with probability p, and divides the others by 1 − p."""
    state, x = steps(draw, 20.0, ATTENTION), draw.tensor(4, 32, WIDTH)
    run = module(WIDTH, 2, 1, dropout=0.4, chunk_size=7, state=state).in_training()
    over = made_by(over_column, state["linear2.weight"], state["linear1.bias"])
    runs = [run.then(x).then(x).at_random(draw), named(run, draw, over, x)]
    for size in (3, 2, 1):
        chunked = module(6, 2, 5, chunk_size=size, state=_state(draw, 6, 5))
        look = replace(chunked, steps=(Step((False,), {}, "train"),))
        seen = look.then_apply(as_argument(chunks_seen), Previous(0), _x(draw, 4, 7, 6))
        runs.append(seen)
    return runs


EXERCISE.draws_anew()


@EXERCISE.equals("dropout on the attention weights", 0.3, only_if_right=True)
def _weights_dropped(draw: Draw) -> list[Run]:
    """BERT drops attention weights as well: `__init__`, as given, builds attention with the same
    dropout. With p = 1 in training it returns nothing but the bias of W_o."""
    runs = []
    some: Sequence[dict[str, Any]] = ({"dropout": 1.0}, {})
    for kwargs in some:
        # The layer is called, too, so that one without a `forward` is unwritten; it gives zeros.
        state = _state(draw, 6, 5)
        state |= {f"norm2.{kind}": tensor(np.zeros(6), "float32") for kind in ("weight", "bias")}
        x = draw.tensor(2, 3, 6)
        run = module(6, 2, 5, state=state, **kwargs).in_training().then(x)
        runs.append(run.then_method("get_submodule", "attention").then_apply(Previous(1), x, x, x))
    return runs


@EXERCISE.equals("no dropout in eval mode", 0.2)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    runs = _layer(draw, 6, 2, 5, dropout=1.0), _layer(draw, 6, 2, 5).in_training()
    return [run.then(_x(draw, 2, 3, 6)) for run in runs]


@EXERCISE.gradients("gradients reach x and every parameter", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """Every part contributes: four projections, two linear layers, two norms, and the residual
    path; in chunks, too."""
    # In float64, where terms that cancel do so to the last digit.
    small: dict[str, Any] = {"dtype": "float64", "size": SMALL}
    mask = tensor(random_mask(draw, 2, 1, 1, 3))
    run = _layer(draw, 4, 2, 3, **small).then(_x(draw, 2, 3, 4, **small), mask)
    chunked = _layer(draw, 4, 2, 3, chunk_size=2, **small)
    return [run, chunked.then(_x(draw, 2, 3, 4, **small))]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 layer with float64 inputs gives float64, a float32 layer float32."""
    small: dict[str, Any] = {"dtype": "float64", "size": SMALL}
    return [
        _layer(draw, 6, 2, 3, **small).then(_x(draw, 1, 3, 6, **small)),
        _layer(draw, 6, 2, 3, chunk_size=2, **small).then(_x(draw, 1, 3, 6, **small), causal(3)),
    ]


EXERCISE.leaves_inputs_alone(0.1, lambda draw: [*_runs(draw)[:2], *_masked(draw)[:2]])
EXERCISE.leaves_state_alone(0.1, lambda draw: _runs(draw)[:2], of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _masked, _dropped, _chunked)
