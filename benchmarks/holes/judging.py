"""Judges the wrong answers in this process, with the inputs of `check` and with fresh ones."""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from autograder.judge.reference import expected, on_demand, reference
from autograder.student.course import find_exercise
from autograder.student.engine.runs import Exercise
from autograder.student.expected import SEED
from benchmarks.holes.edges import APART, EDGES
from benchmarks.holes.kinds import Wrong, answer, wrong_answers
from benchmarks.mutants.judging import Inputs, loses_marks

CAUGHT, KEPT, APART_ = "caught", "full marks", "set apart"


@cache
def _inputs(slug: str, name: str, seed: bytes) -> Inputs:
    runs = find_exercise(name)[1].runs(seed)
    return Inputs(runs, expected(slug, name, runs), ())


def caught(slug: str, exercise: Exercise, given: Callable[..., Any]) -> bool:
    """Whether an answer loses marks with every set of inputs."""
    for seed in (SEED + exercise.name.encode(), b"the holes"):
        drawn = _inputs(slug, exercise.name, seed)
        if not loses_marks(exercise, drawn, on_demand(given, drawn.runs)):
            return False
    return True


def all_wrong(slug: str, name: str) -> Iterator[Wrong]:
    """The wrong answers to an exercise, of every kind."""
    yield from wrong_answers(reference(slug, name))
    yield from EDGES.get(name, ())


def outcomes(slug: str, exercise: Exercise) -> dict[str, str]:
    """What comes of each wrong answer to an exercise, by its kind and name."""
    found = {}
    for wrong in all_wrong(slug, exercise.name):
        title = f"{wrong.kind}: {wrong.name}"
        lost = caught(slug, exercise, answer(reference(slug, exercise.name), wrong))
        apart = title in APART.get(exercise.name, {})
        found[title] = CAUGHT if lost else APART_ if apart else KEPT
    return found


def problems(name: str, found: Mapping[str, str]) -> list[str]:
    """Where the outcomes of the answers disagree with what is set apart."""
    kept = [f"{name} keeps full marks: {title}" for title, came in found.items() if came == KEPT]
    apart = APART.get(name, {})
    return kept + [
        f"{name} is set apart, and loses marks or does not exist: {title}"
        for title in apart
        if found.get(title) != APART_
    ]
