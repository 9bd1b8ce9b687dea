"""`contrastive_loss`: pictures and texts that find each other."""

import numpy as np

from autograder.student.authoring import Array, Declaration, Draw, Run, call, tensor

EXERCISE = Declaration(
    "contrastive_loss",
    "Pictures and texts that find each other",
    ("image_vectors", "text_vectors", "temperature"),
)


def _pair(draw: Draw, B: int, d: int, dtype: str = "float32") -> tuple[Array, Array]:
    return draw.tensor(B, d, dtype=dtype), draw.tensor(B, d, dtype=dtype)


@EXERCISE.equals("both ways", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Scale all vectors to length 1; their dot products, divided by the temperature, are logits.
    Row i's right answer is i, and so is column i's. Take the cross-entropy of the rows and that of
    the columns, and the mean of the two."""
    images, texts = _pair(draw, 3, 5)
    return [
        call(*_pair(draw, 4, 6)),
        call(text_vectors=texts, image_vectors=images),
        call(*_pair(draw, 2, 3), 0.07),
        call(*_pair(draw, 6, 2)),
    ]


@EXERCISE.equals("vectors of any length", 0.6)
def _lengths(draw: Draw) -> list[Run]:
    """Only directions count: each vector is divided by its own length, those of the pictures and
    those of the texts."""
    runs = []
    for B, d in ((4, 5), (3, 3)):
        images, texts = (draw.normal(B, d) * 10.0 ** draw.uniform(-2, 2, B, 1) for _ in range(2))
        runs.append(call(tensor(images, "float32"), tensor(texts, "float32"), 0.2))
        runs.append(call(tensor(images, "float32"), draw.tensor(B, d), 0.5))
        runs.append(call(draw.tensor(B, d), tensor(texts, "float32"), 0.5))
    return runs


@EXERCISE.equals("the temperature", 0.5)
def _temperatures(draw: Draw) -> list[Run]:
    """The similarities are divided by it: a low one makes small differences large. It is 0.07
    unless another one is given."""
    return [
        call(*_pair(draw, 4, 6), 1.0),
        call(*_pair(draw, 3, 5), temperature=0.5),
        call(*_pair(draw, 5, 4), 2.0),
        call(*_pair(draw, 3, 4), draw.number(0.1, 0.3)),
    ]


@EXERCISE.equals("one pair, one feature, many of both", 0.3)
def _ends(draw: Draw) -> list[Run]:
    """A single pair has nobody to be confused with: the loss is 0. Equal sizes hide swapped axes:
    the vectors are rows."""
    return [
        call(*_pair(draw, 1, 4)),
        call(*_pair(draw, 4, 1), 0.5),
        call(*_pair(draw, 4, 4), 0.3),
        call(*_pair(draw, 70, 2), 0.5),
        call(*_pair(draw, 2, 70), 0.5),
    ]


@EXERCISE.gradients("gradients reach pictures and texts", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """Both sides learn, from both directions. The lengths are part of the computation: a gradient
    has no share along the vector itself."""
    return [
        call(*_pair(draw, 3, 4, "float64"), 0.2),
        call(*_pair(draw, 2, 3, "float64"), 1.0),
        call(*_pair(draw, 1, 3, "float64")),
    ]


@EXERCISE.equals("logits of ±10,000, and partners found for sure", 0.25)
def _large(draw: Draw) -> list[Run]:
    """F.cross_entropy stays finite; the logarithm of a softmax is −∞ where that has underflowed
    to 0."""
    images, texts = (tensor(np.eye(3, 4) + 0.1 * draw.normal(3, 4), "float64") for _ in range(2))
    # The loss is so small that rounding it shows in its dtype alone.
    return [call(*_pair(draw, 4, 5), 1e-4), call(images, texts, 0.1)]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 vectors give a float64 loss, float32 vectors a float32 loss."""
    return [call(*_pair(draw, 3, 4, "float64"), 0.2), call(*_pair(draw, 4, 2, "float64"), 0.5)]


EXERCISE.leaves_inputs_alone(0.1, _runs, _lengths)


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """Vectors may be rows of a larger tensor, or of a transposed one."""
    return [call(*_pair(draw, 3, 4), 0.2).as_views()]


EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _temperatures)
