"""`chunked_linear_attention`: a state between chunks, a masked table inside them."""

import numpy as np

from attention_by_hand.exercises.shared import applied, makes_nothing_larger, qkv
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    StridedArray,
    as_argument,
    call,
    tensor,
)
from autograder.student.engine.arrays import Value

EXERCISE = Declaration(
    "chunked_linear_attention",
    "Linear attention in chunks",
    ("query", "key", "value", "chunk", "state"),
    returns=("the output", ("the new state", ("the matrix S", "the vector z"))),
)


def _text(
    draw: Draw, n: int, d_k: int, d_v: int, *batch: int, dtype: str = "float32"
) -> tuple[Array, ...]:
    return qkv(draw, n, n, d_k, d_v, *batch, dtype=dtype)


def _state(
    draw: Draw, d_k: int, d_v: int, *batch: int, dtype: str = "float32"
) -> tuple[Array, ...]:
    """A state as some positions leave it: z is positive."""
    z = tensor(draw.uniform(0.5, 3.0, *batch, d_k), dtype)
    return draw.tensor(*batch, d_k, d_v, scale=2.0, dtype=dtype), z


def _whole(draw: Draw) -> list[Run]:
    query, key, value = _text(draw, 6, 2, 3, 2)
    return [
        call(*_text(draw, 6, 4, 3), 2),
        call(*_text(draw, 12, 3, 5, 2), 4),
        call(value=value, key=key, query=query, chunk=3),
        call(*_text(draw, 9, 3, 3, 3), 3, None),
        call(*_text(draw, 6, 4, 2)[:2], draw.tensor(6, 2, scale=1e-3), 3),
    ]


EXERCISE.equals(
    "the output, in whole chunks",
    1.25,
    "A query sees the chunks before its own through the state, φ(q) S above the fraction line and "
    "φ(q) · z below it, and of its own chunk the keys up to itself, through a lower triangle of "
    "weights φ(q_i)·φ(k_j). Add both above, both below, and divide once.",
    _whole,
    part=0,
)
EXERCISE.equals(
    "the state after the last chunk",
    0.6,
    "Both parts are sums over all positions: add φ(K)ᵀ V of the whole chunk to the matrix and the "
    "sum of its φ(k) to the vector, once its outputs are computed.",
    _whole,
    part=1,
)


@EXERCISE.equals("what is left over", 0.55)
def _remainders(draw: Draw) -> list[Run]:
    """The last chunk has fewer positions if n is not a multiple; a chunk may be longer than the
    text, or one position. All positions come back, and no more; padding must not count in z."""
    return [
        call(*_text(draw, 7, 3, 2), 3),
        call(*_text(draw, 11, 2, 4, 2), 5),
        call(*_text(draw, 4, 3, 3, 2), 9),
        call(*_text(draw, 5, 2, 3, 2), 5),
        call(*_text(draw, 5, 3, 2), 1),
        call(*_text(draw, 1, 2, 3, 2), 1),
        call(*_text(draw, 1, 1, 1, 1), 4),
        call(*_text(draw, 90, 2, 1), 16),
    ]


@EXERCISE.equals("from a state on", 0.5)
def _continued(draw: Draw) -> list[Run]:
    """The first chunk, too, reads what came before from the state, and adds to it."""
    return [
        call(*_text(draw, 6, 3, 4, 2), 2, _state(draw, 3, 4, 2)),
        call(*_text(draw, 5, 2, 3), 3, state=_state(draw, 2, 3)),
        call(*_text(draw, 3, 3, 3, 3), 8, _state(draw, 3, 3, 3)),
    ]


@EXERCISE.equals("a text in three calls, and a state that is used twice", 0.4)
def _calls(draw: Draw) -> list[Run]:
    """Each call goes on where the one before stopped, whatever the chunks; an old state may be
    needed again, so make new ones instead of writing into it with `+=`."""
    run = call(*_text(draw, 5, 3, 2, 2), 2)
    run = run.then(*_text(draw, 4, 3, 2, 2), 3, Previous(0, (1,)))
    run = run.then(*_text(draw, 1, 3, 2, 2), 4, Previous(1, (1,)))
    return [run.then(*_text(draw, 6, 3, 2, 2), 2, Previous(0, (1,)))]


@EXERCISE.equals("any leading axes, and views", 0.25)
def _shapes(draw: Draw) -> list[Run]:
    """Positions are the last axis but one, features the last; count axes from the end."""
    views = [StridedArray(x) for x in (*_text(draw, 5, 2, 3, 2), *_state(draw, 2, 3, 2))]
    return [
        call(*_text(draw, 5, 2, 3, 2, 3, 2), 2),
        call(*_text(draw, 4, 3, 2, 2, 2), 3, _state(draw, 3, 2, 2, 2)),
        call(*views[:3], 2, tuple(views[3:])),
    ]


@EXERCISE.gradients(
    "gradients reach every argument, also through the state",
    0.6,
    if_nan="0/0 is NaN, and so is its gradient, even at positions that only fill up the last chunk "
    "and are cut off afterwards.",
)
def _backward(draw: Draw) -> list[Run]:
    """A later chunk depends on earlier keys and values through the state: no detach. Queries and
    keys count twice, above the fraction line and below it."""
    text = [_text(draw, n, 3, 2, 2, dtype="float64") for n in (7, 5, 4)]
    again = call(*text[1], 2).then(*text[2], 3, Previous(0, (1,)))
    return [call(*text[0], 3), again]


@EXERCISE.raises("a chunk of no positions", 0.25, ValueError, naming=lambda r: [r.steps[0].args[3]])
def _no_chunk(draw: Draw) -> list[Run]:
    """A chunk has at least one position: raise a ValueError that names the number."""
    return [call(*_text(draw, 4, 2, 3), 0), call(*_text(draw, 4, 2, 3), -7)]


@EXERCISE.raises(
    "more queries than keys or fewer",
    0.25,
    ValueError,
    naming=lambda run: [a.data.shape[-2] for a in run.steps[0].args[:2]],
)
def _uneven(draw: Draw) -> list[Run]:
    """Nothing then says up to which key a query may see: raise a ValueError that names both
    numbers."""
    return [call(*qkv(draw, 6, 9, 2, 3), 3), call(*qkv(draw, 7, 4, 5, 2, 3), 2)]


@EXERCISE.equals("earlier chunks as a state", 1.15, part=0, only_if_right=True)
def _lost_in_a_table(draw: Draw) -> list[Run]:
    """A table rounds φ(q)·φ(k) before the values come in: beside 2^27, all that the keys differ by
    is lost. In φ(q) (φ(k)ᵀ v), keys of earlier chunks meet their values first, and nothing is
    lost. Only a chunk's own keys belong in a table."""
    return [_nearly_alike(draw, 4, 5), _nearly_alike(draw, 6, 9)]


def _nearly_alike(draw: Draw, n: int, later: int) -> Run:
    """A first chunk of keys that are alike in the feature that counts, and of values that then add
    up to 0; its own queries see its first key alone. In powers of 2, so that no order of the sums
    rounds. `later` positions without values come after it."""
    off, size = -200.0, n + 1  # of it, φ is 0
    query, key = np.full((size + later, 3), off), np.full((size + later, 3), off)
    query[:size, 2] = key[0, 2] = 0.0
    query[size:, 0], query[size:, 1] = 2.0 ** draw.integers(27, 30, later), 0.0
    key[1:, 0], key[1:size, 1] = 0.0, np.resize([0.0, 1.0, 2.0, 0.0], n)
    half = 2.0 ** draw.integers(29, 31, n // 2, 2)
    value = np.zeros((size + later, 2))
    value[1:size] = np.stack([half, -half], axis=1).reshape(n, 2)
    return call(*(tensor(x, "float32") for x in (query, key, value)), size)


def _most(run: Run) -> int:
    """Less than a third of what a state for each position takes; a table of queries and keys takes
    more."""
    key, value = (array.data.shape for array in run.steps[0].args[1:3])
    return 3 * key[-2] * key[-1] * value[-1] // 10


EXERCISE.add(
    makes_nothing_larger(
        "no table of all queries and keys, no state for each position",
        0.2,
        "Only one chunk is in hand at a time: a table of chunk × chunk, and one state.",
        lambda draw: [
            call(*_text(draw, 400, 8, 8), 4),
            call(*_text(draw, 60, 7, 9), 7, _state(draw, 7, 9)),
        ],
        _most,
    )
)


def in_a_graph(x: Value) -> Value:
    return x.clone().requires_grad_()


def in_few_operations(result: Value) -> bool:
    """Whether the graph of the output's gradients has fewer operations than there are positions."""
    found, waiting = set(), [result[0].grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [before for before, _ in node.next_functions]
    return len(found) < result[0].shape[-2]


def _too_many(run: Run, record: Record) -> str | None:
    n = len(run.steps[0].args[1].data)
    few = record.value is True
    return None if few else f"{n} positions in 6 chunks take {n} operations or more"


@EXERCISE.holds(
    "a step for each chunk, not for each position",
    0.2,
    _too_many,
    only_if_right=True,
    forgeable=True,
)
def _steps(draw: Draw) -> list[Run]:
    """A chunk is a few matrix products, however many positions it has: no loop over positions."""
    query, key, value = _text(draw, 600, 3, 2)
    run = applied(in_a_graph, key).then(query, Previous(0), value, 100)
    return [run.then_apply(as_argument(in_few_operations), Previous(1))]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out, and float32 for float32, the state included."""
    given: tuple[Array, ...] = _text(draw, 5, 3, 2, dtype="float64")
    return [call(*given, 2), call(*given, 3, _state(draw, 3, 2, dtype="float64"))]


EXERCISE.leaves_inputs_alone(0.1, _continued)
EXERCISE.leaves_state_alone(0.05, lambda draw: [*_whole(draw)[:1], *_continued(draw)[:1]])
EXERCISE.follows_its_inputs(_whole, _continued)
