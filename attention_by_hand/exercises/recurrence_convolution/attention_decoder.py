"""`AttentionDecoder`: a recurrent decoder that looks at the encoder's states."""

import numpy as np

from attention_by_hand.exercises.recurrence_convolution.gru_cell import gru_state
from attention_by_hand.exercises.shared import State, all_finite, linear_state, random_mask
from autograder.student.authoring import (
    Array,
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
from autograder.student.engine.compare import all_shaped

EXERCISE = Declaration(
    "AttentionDecoder",
    "A decoder that looks back",
    ("target", "memory", "state", "memory_mask"),
    returns=("the logits", "the weights"),
)


def _decoder(
    draw: Draw,
    vocab: int,
    d_embed: int,
    d_hidden: int,
    d_memory: int,
    dtype: str = "float32",
    scale: float = 2.0,
) -> Run:
    """An `AttentionDecoder` with random parameters; `scale` is that of w_v, and of the scores."""
    state: State = {"embedding.weight": draw.tensor(vocab, d_embed, dtype=dtype)}
    matrices = {"W_q": (d_hidden, d_hidden), "W_k": (d_hidden, d_memory)}
    for name, shape in matrices.items():
        state[f"{name}.weight"] = draw.tensor(*shape, scale=1.5 * shape[1] ** -0.5, dtype=dtype)
    state["w_v.weight"] = draw.tensor(1, d_hidden, scale=scale, dtype=dtype)
    cell = gru_state(draw, d_embed + d_memory, d_hidden, dtype)
    state |= {f"cell.{name}": value for name, value in cell.items()}
    state |= linear_state(draw, "output", vocab, d_hidden + d_memory, dtype)
    return module(vocab, d_embed, d_hidden, d_memory, state=state)


def _given(
    draw: Draw,
    B: int,
    m: int,
    n: int,
    vocab: int,
    d_hidden: int,
    d_memory: int,
    dtype: str = "float32",
) -> tuple[Array, Array, Array]:
    """Target, memory and state."""
    ids = tensor(draw.integers(0, vocab - 1, B, m))
    return ids, draw.tensor(B, n, d_memory, dtype=dtype), draw.tensor(B, d_hidden, dtype=dtype)


@EXERCISE.equals("the weights of the first step", 0.5, part=1)
def _first(draw: Draw) -> list[Run]:
    """One score for each position of the memory, w_vᵀ tanh(W_q state + W_k memory_j), as in chapter
    2, and a softmax over the positions. The first query is the state that is passed in."""
    return [
        _decoder(draw, 7, 3, 4, 5).then(*_given(draw, 2, 1, 4, 7, 4, 5)),
        _decoder(draw, 5, 2, 3, 3).then(*_given(draw, 3, 1, 3, 5, 3, 3)),
    ]


def _runs(draw: Draw) -> list[Run]:
    target, memory, state = _given(draw, 1, 4, 5, 6, 3, 2)
    named = _decoder(draw, 6, 4, 3, 2)
    return [
        _decoder(draw, 7, 3, 4, 5).then(*_given(draw, 2, 3, 4, 7, 4, 5)),
        named.then(memory=memory, state=state, target=target, memory_mask=None),
        _decoder(draw, 4, 4, 4, 4).then(*_given(draw, 3, 3, 3, 4, 4, 4), None),
        _decoder(draw, 9, 2, 5, 3).then(*map(StridedArray, _given(draw, 2, 5, 2, 9, 5, 3))),
        _decoder(draw, 3, 1, 2, 2).then(*_given(draw, 1, 12, 3, 3, 2, 2)),
        _decoder(draw, 3, 1, 2, 1).then(*_given(draw, 1, 2, 70, 3, 2, 1)),
        _decoder(draw, 2, 1, 1, 1).then(*_given(draw, 1, 70, 2, 2, 1, 1)),
    ]


EXERCISE.equals(
    "the weights of every step",
    0.75,
    "The query of a step is the state before it: that which the cell returned at the step before. "
    "The weights of the steps stand below each other, (B, m, n).",
    _runs,
    part=1,
)
EXERCISE.equals(
    "the logits",
    1.0,
    "The cell reads the embedded token and the context, in this order; `output` reads the state "
    "that the cell returns and the same context. The targets are shifted already, and at each step "
    "the given one is read, whatever the logits say.",
    _runs,
    part=0,
)


@EXERCISE.equals("one step, one position, one feature", 0.35)
def _single(draw: Draw) -> list[Run]:
    """squeeze() without an axis removes every axis of size 1, even that of the batch."""
    return [
        _decoder(draw, 2, 1, 1, 1).then(*_given(draw, 1, 1, 1, 2, 1, 1)),
        _decoder(draw, 5, 2, 3, 4).then(*_given(draw, 1, 3, 1, 5, 3, 4)),
        _decoder(draw, 5, 2, 1, 4).then(*_given(draw, 3, 1, 2, 5, 1, 4)),
        _decoder(draw, 5, 3, 2, 1).then(*_given(draw, 1, 2, 3, 5, 2, 1)),
    ]


@EXERCISE.equals("under a mask", 0.6)
def _masked(draw: Draw) -> list[Run]:
    """memory_mask is (B, n), one row for each sequence of the batch, and the same at every step.
    True means may attend; apply it to the scores, before the softmax."""
    return [
        _decoder(draw, 7, 3, 4, 5).then(
            *_given(draw, 2, 3, 4, 7, 4, 5), tensor(random_mask(draw, 2, 4))
        ),
        _decoder(draw, 5, 2, 3, 3).then(
            *_given(draw, 3, 2, 3, 5, 3, 3),
            memory_mask=StridedArray(tensor(random_mask(draw, 3, 3))),
        ),
        _decoder(draw, 4, 2, 3, 2).then(
            *_given(draw, 1, 4, 6, 4, 3, 2), tensor(random_mask(draw, 1, 6))
        ),
    ]


@EXERCISE.equals("a memory that is all padding", 0.25)
def _nothing(draw: Draw) -> list[Run]:
    """The weights are then 0, and so is the context: not NaN, and not the mean of the padding."""
    mask = random_mask(draw, 3, 4)
    mask[1] = False
    return [_decoder(draw, 6, 2, 3, 4).then(*_given(draw, 3, 3, 4, 6, 3, 4), tensor(mask))]


@EXERCISE.gradients(
    "gradients reach memory, state and every parameter",
    0.5,
    if_nan="One NaN in a row of weights reaches every gradient. A row that may see nothing passes "
    "on a gradient of 0.",
)
def _backward(draw: Draw) -> list[Run]:
    """Every step uses the same parameters, and its gradient runs back through the states and the
    contexts of all steps before it."""
    # In float64, and small: the gradients of the known mistakes are stored, too.
    mask = np.array([[True, False, True], [False, False, False]])
    free = _decoder(draw, 3, 2, 2, 2, "float64").then(*_given(draw, 1, 3, 2, 3, 2, 2, "float64"))
    some = _decoder(draw, 3, 2, 2, 3, "float64")
    return [free, some.then(*_given(draw, 2, 2, 3, 3, 2, 3, "float64"), tensor(mask))]


@EXERCISE.holds("scores of ±10,000, forward and backward", 0.1, all_finite, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax subtracts the largest score for you; a plain exp and division do not."""
    run = _decoder(draw, 4, 2, 3, 2, scale=1e4).then(*_given(draw, 2, 3, 4, 4, 3, 2))
    return [run.with_gradients()]


def _only_its_past(run: Run, record: Record) -> str | None:
    logits = [plain(part(value, 0)) for value in record.values]
    if not all_shaped(logits, (2, 4, 6)):
        return "the logits: expected shape (2, 4, 6)"
    moved = np.abs(logits[1] - logits[0]).max(axis=-1)
    if not moved[1].max() < 1e-6:
        return "changing a token of one sequence changed the logits of another"
    if not moved[0, :2].max() < 1e-6:
        return "changing token 2 changed the logits of an earlier step"
    return None if moved[0, 2] > 1e-4 else "changing token 2 left the logits of its step unchanged"


@EXERCISE.holds("a token changes its own step and those after it", 0.1, _only_its_past)
def _changed(draw: Draw) -> list[Run]:
    """Step t reads target[:, t], that of its own sequence, and nothing of what comes later."""
    target, memory, state = _given(draw, 2, 4, 3, 6, 4, 3)
    other = target.data.copy()
    other[0, 2] = (other[0, 2] + 1) % 6
    run = _decoder(draw, 6, 3, 4, 3).then(target, memory, state)
    return [run.then(tensor(other), memory, state)]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 decoder with float64 inputs gives float64, a float32 one float32."""
    given = _given(draw, 2, 2, 3, 5, 3, 4, "float64")
    run = _decoder(draw, 5, 2, 3, 4, "float64")
    return [run.then(*given).then(*given, tensor(random_mask(draw, 2, 3)))]


EXERCISE.leaves_inputs_alone(0.15, _masked, _runs)
EXERCISE.leaves_state_alone(0.1, lambda draw: _runs(draw)[:1], of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _masked)
