"""`masked_loss`: how badly the blanks were filled in."""

import numpy as np

from autograder.student.authoring import Array, Declaration, Draw, Run, call, tensor

EXERCISE = Declaration("masked_loss", "How badly the blanks were filled in", ("logits", "labels"))


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, scale=2.0, dtype=dtype)


def _labels(draw: Draw, vocab: int, *blanks: int, n: int) -> Array:
    """Rows of −100 with so many true ids each, none of them 0: at all places, or else at some that
    are neither the first nor the last."""
    labels = np.full((len(blanks), n), -100)
    for row, number in zip(labels, blanks, strict=True):
        places = np.arange(n) if number == n else 1 + draw.permutation(n - 2)[:number]
        row[places] = draw.integers(1, vocab - 1, number)
    return tensor(labels)


@EXERCISE.equals("the mean loss of the blanks", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """The logits at a position are for the token at that position: nothing is shifted. Take minus
    the log-softmax of each label that is not −100, and the mean of these."""
    return [
        call(_logits(draw, 2, 6, 7), _labels(draw, 7, 3, 3, n=6)),
        call(labels=_labels(draw, 5, 2, n=5), logits=_logits(draw, 1, 5, 5)),
        call(_logits(draw, 3, 4, 4), _labels(draw, 4, 4, 4, 4, n=4)),
        call(_logits(draw, 1, 70, 3), _labels(draw, 3, 11, n=70)),
    ]


@EXERCISE.equals("blanks of all rows count alike", 0.6)
def _uneven(draw: Draw) -> list[Run]:
    """The mean is over the blanks of the whole batch: neither over all positions, nor over the rows
    and then over the batch. A row may have no blank at all."""
    return [
        call(_logits(draw, 3, 8, 5), _labels(draw, 5, 5, 1, 2, n=8)),
        call(_logits(draw, 2, 5, 6), _labels(draw, 6, 3, 0, n=5)),
        call(_logits(draw, 4, 5, 5), _labels(draw, 5, 0, 0, 1, 0, n=5)),
    ]


@EXERCISE.equals("one position, one token, label 0", 0.35)
def _ends(draw: Draw) -> list[Run]:
    """Only −100 marks what is not a blank: 0 is a token like any other. The last position and the
    first count like all others."""
    first_and_last = np.full((2, 4), -100)
    first_and_last[0, 0], first_and_last[1, -1] = 2, 0
    return [
        call(_logits(draw, 3, 1, 5), tensor([[4], [-100], [0]])),
        call(_logits(draw, 2, 3, 1), tensor([[0, -100, 0], [-100, 0, -100]])),
        call(_logits(draw, 2, 3, 4), tensor([[0, 0, -100], [0, -100, 3]])),
        call(_logits(draw, 2, 4, 6), tensor(first_and_last)),
        call(_logits(draw, 66, 3, 4), _labels(draw, 4, *[1] * 66, n=3)),
    ]


@EXERCISE.equals("no blanks", 0.4)
def _nothing(draw: Draw) -> list[Run]:
    """Where nothing was chosen, a mean over nothing is 0/0. Return 0 instead, as a number that
    still depends on the logits, so that its gradient is 0."""
    return [
        call(_logits(draw, 2, 4, 5), tensor(np.full((2, 4), -100))),
        call(_logits(draw, 1, 1, 3), tensor([[-100]])),
    ]


EXERCISE.gradients(
    "gradients reach the logits",
    0.5,
    "At a blank: softmax minus one-hot, divided by the number of blanks. Everywhere else: 0.",
    _uneven,
    _nothing,
)


@EXERCISE.equals("logits of ±10,000, and a loss of next to nothing", 0.25)
def _large(draw: Draw) -> list[Run]:
    """log_softmax in one step stays finite; the logarithm of a softmax is −∞ where that has
    underflowed to 0."""
    sure, labels = draw.normal(2, 5, 5), np.full((2, 5), 2)
    labels[:, [0, -1]] = -100
    sure[..., 2] += 12.0  # the label of every blank
    return [
        call(tensor(sure, "float32"), tensor(labels)),
        call(draw.tensor(2, 4, 5, scale=1e4), _labels(draw, 5, 2, 1, n=4)),
        call(tensor(300.0 + draw.normal(2, 5, 5), "float32"), _labels(draw, 5, 3, 1, n=5)),
    ]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 logits give a float64 loss, float32 logits a float32 loss."""
    return [
        call(_logits(draw, 2, 4, 5, dtype="float64"), _labels(draw, 5, 2, 1, n=4)),
        call(_logits(draw, 2, 3, 5, dtype="float64"), tensor(np.full((2, 3), -100))),
    ]


EXERCISE.leaves_inputs_alone(0.1, _runs, _uneven)


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """flatten and reshape work on any view; view does not."""
    return [call(_logits(draw, 2, 4, 5), _labels(draw, 5, 2, 1, n=4)).as_views()]


EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _uneven)
