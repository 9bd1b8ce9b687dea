"""A fresh copy of a function has none of what its calls have kept; the function stays as it is."""

from collections import defaultdict
from functools import lru_cache
from typing import Any

import pytest

from autograder.student.engine.fresh_copy import fresh_copy

KNOWN: dict[str, Any] = {}
LAST = None
TABLE = {1: "one", 2: "two"}


def in_a_default(x, known={}):  # noqa: B006
    return known.setdefault("x", x)


def in_a_default_of_a_keyword(x, *, known=[]):  # noqa: B006
    known.append(x)
    return known[0]


def in_a_global(x):
    return KNOWN.setdefault("x", x)


def in_a_name_of_the_module(x):
    global LAST  # noqa: PLW0603
    LAST = x if LAST is None else LAST
    return LAST


def in_itself(x):
    return in_itself.known.setdefault("x", x)


in_itself.known = defaultdict(int)  # type: ignore[attr-defined]


@lru_cache
def by_size(size):
    return []


def in_what_it_calls(x):
    return in_a_global(x)


def in_a_cache(x):
    kept = by_size(3)
    kept.append(x)
    return kept[0]


def enclosed():
    known = {}

    def in_a_closure(x):
        return known.setdefault("x", x)

    return in_a_closure


def decorated(function):
    def inner(x):
        return function(x)

    return inner


KEEPING = (
    *(in_a_default, in_a_default_of_a_keyword, in_a_global, in_a_name_of_the_module, in_itself),
    *(in_what_it_calls, in_a_cache, enclosed(), decorated(in_a_global)),
)


@pytest.mark.parametrize("function", KEEPING, ids=lambda function: function.__name__)
def test_a_copy_has_nothing_of_earlier_calls(function):
    first = function(1)
    assert function(2) == first
    assert fresh_copy(function)(2) == 2
    assert function(2) == first


def in_words(number):
    return TABLE[number]


def test_a_table_that_is_no_memory_is_missing_rather_than_wrong():
    with pytest.raises(KeyError):
        fresh_copy(in_words)(2)
    assert in_words(2) == "two"


@pytest.mark.parametrize("thing", [len, dict, "no function"])
def test_what_is_no_function_of_python_stays(thing):
    assert fresh_copy(thing) is thing
