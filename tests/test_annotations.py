"""The inputs of the exercises are what the annotations say: a type checker costs nothing."""

from importlib import import_module

import pytest
from beartype import beartype

from autograder.check import verdict_on
from autograder.exercises import chapters, exercises_of


@pytest.mark.parametrize("slug", chapters())
def test_a_reference_whose_arguments_are_checked_earns_full_marks(slug):
    references = import_module(f"solutions.{slug}")
    for exercise in exercises_of(slug):
        checked = beartype(getattr(references, exercise.name))
        verdict = verdict_on(checked, exercise.name)
        failed = [(a.title, a.message) for a in verdict.aspects if not a.passed]
        assert verdict.verdict == "correct", (exercise.name, failed)


def test_beartype_checks_the_arguments():
    from solutions.kernel_regression import gaussian_scores

    failed = verdict_on(beartype(_annotated_as_text(gaussian_scores)), "gaussian_scores")
    assert failed.verdict != "correct" and "Beartype" in failed.aspects[0].message


def _annotated_as_text(function):
    def told(query: str, key: str, w: float = 1.0):
        return function(query, key, w)

    return told
