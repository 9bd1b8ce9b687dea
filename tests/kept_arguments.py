"""Answers that use what an argument was in an earlier call, and the verdict on them."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from autograder.judge.reference import expected, records
from autograder.student.course import find_exercise
from autograder.student.engine.verdict import Verdict, decide


def keeping(
    name: str, function: Callable, of_an_object: bool, recall: Callable[[dict, Any], Any]
) -> Callable:
    """The function, which uses for its argument `name` what is recalled of earlier calls: of those
    of its object, or all."""
    kept: dict = {}

    @functools.wraps(function)
    def with_the_first(*args: Any, **kwargs: Any) -> Any:
        known = vars(args[0]).setdefault("_" + name, {}) if of_an_object else kept
        try:
            given = inspect.signature(function).bind(*args, **kwargs)
        except TypeError:
            return function(*args, **kwargs)
        given.apply_defaults()
        given.arguments[name] = recall(known, given.arguments[name])
        return function(*given.args, **given.kwargs)

    return with_the_first


def verdict_on(name: str, answer: Any, seed: bytes) -> Verdict:
    slug, exercise = find_exercise(name)
    runs = exercise.runs(seed)
    wanted = expected(slug, name, runs)
    made = records(answer, runs)
    return decide(exercise, runs, made, wanted, make=lambda run: records(answer, [[run]])[0][0])
