"""The grader against the bank of known answers: every mistake is caught and named, nothing else.

The results go into the matrix that `conftest.py` prints after the run.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple

import pytest

from autograder.bank import banks
from autograder.engine.runs import Record, Run
from autograder.engine.verdict import CORRECT, WRONG, Mistake, Verdict, decide
from autograder.exercises import chapters, exercises_of, find_exercise
from autograder.expected import SEED
from autograder.grader.reference import known_mistakes, records, reference

EXERCISES = [(slug, exercise.name) for slug in chapters() for exercise in exercises_of(slug)]


def known_answers() -> Iterator[tuple[str, str, str, str]]:
    """Chapter, exercise, kind and name of every known answer, in the book's order."""
    for slug, name in EXERCISES:
        with suppress(ModuleNotFoundError):  # test_an_exercise_has_enough_known_answers says so
            bank = banks(slug)[name]
            for kind, answers in (("mistakes", bank.mistakes), ("rights", bank.rights)):
                yield from ((slug, name, kind, answer) for answer in answers)


class Inputs(NamedTuple):
    """An exercise's inputs drawn from one seed, and what reference and mistakes give on them."""

    runs: Sequence[Sequence[Run]]
    expected: Sequence[Sequence[Record]]
    mistakes: Mapping[str, Mistake]


@cache
def inputs(slug: str, name: str) -> list[Inputs]:
    """Three sets of inputs for an exercise, those that `check` uses first."""
    found = []
    for seed in (SEED + name.encode(), b"the matrix, once", b"the matrix, twice"):
        runs = find_exercise(name)[1].runs(seed)
        right = records(reference(slug, name), runs)
        found.append(Inputs(runs, right, {m.name: m for m in known_mistakes(slug, name, runs)}))
    return found


@cache
def verdicts(slug: str, name: str, kind: str, answer: str) -> list[Verdict]:
    """The verdict on a known answer with each set of inputs.

    A mistake runs twice with the first of them; with the others, its records from the bank do.
    """
    exercise = find_exercise(name)[1]
    answers = {"reference": {name: reference(slug, name)}} | vars(banks(slug)[name])
    found = []
    for i in inputs(slug, name):
        known = i.mistakes[answer].records if found and kind == "mistakes" else None
        mine = known or records(answers[kind][answer], i.runs)
        found.append(decide(exercise, i.runs, mine, i.expected, i.mistakes.values))
    return found


def failed(verdict: Verdict) -> list[tuple[str, str | None]]:
    """The aspects that do not hold, each with what is said about it."""
    return [(a.title, a.message) for a in verdict.aspects if not a.passed]


@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_a_reference_earns_full_marks(slug: str, name: str) -> None:
    for verdict in verdicts(slug, name, "reference", name):
        assert (verdict.verdict, failed(verdict)) == (CORRECT, [])
        assert verdict.score == verdict.points > 0


@pytest.mark.parametrize(("slug", "name", "kind", "answer"), [*known_answers()])
def test_a_known_answer_is_judged_as_what_it_is(
    slug: str,
    name: str,
    kind: str,
    answer: str,
    record_property: Callable[[str, object], None],
) -> None:
    found = verdicts(slug, name, kind, answer)
    caught = all(v.verdict == WRONG and v.score < v.points for v in found)
    named = all(v.mistake == answer for v in found)
    full = all(v.verdict == CORRECT and v.score == v.points for v in found)
    record_property("matrix", [slug, name, kind, answer, caught, named, full])
    if kind == "rights":
        assert full, [(v.score, v.mistake, failed(v)) for v in found]
    else:
        assert caught, "a mistake earns full marks, or counts as a crash"
        assert named, f"taken for {[v.mistake for v in found]}"
        assert all(v.cause for v in found)
        assert len({v.score for v in found}) == 1, "the marks depend on the numbers drawn"


@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_an_exercise_has_enough_known_answers(slug: str, name: str) -> None:
    bank = banks(slug)[name]
    assert len(bank.mistakes) >= 6
    assert len(bank.rights) >= 4


@pytest.mark.parametrize("slug", chapters())
def test_every_exercise_has_its_bank_in_the_chapters_order(slug: str) -> None:
    assert list(banks(slug)) == [exercise.name for exercise in exercises_of(slug)]


@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_every_aspect_is_failed_by_some_mistake(slug: str, name: str) -> None:
    """An aspect that no mistake fails is one that no one knows to work."""
    exercise = find_exercise(name)[1]
    needed = Counter({aspect.title: 0 for aspect in exercise.aspects})
    for answer in banks(slug)[name].mistakes:
        verdict = verdicts(slug, name, "mistakes", answer)[0]
        needed.update(title for title, _ in failed(verdict))
    assert not [title for title, times in needed.items() if not times]
