"""Two names of one person become one student, with the marks that were given by hand."""

import pytest
from lms_archives import archive, moodle
from terms import (
    NAME,
    OTHER,
    QUESTION,
    answered,
    book,
    hand_in,
    mark,
    run,
    totals,
    waits,
)

from autograder.lms.collect import SAME, collect
from autograder.lms.merge import merge
from autograder.lms.record import read_record

PEOPLE = '[students.ada]\nfirst_name = "Ada"\nlast_name = "King"\n'


@pytest.fixture
def course(term_course):
    return term_course


def students(course) -> set[str]:
    with book(course) as gradebook:
        return {student.id for student in gradebook.students}


def test_a_list_that_comes_later_leaves_two_that_are_merged(course):
    zipped = archive(course / "class.zip", {moodle("Ada King", 11): answered(rest="return 1")})
    collect(zipped, course)
    run(course)
    mark(course, "Ada King", QUESTION, 1.5)
    (course / "course.toml").write_text(PEOPLE, encoding="utf-8")
    done = collect(zipped, course)
    assert "if they are one person, `autograder merge 'Ada King' ada`" in done.aside[0]
    hand_in(course, "ada", rest="return 1")  # what nobody had put aside
    run(course)
    assert students(course) == {"Ada King", "ada"}
    mark(course, "ada", OTHER, 0.5)
    merge(course, "Ada King", "ada")
    assert students(course) == {"ada"}
    assert collect(zipped, course).placed == {("ada", NAME): SAME}
    assert [path.name for path in (course / "submitted").iterdir()] == ["ada"]
    rows = run(course)
    assert rows.keys() == {"ada"} and rows["ada"].total == 7 and waits(course, "ada") == set()
    shown = totals(course, "ada")
    assert shown["report"] == shown["export"] == shown["feedback"] == 7
    assert read_record(course, NAME).keys() == {"ada"}


def test_marks_and_notebook_of_one_name_alone_move(course):
    hand_in(course, "x1", "2030-03-01 12:00:00 UTC", rest="return 1")
    run(course)
    for cell in (QUESTION, OTHER):
        mark(course, "x1", cell, 1.5)
    merge(course, "x1", "ada")
    rows = run(course)
    assert rows.keys() == {"ada"} and rows["ada"].total == 8 and waits(course, "ada") == set()


@pytest.mark.parametrize("newer", ["x1", "ada"])
def test_of_two_notebooks_the_later_counts_and_the_other_is_kept(course, newer):
    for student, answer in (("x1", "return 1"), ("ada", "return 'wrong'")):
        day = 2 if student == newer else 1
        hand_in(course, student, f"2030-03-0{day} 12:00:00 UTC", rest=answer)
    run(course)
    mark(course, "x1", QUESTION, 1.5)
    merge(course, "x1", "ada")
    row = run(course)["ada"]
    assert row.marks["check_softmax"].score == (3 if newer == "x1" else 0.5)
    assert row.marks[QUESTION].score == 1.5
    assert QUESTION in waits(course, "ada")  # the mark was given to another answer, perhaps
    (kept,) = (course / "collected" / NAME / "earlier" / "ada").iterdir()
    assert (kept / f"{NAME}.ipynb").is_file()


def test_a_mark_by_hand_of_the_name_that_stays_is_not_overwritten(course):
    for student, score in (("x1", 0.5), ("ada", 2)):
        hand_in(course, student, rest="return 1")
        run(course)
        mark(course, student, QUESTION, score)
    merge(course, "x1", "ada")
    assert run(course)["ada"].marks[QUESTION].score == 2


@pytest.mark.parametrize("first, second", [("nobody", "ada"), ("ada", "ada"), ("../ada", "ada"),
                                           ("ada", "../x"), ("ada", "")])  # fmt: skip
def test_ids_that_make_no_sense_are_told(course, first, second):
    hand_in(course, "ada", rest="return 1")
    run(course)
    with pytest.raises(ValueError, match="student"):
        merge(course, first, second)
    assert students(course) == {"ada"}
