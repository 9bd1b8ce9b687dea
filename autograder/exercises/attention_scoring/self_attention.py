"""`SelfAttention`: self-attention."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects_of_a_module,
    part,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, Strided, module, tensor
from autograder.exercises.attention_scoring.shared import (
    all_finite,
    fresh,
    has_parameters,
    permutes,
)


def _self_shapes(d_model: int, d_k: int, d_v: int) -> dict[str, tuple]:
    return {
        "W_q.weight": (d_k, d_model),
        "W_k.weight": (d_k, d_model),
        "W_v.weight": (d_v, d_model),
    }


def _self(draw: Draw, *sizes: int, dtype: str = "float32", scale: float = 1.2) -> Run:
    state = {
        name: draw.tensor(*shape, scale=scale * shape[1] ** -0.5, dtype=dtype)
        for name, shape in _self_shapes(*sizes).items()
    }
    return module(*sizes, state=state)


def _self_runs(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 5, 4)
    return [
        _self(draw, 4, 3, 2).then(x).then(x),
        _self(draw, 2, 6, 5).then(x=draw.tensor(1, 3, 2)),
        _self(draw, 7, 2, 4).then(draw.tensor(3, 4, 7)),
    ]


def _self_backward(draw: Draw) -> Sequence[Run]:
    """In float64; d_k is a square, whose root is right in float32, too."""
    return [
        _self(draw, 3, 4, 2, dtype="float64").then(draw.tensor(2, 3, 3, dtype="float64")),
        _self(draw, 4, 1, 3, dtype="float64").then(x=draw.tensor(1, 2, 4, dtype="float64")),
    ]


def _self_square(draw: Draw) -> Sequence[Run]:
    return [
        _self(draw, 3, 3, 3).then(draw.tensor(3, 3, 3)),
        _self(draw, 2, 2, 2).then(draw.tensor(2, 2, 2)),
        _self(draw, 5, 1, 1).then(draw.tensor(1, 1, 5)).then(draw.tensor(2, 3, 5)),
        _self(draw, 3, 3, 3).then(Strided(draw.tensor(2, 2, 3))),
    ]


def _self_fresh(draw: Draw) -> Sequence[Run]:
    size = draw.integer(4, 6)
    return [
        fresh(module(size, 3, 2).then(draw.tensor(2, 2, size))),
        fresh(module(3, 2, 4).then(draw.tensor(1, 3, 3))),
    ]


def _self_permuted(draw: Draw) -> Sequence[Run]:
    x, order = draw.tensor(2, 4, 3), np.roll(np.arange(4), draw.integer(1, 3))
    return [_self(draw, 3, 5, 2).then(x).then(tensor(x.data[:, order], "float32"))]


def _self_batch(draw: Draw) -> Sequence[Run]:
    """Two calls: as is, and with position 2 of sequence 1 changed."""
    x = draw.tensor(3, 4, 5)
    other = x.data.copy()
    other[1, 2] += draw.uniform(1.0, 2.0, 5)
    return [_self(draw, 5, 3, 2).then(x).then(tensor(other, "float32"))]


def _self_apart(run: Run, record: Record) -> str | None:
    before, after = (plain(part(value, 0)) for value in record.values)
    if before is None or after is None or before.shape != (3, 4, 2) or after.shape != (3, 4, 2):
        return "the output has not the shape (B, n, d_v)"
    moved = np.abs(after - before).max(-1)
    if not moved[[0, 2]].max() < 1e-6:
        return "changing one sequence of the batch changed the output of another"
    return None if moved[1].min() > 1e-5 else "a position does not see the one that was changed"


def _self_large(draw: Draw) -> Sequence[Run]:
    return [
        _self(draw, 4, 3, 1, dtype=dtype, scale=100.0)
        .then(draw.tensor(1, 3, 4, dtype=dtype))
        .with_gradients()
        for dtype in ("float64", "float32")
    ]


def _self_double(draw: Draw) -> Sequence[Run]:
    return [_self(draw, 3, 4, 2, dtype="float64").then(draw.tensor(2, 3, 3, dtype="float64"))]


SELF_ATTENTION = Exercise(
    "SelfAttention",
    "Self-attention",
    ("x",),
    (
        equals_reference(
            "output and weights",
            1.0,
            "Queries are W_q(x), keys W_k(x), values W_v(x); then scaled dot-product attention, "
            "with the √d_k of the projected queries. Return (output, weights).",
            _self_runs,
        ),
        equals_reference(
            "as many of everything",
            0.35,
            "When all sizes are equal, every projection fits everywhere. Each belongs to one role.",
            _self_square,
        ),
        gradients_match(
            "gradients reach x and every projection",
            0.6,
            "x is used three times and learns three times. A projection that is computed and not "
            "used gets no gradient.",
            _self_backward,
        ),
        has_property(
            "reordered positions come out reordered",
            0.25,
            "Nothing here knows of positions: the same vectors in another order give the same "
            "outputs in that order.",
            _self_permuted,
            permutes,
            only_if_right=True,
        ),
        has_property(
            "each sequence for itself",
            0.2,
            "Every position sees all positions of its own sequence, and none of another.",
            _self_batch,
            _self_apart,
            only_if_right=True,
        ),
        has_property(
            "three projections, no biases",
            0.15,
            "W_q, W_k and W_v are nn.Linear layers without bias: `__init__` as it is given.",
            _self_fresh,
            has_parameters(_self_shapes),
            looks=True,
            only_if_right=True,
        ),
        has_property(
            "scores of ±10,000, forward and backward",
            0.25,
            "torch.softmax subtracts the largest score for you; exp and a division do not.",
            _self_large,
            all_finite,
            only_if_right=True,
        ),
        dtypes_kept(0.1, "A float64 model with a float64 input gives float64.", _self_double),
        inputs_untouched(0.05, lambda draw: _self_runs(draw)[1:]),
        no_side_effects_of_a_module(0.05, lambda draw: _self_runs(draw)[1:2]),
    ),
)
