"""`attention_rollout`: what a token has drawn from the patches."""

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

EXERCISE = Declaration("attention_rollout", "Attention, layer upon layer", ("weights",))


def _maps(draw: Draw, layers: int, *shape: int, dtype: str = "float32") -> list[Array]:
    """Attention weights `(B, H, n, n)` of so many layers, first layer first."""
    made = []
    for _ in range(layers):
        weights = np.exp(draw.normal(*shape, shape[-1], scale=1.5))
        made.append(tensor(weights / weights.sum(-1, keepdims=True), dtype))
    return made


@EXERCISE.equals("layer upon layer", 1.35)
def _runs(draw: Draw) -> list[Run]:
    """For each layer: the mean over the heads is A, and ½A + ½I is what a position carries on.
    Multiply these matrices, each layer from the left of what the layers before it have made."""
    return [
        call(_maps(draw, 2, 2, 3, 5)),
        call(weights=_maps(draw, 3, 1, 2, 4)),
        call(_maps(draw, 4, 3, 2, 3)),
    ]


@EXERCISE.equals("one layer", 0.4)
def _one_layer(draw: Draw) -> list[Run]:
    """With one layer, the result is ½A + ½I: half of what a position has is its own."""
    return [call(_maps(draw, 1, 2, 3, 4)), call(_maps(draw, 1, 1, 1, 6))]


@EXERCISE.equals("one token, one head, many of both, many layers", 0.35)
def _ends(draw: Draw) -> list[Run]:
    """Equal sizes hide swapped axes: the order is batch, heads, queries, keys."""
    return [
        call(_maps(draw, 2, 2, 2, 1)),
        call(_maps(draw, 3, 2, 1, 4)),
        call(_maps(draw, 2, 4, 4, 4)),
        call(_maps(draw, 12, 1, 2, 3)),
        call(_maps(draw, 2, 66, 1, 2)),
        call(_maps(draw, 1, 1, 66, 2)),
        call([StridedArray(a) for a in _maps(draw, 2, 2, 3, 4)]),
    ]


@EXERCISE.equals("rows that do not sum to 1", 0.3)
def _leaky(draw: Draw) -> list[Run]:
    """A row of zeros, as a mask leaves it, or weights after dropout: nothing is renormalised. Of a
    row of zeros, the identity's half is left."""
    masked, dropped = _maps(draw, 2, 2, 2, 4), _maps(draw, 2, 1, 3, 4)
    for weights in masked:
        weights.data[:, :, 1] = 0.0
    for weights in dropped:
        weights.data[:] = 2 * weights.data * (draw.uniform(0.0, 1.0, 1, 3, 4, 4) < 0.5)
    return [call(masked), call(dropped)]


def in_a_graph(weights: list) -> list:
    """The same numbers, as a model returns them in training."""
    return [w.requires_grad_() * 1.0 for w in weights]


@EXERCISE.equals("weights that still belong to a graph", 0.25, only_if_right=True)
def _live(draw: Draw) -> list[Run]:
    """Weights of a forward pass know how they were made: .numpy() refuses such tensors, and so does
    any writing into them."""
    return [applied(in_a_graph, _maps(draw, 2, 2, 2, 3)).then(Previous(0))]


@EXERCISE.keeps_dtypes(0.2)
def _double(draw: Draw) -> list[Run]:
    """float64 weights give a float64 result, float32 weights a float32 one."""
    return [call(_maps(draw, 2, 2, 2, 3, dtype=dtype)) for dtype in ("float64", "float32")]


EXERCISE.leaves_inputs_alone(0.1, _runs, _one_layer)
EXERCISE.leaves_state_alone(0.05, _one_layer)
EXERCISE.follows_its_inputs(_runs, _one_layer)
