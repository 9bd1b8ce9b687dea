"""`attention_pool`: any scoring function."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import equals_reference, inputs_untouched
from autograder.engine.runs import Draw, Exercise, Recipe, Run, call
from autograder.exercises.kernel_regression.shared import SOFTMAX_BLOCK

_HERE = "autograder.exercises.kernel_regression:"


def dot_product(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of vectors: the dot product of every query with every key."""
    return np.einsum("qd,kd->qk", query, key)


def signed_distance(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of numbers that change when query and key are swapped."""
    return np.sin(np.subtract.outer(query, 2 * key)) + np.multiply.outer(query, key)


def mixed_lengths(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` for queries and keys of different length: product of their sums."""
    return np.multiply.outer(query.sum(-1), key.sum(-1))


def huge_scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of about 1e4 for a positive query and −1e4 for a negative one.

    A scoring function may call its arguments what it likes, as this one does.
    """
    return 1e4 * np.sign(q)[:, None] + np.sin(np.add.outer(q, 3 * k))


def _pool_numbers(draw: Draw) -> Sequence[Run]:
    score = Recipe(_HERE + "signed_distance")
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5), score),
        call(draw.normal(4), draw.normal(4), draw.normal(4), score),
        call(score=score, value=draw.normal(3), key=draw.normal(3), query=draw.normal(2)),
    ]


def _pool_vectors(draw: Draw) -> Sequence[Run]:
    return [
        call(
            draw.normal(3, 2), draw.normal(5, 2), draw.normal(5, 4), Recipe(_HERE + "dot_product")
        ),
        call(draw.normal(2, 3), draw.normal(4, 5), draw.normal(4), Recipe(_HERE + "mixed_lengths")),
        call(
            draw.normal(3, 3), draw.normal(3, 3), draw.normal(3, 3), Recipe(_HERE + "dot_product")
        ),
        call(
            draw.normal(1, 2), draw.normal(3, 2), draw.normal(3, 1), Recipe(_HERE + "dot_product")
        ),
    ]


def _pool_huge(draw: Draw) -> Sequence[Run]:
    query = draw.uniform(0.5, 1.5, 3) * np.array([1.0, -1.0, 1.0])
    return [call(query, draw.normal(4), draw.normal(4), Recipe(_HERE + "huge_scores"))]


ATTENTION_POOL = Exercise(
    "attention_pool",
    "Any scoring function",
    ("query", "key", "value", "score"),
    (
        equals_reference(
            "numbers for queries and keys",
            0.75,
            "weights = softmax of score(query, key) along the keys; output = weights @ value. The "
            "scoring function decides everything else, so use no other distance, and pass it the "
            "query first.",
            _pool_numbers,
        ),
        equals_reference(
            "vectors for queries, keys and values",
            0.75,
            "`score` already deals with vectors: pass it what you are given, without reshaping.",
            _pool_vectors,
        ),
        equals_reference(
            "scores of ±10,000",
            0.3,
            "The scores are whatever `score` returns: use a softmax that subtracts the largest.",
            _pool_huge,
        ),
        inputs_untouched(0.2, _pool_vectors),
    ),
    given=SOFTMAX_BLOCK,
)
