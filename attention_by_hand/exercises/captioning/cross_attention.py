"""`CrossAttention`: attention to vectors of another width."""

from collections.abc import Sequence

import numpy as np

from attention_by_hand.exercises.parameters import causal
from attention_by_hand.exercises.shared import (
    OUTPUT_AND_WEIGHTS,
    State,
    all_finite,
    linear_state,
    random_mask,
)
from autograder.student.authoring import Array, Declaration, Draw, Run, StridedArray, module, tensor

EXERCISE = Declaration(
    "CrossAttention",
    "Attention to another width",
    ("x", "memory", "mask"),
    returns=OUTPUT_AND_WEIGHTS,
    forbids=("attention", "transformer"),
)


def cross_state(draw: Draw, d: int, d_encoder: int, dtype: str = "float32") -> State:
    """Parameters with which scores are of about ±2."""
    widths = {"W_q": d, "W_k": d_encoder, "W_v": d_encoder, "W_o": d}
    state: State = {}
    for name, width in widths.items():
        state |= linear_state(draw, name, d, width, dtype, scale=1.5)
    return state


def _attention(
    draw: Draw, d: int, d_encoder: int, num_heads: int, dtype: str = "float32", **kwargs: object
) -> Run:
    state = cross_state(draw, d, d_encoder, dtype)
    return module(d, d_encoder, num_heads, state=state, **kwargs)


def _two(
    draw: Draw, B: int, n_q: int, n_k: int, d: int, d_encoder: int, dtype: str = "float32"
) -> tuple:
    return draw.tensor(B, n_q, d, dtype=dtype), draw.tensor(B, n_k, d_encoder, dtype=dtype)


@EXERCISE.equals("output and weights", 1.2)
def _runs(draw: Draw) -> list[Run]:
    """Queries come from x by W_q, keys and values from the memory by W_k and W_v. Cut all three
    into heads, attend with scores divided by √d_k, merge the heads, then apply W_o. Return the
    output and the weights (B, num_heads, n_q, n_k)."""
    sizes = {"d_model": 6, "d_encoder": 6, "num_heads": 3}
    named, (x, memory) = module(**sizes, state=cross_state(draw, 6, 6)), _two(draw, 1, 4, 4, 6, 6)
    return [
        _attention(draw, 8, 8, 2).then(*_two(draw, 2, 3, 3, 8, 8)),
        named.then(memory=memory, x=x),
        _attention(draw, 8, 6, 4).then(*_two(draw, 2, 3, 5, 8, 6)),
        _attention(draw, 6, 8, 2).then(*_two(draw, 3, 4, 2, 6, 8), None),
    ]


@EXERCISE.equals("a memory that is wider, or narrower", 0.6)
def _widths(draw: Draw) -> list[Run]:
    """W_k and W_v read d_encoder features and give d_model; W_q and W_o stay within d_model. The
    size of a head is d_model / num_heads, whatever the memory's width."""
    return [
        _attention(draw, 6, 10, 3).then(*_two(draw, 2, 3, 4, 6, 10)),
        _attention(draw, 8, 3, 2).then(*_two(draw, 2, 4, 3, 8, 3)),
        _attention(draw, 4, 1, 2).then(*_two(draw, 2, 2, 3, 4, 1)),
        _attention(draw, 2, 7, 2).then(*_two(draw, 1, 3, 2, 2, 7)).then(*_two(draw, 2, 1, 4, 2, 7)),
    ]


@EXERCISE.equals("one head, one key, one query, many of them", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """Equal sizes hide swapped axes: the order is batch, heads, queries, keys."""
    return [
        _attention(draw, 6, 4, 1).then(*_two(draw, 1, 3, 4, 6, 4)),
        _attention(draw, 4, 6, 4).then(*_two(draw, 4, 4, 4, 4, 6)),
        _attention(draw, 4, 5, 2).then(*_two(draw, 2, 3, 1, 4, 5)),
        _attention(draw, 4, 3, 2).then(*_two(draw, 3, 1, 5, 4, 3)),
        _attention(draw, 1, 1, 1).then(*_two(draw, 1, 1, 1, 1, 1)),
        _attention(draw, 2, 1, 1).then(*_two(draw, 1, 66, 2, 2, 1)),
        _attention(draw, 2, 1, 2).then(*_two(draw, 1, 2, 66, 2, 1)),
    ]


@EXERCISE.equals("under a mask", 0.6)
def _masked(draw: Draw) -> list[Run]:
    """True = may attend. The mask broadcasts to (B, 1, n_q, n_k): its last axis is that of the
    keys, and all heads share it. What is forbidden gets weight 0, and the others share all of it.
    """
    run, other = _attention(draw, 8, 6, 4), _attention(draw, 6, 7, 3)
    itself = tensor(np.eye(4, dtype=bool))
    return [
        run.then(*_two(draw, 2, 3, 4, 8, 6), tensor(random_mask(draw, 2, 1, 1, 4))),
        run.then(*_two(draw, 2, 4, 4, 8, 6), mask=tensor(random_mask(draw, 2, 1, 4, 4))),
        other.then(*_two(draw, 3, 2, 5, 6, 7), tensor(random_mask(draw, 3, 1, 2, 5))),
        other.then(*_two(draw, 2, 4, 4, 6, 7), causal(4)),
        other.then(*_two(draw, 2, 3, 4, 6, 7), tensor(random_mask(draw, 3, 4))),
        other.then(*_two(draw, 2, 2, 3, 6, 7), tensor(random_mask(draw, 3))),
        # Where a forbidden score is a low number, these are lower.
        run.then(*(tensor(1000 * a.data, "float32") for a in _two(draw, 2, 4, 4, 8, 6)), itself),
    ]


def _barred(draw: Draw) -> list[Array]:
    """Masks under which a picture, a query, or everything is hidden."""
    picture = np.array([[True, True, False], [False, False, False]])[:, None, None]
    query = random_mask(draw, 2, 1, 3, 3)
    query[0, 0, 1] = query[1, 0, 2] = False
    return [tensor(picture), tensor(query), tensor(np.zeros((3, 3), dtype=bool))]


@EXERCISE.equals("a query that may attend to nothing", 0.4)
def _nothing(draw: Draw) -> list[Run]:
    """Its weights are all 0, and so is its output: the bias of W_o does not reach it, either."""
    run = _attention(draw, 6, 4, 2)
    one_column = tensor(np.array([True, False, True])[None, None, :, None])
    runs = [run.then(*_two(draw, 2, 3, 3, 6, 4), mask) for mask in _barred(draw)]
    return [*runs, run.then(*_two(draw, 2, 3, 4, 6, 4), one_column)]


def _sizes(run: Run) -> Sequence[int]:
    given = dict(zip(("d_model", "d_encoder", "num_heads"), run.constructor.args, strict=False))
    given |= run.constructor.kwargs
    return given["d_model"], given["num_heads"]


@EXERCISE.raises("sizes that do not divide", 0.4, ValueError, naming=_sizes)
def _refused(draw: Draw) -> list[Run]:
    """d_model must be a multiple of num_heads; d_encoder need not be. Check it when the module is
    built, and name both numbers."""
    return [
        module(8, 6, 3).then(*_two(draw, 1, 2, 3, 8, 6)),
        module(d_model=10, d_encoder=8, num_heads=4).then(*_two(draw, 1, 2, 3, 10, 8)),
        module(2, 3, 5).then(*_two(draw, 1, 2, 3, 2, 3)),
    ]


@EXERCISE.gradients("gradients reach x, the memory and every parameter", 0.65)
def _gradients(draw: Draw) -> list[Run]:
    """The encoder learns through keys and values: do not detach the memory, nor the weights."""
    # In float64, where terms that cancel do so to the last digit.
    run = _attention(draw, 6, 4, 2, "float64")
    masks = None, tensor(random_mask(draw, 2, 1, 1, 3)), _barred(draw)[1]
    return [run.then(*_two(draw, 2, 3, 3, 6, 4, "float64"), mask) for mask in masks]


@EXERCISE.holds("scores of ±10,000, and gradients where nothing is seen", 0.25, all_finite)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax stays finite, as long as a row is not −∞ throughout."""
    run, (x, memory) = _attention(draw, 8, 6, 4), _two(draw, 2, 3, 3, 8, 6)
    loud = (tensor(100 * a.data, "float32") for a in (x, memory))
    barred = _barred(draw)
    return [
        run.then(*loud).with_gradients(),
        run.then(x, memory, barred[0]).with_gradients(),
        run.then(x, memory, barred[1]).with_gradients(),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 module with float64 inputs gives float64, a float32 module float32."""
    run = _attention(draw, 8, 6, 2, "float64")
    masks = None, tensor(random_mask(draw, 2, 1, 1, 3)), _barred(draw)[0]
    return [run.then(*_two(draw, 2, 3, 3, 8, 6, "float64"), mask) for mask in masks]


EXERCISE.leaves_inputs_alone(0.15, _runs, _masked)


@EXERCISE.equals("non-contiguous views", 0.15)
def _strided(draw: Draw) -> list[Run]:
    """reshape and flatten work on any view; view does not."""
    mask = tensor(random_mask(draw, 2, 1, 3, 4))
    x, memory = map(StridedArray, _two(draw, 2, 3, 5, 8, 6))
    return [
        _attention(draw, 8, 6, 4).then(*_two(draw, 2, 3, 4, 8, 6), mask).as_views(),
        _attention(draw, 8, 6, 2).then(x, memory),
    ]


EXERCISE.leaves_state_alone(0.1, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _masked, _nothing)
