"""Right answers earn full marks on any inputs: beside the matrix's, thirty sets at night.

`python -m benchmarks.luck` tries more, which takes an hour.
"""

import pytest

from autograder.bank import banks
from autograder.student.course import chapters, exercises_of, find_exercise
from benchmarks.luck import answers, unlucky

EXERCISES = [(slug, exercise.name) for slug in chapters() for exercise in exercises_of(slug)]
SAMPLE = 1  # beside those of the matrix
NIGHT = 30


@pytest.mark.share(48, rest="nightly")
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_a_right_answer_needs_no_luck(slug: str, name: str) -> None:
    assert [*unlucky(slug, name, range(SAMPLE))] == []


@pytest.mark.nightly
@pytest.mark.parametrize(("slug", "name"), EXERCISES)
def test_a_right_answer_never_needs_luck(slug: str, name: str) -> None:
    assert [*unlucky(slug, name, range(SAMPLE, NIGHT))] == []


def test_every_right_answer_of_the_bank_is_tried() -> None:
    for slug, name in EXERCISES:
        assert set(banks(slug)[name].rights) < set(answers(slug, name))


def test_a_wrong_answer_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = banks("masking")["causal_mask"].mistakes["nothing_masked"]
    monkeypatch.setattr("benchmarks.luck.answers", lambda slug, name: {"wrong": wrong})
    (found,) = unlucky("masking", "causal_mask", range(1))
    first = find_exercise("causal_mask")[1].aspects[0].title
    assert found.answer == "wrong" and first in dict(found.lost)
