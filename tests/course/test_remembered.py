"""Results and arguments that are kept from one call for the next cost marks."""

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from autograder.bank import banks
from autograder.judge.reference import expected, records, reference
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.runs import Finding, Record, call
from autograder.student.engine.verdict import decide
from autograder.student.table import table_text

EXERCISES = [(slug, e) for slug in chapters() for e in exercises_of(slug) if e.recorded]


def key(value: Any) -> Any:
    """Of arrays the shape and dtype alone, of anything else the name of its type."""
    if isinstance(value, np.ndarray | torch.Tensor):
        return tuple(value.shape), str(value.dtype)
    if isinstance(value, list | tuple):
        return (type(value), *map(key, value))
    return type(value).__name__


def remembering(function: Callable, of_an_object: bool) -> Callable:
    """The function, which gives the first result again for arguments of the same shapes."""
    kept: dict = {}

    @functools.wraps(function)
    def remembered(*args: Any, **kwargs: Any) -> Any:
        known = vars(args[0]).setdefault("_" + function.__name__, {}) if of_an_object else kept
        shapes = tuple(map(key, args)), tuple((n, key(v)) for n, v in sorted(kwargs.items()))
        if shapes not in known:
            known[shapes] = function(*args, **kwargs)
        return known[shapes]

    return remembered


def keeping(name: str, function: Callable, of_an_object: bool) -> Callable:
    """The function, which uses the first argument `name` again for others of the same shape."""
    kept: dict = {}

    @functools.wraps(function)
    def with_the_first(*args: Any, **kwargs: Any) -> Any:
        known = vars(args[0]).setdefault("_" + name, {}) if of_an_object else kept
        try:
            given = inspect.signature(function).bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)
        given.apply_defaults()
        value = given.arguments[name]
        given.arguments[name] = known.setdefault(key(value), value)
        return function(*given.args, **given.kwargs)

    return with_the_first


def forms(function: Callable, of_an_object: bool) -> Iterator[tuple[str, Callable]]:
    yield "the result", remembering(function, of_an_object)
    for name in [*inspect.signature(function).parameters][of_an_object:]:
        yield name, keeping(name, function, of_an_object)


def variants(answer: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(answer, type):
        yield from forms(answer, False)
        return
    for name, method in vars(answer).items():
        if callable(method) and not name.startswith("_"):
            for what, form in forms(method, True):
                yield f"{name}, {what}", type(answer.__name__, (answer,), {name: form})


@pytest.mark.share(24)
@pytest.mark.parametrize(("slug", "exercise"), EXERCISES, ids=[e.name for _, e in EXERCISES])
def test_what_is_kept_by_shape_from_one_call_to_the_next_costs_marks(slug, exercise):
    runs = exercise.runs(b"remembered")
    wanted = expected(slug, exercise.name, runs)
    unharmed = {
        what
        for what, variant in variants(reference(slug, exercise.name))
        if decide(exercise, runs, records(variant, runs), wanted).score == exercise.points
    }
    # There is only one device to ask for.
    assert unharmed == ({"device"} if exercise.name == "causal_mask" else set())


@pytest.mark.share(24)
@pytest.mark.parametrize("name", ["shift_right", "masked_loss", "GRUCell"])
def test_what_is_kept_is_told_first(name):
    slug, exercise = find_exercise(name)
    runs = exercise.runs(b"told")
    what, variant = next(variants(reference(slug, name)))
    assert what.endswith("the result")
    verdict = decide(exercise, runs, records(variant, runs), expected(slug, name, runs))
    first = next(line for line in table_text(verdict).splitlines() if line.startswith("  ✗"))
    assert first.startswith("  ✗ further calls")
    assert "earlier calls were right, this one is not" in table_text(verdict)


ONCE = {  # a mistake that has nothing to do with state, nor with dtypes
    "KernelRegression": "exclude_self_ignored",
    "BertLayer": "eps_too_large",
    "PositionalEncoding": "full_length_refused",
    "GroupedQueryAttention": "mask_inverted",
}


@pytest.mark.parametrize("name", ONCE)
def test_a_fault_that_is_not_about_state_is_not_charged_as_if_it_were(name):
    slug, exercise = find_exercise(name)
    runs = exercise.runs(b"once")
    wanted = expected(slug, name, runs)
    mistake = banks(slug)[name].mistakes[ONCE[name]]
    verdict = decide(exercise, runs, records(mistake, runs), wanted)
    passed = {aspect.title: aspect.passed for aspect in verdict.aspects}
    assert not all(passed.values())
    assert passed["further calls"] and passed["dtype"]


def test_what_fails_only_in_aspects_about_something_else_is_charged_there():
    exercise = find_exercise("LayerNorm")[1]
    own = [aspect for aspect in exercise.aspects if aspect.own]
    assert [aspect.title for aspect in own] == ["dtype", "further calls"]
    fails = [
        replace(aspect, judge=lambda _: Finding(False, "wrong", kind="value")) for aspect in own
    ]
    first = replace(exercise.aspects[0], judge=lambda _: Finding(True))
    for others, passed in (
        ([], [False, False]),
        ([replace(fails[0], own=())], [True, True, False]),
    ):
        tried = replace(exercise, aspects=(first, *fails, *others))
        records = [[Record((np.float64(i),))] * len(tried.aspects) for i in (1, 2)]
        rows = ([[one] for one in column] for column in ([call(1)] * len(tried.aspects), *records))
        assert [aspect.passed for aspect in decide(tried, *rows).aspects] == [True, *passed]
