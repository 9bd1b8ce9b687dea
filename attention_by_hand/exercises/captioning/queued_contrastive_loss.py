"""`queued_contrastive_loss`: wrong answers from a queue."""

import numpy as np

from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Record,
    Run,
    call,
    plain,
    tensor,
)

EXERCISE = Declaration(
    "queued_contrastive_loss",
    "Wrong answers from a queue",
    ("vectors", "keys", "queue", "size", "temperature"),
    returns=("the loss", "the new queue"),
)


def _queue(draw: Draw, q: int, d: int, dtype: str = "float32") -> Array:
    """Vectors of length 1, as they stand in a queue."""
    made = draw.normal(2, q, d)
    return tensor(made / np.linalg.norm(made, axis=-1, keepdims=True), dtype)


def _given(
    draw: Draw, B: int, q: int, d: int, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    vectors, keys = draw.tensor(2, B, d, dtype=dtype), draw.tensor(2, B, d, dtype=dtype)
    return vectors, keys, _queue(draw, q, d, dtype)


def _runs(draw: Draw) -> list[Run]:
    vectors, keys, queue = _given(draw, 4, 5, 3)
    return [
        call(*_given(draw, 3, 6, 5), 6),
        call(size=7, queue=queue, keys=keys, vectors=vectors, temperature=0.5),
        call(*_given(draw, 2, 7, 4), 8, 0.2),
        call(*_given(draw, 5, 2, 4), 20, 0.3),
    ]


EXERCISE.equals(
    "the loss",
    1.0,
    "Pictures ask among the keys of texts, texts among the keys of pictures: the keys of the batch "
    "and, all of them wrong, those of the queue. The right answer to i is key i of the batch. Take "
    "the cross-entropy of each side, and the mean of the two.",
    _runs,
    part=0,
)
EXERCISE.equals(
    "the new queue",
    0.75,
    "The keys of the batch, scaled to length 1, come first, in their order, then the old queue in "
    "its order. What is beyond `size` goes: that is the oldest.",
    _runs,
    part=1,
)


@EXERCISE.equals("vectors and keys of any length", 0.4)
def _lengths(draw: Draw) -> list[Run]:
    """Only directions count: each vector and each key is divided by its own length. Those in the
    queue have length 1, also those that you put there."""
    runs = []
    for B, q, d in ((3, 4, 5), (3, 5, 3)):
        vectors, keys = (draw.normal(2, B, d) * 10.0 ** draw.uniform(-2, 2, 2, B, 1) for _ in "ab")
        long = tensor(vectors, "float32"), tensor(keys, "float32")
        runs.append(call(*long, _queue(draw, q, d), q, 0.2))
        runs.append(call(long[0], draw.tensor(2, B, d), _queue(draw, q, d), q, 0.5))
        runs.append(call(draw.tensor(2, B, d), long[1], _queue(draw, q, d), q, 0.5))
    return runs


@EXERCISE.equals("the temperature", 0.3, part=0)
def _temperatures(draw: Draw) -> list[Run]:
    """All similarities are divided by it, those to the queue, too. It is 0.07 unless another one is
    given."""
    return [
        call(*_given(draw, 3, 4, 5), 4, 1.0),
        call(*_given(draw, 4, 3, 6), 3, temperature=2.0),
        call(*_given(draw, 2, 6, 4), 6, draw.number(0.1, 0.3)),
        call(*_given(draw, 3, 4, 4), 4),
    ]


@EXERCISE.equals("an empty queue, one pair, a queue smaller than the batch", 0.3)
def _ends(draw: Draw) -> list[Run]:
    """Without a queue this is the contrastive loss of vectors and keys. `size` says how many are
    kept, not how many are compared: the old queue counts in the loss as it comes."""
    return [
        call(*_given(draw, 3, 0, 4), 5, 0.3),
        call(*_given(draw, 3, 0, 4), 0, 0.3),
        call(*_given(draw, 1, 0, 4), 2),
        call(*_given(draw, 1, 3, 1), 3, 0.5),
        call(*_given(draw, 5, 2, 4), 3, 0.4),
        call(*_given(draw, 4, 4, 4), 4, 0.3),
        call(*_given(draw, 4, 1, 4), 0, 0.3),
        call(*_given(draw, 2, 70, 3), 70, 0.5),
    ]


@EXERCISE.gradients("gradients reach the vectors", 0.4)
def _gradients(draw: Draw) -> list[Run]:
    """Both sides learn, from the keys of the batch and those of the queue. The lengths are part of
    the computation: a gradient has no share along the vector itself."""
    return [
        call(*_given(draw, 3, 4, 4, "float64"), 4, 0.2),
        call(*_given(draw, 2, 3, 3, "float64"), 3, 1.0),
    ]


def _reached(run: Run, record: Record) -> str | None:
    for place, name in (("1", "keys"), ("2", "queue")):
        slope = plain(record.gradients.get(place))
        if slope is not None and slope.any():
            return f"a gradient reaches {name}"
    return None


EXERCISE.holds(
    "nothing is learnt through keys and queue",
    0.4,
    _reached,
    "Detach the keys, in the loss and in the new queue: else the graph of every batch stays in "
    "memory as long as its keys are in the queue, and a loss is sent back through encoders that "
    "have changed since.",
    lambda draw: [run.with_gradients() for run in _gradients(draw)],
    only_if_right=True,
)


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 gives a float64 loss and queue, float32 a float32 loss and queue."""
    return [
        call(*_given(draw, 3, 4, 4, "float64"), 4, 0.2),
        call(*_given(draw, 4, 2, 3, "float64"), 2, 0.5),
    ]


EXERCISE.leaves_inputs_alone(0.2, _runs, _lengths)


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """Vectors, keys and queue may be parts of larger tensors, or of transposed ones."""
    return [call(*_given(draw, 3, 4, 4), 4, 0.2).as_views()]


EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _temperatures)
