"""`linear_attention_step`: attention as a recurrent network."""

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

EXERCISE = Declaration(
    "linear_attention_step",
    "Attention as a recurrent network",
    ("query", "key", "value", "state"),
    returns=("the output", ("the new state", ("the matrix S", "the vector z"))),
)


def _given(
    draw: Draw, B: int, d_k: int, d_v: int, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    """Query, key and value of one position."""
    query, key, value = (draw.tensor(B, d, dtype=dtype) for d in (d_k, d_k, d_v))
    return query, key, value


def _state(draw: Draw, B: int, d_k: int, d_v: int, dtype: str = "float32") -> tuple[Array, Array]:
    """A state as some positions leave it: z is positive."""
    z = tensor(draw.uniform(0.5, 3.0, B, d_k), dtype)
    return draw.tensor(B, d_k, d_v, scale=2.0, dtype=dtype), z


@EXERCISE.equals("the first position", 0.55)
def _first(draw: Draw) -> list[Run]:
    """Before the first position both sums are zero. Add the new position to them first: S is the
    outer product of φ(k) and v, z is φ(k). The output is then v itself."""
    query, key, value = _given(draw, 1, 2, 4)
    return [
        call(*_given(draw, 2, 3, 4)),
        call(value=value, key=key, query=query, state=None),
        call(*_given(draw, 3, 3, 3), None),
        call(*_given(draw, 2, 3, 4)[:2], draw.tensor(2, 4, scale=1e-3)),
    ]


def _continued(draw: Draw) -> list[Run]:
    query, key, value = _given(draw, 1, 2, 4)
    views = [StridedArray(array) for array in (*_given(draw, 2, 3, 2), *_state(draw, 2, 3, 2))]
    return [
        call(*_given(draw, 2, 3, 4), _state(draw, 2, 3, 4)),
        call(value=value, key=key, query=query, state=_state(draw, 1, 2, 4)),
        call(*_given(draw, 3, 3, 3), _state(draw, 3, 3, 3)),
        call(*views[:3], tuple(views[3:])),
    ]


EXERCISE.equals(
    "the new state",
    0.6,
    "Both parts are sums: add φ(k)ᵀ v to the matrix and φ(k) to the vector, and return them as a "
    "pair (S, z) of shapes (B, d_k, d_v) and (B, d_k).",
    _continued,
    part=1,
)
EXERCISE.equals(
    "the output from a state",
    0.75,
    "It is computed from the new state, in which this position is counted: φ(q) S / (φ(q) · z), "
    "for each sequence of the batch with its own state.",
    _continued,
    part=0,
)


@EXERCISE.equals("one sequence, one feature", 0.2)
def _single(draw: Draw) -> list[Run]:
    """No axis is lost where its size is 1: the output is (B, d_v)."""
    return [
        call(*_given(draw, 1, 1, 1), _state(draw, 1, 1, 1)),
        call(*_given(draw, 1, 1, 3), _state(draw, 1, 1, 3)),
        call(*_given(draw, 2, 3, 1), _state(draw, 2, 3, 1)),
        call(*_given(draw, 1, 1, 1)),
    ]


@EXERCISE.equals("twelve positions, one at a time", 0.5)
def _twelve(draw: Draw) -> list[Run]:
    """Each call gets the state that the call before returned; the outputs are those of causal
    linear attention over the whole sequence."""
    run = call(*_given(draw, 2, 3, 2))
    for i in range(11):
        run = run.then(*_given(draw, 2, 3, 2), Previous(i, (1,)))
    return [run]


@EXERCISE.equals("an old state can be used again", 0.2)
def _branches(draw: Draw) -> list[Run]:
    """Make a new matrix and a new vector: `+=` writes into those that were passed in, which
    somebody else may still need."""
    run = call(*_given(draw, 2, 2, 3))
    for _ in range(3):
        run = run.then(*_given(draw, 2, 2, 3), Previous(0, (1,)))
    return [run]


@EXERCISE.gradients("gradients reach every argument, also through the state", 0.35)
def _backward(draw: Draw) -> list[Run]:
    """A later output depends on earlier keys and values through the state: no detach."""
    run = call(*_given(draw, 2, 2, 3, "float64"))
    for i in range(2):
        run = run.then(*_given(draw, 2, 2, 3, "float64"), Previous(i, (1,)))
    return [run, call(*_given(draw, 2, 3, 2, "float64"), _state(draw, 2, 3, 2, "float64"))]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out, and float32 for float32, the state included."""
    given = _given(draw, 2, 3, 2, "float64")
    return [call(*given), call(*given, _state(draw, 2, 3, 2, "float64"))]


EXERCISE.leaves_inputs_alone(0.15, _continued)
EXERCISE.leaves_state_alone(0.05, lambda draw: [*_first(draw)[:1], *_continued(draw)[:1]])
EXERCISE.follows_its_inputs(_first, _continued)
