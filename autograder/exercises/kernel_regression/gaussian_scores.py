"""`gaussian_scores`: a score for every query and key."""

from collections.abc import Sequence

from autograder.engine.aspects import equals_reference, inputs_untouched
from autograder.engine.runs import Draw, Exercise, Run, Strided, call


def _scores_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(3), draw.normal(5), draw.number(1.5, 3.0)),
        call(draw.normal(4), draw.normal(2), draw.number(0.2, 0.7)),
        call(key=draw.normal(4), query=draw.normal(3)),
        call(draw.normal(2), draw.normal(3), 300.0),
    ]


def _scores_square(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(4), draw.normal(4), draw.number(1.5, 3.0)),
        call(draw.normal(1), draw.normal(1), w=draw.number(1.5, 3.0)),
        call(Strided(draw.normal(5)), Strided(draw.normal(5)), draw.number(0.2, 0.7)),
    ]


def _scores_integers(draw: Draw) -> Sequence[Run]:
    query, key = draw.permutation(9)[:3] - 4, draw.permutation(9)[:5] - 4
    return [call(query, key, 3), call(query, key + 1)]


GAUSSIAN_SCORES = Exercise(
    "gaussian_scores",
    "A score for every query and key",
    ("query", "key", "w"),
    (
        equals_reference(
            "scores of random queries and keys",
            1.0,
            "Every query against every key, shape (n_q, n_k): query[:, None] and key[None, :] "
            "broadcast to it. Then −½((x − x_i) w)²: w multiplies the distance before the square.",
            _scores_runs,
        ),
        equals_reference(
            "as many queries as keys",
            0.5,
            "With n queries and n keys the scores are (n, n), not (n,): (n,) − (n,) pairs the i-th "
            "query with the i-th key only.",
            _scores_square,
        ),
        equals_reference(
            "whole numbers",
            0.3,
            "Integers give floating-point scores: −½ of an odd number is not an integer.",
            _scores_integers,
        ),
        inputs_untouched(0.2, _scores_runs),
    ),
)
