"""`relative_positions`: how far apart?"""

from collections.abc import Sequence

from autograder.engine.aspects import dtypes_kept, equals_reference
from autograder.engine.runs import Draw, Exercise, Run, call


def _distance_runs(draw: Draw) -> Sequence[Run]:
    n = draw.integer(4, 6)
    return [call(n, n, n - 1), call(3, 3, 5), call(n_q=5, n_k=5, max_distance=draw.integer(5, 7))]


def _distance_cut(draw: Draw) -> Sequence[Run]:
    return [call(6, 6, 2), call(7, 7, draw.integer(3, 4)), call(5, 5, max_distance=1)]


def _distance_chunk(draw: Draw) -> Sequence[Run]:
    return [
        call(2, 6, 8),
        call(1, draw.integer(4, 7), 7),
        call(3, 8, 2),
        call(n_q=5, n_k=2, max_distance=6),
    ]


def _distance_ends(_: Draw) -> Sequence[Run]:
    return [call(3, 4, 0), call(1, 1, 2), call(1, 1, 0)]


RELATIVE_POSITIONS = Exercise(
    "relative_positions",
    "How far apart?",
    ("n_q", "n_k", "max_distance"),
    (
        equals_reference(
            "as many queries as keys",
            0.75,
            "Query i, key j: the distance is i − j, positive where the key lies in the past. Raise "
            "it by max_distance so that it counts from 0.",
            _distance_runs,
        ),
        equals_reference(
            "farther apart than max_distance",
            0.5,
            "Cut the distance to −max_distance … max_distance on both sides, before raising it.",
            _distance_cut,
        ),
        equals_reference(
            "more keys than queries, and fewer",
            0.5,
            "The last query stands at the last key's position, as with a causal mask: query row r "
            "stands at position r + n_k − n_q.",
            _distance_chunk,
        ),
        equals_reference(
            "no distance, one position",
            0.1,
            "With max_distance 0 there is a single row in the table: all entries are 0.",
            _distance_ends,
        ),
        dtypes_kept(0.15, "Indices are integers: dtype torch.long.", _distance_runs),
    ),
)
