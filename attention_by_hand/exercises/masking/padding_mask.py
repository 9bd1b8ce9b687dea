"""`padding_mask`: which positions hold a token."""

from collections.abc import Sequence

from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call, tensor
from autograder.student.engine.aspects import numbers_of

EXERCISE = Declaration("padding_mask", "Which positions hold a token", ("lengths", "max_len"))


@EXERCISE.equals("a mask from lengths", 1.15)
def _runs(draw: Draw) -> list[Run]:
    """Position j of a sequence of length n holds a token if j < n: compare 0, 1, 2, … with each
    length, then give the result the shape (B, 1, 1, max_len). The keys are on the last axis; the
    two axes of length 1 broadcast over heads and queries."""
    return [
        call(tensor(draw.permutation(6)[:4] + 1)),
        call(lengths=tensor([3, 5, 1])),
        call(tensor([draw.integer(2, 5)])),
        call(StridedArray(tensor(draw.permutation(5) + 1))),
    ]


@EXERCISE.equals("an explicit max_len", 0.5)
def _wide(draw: Draw) -> list[Run]:
    """max_len is the number of columns, which may exceed the longest sequence."""
    return [
        call(tensor(draw.permutation(5)[:3] + 1), 8),
        call(tensor(draw.integers(1, 4, 2)), max_len=7),
        call(tensor([2, 6, 4]), max_len=6),
        call(tensor([3, 70, 65]), 70),
        call(tensor([1, 0, 1]), 1),
    ]


@EXERCISE.equals("a sequence of length 0", 0.25)
def _empty(draw: Draw) -> list[Run]:
    """With nothing to attend to, the row is False throughout; it is not an error."""
    return [call(tensor([3, 0, draw.integer(1, 2)])), call(tensor([0, 0]), max_len=3)]


def _numbers(run: Run) -> Sequence[object]:
    step = run.steps[0]
    limit = step.kwargs["max_len"] if "max_len" in step.kwargs else step.args[1]
    return int(numbers_of(step.args[0]).max()), limit


@EXERCISE.raises("a length above max_len", 0.5, ValueError, naming=_numbers)
def _long(draw: Draw) -> list[Run]:
    """Raise ValueError where a length exceeds max_len, and name both numbers: a mask that silently
    cuts off a sequence hides a bug."""
    longest = draw.integer(31, 38)
    return [call(tensor([4, longest, 2]), 9), call(tensor([longest]), max_len=longest - 10)]


@EXERCISE.raises("a max_len of 0", 0.1, ValueError, naming=_numbers)
def _no_room(draw: Draw) -> list[Run]:
    """A max_len of 0 is a number, not a missing one: no token fits into it."""
    return [call(tensor([draw.integer(11, 18), 2]), 0), call(tensor([13]), max_len=0)]


EXERCISE.keeps_dtypes(
    0.25, "A comparison gives a boolean mask; keep it boolean, with True for a token.", _runs
)
EXERCISE.leaves_inputs_alone(0.25, _runs, _wide)
EXERCISE.follows_its_inputs(_runs, _wide)
