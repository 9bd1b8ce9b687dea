"""What an answer earns that computes nothing: it hands back what the reference gave on other draws.

Nobody may earn full marks by heart. What can be had that way is the shape of the thing: errors that
are raised, sizes that repeat.
"""

import pytest

from autograder.judge.reference import expected
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.verdict import decide

EXERCISES = [(slug, exercise.name) for slug in chapters() for exercise in exercises_of(slug)]
MOST = 0.4  # of the points


@pytest.mark.share(12)
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_recordings_earn_little(slug, name):
    exercise = find_exercise(name)[1]
    drawn, other = (exercise.runs(seed + name.encode()) for seed in (b"one", b"another"))
    verdict = decide(exercise, drawn, expected(slug, name, other), expected(slug, name, drawn))
    earned = [aspect.title for aspect in verdict.aspects if aspect.passed]
    assert verdict.score <= MOST * verdict.points, earned
