"""The grader against the bank of known answers: every mistake is caught and named, nothing else.

The results go into the matrix that `conftest.py` prints after the run.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache

import pytest

from autograder.bank import banks
from autograder.publishing.authors.trial import Trial
from autograder.publishing.expected_values import entry_of_records, files, holds, recorded
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.verdict import CORRECT, WRONG, Mistake, Verdict, decide, equal
from autograder.student.expected import entry_of

EXERCISES = [(slug, exercise.name) for slug in chapters() for exercise in exercises_of(slug)]


def known_answers() -> Iterator[tuple[str, str, str, str]]:
    """Chapter, exercise, kind and name of every known answer, in the book's order."""
    for slug, name in EXERCISES:
        with suppress(ModuleNotFoundError):  # test_an_exercise_has_enough_known_answers says so
            bank = banks(slug)[name]
            for kind, answers, share in (
                ("mistakes", bank.mistakes, 72),  # naming one takes the records of all: all or none
                ("rights", bank.rights, 24),
            ):
                marks = pytest.mark.share(share, of=f"{kind} of {name}")
                for answer in answers:
                    yield pytest.param(slug, name, kind, answer, marks=marks)


# These are nothing but a block: they test that the blocks do what the references do.
THE_BLOCKS = {
    *("encoder_of_the_blocks", "decoder_of_the_blocks", "embedding_of_the_blocks"),
    *("block_of_the_blocks", "probabilities_of_the_blocks", "layer_of_the_blocks"),
    *("attention_of_the_blocks", "vit_of_the_blocks"),
}
trial = cache(Trial)


def verdicts(slug: str, name: str, kind: str, answer: str) -> tuple[Verdict, ...]:
    """The verdict on a known answer with each set of inputs."""
    assert trial(name).slug == slug
    return trial(name).tried(kind, answer).verdicts


def failed(verdict: Verdict) -> list[tuple[str, str | None]]:
    """The aspects that do not hold, each with what is said about it."""
    return [(a.title, a.message) for a in verdict.aspects if not a.passed]


@pytest.mark.share(12)
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_a_reference_earns_full_marks(slug: str, name: str) -> None:
    for verdict in verdicts(slug, name, "reference", name):
        assert (verdict.verdict, failed(verdict), verdict.ran) == (CORRECT, [], ())
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
        assert {bool(v.ran) for v in found} == {answer in THE_BLOCKS}, "runs what is withheld"
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


@pytest.mark.share(0)
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_every_aspect_is_failed_by_some_mistake(slug: str, name: str) -> None:
    """An aspect that no mistake fails is one that no one knows to work."""
    exercise = find_exercise(name)[1]
    needed = Counter({aspect.title: 0 for aspect in exercise.aspects})
    for answer in banks(slug)[name].mistakes:
        verdict = verdicts(slug, name, "mistakes", answer)[0]
        needed.update(title for title, _ in failed(verdict))
    assert not [title for title, times in needed.items() if not times]


@pytest.mark.share(120)
@pytest.mark.parametrize(
    ("slug", "name"), [(slug, exercise.name) for slug in chapters() for exercise in recorded(slug)]
)
def test_what_check_compares_with_is_what_reference_and_mistakes_give(slug: str, name: str) -> None:
    """Nobody who clones the course computes it again: `test_expected_values`. Where a mistake makes
    much of rounding, as one that computes in half the digits, another processor gives other
    numbers, which are judged alike.
    """
    exercise, fixed = trial(name).exercise, trial(name).inputs[0]
    kept = entry_of(slug, exercise)
    made = entry_of_records(exercise, fixed.expected, fixed.mistakes.values())

    def passed(mistake: Mistake) -> list[bool]:
        verdict = decide(exercise, fixed.runs, mistake.records, made.reference)
        return [aspect.passed for aspect in verdict.aspects]

    mistakes, rounded = [], 0
    for old, new in zip(kept.mistakes, made.mistakes, strict=True):
        same = equal(fixed.runs, old.records, new.records) or passed(old) != passed(new)
        mistakes.append(new if same else old)
        rounded += not same
    assert rounded <= len(mistakes) / 20
    assert holds(files(slug)[name], exercise, replace(made, mistakes=mistakes))
