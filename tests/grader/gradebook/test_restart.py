"""Faults at random moments: each submission is graded exactly once, with the marks it deserves."""

import shutil
import signal
import sqlite3
from pathlib import Path
from random import Random

import pytest
from faults import SCORES, Bomb, grade_quickly, hand_in, in_a_child, leftovers, outcome_of
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from autograder.gradebook.gradebook import Book


def test_the_page_and_the_notebook_tell_of_these_marks(undisturbed):
    for name, (_, score, notebook, page) in undisturbed[0].items():
        assert f"return {SCORES[name]}".encode() in notebook
        assert f"(Score: {score:g} / 3.0)".encode() in page or f"{score} / 3.0".encode() in page


NIGHTLY = [pytest.param(number, 40, marks=pytest.mark.nightly) for number in (12, 13)]


@pytest.mark.share(0)
@pytest.mark.parametrize(("number", "examples"), [(11, 20), *NIGHTLY])
def test_killed_at_random_moments_each_is_graded_exactly_once(
    tmp_path_factory, template, release, undisturbed, number, examples
):
    wanted, calls = undisturbed
    ends = []

    @seed(number)
    @settings(max_examples=examples, deadline=None, database=None)
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=3))
    def check(moments) -> None:
        course = Path(shutil.copytree(template, tmp_path_factory.mktemp("killed") / "course"))
        for moment in moments:

            def killed(after=1 + int(moment * calls)) -> None:
                with Bomb(after):
                    grade_quickly(course, release)

            ends.append(in_a_child(killed))
        in_a_child(lambda: grade_quickly(course, release))
        assert outcome_of(course) == wanted
        assert leftovers(course) == []
        shutil.rmtree(course)

    check()
    # A later run has less to do, and may be over before the moment comes.
    assert ends.count(signal.SIGKILL) > len(ends) / 2 and len(ends) >= examples


def test_killed_while_the_gradebook_is_made(tmp_path, release):
    Book(f"sqlite:///{tmp_path / 'first.db'}").close()  # what is made once is made
    with Bomb() as counted:
        Book(f"sqlite:///{tmp_path / 'whole.db'}").close()
    ends = []
    for number, after in enumerate(range(1, counted.count, counted.count // 12)):
        db = f"sqlite:///{tmp_path / f'{number}.db'}"

        def killed(db=db, after=after) -> None:
            with Bomb(after):
                Book(db).close()

        ends.append(in_a_child(killed))
        book = Book(db)
        book.update_or_create_assignment("tiny")
        book.close()
    assert ends.count(signal.SIGKILL) >= 10
    assert tables(tmp_path / f"{number}.db") == tables(tmp_path / "whole.db")


def tables(path: Path) -> list[tuple]:
    with sqlite3.connect(path) as database:
        version = database.execute("select version_num from alembic_version").fetchall()
        return database.execute("select name, sql from sqlite_master").fetchall() + version


def test_a_regrade_that_is_killed_leaves_old_marks_or_new_ones(course, release, undisturbed):
    """And never an old feedback page beside new marks."""
    grade_quickly(course, release)
    hand_in(course, release, "bob", "def softmax(scores, axis=-1):\n    return 2.5")
    before = Path(shutil.copytree(course, course.parent / "before"))
    with Bomb() as counted:
        grade_quickly(course, release)
    wanted = outcome_of(course)
    assert wanted["bob"][:2] == (1, 2.5)
    for after in sorted(Random(5).sample(range(counted.count), 12)):
        shutil.rmtree(course)
        shutil.copytree(before, course)

        def killed(after=after) -> None:
            with Bomb(after):
                grade_quickly(course, release)

        in_a_child(killed)
        times, score, _, page = outcome_of(course)["bob"]
        assert (times, score) in ((1, 0.5), (1, 2.5))
        assert page in (None, undisturbed[0]["bob"][3] if score == 0.5 else wanted["bob"][3])
        in_a_child(lambda: grade_quickly(course, release))
        assert outcome_of(course) == wanted
