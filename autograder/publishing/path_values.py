"""Writes `expected/*/*.paths`: keys of the values that right answers pass through.

TRUST BOUNDARY. Runs on the author's machine, on our own code only. What it writes is public.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType

import autograder.student.expected.paths as store
from autograder.bank import banks
from autograder.judge.reference import reference, without_warnings
from autograder.publishing.expected_values import drop_others, exercises_with_expected
from autograder.student.authoring.repeated_calls import FURTHER
from autograder.student.engine.locator import (
    instrument,
    instrumented_copy,
    known_values,
    signatures,
    trace,
)
from autograder.student.engine.locator.instrumented_copy import NoCopy, copy_answer
from autograder.student.engine.locator.known_values import KnownValues, known_from
from autograder.student.engine.locator.trace import Budget, Event
from autograder.student.engine.probe import preserve_generators, probe_within
from autograder.student.engine.runs import Exercise, Run
from autograder.student.expected import file_of, fixed_digest, fixed_runs
from autograder.student.expected.fingerprints import same_runs

_MACHINERY = (instrumented_copy, known_values, signatures, instrument, trace)
SECONDS = 60.0  # for one run of a right answer


def right_answers(slug: str, name: str) -> list[Callable]:
    """The reference, and the bank's answers that are written another way."""
    return [reference(slug, name), *banks(slug)[name].rights.values()]


def make_paths(slug: str, exercise: Exercise) -> store.Paths:
    """What is known about the right answers' values on the fixed runs of one exercise."""
    runs = fixed_runs(exercise)
    answers = right_answers(slug, exercise.name)
    with preserve_generators(), without_warnings():
        found = [
            # What an answer kept is not to be found among the values of the call that suffers.
            [known_values_on(run, [] if aspect.title == FURTHER else answers) for run in row]
            for aspect, row in zip(exercise.aspects, runs, strict=True)
        ]
    return store.Paths(fixed_digest(exercise), _made_of(exercise, answers), found)


def known_values_on(run: Run, answers: list[Callable]) -> KnownValues:
    """What is known once the right answers have been traced on a run.

    Where only the place of the results is judged, nothing needs to be known; and where they are
    random, no two answers need to pass through the same values.
    """
    return known_from(_traces(run, [] if run.simulated or run.random else answers))


def _traces(run: Run, answers: list[Callable]) -> Iterator[list[Event]]:
    for answer in answers:
        try:
            copy, recorder = copy_answer(answer, Budget(SECONDS))
        except NoCopy:
            continue  # a right answer made of the blocks, say
        recorder.start()
        probe_within(copy, run)
        recorder.on = False
        yield recorder.events


def write_paths(slug: str) -> list[Path]:
    """Bring a chapter's files up to date; return those that had to be written or removed.

    A file is made anew only if its runs, the right answers or the code that traces them have
    changed, so that rounding on another processor changes no byte.
    """
    changed, old = drop_others(slug, ".paths"), store.paths_of(slug)
    for exercise in exercises_with_expected(slug):  # the others compare no values
        if not is_current(old, slug, exercise):
            path = file_of(f"{slug}/{exercise.name}.paths")
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(store.dump(make_paths(slug, exercise)))
            changed.append(path)
    store.paths_of.cache_clear()
    return changed


def is_current(old: Mapping[str, store.Paths], slug: str, exercise: Exercise) -> bool:
    """Whether an exercise has an entry made from the present runs, right answers and code."""
    try:
        entry = old.get(exercise.name)
    except (KeyError, ValueError):  # none, or one in an older form
        return False
    made_of = _made_of(exercise, right_answers(slug, exercise.name))
    if entry is None or entry.made_of != made_of:
        return False
    return same_runs(entry.digest, fixed_digest(exercise))


def _made_of(exercise: Exercise, answers: list[Callable]) -> str:
    """A fingerprint of what decides about an entry besides its runs."""
    whole = hashlib.sha256(exercise.name.encode())
    parts: list[ModuleType | Callable] = [*_MACHINERY, *answers]
    for part in parts:
        whole.update(inspect.getsource(part).encode() + b"\0")
    return whole.hexdigest()
