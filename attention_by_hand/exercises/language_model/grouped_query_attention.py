"""`GroupedQueryAttention`: heads that share keys and values."""

from collections.abc import Sequence

import numpy as np

from attention_by_hand.exercises.parameters import causal
from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS, State, all_finite, random_mask
from autograder.student.authoring import Array, Declaration, Draw, Run, StridedArray, module, tensor

EXERCISE = Declaration(
    "GroupedQueryAttention",
    "Heads that share keys and values",
    ("x", "mask"),
    returns=OUTPUT_AND_WEIGHTS,
    forbids=("attention",),
)


def _state(draw: Draw, d: int, heads: int, kv_heads: int, dtype: str = "float32") -> State:
    d_kv = kv_heads * (d // heads)
    rows = {"W_q": d, "W_k": d_kv, "W_v": d_kv, "W_o": d}
    return {
        f"{name}.weight": draw.tensor(n, d, scale=1.5 * d**-0.5, dtype=dtype)
        for name, n in rows.items()
    }


def _attention(draw: Draw, d: int, heads: int, kv_heads: int, dtype: str = "float32") -> Run:
    return module(d, heads, kv_heads, state=_state(draw, d, heads, kv_heads, dtype))


@EXERCISE.equals("output and weights", 1.2)
def _runs(draw: Draw) -> list[Run]:
    """Project x; cut the queries into num_heads heads, keys and values into num_kv_heads; give each
    query head its group's keys and values; from there on it is multi-head attention, with scores
    divided by √d_k. Return the output and the weights (B, num_heads, n, n)."""
    named = module(d_model=6, num_heads=3, num_kv_heads=3, state=_state(draw, 6, 3, 3))
    return [
        _attention(draw, 8, 4, 2).then(draw.tensor(2, 5, 8)),
        named.then(x=draw.tensor(1, 4, 6)),
        _attention(draw, 8, 4, 1).then(draw.tensor(3, 4, 8), None),
        _attention(draw, 12, 6, 3).then(draw.tensor(2, 3, 12)).then(draw.tensor(1, 2, 12)),
    ]


@EXERCISE.equals("neighbours share a group", 0.6)
def _groups(draw: Draw) -> list[Run]:
    """With 6 query heads and 2 key/value heads, heads 0, 1, 2 use the first and 3, 4, 5 the second:
    head h uses h // 3, and not h % 2."""
    return [
        _attention(draw, 12, 6, 2).then(draw.tensor(2, 4, 12)),
        _attention(draw, 8, 8, 4).then(draw.tensor(1, 5, 8)),
        _attention(draw, 18, 9, 3).then(draw.tensor(2, 3, 18)),
    ]


@EXERCISE.equals("one head, one feature, one token, many tokens", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """Equal sizes hide swapped axes: the order is batch, heads, queries, keys."""
    return [
        _attention(draw, 4, 1, 1).then(draw.tensor(2, 3, 4)),
        _attention(draw, 4, 4, 2).then(draw.tensor(4, 4, 4)),
        _attention(draw, 4, 2, 1).then(draw.tensor(3, 1, 4)),
        _attention(draw, 1, 1, 1).then(draw.tensor(1, 2, 1)),
        _attention(draw, 1, 1, 1).then(draw.tensor(1, 66, 1)),
        _attention(draw, 8, 4, 2).then(StridedArray(draw.tensor(2, 3, 8))),
    ]


@EXERCISE.equals("under a mask", 0.6)
def _masked(draw: Draw) -> list[Run]:
    """True = may attend. What is forbidden gets weight 0, and the others share all of it."""
    run, other = _attention(draw, 8, 4, 2), _attention(draw, 6, 3, 1)
    return [
        run.then(draw.tensor(2, 4, 8), causal(4)),
        run.then(draw.tensor(2, 4, 8), mask=tensor(random_mask(draw, 2, 1, 1, 4))),
        other.then(draw.tensor(2, 3, 6), tensor(random_mask(draw, 2, 3, 3, 3))),
        other.then(draw.tensor(2, 4, 6), tensor(random_mask(draw, 2, 1, 4, 4))).as_views(),
        # Where a forbidden score is a low number, these are lower.
        run.then(draw.tensor(2, 4, 8, scale=1000.0), tensor(np.eye(4, dtype=bool))),
    ]


def _barred() -> Array:
    return tensor(np.array([[True, True, False], [False, False, False]])[:, None, None])


@EXERCISE.equals("a query that may attend to nothing", 0.2)
def _nothing(draw: Draw) -> list[Run]:
    """Its weights are all 0, and so is its output."""
    return [_attention(draw, 8, 4, 2).then(draw.tensor(2, 3, 8), _barred())]


def _sizes(run: Run) -> Sequence[int]:
    d, heads, kv_heads = (*run.constructor.args, *run.constructor.kwargs.values())
    return (d, heads) if d % heads else (heads, kv_heads)


@EXERCISE.raises("sizes that do not divide", 0.4, ValueError, naming=_sizes)
def _refused(draw: Draw) -> list[Run]:
    """Check both when the module is built: d_model by num_heads, and num_heads by num_kv_heads.
    The error names the two numbers that do not go together."""
    x = draw.tensor(1, 2, 8)
    return [
        module(8, 3, 1).then(x),
        module(8, 4, 3).then(x),
        module(d_model=12, num_heads=2, num_kv_heads=4).then(x),
        module(10, 4, 4).then(x),
    ]


@EXERCISE.gradients("gradients reach x and every parameter", 0.6)
def _gradients(draw: Draw) -> list[Run]:
    """A key/value head learns from all the query heads that share it."""
    run = _attention(draw, 6, 6, 2, dtype="float64")
    masks = None, tensor(random_mask(draw, 2, 1, 1, 3)), causal(3)
    return [run.then(draw.double(2, 3, 6), mask) for mask in masks]


@EXERCISE.holds("scores of ±10,000, and gradients where nothing is seen", 0.2, all_finite)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax stays finite, as long as a row is not −∞ throughout."""
    run = _attention(draw, 8, 4, 2)
    return [
        run.then(draw.tensor(2, 3, 8, scale=1e2)).with_gradients(),
        run.then(draw.tensor(2, 3, 8), _barred()).with_gradients(),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 module with float64 inputs gives float64, a float32 module float32."""
    run = _attention(draw, 8, 4, 2, dtype="float64")
    return [run.then(draw.double(1, 3, 8), mask) for mask in (None, causal(3))]


EXERCISE.leaves_inputs_alone(0.1, _runs, _masked)
EXERCISE.leaves_state_alone(0.1, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _masked)
