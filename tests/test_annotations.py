"""The inputs of the exercises are what the annotations say: a type checker costs nothing."""

from pathlib import Path
from runpy import run_path

import pytest
from beartype import beartype

from autograder.check import verdict_on
from autograder.exercises import chapters, exercises_of
from solutions import kernel_regression

SOLUTIONS = Path(kernel_regression.__file__).parent


@pytest.mark.parametrize("slug", chapters())
def test_a_reference_whose_arguments_are_checked_earns_full_marks(slug):
    references = run_path(
        str(SOLUTIONS / f"{slug}.py"), run_name=f"solutions.{slug}"
    )  # anew: a class is changed where it is
    for exercise in exercises_of(slug):
        checked = beartype(references[exercise.name])
        verdict = verdict_on(checked, exercise.name)
        failed = [(a.title, a.message) for a in verdict.aspects if not a.passed]
        assert verdict.verdict == "correct", (exercise.name, failed)


def test_beartype_checks_the_arguments():
    failed = verdict_on(
        beartype(_annotated_as_text(kernel_regression.gaussian_scores)), "gaussian_scores"
    )
    assert failed.verdict != "correct" and "Beartype" in failed.aspects[0].message


def _annotated_as_text(function):
    def told(query: str, key: str, w: float = 1.0):
        return function(query, key, w)

    return told
