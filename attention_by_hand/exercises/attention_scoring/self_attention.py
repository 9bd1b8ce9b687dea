"""`SelfAttention`: self-attention."""

import numpy as np

from attention_by_hand.exercises.attention_scoring.shared import fresh, has_parameters, permutes
from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS, all_finite
from autograder.student.authoring import (
    Declaration,
    Draw,
    Record,
    Run,
    StridedArray,
    module,
    part,
    plain,
    tensor,
)

EXERCISE = Declaration("SelfAttention", "Self-attention", ("x",), returns=OUTPUT_AND_WEIGHTS)


def _shapes(d_model: int, d_k: int, d_v: int) -> dict[str, tuple]:
    return {
        "W_q.weight": (d_k, d_model),
        "W_k.weight": (d_k, d_model),
        "W_v.weight": (d_v, d_model),
    }


def _self(draw: Draw, *sizes: int, dtype: str = "float32", scale: float = 1.2) -> Run:
    state = {
        name: draw.tensor(*shape, scale=scale * shape[1] ** -0.5, dtype=dtype)
        for name, shape in _shapes(*sizes).items()
    }
    return module(*sizes, state=state)


@EXERCISE.equals("output and weights", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """The queries are W_q(x), the keys W_k(x), the values W_v(x); then comes scaled dot-product
    attention, with the d_k of the projected queries. Return (output, weights)."""
    x = draw.tensor(2, 5, 4)
    return [
        _self(draw, 4, 3, 2).then(x).then(x),
        _self(draw, 2, 6, 5).then(x=draw.tensor(1, 3, 2)),
        _self(draw, 7, 2, 4).then(draw.tensor(3, 4, 7)),
        _self(draw, 1, 2, 1).then(tensor(draw.normal(1, 70, 1).round(), "float32")),  # few rows
    ]


@EXERCISE.equals("all sizes equal", 0.35)
def _square(draw: Draw) -> list[Run]:
    """When all sizes are equal, every projection fits everywhere. Each has a role of its own."""
    return [
        _self(draw, 3, 3, 3).then(draw.tensor(3, 3, 3)),
        _self(draw, 2, 2, 2).then(draw.tensor(2, 2, 2)),
        _self(draw, 5, 1, 1).then(draw.tensor(1, 1, 5)).then(draw.tensor(2, 3, 5)),
        _self(draw, 3, 3, 3).then(StridedArray(draw.tensor(2, 2, 3))),
    ]


@EXERCISE.gradients("gradients reach x and every projection", 0.6)
def _backward(draw: Draw) -> list[Run]:
    """x is used three times and gets gradients from all three. A projection that is computed but
    not used gets none."""
    # In float64; d_k is a square, whose root is exact in float32, too.
    return [
        _self(draw, 3, 4, 2, dtype="float64").then(draw.double(2, 3, 3)),
        _self(draw, 4, 1, 3, dtype="float64").then(x=draw.double(1, 2, 4)),
    ]


@EXERCISE.holds("permuting the positions permutes the output", 0.25, permutes, only_if_right=True)
def _permuted(draw: Draw) -> list[Run]:
    """Nothing here knows about positions: the same vectors in another order give the same outputs
    in that order."""
    x, order = draw.tensor(2, 4, 3), np.roll(np.arange(4), draw.integer(1, 3))
    return [_self(draw, 3, 5, 2).then(x).then(tensor(x.data[:, order], "float32"))]


def _apart(run: Run, record: Record) -> str | None:
    before, after = (plain(part(value, 0)) for value in record.values)
    if before is None or after is None or before.shape != (3, 4, 2) or after.shape != (3, 4, 2):
        return "the output does not have the shape (B, n, d_v)"
    moved = np.abs(after - before).max(-1)
    if not moved[[0, 2]].max() < 1e-6:
        return "changing one sequence of the batch changed the output of another"
    return (
        None if moved[1].min() > 1e-5 else "a position does not see the position that was changed"
    )


@EXERCISE.holds("sequences do not mix", 0.2, _apart, only_if_right=True)
def _batch(draw: Draw) -> list[Run]:
    """Every position sees all positions of its own sequence, and none of another."""
    # Two calls: with the original x, and with position 2 of sequence 1 changed.
    # Small vectors, so that no weight is so small that a change does not show.
    x = draw.tensor(3, 4, 5, scale=0.5)
    other = x.data.copy()
    other[1, 2] += draw.uniform(0.5, 1.0, 5)
    return [_self(draw, 5, 3, 2).then(x).then(tensor(other, "float32"))]


@EXERCISE.holds(
    "three projections, no biases",
    0.15,
    has_parameters(_shapes),
    forgeable=True,
    only_if_right=True,
)
def _fresh(draw: Draw) -> list[Run]:
    """W_q, W_k and W_v are nn.Linear layers without bias: leave `__init__` as it is."""
    size = draw.integer(4, 6)
    return [
        fresh(module(size, 3, 2).then(draw.tensor(2, 2, size))),
        fresh(module(3, 2, 4).then(draw.tensor(1, 3, 3))),
    ]


@EXERCISE.holds("scores of ±10,000, forward and backward", 0.25, all_finite, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax subtracts the largest score for you; a plain exp and division do not."""
    return [
        _self(draw, 4, 3, 1, dtype=dtype, scale=100.0)
        .then(draw.tensor(1, 3, 4, dtype=dtype))
        .with_gradients()
        for dtype in ("float64", "float32")
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 model with a float64 input gives float64, a float32 model float32."""
    return [_self(draw, 3, 4, 2, dtype="float64").then(draw.double(2, 3, 3))]


EXERCISE.leaves_inputs_alone(0.05, lambda draw: _runs(draw)[1:])
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[1:2], of_a_module=True)
EXERCISE.follows_its_inputs(_runs)
