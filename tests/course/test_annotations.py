"""The inputs of the exercises are what the annotations say: a type checker costs nothing."""

from pathlib import Path
from runpy import run_path

import pytest
from beartype import beartype

import solutions
from autograder.student.check import verdict_on
from autograder.student.course import chapters, exercises_of

SOLUTIONS = Path(solutions.__file__).parent


@pytest.mark.share(6)
@pytest.mark.parametrize("slug", chapters())
def test_a_reference_whose_arguments_are_checked_earns_full_marks(slug):
    # Run anew, since a class whose arguments are checked is no other class.
    references = run_path(str(SOLUTIONS / f"{slug}.py"), run_name=f"solutions.{slug}")
    for exercise in exercises_of(slug):
        checked = beartype(references[exercise.name])
        verdict = verdict_on(checked, exercise.name)
        failed = [(a.title, a.message) for a in verdict.aspects if not a.passed]
        assert verdict.verdict == "correct", (exercise.name, failed)


def test_beartype_checks_the_arguments():
    @beartype
    def gaussian_scores(query: str, key: str, w: float = 1.0):
        return query

    failed = verdict_on(gaussian_scores, "gaussian_scores")
    assert failed.verdict != "correct" and "Beartype" in failed.aspects[0].message
