"""`relative_position_scores`: distances in the scores."""

from collections.abc import Callable
from typing import Any

from autograder.student.authoring import Array, Declaration, Draw, Run, StridedArray, call

EXERCISE = Declaration(
    "relative_position_scores",
    "Distances in the scores",
    ("query", "key", "distance_embedding", "mode"),
)


_KEY, _BOTH = "relative_key", "relative_key_query"


def _qka(
    draw: Draw, n_q: int, n_k: int, far: int, d_k: int = 4, batch: tuple = (2, 3), **dtype: Any
) -> tuple[Array, Array, Array]:
    return (
        draw.tensor(*batch, n_q, d_k, **dtype),
        draw.tensor(*batch, n_k, d_k, **dtype),
        draw.tensor(2 * far + 1, d_k, **dtype),
    )


def _of(mode: str) -> Callable[[Draw], list[Run]]:
    def runs(draw: Draw) -> list[Run]:
        query, key, table = _qka(draw, 5, 5, 6, 3, (1, 2))
        return [
            call(*_qka(draw, 4, 4, 3), mode),
            call(mode=mode, distance_embedding=table, key=key, query=query),
            call(*_qka(draw, 3, 3, 4, 5, (3, 1)), mode),
            call(draw.tensor(1, 1, 2, 2, scale=3e-4), *_qka(draw, 2, 2, 2, 2, (1, 1))[1:], mode),
        ]

    return runs


EXERCISE.equals(
    "relative_key",
    1.0,
    "Look up a_{i−j} for every pair, (n_q, n_k, d_k), and take its dot product with q_i. The "
    "content score q_i·k_j is not part of this, and nothing is divided by √d_k yet.",
    _of(_KEY),
)
EXERCISE.equals(
    "relative_key_query",
    1.0,
    "The same, plus k_j·a_{i−j}: the same vector a_{i−j}, this time with the key.",
    _of(_BOTH),
)


@EXERCISE.equals("different numbers of queries and keys", 0.5)
def _chunk(draw: Draw) -> list[Run]:
    """The last query is at the last key's position, so row r is at position r + n_k − n_q."""
    return [
        call(*_qka(draw, 2, 5, 6), _KEY),
        call(*_qka(draw, 1, 4, 5), _BOTH),
        call(*map(StridedArray, _qka(draw, 4, 2, 4)), _BOTH),
        call(*_qka(draw, 2, 70, 68, 1, (1, 1)), _BOTH),
        call(*_qka(draw, 70, 2, 68, 1, (1, 1)), _BOTH),
        call(*_qka(draw, 3, 1, 2), _KEY),
    ]


@EXERCISE.equals("distances beyond the table", 0.5)
def _far(draw: Draw) -> list[Run]:
    """The table has 2·max_distance + 1 rows; whatever is farther away takes the last row on its
    side. A negative index would count from the end of the table, without an error."""
    return [
        call(*_qka(draw, 6, 6, 2, 3), _KEY),
        call(*_qka(draw, 7, 7, 2), _BOTH),
        call(*_qka(draw, 3, 3, 0), _BOTH),
    ]


@EXERCISE.gradients("gradients reach query, key and table", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """A row of the table is used by many pairs and accumulates the gradients of all of them."""
    return [call(*_qka(draw, 4, 4, 2), _KEY), call(*_qka(draw, 5, 5, 6), _BOTH)]


@EXERCISE.raises("an unknown mode", 0.25, ValueError)
def _unknown(draw: Draw) -> list[Run]:
    """Raise ValueError for anything other than "relative_key" and "relative_key_query"."""
    inputs = _qka(draw, 3, 3, 2)
    return [call(*inputs, "relative_query"), call(*inputs, mode="absolute"), call(*inputs, "")]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out."""
    inputs = _qka(draw, 4, 4, 2, dtype="float64")
    return [call(*inputs, _KEY), call(*inputs, _BOTH)]


EXERCISE.leaves_inputs_alone(0.1, _of(_BOTH))
EXERCISE.follows_its_inputs(_of(_BOTH), _far)
