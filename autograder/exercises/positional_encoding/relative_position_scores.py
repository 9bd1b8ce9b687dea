"""`relative_position_scores`: distances in the scores."""

from collections.abc import Callable, Sequence

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    raises,
)
from autograder.engine.runs import Array, Draw, Exercise, Run, Strided, call

_KEY, _BOTH = "relative_key", "relative_key_query"


def _qka(
    draw: Draw, n_q: int, n_k: int, far: int, d_k: int = 4, batch: tuple = (2, 3), **dtype: str
) -> tuple[Array, Array, Array]:
    return (
        draw.tensor(*batch, n_q, d_k, **dtype),
        draw.tensor(*batch, n_k, d_k, **dtype),
        draw.tensor(2 * far + 1, d_k, **dtype),
    )


def _scores_of(mode: str) -> Callable[[Draw], Sequence[Run]]:
    def runs(draw: Draw) -> Sequence[Run]:
        query, key, table = _qka(draw, 5, 5, 6, 3, (1, 2))
        return [
            call(*_qka(draw, 4, 4, 3), mode),
            call(mode=mode, distance_embedding=table, key=key, query=query),
            call(*_qka(draw, 3, 3, 4, 5, (3, 1)), mode),
        ]

    return runs


def _scores_chunk(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qka(draw, 2, 5, 6), _KEY),
        call(*_qka(draw, 1, 4, 5), _BOTH),
        call(*map(Strided, _qka(draw, 4, 2, 4)), _BOTH),
    ]


def _scores_far(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qka(draw, 6, 6, 2, 3), _KEY),
        call(*_qka(draw, 7, 7, 2), _BOTH),
        call(*_qka(draw, 3, 3, 0), _BOTH),
    ]


def _scores_gradients(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qka(draw, 4, 4, 2), _KEY),
        call(*_qka(draw, 5, 5, 6), _BOTH),
    ]


def _scores_unknown(draw: Draw) -> Sequence[Run]:
    inputs = _qka(draw, 3, 3, 2)
    return [call(*inputs, "relative_query"), call(*inputs, mode="absolute"), call(*inputs, "")]


def _scores_double(draw: Draw) -> Sequence[Run]:
    inputs = _qka(draw, 4, 4, 2, dtype="float64")
    return [call(*inputs, _KEY), call(*inputs, _BOTH)]


RELATIVE_POSITION_SCORES = Exercise(
    "relative_position_scores",
    "Distances in the scores",
    ("query", "key", "distance_embedding", "mode"),
    (
        equals_reference(
            "relative_key",
            1.0,
            "Look up a_{i−j} for every pair, (n_q, n_k, d_k), and multiply it with q_i. The "
            "content score q_i·k_j is not part of this, and nothing is divided by √d_k yet.",
            _scores_of(_KEY),
        ),
        equals_reference(
            "relative_key_query",
            1.0,
            "The same, plus k_j·a_{i−j}: the same vector a_{i−j}, this time with the key.",
            _scores_of(_BOTH),
        ),
        equals_reference(
            "another number of keys than of queries",
            0.5,
            "The last query stands at the last key's position, so row r is position r + n_k − n_q.",
            _scores_chunk,
        ),
        equals_reference(
            "farther apart than the table reaches",
            0.5,
            "The table has 2·max_distance + 1 rows; whatever is farther takes the last one on its "
            "side. A negative index would count from the table's end, without an error.",
            _scores_far,
        ),
        gradients_match(
            "gradients to query, key and table",
            0.5,
            "A row of the table is used by many pairs and gathers the gradients of all of them.",
            _scores_gradients,
        ),
        raises(
            "an unknown mode",
            0.25,
            'Raise ValueError for anything but "relative_key" and "relative_key_query".',
            _scores_unknown,
            ValueError,
        ),
        dtypes_kept(0.15, "float64 in, float64 out.", _scores_double),
        inputs_untouched(0.1, _scores_of(_BOTH)),
    ),
)
