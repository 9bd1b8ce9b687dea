"""Two names of one person become one student, with the marks that were given by hand."""

import pytest
import terms
from lms_archives import archive, moodle

from autograder.lms.collect import SAME, collect
from autograder.lms.merge import merge
from autograder.lms.record import read_record

PEOPLE = '[students.ada]\nfirst_name = "Ada"\nlast_name = "King"\n'


@pytest.fixture
def course(term_course):
    return term_course


def students(course) -> set[str]:
    with terms.book(course) as gradebook:
        return {student.id for student in gradebook.students}


def test_a_list_that_comes_later_leaves_two_that_are_merged(course):
    zipped = archive(
        course / "class.zip", {moodle("Ada King", 11): terms.answered(rest="return 1")}
    )
    collect(zipped, course)
    terms.run(course)
    terms.mark(course, "Ada King", terms.QUESTION, 1.5)
    (course / "course.toml").write_text(PEOPLE, encoding="utf-8")
    done = collect(zipped, course)
    assert "if they are one person, `autograder merge 'Ada King' ada`" in done.problems[0]
    terms.hand_in(course, "ada", rest="return 1")  # what nobody had put aside
    terms.run(course)
    assert students(course) == {"Ada King", "ada"}
    terms.mark(course, "ada", terms.OTHER, 0.5)
    merge(course, "Ada King", "ada")
    assert students(course) == {"ada"}
    assert collect(zipped, course).outcomes == {("ada", terms.NAME): SAME}
    assert [path.name for path in (course / "submitted").iterdir()] == ["ada"]
    rows = terms.run(course)
    assert rows.keys() == {"ada"} and rows["ada"].total == 7 and terms.waits(course, "ada") == set()
    shown = terms.totals(course, "ada")
    assert shown["report"] == shown["export"] == shown["feedback"] == 7
    assert read_record(course, terms.NAME).keys() == {"ada"}


def test_marks_and_notebook_of_one_name_alone_move(course):
    terms.hand_in(course, "x1", "2030-03-01 12:00:00 UTC", rest="return 1")
    terms.run(course)
    for cell in (terms.QUESTION, terms.OTHER):
        terms.mark(course, "x1", cell, 1.5)
    merge(course, "x1", "ada")
    rows = terms.run(course)
    assert rows.keys() == {"ada"} and rows["ada"].total == 8 and terms.waits(course, "ada") == set()


@pytest.mark.parametrize("newer", ["x1", "ada"])
def test_of_two_notebooks_the_later_counts_and_the_other_is_kept(course, newer):
    for student, answer in (("x1", "return 1"), ("ada", "return 'wrong'")):
        day = 2 if student == newer else 1
        terms.hand_in(course, student, f"2030-03-0{day} 12:00:00 UTC", rest=answer)
    terms.run(course)
    terms.mark(course, "x1", terms.QUESTION, 1.5)
    merge(course, "x1", "ada")
    row = terms.run(course)["ada"]
    assert row.marks["check_softmax"].score == (3 if newer == "x1" else 0.5)
    assert row.marks[terms.QUESTION].score == 1.5
    assert terms.QUESTION in terms.waits(
        course, "ada"
    )  # the mark was given to another answer, perhaps
    (kept,) = (course / "collected" / terms.NAME / "earlier" / "ada").iterdir()
    assert (kept / f"{terms.NAME}.ipynb").is_file()


def test_a_mark_by_hand_of_the_name_that_stays_is_not_overwritten(course):
    for student, score in (("x1", 0.5), ("ada", 2)):
        terms.hand_in(course, student, rest="return 1")
        terms.run(course)
        terms.mark(course, student, terms.QUESTION, score)
    merge(course, "x1", "ada")
    assert terms.run(course)["ada"].marks[terms.QUESTION].score == 2


@pytest.mark.parametrize("first, second", [("nobody", "ada"), ("ada", "ada"), ("../ada", "ada"),
                                           ("ada", "../x"), ("ada", "")])  # fmt: skip
def test_ids_that_make_no_sense_are_told(course, first, second):
    terms.hand_in(course, "ada", rest="return 1")
    terms.run(course)
    with pytest.raises(ValueError, match="student"):
        merge(course, first, second)
    assert students(course) == {"ada"}
