"""`attention_pool`: any scoring function."""

import numpy as np

from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS
from autograder.student.authoring import Declaration, Draw, Run, as_argument, call

EXERCISE = Declaration(
    "attention_pool",
    "Any scoring function",
    ("query", "key", "value", "score"),
    allows=("softmax",),
    returns=OUTPUT_AND_WEIGHTS,
)


def signed_distance(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of scalars that change when query and key are swapped."""
    return np.sin(np.subtract.outer(query, 2 * key)) + np.multiply.outer(query, key)


@EXERCISE.equals("scalar queries and keys", 0.75)
def _numbers(draw: Draw) -> list[Run]:
    """The weights are the softmax of `score(query, key)` over the keys; the output is the weighted
    sum of the values. The scoring function decides everything else: use no other distance, and pass
    it the query first."""
    score = as_argument(signed_distance)
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5), score),
        call(draw.normal(4), draw.normal(4), draw.normal(4), score),
        call(score=score, value=draw.normal(3), key=draw.normal(3), query=draw.normal(2)),
    ]


def dot_product(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of vectors: the dot product of every query with every key."""
    return np.einsum("qd,kd->qk", query, key)


def mixed_lengths(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` for queries and keys of different lengths: the product of their sums."""
    return np.multiply.outer(query.sum(-1), key.sum(-1))


@EXERCISE.equals("vectors as queries, keys and values", 0.75)
def _vectors(draw: Draw) -> list[Run]:
    """`score` already handles vectors: pass it what you are given, without reshaping."""
    return [
        call(draw.normal(3, 2), draw.normal(5, 2), draw.normal(5, 4), as_argument(dot_product)),
        call(draw.normal(2, 3), draw.normal(4, 5), draw.normal(4), as_argument(mixed_lengths)),
        call(draw.normal(3, 3), draw.normal(3, 3), draw.normal(3, 3), as_argument(dot_product)),
        call(draw.normal(1, 2), draw.normal(3, 2), draw.normal(3, 1), as_argument(dot_product)),
        call(draw.normal(2, 2), draw.normal(3, 2), 1e-3 * draw.normal(3), as_argument(dot_product)),
        call(
            draw.normal(4, 2), draw.normal(3, 2), draw.normal(3, 2), as_argument(dot_product)
        ).as_views(),
        call(draw.normal(3, 2), draw.normal(1, 2), draw.normal(1, 2), as_argument(dot_product)),
        call(draw.normal(70, 1), draw.normal(2, 1), draw.normal(2), as_argument(dot_product)),
        call(draw.normal(2, 1), draw.normal(70, 1), draw.normal(70), as_argument(dot_product)),
    ]


def huge_scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of about 1e4 for a positive query and −1e4 for a negative one.

    A scoring function may name its arguments as it likes, as this one does.
    """
    return 1e4 * np.sign(q)[:, None] + np.sin(np.add.outer(q, 3 * k))


@EXERCISE.equals("scores of ±10,000", 0.3)
def _huge(draw: Draw) -> list[Run]:
    """The scores are whatever `score` returns: use a softmax that subtracts the largest one."""
    query = draw.uniform(0.5, 1.5, 3) * np.array([1.0, -1.0, 1.0])
    return [call(query, draw.normal(4), draw.normal(4), as_argument(huge_scores))]


@EXERCISE.keeps_dtypes(0.1)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32."""
    single = [draw.normal(n, 2, dtype="float32") for n in (3, 4, 4)]
    return [call(*single, as_argument(dot_product))]


EXERCISE.leaves_inputs_alone(0.1, _vectors)
