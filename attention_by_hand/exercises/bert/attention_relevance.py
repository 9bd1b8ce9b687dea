"""`attention_relevance`: how much each token matters."""

from typing import Any

import numpy as np

from attention_by_hand.exercises.shared import applied
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Run,
    StridedArray,
    call,
    tensor,
)
from autograder.student.engine.arrays import Value

EXERCISE = Declaration(
    "attention_relevance", "How much each token matters", ("weights", "gradients")
)


def _maps(draw: Draw, layers: int, *shape: int, dtype: str = "float32") -> list[Array]:
    """Attention weights `(B, H, n, n)` of so many layers, first layer first."""
    made = []
    for _ in range(layers):
        weights = np.exp(draw.normal(*shape, shape[-1], scale=1.5))
        made.append(tensor(weights / weights.sum(-1, keepdims=True), dtype))
    return made


def _slopes(draw: Draw, layers: int, *shape: int, dtype: str = "float32") -> list[Array]:
    """Their gradients, of either sign."""
    return [draw.tensor(*shape, shape[-1], scale=2.0, dtype=dtype) for _ in range(layers)]


def _both(draw: Draw, layers: int, *shape: int, **kwargs: Any) -> tuple[list, list]:
    return _maps(draw, layers, *shape, **kwargs), _slopes(draw, layers, *shape, **kwargs)


@EXERCISE.equals("layer upon layer", 1.1)
def _runs(draw: Draw) -> list[Run]:
    """For each layer: multiply weights and gradients entry by entry, let negative products be 0,
    and average the heads. That is Ā. R begins as the identity; from the first layer to the last,
    add Ā R to it, Ā on the left."""
    named = dict(zip(("gradients", "weights"), _both(draw, 2, 1, 2, 4)[::-1], strict=True))
    return [
        call(*_both(draw, 2, 2, 3, 5)),
        call(**named),
        call(*_both(draw, 4, 3, 2, 3)),
    ]


@EXERCISE.equals("one layer", 0.4)
def _one_layer(draw: Draw) -> list[Run]:
    """With one layer, R is the identity plus Ā: what a position has of itself, and what it has
    drawn from the others."""
    return [call(*_both(draw, 1, 2, 3, 4)), call(*_both(draw, 1, 1, 1, 6))]


@EXERCISE.equals("heads that disagree", 0.4)
def _disagreeing(draw: Draw) -> list[Run]:
    """A head's negative products become 0 before the heads are averaged. Otherwise one head's gain
    would be another one's loss."""
    runs = []
    for layers, n in ((1, 3), (2, 4)):
        maps, slopes = _maps(draw, layers, 2, 2, n), []
        for weights in maps:
            share = draw.normal(2, 1, n, n)
            opposite = np.concatenate([share, -0.9 * share], 1) / weights.data
            slopes.append(tensor(opposite, "float32"))
        runs.append(call(maps, slopes))
    return runs


def _few(draw: Draw, n: int) -> Array:
    """Gradients of many tokens, all of them 0 but a few: what is on file stays small."""
    slope = np.zeros((1, 2, n, n))
    slope[..., -1, :3] = draw.normal(1, 2, 3, scale=2.0)
    slope[..., 0, -3:] = draw.normal(1, 2, 3, scale=2.0)
    return tensor(slope, "float32")


@EXERCISE.equals("one token, one head, many of both, small gradients", 0.35)
def _ends(draw: Draw) -> list[Run]:
    """Equal sizes hide swapped axes: the order is batch, heads, queries, keys."""
    views = ([StridedArray(a) for a in arrays] for arrays in _both(draw, 2, 2, 3, 4))
    maps = _maps(draw, 2, 2, 2, 3)
    return [
        call(*_both(draw, 2, 2, 2, 1)),
        call(*_both(draw, 3, 2, 1, 4)),
        call(*_both(draw, 2, 4, 4, 4)),
        call(_maps(draw, 1, 1, 2, 66), [_few(draw, 66)]),
        call(*_both(draw, 2, 66, 1, 2)),
        call(*views),
        call(maps, [draw.tensor(2, 2, 3, 3, scale=1e-3) for _ in maps]),
    ]


@EXERCISE.equals("where no gradient is positive", 0.25, only_if_right=True)
def _nothing(draw: Draw) -> list[Run]:
    """Every product is then 0 or less, and R stays the identity: each position matters to itself
    alone."""
    maps = _maps(draw, 2, 2, 2, 4)
    below = [tensor(-np.abs(slope.data), "float32") for slope in _slopes(draw, 2, 2, 2, 4)]
    nothing = [tensor(np.zeros((1, 3, 3, 3)), "float32")]
    return [call(maps, below), call(_maps(draw, 1, 1, 3, 3), nothing)]


def in_a_graph(weights: Value, gradients: Value) -> tuple[Value, Value]:
    """The same numbers, the weights as a model returns them in training."""
    return [(w.requires_grad_() * 1.0) for w in weights], gradients


@EXERCISE.equals("weights that still belong to a graph", 0.2, only_if_right=True)
def _live(draw: Draw) -> list[Run]:
    """Weights of a forward pass know how they were made: .numpy() refuses such tensors, and so does
    any writing into them."""
    run = applied(in_a_graph, *_both(draw, 2, 2, 2, 3))
    return [run.then(Previous(0, (0,)), Previous(0, (1,)))]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 maps give a float64 result, float32 maps a float32 one."""
    return [call(*_both(draw, 2, 2, 2, 3, dtype=dtype)) for dtype in ("float64", "float32")]


EXERCISE.leaves_inputs_alone(0.1, _runs, _one_layer)
EXERCISE.leaves_state_alone(0.1, _one_layer)
EXERCISE.follows_its_inputs(_runs, _one_layer)
