"""The exercises: a package for each chapter, in it a module for each exercise; no answers.

Those of another course (`autograder.student.course`) are found before those that come with this package.
"""

from functools import cache
from importlib import import_module
from pathlib import Path

from autograder.student import course
from autograder.student.engine.runs import Exercise

if not course.is_home():
    __path__.insert(0, str(course.room("exercises")))

CONTENTS = import_module("attention_by_hand.course")
CHAPTERS: tuple[str, ...] = CONTENTS.CHAPTERS


@cache
def chapters() -> tuple[str, ...]:
    """The slugs of the chapters that have exercises, in the book's order."""
    here = course.room("exercises")
    return tuple(slug for slug in CHAPTERS if Path(here, slug, "__init__.py").is_file())


def exercises_of(slug: str) -> tuple[Exercise, ...]:
    """The exercises of one chapter. Raises `ValueError` for a slug that is none."""
    if slug not in chapters():
        raise ValueError(f"no chapter {slug!r}; there are {', '.join(chapters())}")
    return import_module(f"attention_by_hand.exercises.{slug}").EXERCISES


def is_exercise(name: str) -> bool:
    """Whether some chapter asks for an answer of that name."""
    return any(exercise.name == name for slug in chapters() for exercise in exercises_of(slug))


def find_exercise(name: str) -> tuple[str, Exercise]:
    """The slug and the exercise of a name. Raises `KeyError` where no chapter asks for it."""
    for slug in chapters():
        for exercise in exercises_of(slug):
            if exercise.name == name:
                return slug, exercise
    raise KeyError(name)
