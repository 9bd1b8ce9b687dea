"""`BilinearAttention`: bilinear attention."""

import numpy as np

from attention_by_hand.exercises.attention_scoring.shared import (
    QKV,
    do_not_mix,
    fresh,
    has_parameters,
    one_changed,
    sized_tensors,
)
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

EXERCISE = Declaration("BilinearAttention", "Bilinear attention", QKV, returns=OUTPUT_AND_WEIGHTS)


def _bilinear(draw: Draw, *sizes: int, dtype: str = "float32", scale: float = 1.0) -> Run:
    return module(*sizes, state={"W": draw.tensor(*sizes, scale=scale, dtype=dtype)})


@EXERCISE.equals("output and weights", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """query @ W @ keyᵀ has the shape (B, n_q, n_k). Divide it by the fourth root of query_size
    times key_size, take a softmax over the keys, and average the values."""
    query, key, value = sized_tensors(draw, 1, 4, 3, (2, 6, 4))
    first = sized_tensors(draw, 2, 3, 5, (4, 3, 2))
    return [
        _bilinear(draw, 4, 3).then(*first).then(*first),
        _bilinear(draw, 2, 6).then(value=value, key=key, query=query),
        _bilinear(draw, 7, 2)
        .then(*sized_tensors(draw, 3, 2, 4, (7, 2, 3)))
        .then(*sized_tensors(draw, 1, 3, 2, (7, 2, 3))),
        _bilinear(draw, 2, 1).then(*sized_tensors(draw, 1, 70, 2, (2, 1, 1))),
        _bilinear(draw, 1, 2).then(*sized_tensors(draw, 1, 2, 70, (1, 2, 1))),
    ]


@EXERCISE.equals("all sizes equal", 0.35)
def _square(draw: Draw) -> list[Run]:
    """When queries and keys have the same size, Wᵀ fits where W belongs. The rows of W belong to
    the features of the query, its columns to those of the key."""
    return [
        _bilinear(draw, 3, 3).then(*sized_tensors(draw, 3, 3, 3, (3, 3, 3))),
        _bilinear(draw, 2, 2).then(*sized_tensors(draw, 2, 2, 2, (2, 2, 2))),
        _bilinear(draw, 5, 5).then(*sized_tensors(draw, 1, 2, 3, (5, 5, 2))),
    ]


@EXERCISE.equals("one query, one key, a batch of one", 0.25)
def _single(draw: Draw) -> list[Run]:
    """An axis of size 1 is still an axis: do not use squeeze()."""
    return [
        _bilinear(draw, 3, 2).then(*sized_tensors(draw, 2, 1, 5, (3, 2, 4))),
        _bilinear(draw, 2, 3).then(*sized_tensors(draw, 2, 4, 1, (2, 3, 2))),
        _bilinear(draw, 1, 3).then(*sized_tensors(draw, 1, 3, 4, (1, 3, 1))),
        _bilinear(draw, 3, 4).then(*map(StridedArray, sized_tensors(draw, 2, 3, 2, (3, 4, 5)))),
    ]


@EXERCISE.gradients("gradients reach W and every input", 0.6)
def _backward(draw: Draw) -> list[Run]:
    """Use self.W itself, in torch, from start to end: .detach() and .data cut the gradient."""
    # In float64; the product of the sizes is 16, whose fourth root is exact in float32, too.
    query, key, value = sized_tensors(draw, 1, 3, 2, (2, 8, 1), "float64")
    x = sized_tensors(draw, 2, 1, 3, (8, 2, 1), "float64")
    return [
        _bilinear(draw, 8, 2, dtype="float64", scale=0.5).then(*x),
        _bilinear(draw, 2, 8, dtype="float64", scale=0.5).then(value=value, key=key, query=query),
    ]


def _shapes(query_size: int, key_size: int) -> dict[str, tuple]:
    return {"W": (query_size, key_size)}


@EXERCISE.holds(
    "one parameter, W", 0.1, has_parameters(_shapes), forgeable=True, only_if_right=True
)
def _fresh(draw: Draw) -> list[Run]:
    """W is an nn.Parameter of shape (query_size, key_size): leave `__init__` as it is."""
    size = draw.integer(4, 6)
    return [
        fresh(module(3, size).then(*sized_tensors(draw, 2, 1, 3, (3, size, 1)))),
        fresh(module(4, 2).then(*sized_tensors(draw, 1, 2, 3, (4, 2, 1)))),
    ]


def _as_glorot_does(run: Run, record: Record) -> str | None:
    weights = plain(part(record.value, 1))
    if weights is None or weights.shape != (1, 24, 40) or not (weights > 0).all():
        return "expected weights of shape (1, 24, 40), all above 0"
    scores = np.log(weights) - np.log(weights).mean(axis=-1, keepdims=True)
    spread, wanted = float((scores * (24 * 40) ** 0.25).std()), float(np.sqrt(2 / (24 + 40)))
    if abs(spread / wanted - 1) < 0.15:
        return None
    return f"the standard deviation of a new W (24, 40): expected {wanted:.2g}, got {spread:.2g}"


@EXERCISE.holds("a new W, after Glorot and Bengio", 0.05, _as_glorot_does, only_if_right=True)
def _new(draw: Draw) -> list[Run]:
    """nn.init.xavier_uniform_ draws W so that scores are neither tiny nor huge at first: leave
    `__init__` as it is."""
    # Unit vectors show each number of W by itself.
    query, key = (tensor(np.eye(size)[None], "float32") for size in (24, 40))
    return [module(24, 40).then(query, key, draw.tensor(1, 40, 1)).at_random(draw)]


@EXERCISE.holds("scores of ±10,000, forward and backward", 0.25, all_finite, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax subtracts the largest score for you; a plain exp and division do not."""
    runs = []
    for dtype in ("float64", "float32"):
        x = sized_tensors(draw, 1, 2, 4, (3, 2, 1), dtype)
        runs.append(_bilinear(draw, 3, 2, dtype=dtype, scale=1e4).then(*x).with_gradients())
    return runs


EXERCISE.add(
    do_not_mix(
        0.15,
        lambda draw: one_changed(
            draw, _bilinear(draw, 2, 4, scale=0.3), sized_tensors(draw, 3, 3, 4, (2, 4, 5))
        ),
    )
)


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 model with float64 inputs gives float64, a float32 model float32."""
    x = sized_tensors(draw, 2, 1, 3, (8, 2, 1), "float64")
    return [_bilinear(draw, 8, 2, dtype="float64", scale=0.5).then(*x)]


EXERCISE.leaves_inputs_alone(0.1, lambda draw: _runs(draw)[1:])
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[1:2], of_a_module=True)
EXERCISE.follows_its_inputs(_runs)
