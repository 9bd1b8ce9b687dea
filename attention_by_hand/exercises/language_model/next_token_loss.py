"""`next_token_loss`: how badly a text was predicted."""

from attention_by_hand.exercises.parameters import padded, token_ids
from attention_by_hand.exercises.shared import sure
from autograder.student.authoring import Array, Declaration, Draw, Run, call, tensor

EXERCISE = Declaration(
    "next_token_loss", "How badly a text was predicted", ("logits", "ids", "pad_id")
)


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, scale=2.0, dtype=dtype)


@EXERCISE.equals("the loss of random logits", 1.05)
def _runs(draw: Draw) -> list[Run]:
    """The logits at position t are for the token at t + 1: leave out the last position's logits and
    the first token. Then take minus the log-softmax of each token that did come, on average."""
    return [
        call(_logits(draw, 2, 5, 7), token_ids(draw, 2, 5, 7, low=0)),
        call(ids=token_ids(draw, 1, 4, 6, low=0), logits=_logits(draw, 1, 4, 6)),
        call(_logits(draw, 3, 2, 4), token_ids(draw, 3, 2, 4), None),
        call(_logits(draw, 1, 70, 2), token_ids(draw, 1, 70, 2, low=0)),
        call(_logits(draw, 2, 3, 1), token_ids(draw, 2, 3, 1, low=0)),
        call(_logits(draw, 70, 3, 5), token_ids(draw, 70, 3, 5, low=0)),
        call(*sure(draw, 2, 5, 7)),
    ]


@EXERCISE.equals("padding is not predicted", 0.6)
def _padded(draw: Draw) -> list[Run]:
    """Leave out the predictions of pad_id, both from the sum and from the number it is divided by.
    All predicted tokens of all rows count alike. Without a pad_id, every token counts."""
    inside = tensor([[2, 1, 3, 1, 4], [1, 0, 1, 1, 2]])
    return [
        call(_logits(draw, 3, 6, 6), padded(draw, (6, 3, 2), 6), 0),
        call(_logits(draw, 2, 5, 7), padded(draw, (5, 2), 7, 3), pad_id=3),
        call(_logits(draw, 2, 5, 6), inside, 1),
        call(_logits(draw, 2, 3, 5), tensor([[1, 2, 0], [3, 0, 0]]), 0),  # a single prediction
        call(_logits(draw, 2, 4, 5), tensor([[1, 0, 3, 4], [2, 2, 0, 1]])),
        call(_logits(draw, 2, 5, 6), padded(draw, (5, 1), 6), 0),
    ]


@EXERCISE.equals("a pad_id that is no token", 0.15)
def _no_token(draw: Draw) -> list[Run]:
    """−100 is no index into the vocabulary: let it stand for some token, whose loss does not count,
    or take out the predictions of padding before you look anything up."""
    return [call(_logits(draw, 2, 4, 5), tensor([[1, 2, -100, -100], [3, 0, 4, -100]]), -100)]


@EXERCISE.equals("nothing to predict", 0.4, only_if_right=True)
def _nothing(draw: Draw) -> list[Run]:
    """One token, or padding after the first: a mean over nothing is 0/0. Return 0 instead, as a
    number that still depends on the logits, so that its gradient is 0."""
    return [
        call(_logits(draw, 2, 1, 5), token_ids(draw, 2, 1, 5)),
        call(_logits(draw, 2, 4, 5), tensor([[3, 0, 0, 0], [1, 0, 0, 0]]), 0),
        call(_logits(draw, 1, 3, 4), tensor([[2, 2, 2]]), 2),
    ]


EXERCISE.gradients(
    "gradients reach the logits",
    0.6,
    "At a prediction: softmax minus one-hot, divided by the number of predictions. At padding, and "
    "at the last position: 0.",
    _padded,
    _nothing,
)


@EXERCISE.equals("logits of ±10,000", 0.3)
def _large(draw: Draw) -> list[Run]:
    """log_softmax in one step stays finite; the logarithm of a softmax is −∞ where that has
    underflowed to 0."""
    return [
        call(draw.tensor(2, 3, 5, scale=1e4), token_ids(draw, 2, 3, 5)),
        call(tensor(300.0 + draw.normal(2, 3, 5), "float32"), padded(draw, (3, 2), 5), 0),
    ]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 logits give a float64 loss, float32 logits a float32 loss."""
    logits = _logits(draw, 2, 4, 5, dtype="float64")
    return [call(logits, padded(draw, (4, 2), 5), 0), call(logits, token_ids(draw, 2, 4, 5))]


EXERCISE.leaves_inputs_alone(0.1, _runs, _padded)


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view; so do the slices that a shift makes of a tensor."""
    run = call(_logits(draw, 2, 4, 5), token_ids(draw, 2, 4, 5), 0)
    return [run.as_views()]


EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _padded)
