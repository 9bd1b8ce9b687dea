"""A stub is told from an answer without a call, whatever the answer is made of."""

import contextlib
from functools import wraps

import pytest

from autograder.student.engine.stub import is_stub


def released(x: float) -> float:
    """Twice x."""
    raise NotImplementedError


def with_a_message(x, *, scale=1.0):
    raise NotImplementedError("later")


def after_a_line(x):
    y = 2 * x
    print(y)
    raise NotImplementedError


class Built:
    def __init__(self, size):
        super().__init__()
        raise NotImplementedError

    def forward(self, x):
        return x


class Called:
    def __init__(self, size):
        self.size = size

    def forward(self, x):
        raise NotImplementedError


class Chosen:
    def __new__(cls, size):
        return size

    def __init__(self, size):
        raise NotImplementedError


def in_one_case(x):
    if x < 0:
        raise NotImplementedError
    return 2 * x


def after_a_loop(x):
    for _ in range(3):
        if x:
            return x
    raise NotImplementedError


def caught(x):
    try:
        raise NotImplementedError
    except NotImplementedError:
        return 2 * x


def suppressed(x):
    with contextlib.suppress(NotImplementedError):
        raise NotImplementedError
    return 2 * x


def one_by_one(x):
    yield x
    raise NotImplementedError


async def awaited(x):
    raise NotImplementedError


def another(x):
    print("not a NotImplementedError")
    raise ValueError


@wraps(released)
def wrapped(x):
    return 2 * x


def unreachable(x):
    return 2 * x
    raise NotImplementedError


@pytest.mark.parametrize("answer", [released, with_a_message, after_a_line, Built])
def test_what_can_only_raise_is_a_stub(answer):
    assert is_stub(answer)


@pytest.mark.parametrize(
    "answer",
    [Called, Chosen, in_one_case, after_a_loop, caught, suppressed, one_by_one, awaited, another]
    + [wrapped, unreachable, print, len, None, 3, released.__get__(1), lambda x: x],
)  # fmt: skip
def test_what_may_end_in_another_way_is_none(answer):
    assert not is_stub(answer)
