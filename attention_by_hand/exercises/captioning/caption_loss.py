"""`caption_loss`: how badly captions are written after a prompt."""

from attention_by_hand.exercises.parameters import padded, token_ids
from attention_by_hand.exercises.shared import sure
from autograder.student.authoring import Array, Declaration, Draw, Run, call, tensor

EXERCISE = Declaration(
    "caption_loss",
    "How badly captions are written",
    ("logits", "ids", "prompt_length", "pad_id"),
)


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, scale=2.0, dtype=dtype)


@EXERCISE.equals("the loss after the prompt", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """The logits at position t are for the id at t + 1: leave out the last position's logits and
    the first id. Of the others, those at positions below prompt_length do not count. Take minus the
    log-softmax of each id that counts, on average."""
    prompted = {"ids": token_ids(draw, 1, 5, 6), "prompt_length": 2, "pad_id": 0}
    return [
        call(_logits(draw, 2, 6, 7), token_ids(draw, 2, 6, 7), 3, 0),
        call(logits=_logits(draw, 1, 5, 6), **prompted),
        call(_logits(draw, 3, 5, 4), token_ids(draw, 3, 5, 4), 2, 0),
        call(_logits(draw, 1, 70, 3), token_ids(draw, 1, 70, 3), 65, 0),
        call(_logits(draw, 70, 3, 4), token_ids(draw, 70, 3, 4), 2, 0),
        call(*sure(draw, 2, 6, 7), 2, 9),
    ]


@EXERCISE.equals("prompts of 0, 1 and nearly all positions", 0.6)
def _prompts(draw: Draw) -> list[Run]:
    """Positions count from 0. Nothing predicts the first id, so prompts of 0 and 1 come to the
    same; the id at position prompt_length is the first that is scored."""
    runs = [
        call(_logits(draw, 2, 5, 6), token_ids(draw, 2, 5, 6), length, 0) for length in range(5)
    ]
    return [*runs, call(_logits(draw, 2, 2, 5), token_ids(draw, 2, 2, 5), 1, 0)]


@EXERCISE.equals("padding is not scored", 0.6)
def _padded(draw: Draw) -> list[Run]:
    """Leave out pad_id, both from the sum and from the number it is divided by. All ids that count
    are alike, whichever caption they are from. A caption may have none."""
    inside = tensor([[2, 4, 3, 1, 4, 2], [3, 0, 1, 1, 2, 1]])
    zeros = tensor([[2, 1, 0, 3, 0], [4, 2, 0, 0, 5]])
    return [
        call(_logits(draw, 3, 7, 6), padded(draw, (7, 4, 3), 6), 2, 0),
        call(_logits(draw, 2, 6, 7), padded(draw, (6, 3), 7, 3), prompt_length=2, pad_id=3),
        call(_logits(draw, 2, 6, 6), inside, 2, 1),
        call(_logits(draw, 2, 5, 6), zeros, 1, 5),
        call(_logits(draw, 2, 5, 6), padded(draw, (5, 2), 6), 3, 0),
        call(_logits(draw, 2, 3, 5), tensor([[1, 2, 0], [3, 0, 0]]), 1, 0),  # a single one
    ]


@EXERCISE.equals("nothing to score", 0.3, only_if_right=True)
def _nothing(draw: Draw) -> list[Run]:
    """Prompts alone, or padding after them: a mean over nothing is 0/0. Return 0 instead, as a
    number that still depends on the logits, so that its gradient is 0."""
    return [
        call(_logits(draw, 2, 4, 5), token_ids(draw, 2, 4, 5), 4, 0),
        call(_logits(draw, 2, 3, 5), token_ids(draw, 2, 3, 5), 8, 0),
        call(_logits(draw, 2, 5, 5), tensor([[3, 2, 0, 0, 0], [1, 4, 0, 0, 0]]), 2, 0),
        call(_logits(draw, 2, 4, 5), tensor([[3, 0, 0, 0], [1, 0, 0, 0]]), 0, 0),
        call(_logits(draw, 2, 1, 4), tensor([[3], [2]]), 0, 0),
    ]


EXERCISE.gradients(
    "gradients reach the logits",
    0.5,
    "Where an id counts: softmax minus one-hot, divided by the number of those that count. In the "
    "prompt, at padding, and at the last position: 0.",
    _padded,
    _nothing,
)


@EXERCISE.equals("logits of ±10,000", 0.15)
def _large(draw: Draw) -> list[Run]:
    """log_softmax in one step stays finite; the logarithm of a softmax is −∞ where that has
    underflowed to 0."""
    return [
        call(draw.tensor(2, 4, 5, scale=1e4), token_ids(draw, 2, 4, 5), 2, 0),
        call(tensor(300.0 + draw.normal(2, 4, 5), "float32"), padded(draw, (4, 2), 5), 1, 0),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 logits give a float64 loss, float32 logits a float32 loss."""
    logits = _logits(draw, 2, 4, 5, dtype="float64")
    return [
        call(logits, padded(draw, (4, 3), 5), 2, 0),
        call(logits, token_ids(draw, 2, 4, 5), 4, 0),
    ]


EXERCISE.leaves_inputs_alone(0.1, _runs, _padded)


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view; so do the slices that a shift makes of a tensor."""
    return [call(_logits(draw, 2, 5, 6), padded(draw, (5, 3), 6), 2, 0).as_views()]


EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _padded)
