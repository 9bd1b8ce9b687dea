"""The grader against the bank of known answers: every mistake is caught and named, nothing else.

The results go into the matrix that `conftest.py` prints after the run.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache, cached_property

import pytest

from autograder.bank import banks
from autograder.publishing.authors.trial import (
    MISTAKES,
    OTHERS,
    REFERENCE,
    RIGHTS,
    Inputs,
    Trial,
    TrialResult,
)
from autograder.publishing.expected_values import (
    entry_of_records,
    exercises_with_expected,
    files,
    is_current,
)
from autograder.student.course import chapters, exercises_of, find_exercise
from autograder.student.engine.mistakes.equality import equal
from autograder.student.engine.verdict import CORRECT, Mistake, Verdict, decide
from autograder.student.expected import SEED, entry_of


def some(slug: str, name: str, *more: str) -> object:
    """Of an exercise all or nothing: whichever answer is judged, the records of all are taken."""
    return pytest.param(slug, name, *more, marks=shares(name, 2))


def shares(name: str, one_of: int, tried: int = 36) -> list[pytest.MarkDecorator]:
    """One exercise in so many by day, the others by night; one in `tried` by `make test`."""
    mark, of = pytest.mark.share, f"known answers to {name}"
    return [mark(one_of, of=of, rest="nightly"), mark(tried, of=of)]


NAMES = [(slug, exercise.name) for slug in chapters() for exercise in exercises_of(slug)]
EXERCISES = [some(*row) for row in NAMES]
DRAWN_AGAIN = [pytest.param(*row, marks=shares(row[1], 6, 108)) for row in NAMES]
RECORDED = [
    some(slug, exercise.name) for slug in chapters() for exercise in exercises_with_expected(slug)
]


def known_answers() -> Iterator[object]:
    """Chapter, exercise, kind and name of every known answer, in the book's order."""
    for slug, name in NAMES:
        with suppress(ModuleNotFoundError):  # see the test of the banks
            bank = banks(slug)[name]
            for kind, answers in ((MISTAKES, bank.mistakes), (RIGHTS, bank.rights)):
                yield from (some(slug, name, kind, answer) for answer in answers)


# These are nothing but a block: they test that the blocks do what the references do.
THE_BLOCKS = {
    *("encoder_of_the_blocks", "decoder_of_the_blocks", "embedding_of_the_blocks"),
    *("block_of_the_blocks", "probabilities_of_the_blocks", "layer_of_the_blocks"),
    *("attention_of_the_blocks", "vit_of_the_blocks"),
}


class Kept(Trial):
    """An exercise whose answers are judged as `check` judges them: against what is kept."""

    @cached_property
    def now(self) -> Inputs:
        """What reference and mistakes give today."""
        return self.draw(SEED + self.name.encode())

    @cached_property
    def inputs(self) -> list[Inputs]:
        if not self.exercise.recorded:
            return [self.now]
        kept, names = entry_of(self.slug, self.exercise), {}
        for old, new in zip(kept.mistakes, self.now.mistakes.values(), strict=True):
            same = equal(self.now.runs, new.records, old.records)
            names[old.name] = old if same else new  # rounded by another processor: see below
        return [Inputs(self.now.runs, kept.reference, names)]

    def tried(self, kind: str, answer: str) -> TrialResult:
        (given,) = self.inputs
        if (kind, answer) not in self._tried:
            mine = self.now.mistakes[answer].records if kind == MISTAKES else None
            verdict = self.verdict(kind, answer, given, mine)
            self._tried[kind, answer] = TrialResult(kind, answer, (verdict,))
        return self._tried[kind, answer]


trial = cache(Kept)


def verdict_on(slug: str, name: str, kind: str, answer: str) -> Verdict:
    """The verdict on a known answer with the inputs of `check`."""
    assert trial(name).slug == slug
    return trial(name).try_answer(kind, answer).verdicts[0]


def failed(verdict: Verdict) -> list[tuple[str, str | None]]:
    """The aspects that do not hold, each with what is said about it."""
    return [(a.title, a.message) for a in verdict.aspects if not a.passed]


@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_a_reference_earns_full_marks(slug: str, name: str) -> None:
    verdict = verdict_on(slug, name, REFERENCE, name)
    assert (verdict.verdict, failed(verdict), verdict.forbidden_operations) == (CORRECT, [], ())
    assert verdict.score == verdict.points > 0


@pytest.mark.parametrize(("slug", "name", "kind", "answer"), [*known_answers()])
def test_a_known_answer_is_judged_as_what_it_is(
    slug: str, name: str, kind: str, answer: str, record_property: Callable[[str, object], None]
) -> None:
    found = verdict_on(slug, name, kind, answer)
    tried = trial(name).try_answer(kind, answer)
    record_property(
        "matrix", [slug, name, kind, answer, tried.is_caught, tried.is_named, tried.full]
    )
    assert not [*tried.problems()], failed(found)
    if kind == RIGHTS:
        assert bool(found.forbidden_operations) == (answer in THE_BLOCKS), "runs what is withheld"
    else:
        assert found.cause


@pytest.mark.parametrize(("slug", "name"), DRAWN_AGAIN)
def test_other_inputs_change_no_mark(slug: str, name: str) -> None:
    """The answers get the same marks and names with inputs that nobody has seen."""
    one, other = trial(name), trial(name).draw(OTHERS)
    for kind, answer in one.answers():
        here, there = verdict_on(slug, name, kind, answer), one.verdict(kind, answer, other)
        told = [
            (v.verdict, v.score, v.mistake, bool(v.forbidden_operations)) for v in (here, there)
        ]
        assert told[0] == told[1], (kind, answer, failed(there))


def test_every_exercise_has_its_bank_in_the_chapters_order_and_enough_in_it() -> None:
    for slug in chapters():
        assert list(banks(slug)) == [exercise.name for exercise in exercises_of(slug)]
        for name, bank in banks(slug).items():
            assert len(bank.mistakes) >= 6 and len(bank.rights) >= 4, name


@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_every_aspect_is_failed_by_some_mistake(slug: str, name: str) -> None:
    """An aspect that no mistake fails is one that no one knows to work."""
    exercise = find_exercise(name)[1]
    needed = Counter({aspect.title: 0 for aspect in exercise.aspects})
    for answer in banks(slug)[name].mistakes:
        verdict = verdict_on(slug, name, MISTAKES, answer)
        needed.update(title for title, _ in failed(verdict))
    assert not [title for title, times in needed.items() if not times]


@pytest.mark.parametrize(("slug", "name"), RECORDED)
def test_what_check_compares_with_is_what_reference_and_mistakes_give(slug: str, name: str) -> None:
    """Nobody who clones the course computes it again: `test_expected_values`. Where a mistake makes
    much of rounding, as one that computes in half the digits, another processor gives other
    numbers, which are judged alike.
    """
    exercise, fixed = trial(name).exercise, trial(name).now
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
    assert is_current(files(slug)[name], exercise, replace(made, mistakes=mistakes))
