"""`cosine_scores`: cosine scores."""

import numpy as np

from autograder.student.authoring import (
    Declaration,
    Draw,
    Record,
    Run,
    StridedArray,
    call,
    plain,
    tensor,
)
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped

EXERCISE = Declaration("cosine_scores", "Cosine scores", ("query", "key", "eps"))


SHORTEST = 0.1  # of the scale


def _vectors(
    draw: Draw, n_q: int, n_k: int, d: int, *batch: int, scale: float = 1.0, dtype: str = "float32"
) -> tuple:
    """Queries and keys of which none is near the usual eps in length."""
    both = []
    for n in (n_q, n_k):
        vectors = draw.normal(*batch, n, d, scale=scale)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        both.append(tensor(vectors * np.maximum(1.0, SHORTEST * scale / lengths), dtype))
    return both[0], both[1]


@EXERCISE.equals("scores of every pair", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Divide each query and each key by its own length (its norm over the last axis, with that axis
    kept), then take the dot product of every query with every key. There is no softmax here."""
    query, key = _vectors(draw, 2, 6, 3, scale=3.0)
    return [
        call(*_vectors(draw, 3, 5, 4, scale=2.0)),
        call(*_vectors(draw, 4, 2, 3, 2), 1e-6),
        call(key=key, query=query),
        call(query=key, key=query, eps=1e-7),
    ]


@EXERCISE.equals("all sizes equal", 0.25)
def _square(draw: Draw) -> list[Run]:
    """Lengths are taken over the features, the last axis; the rows of the result are queries."""
    return [
        call(*_vectors(draw, 4, 4, 4)),
        call(*_vectors(draw, 3, 3, 3, 3)),
        call(*_vectors(draw, 3, 3, 5)),
    ]


@EXERCISE.equals("leading batch dimensions", 0.4)
def _batches(draw: Draw) -> list[Run]:
    """Work on the last two axes, whatever comes before them."""
    return [
        call(*_vectors(draw, 3, 4, 2, 2)),
        call(*_vectors(draw, 1, 4, 3, 1)),
        call(*_vectors(draw, 2, 1, 5, 2, 3)),
        call(*map(StridedArray, _vectors(draw, 4, 3, 2, 3))),
        call(*_vectors(draw, 70, 2, 2)),
        call(*_vectors(draw, 2, 70, 2)),
        call(*_vectors(draw, 3, 4, 1)),
    ]


@EXERCISE.equals("a zero vector", 0.35)
def _zero(draw: Draw) -> list[Run]:
    """0/0 is NaN. Do not let a length fall below eps: 0/eps is 0."""
    query, key = (x.data.copy() for x in _vectors(draw, 3, 4, 5, 2))
    query[1, 0] = key[0, 2] = 0.0
    some = tensor(np.stack([np.zeros(3), draw.normal(3)]), "float32")
    return [
        call(tensor(query, "float32"), tensor(key, "float32")),
        call(some, draw.tensor(4, 3, scale=100.0)),
        call(draw.tensor(4, 3, scale=100.0), some, eps=1e-6),
        call(some, some),
    ]


@EXERCISE.equals("vectors shorter than eps", 0.15, only_if_right=True)
def _short(draw: Draw) -> list[Run]:
    """Each length by itself counts as max(length, eps): eps is neither added to a longer one nor a
    bound for the product of two."""
    query, key = (x.data for x in _vectors(draw, 3, 4, 5))
    short = 0.4 * query / np.linalg.norm(query, axis=-1, keepdims=True)
    short, long = tensor(short, "float32"), tensor(key + np.sign(key), "float32")
    other = tensor(0.3 * key / np.linalg.norm(key, axis=-1, keepdims=True), "float32")
    return [call(short, long, 0.5), call(long, short, eps=0.7), call(short, other, 0.5)]


def _bounds(run: Run, record: Record) -> str | None:
    queries, keys = (numbers_of(arg) for arg in run.steps[0].args)
    results = [plain(value) for value in record.values]
    if not all_shaped(results, (len(queries), len(keys))):
        return "the result does not have the shape (n_q, n_k)"
    for scores in results:
        if not np.abs(scores).max() <= 1 + 1e-6:
            return f"a score is {np.abs(scores).max():.6g}, outside [−1, 1]"
    if np.abs(results[0] - results[1]).max() > 1e-5:
        return "longer vectors in the same directions have different scores"
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(keys, axis=1)
    parallel = np.abs(np.abs(queries @ keys.T) / lengths - 1) < 1e-6
    if np.abs(np.abs(results[0][parallel]) - 1).max() > 1e-5:
        return "two vectors in the same direction do not have the score 1"
    return None


@EXERCISE.holds("between −1 and 1, whatever the lengths", 0.25, _bounds, only_if_right=True)
def _lengths(draw: Draw) -> list[Run]:
    """A cosine depends only on the angle: a vector twice as long has the same scores, and every
    vector has the score 1 with itself."""
    # The same directions twice, with other lengths in the second call.
    query, key = draw.normal(4, 3), draw.normal(5, 3)
    key[1], key[3] = 2.5 * query[2], -0.3 * query[0]
    far = 10.0 ** draw.uniform(-2.0, 4.0, 4, 1), 10.0 ** draw.uniform(-2.0, 4.0, 5, 1)
    return [
        call(tensor(query), tensor(key)).then(tensor(query * far[0]), tensor(key * far[1])),
        call(tensor(query, "float32"), tensor(query, "float32")).then(
            tensor(query * 7, "float32"), tensor(query, "float32")
        ),
    ]


@EXERCISE.gradients("gradients reach query and key", 0.35)
def _backward(draw: Draw) -> list[Run]:
    """The length depends on the vector, too: do not detach it."""
    return [
        call(*_vectors(draw, 3, 4, 2, 2, scale=100.0, dtype="float64")),
        call(*_vectors(draw, 3, 3, 5, scale=100.0, dtype="float64")),
    ]


EXERCISE.keeps_dtypes(0.1, "float64 in, float64 out; float32 in, float32 out.", _backward)
EXERCISE.leaves_inputs_alone(0.1, _runs)
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[:2])
EXERCISE.follows_its_inputs(_runs, _zero)
