"""`rnn_states`: a recurrent network, step by step."""

import numpy as np

from autograder.student.authoring import Array, Declaration, Draw, Run, Strided, call, tensor

EXERCISE = Declaration(
    "rnn_states",
    "A state for every position",
    ("x", "W_x", "W_h", "b", "h0"),
    forbids=("recurrence",),
)


def _sized(
    draw: Draw, B: int, n: int, d_in: int, d_h: int, dtype: str = "float32"
) -> tuple[Array, Array, Array, Array]:
    """x, W_x, W_h and b, with sums of about ±1.5, where tanh bends."""
    return (
        draw.tensor(B, n, d_in, dtype=dtype),
        draw.tensor(d_in, d_h, scale=d_in**-0.5, dtype=dtype),
        draw.tensor(d_h, d_h, scale=d_h**-0.5, dtype=dtype),
        draw.tensor(d_h, scale=0.5, dtype=dtype),
    )


@EXERCISE.equals("states from zero", 1.1)
def _runs(draw: Draw) -> list[Run]:
    """Begin with a state of zeros, (B, d_h). At each position the new state is the tanh of a sum of
    three: the position's features times W_x, the last state times W_h, and b. Keep every state."""
    x, W_x, W_h, b = _sized(draw, 1, 4, 2, 3)
    return [
        call(*_sized(draw, 2, 5, 3, 4)),
        call(b=b, W_h=W_h, W_x=W_x, x=x, h0=None),
        call(*_sized(draw, 3, 3, 3, 3)),
        call(*_sized(draw, 4, 2, 5, 2), None),
        call(*_sized(draw, 2, 70, 2, 2)),
        call(*map(Strided, _sized(draw, 2, 3, 4, 3))),
    ]


@EXERCISE.equals("a state to begin with", 0.5)
def _begun(draw: Draw) -> list[Run]:
    """h0 is the state before the first position: it goes into the first step, and is not among the
    states that are returned."""
    return [
        call(*_sized(draw, 2, 4, 3, 5), draw.tensor(2, 5)),
        call(*_sized(draw, 3, 3, 3, 3), h0=draw.tensor(3, 3)),
        call(*_sized(draw, 2, 1, 3, 2), Strided(draw.tensor(2, 2))),
    ]


@EXERCISE.equals("one position, one feature, a batch of one", 0.35)
def _single(draw: Draw) -> list[Run]:
    """An axis of size 1 stays: the result is (B, n, d_h) whatever the sizes."""
    return [
        call(*_sized(draw, 1, 1, 1, 1)),
        call(*_sized(draw, 3, 1, 2, 4)),
        call(*_sized(draw, 2, 3, 1, 4)),
        call(*_sized(draw, 1, 3, 2, 1), draw.tensor(1, 1)),
    ]


@EXERCISE.gradients("gradients reach every argument", 0.5)
def _backward(draw: Draw) -> list[Run]:
    """The gradient of a late state runs back through all earlier ones, to x, to h0 and to the
    weights, which every step uses: no detach, no in-place change of a state that is still
    needed."""
    return [
        call(*_sized(draw, 2, 3, 2, 3, "float64")),
        call(*_sized(draw, 1, 5, 3, 2, "float64"), draw.double(1, 2)),
    ]


@EXERCISE.equals("features of ±10,000", 0.15, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """torch.tanh is ±1 there; a formula with exponentials overflows."""
    x, *others = _sized(draw, 2, 3, 2, 3)
    signs = np.where(x.data < 0, -1e4, 1e4) + x.data
    return [call(tensor(signs, "float32"), *others)]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out. A state of zeros needs the dtype of x."""
    given = _sized(draw, 2, 3, 2, 3, "float64")
    return [call(*given), call(*given, draw.double(2, 3))]


EXERCISE.leaves_inputs_alone(0.15, _begun, _runs)
EXERCISE.leaves_state_alone(0.1, lambda draw: _runs(draw)[:2])
EXERCISE.follows_its_inputs(_runs, _begun)
