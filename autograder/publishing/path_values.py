"""Writes `autograder/expected/*.paths`: keys of the values that right answers pass through.

TRUST BOUNDARY. Runs on the author's machine, on our own code only. What it writes is public.
"""

import hashlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import autograder.expected.paths as store
from autograder.bank import banks
from autograder.engine import copies, known, signatures, taps, trace
from autograder.engine.copies import NoCopy, copied
from autograder.engine.known import Known, known_from
from autograder.engine.probe import probe_within, undisturbed
from autograder.engine.runs import Exercise, Run
from autograder.engine.trace import Budget, Event
from autograder.exercises import exercises_of
from autograder.expected import digest, file_of, fixed_digest, fixed_runs
from autograder.grader.reference import reference, silently

_MACHINERY = (copies, known, signatures, taps, trace)
SECONDS = 60.0  # for one run of a right answer


def right_answers(slug: str, name: str) -> list[Callable[..., Any]]:
    """The reference, and the bank's answers that are written another way."""
    return [reference(slug, name), *banks(slug)[name].rights.values()]


def make_paths(slug: str, exercise: Exercise) -> store.Paths:
    """What is known of the right answers' values on the fixed runs of one exercise."""
    runs = fixed_runs(exercise)
    answers = right_answers(slug, exercise.name)
    with undisturbed(), silently():
        found = [[known_on(run, answers) for run in row] for row in runs]
    return store.Paths(digest(runs), _made_of(exercise, answers), found)


def known_on(run: Run, answers: list[Callable[..., Any]]) -> Known:
    """What is known once the right answers have been traced on a run.

    Where only the place of the results is judged, nothing needs to be known; and where they are
    random, no two answers need to pass through the same values.
    """
    return known_from(_traces(run, [] if run.elsewhere or run.random else answers))


def _traces(run: Run, answers: list[Callable[..., Any]]) -> Iterator[list[Event]]:
    for answer in answers:
        try:
            copy, recorder = copied(answer, Budget(SECONDS))
        except NoCopy:
            continue  # a right answer made of the blocks, say
        recorder.start()
        probe_within(copy, run)
        recorder.on = False
        yield recorder.events


def write_paths(slug: str) -> bool:
    """Bring a chapter's file up to date, and say whether it had to be written.

    A file is made anew only where runs, right answers or the way of looking at them have changed,
    so that rounding on another processor changes no byte.
    """
    path = file_of(f"{slug}.paths")
    old = store.parse(path.read_bytes()) if path.is_file() else {}
    exercises = [e for e in exercises_of(slug) if e.recorded]  # the others compare no values
    made = {e.name: old[e.name] if _holds(old, slug, e) else make_paths(slug, e) for e in exercises}
    if list(made) == list(old) and all(made[name] is old[name] for name in made):
        return False
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(store.dump(made))
    store.paths_of.cache_clear()
    return True


def _holds(old: dict[str, store.Paths], slug: str, exercise: Exercise) -> bool:
    entry = old.get(exercise.name)
    answers = right_answers(slug, exercise.name)
    return (
        entry is not None
        and entry.digest == fixed_digest(exercise)
        and entry.made_of == _made_of(exercise, answers)
    )


def _made_of(exercise: Exercise, answers: list[Callable[..., Any]]) -> str:
    """A fingerprint of what decides about an entry besides its runs."""
    whole = hashlib.sha256(exercise.name.encode())
    for part in (*_MACHINERY, *answers):
        whole.update(inspect.getsource(part).encode() + b"\0")
    return whole.hexdigest()
