"""`padding_mask`: which positions hold a token."""

from collections.abc import Sequence
from typing import Any

from autograder.engine.aspects import dtypes_kept, equals_reference, inputs_untouched, plain, raises
from autograder.engine.runs import Draw, Exercise, Run, Strided, call, tensor


def _padding_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.permutation(6)[:4] + 1)),
        call(lengths=tensor([3, 5, 1])),
        call(tensor([draw.integer(2, 5)])),
        call(Strided(tensor(draw.permutation(5) + 1))),
    ]


def _padding_wide(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.permutation(5)[:3] + 1), 8),
        call(tensor(draw.integers(1, 4, 2)), max_len=7),
        call(tensor([2, 6, 4]), max_len=6),
    ]


def _padding_empty(draw: Draw) -> Sequence[Run]:
    return [call(tensor([3, 0, draw.integer(1, 2)])), call(tensor([0, 0]), max_len=3)]


def _padding_long(draw: Draw) -> Sequence[Run]:
    longest = draw.integer(31, 38)
    return [call(tensor([4, longest, 2]), 9), call(tensor([longest]), max_len=longest - 10)]


def _padding_numbers(run: Run) -> Sequence[Any]:
    step = run.steps[0]
    limit = step.kwargs["max_len"] if "max_len" in step.kwargs else step.args[1]
    return int(plain(step.args[0]).max()), limit


PADDING_MASK = Exercise(
    "padding_mask",
    "Which positions hold a token",
    ("lengths", "max_len"),
    (
        equals_reference(
            "the mask of some lengths",
            1.25,
            "Position j of a sequence of length n holds a token if j < n: compare 0, 1, 2, … with "
            "each length, then shape the result (B, 1, 1, max_len). The keys stand on the last "
            "axis, the two ones broadcast over heads and queries.",
            _padding_runs,
        ),
        equals_reference(
            "a max_len of its own",
            0.5,
            "max_len is the number of columns, which may be more than the longest sequence needs.",
            _padding_wide,
        ),
        equals_reference(
            "a sequence of length 0",
            0.25,
            "Nothing to attend to is a row of False, not an error.",
            _padding_empty,
        ),
        raises(
            "a length above max_len",
            0.5,
            "Raise ValueError where a length exceeds max_len, and name both numbers: a mask that "
            "silently cuts a sequence hides a bug.",
            _padding_long,
            ValueError,
            naming=_padding_numbers,
        ),
        dtypes_kept(
            0.25, "A comparison gives a boolean mask; keep it boolean, True = token.", _padding_runs
        ),
        inputs_untouched(0.25, lambda draw: [*_padding_runs(draw), *_padding_wide(draw)]),
    ),
)
