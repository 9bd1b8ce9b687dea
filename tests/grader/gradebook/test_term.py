"""A term: due dates, marks by hand, a student who leaves, feedback that is released."""

import csv
import json
import shutil
from pathlib import Path
from unicodedata import normalize

import nbformat
import pytest
from terms import (
    NAME,
    OTHER,
    QUESTION,
    RELEASED,
    TYPO,
    answered,
    book,
    due,
    hand_in,
    mark,
    release,
    run,
    stand_in,
    totals,
    waits,
    with_stand_in,
)

from autograder.gradebook.classroom import grade
from autograder.gradebook.preprocessors import SaveAutoGrades, SaveJudgement
from autograder.gradebook.writer import Writer
from autograder.judge.job import Job, Options
from autograder.report.report import report

ZERO = 'c = get_config()\nc.LateSubmissionPlugin.penalty_method = "zero"\n'
BY_DAY = """
from nbgrader.plugins import BasePlugin

class ByDay(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return round(0.3 * score, 1)
"""


@pytest.fixture
def judged(monkeypatch) -> list[str]:
    """The students whose submissions are judged, by the stand-in."""
    return with_stand_in(monkeypatch)


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("term")
    release(root)
    with Writer(root, None, root / "notebooks") as one:
        one.register(NAME)
    return root


@pytest.fixture
def course(tmp_path, empty, judged, monkeypatch) -> Path:
    shutil.copytree(empty, tmp_path / "course")
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    return tmp_path / "course"


# --- Students come and go -------------------------------------------------------------------------


def test_removing_a_student_does_not_stop_the_class(course, judged):
    for student in ("ann", "bob"):
        hand_in(course, student, rest="return 1")
    run(course)
    with book(course) as gradebook:
        gradebook.remove_student("bob")
    shutil.rmtree(course / "submitted" / "bob")
    assert run(course).keys() == {"ann"}
    hand_in(course, "bob", rest="return 1")  # and one who comes back is graded again
    judged.clear()
    rows = run(course)
    assert judged == ["bob"] and rows["ann"].unchanged and rows["bob"].score == rows["ann"].score


def test_a_removed_student_whose_folder_stays_is_graded_anew(course, judged):
    hand_in(course, "ann", rest="return 1")
    before = run(course)["ann"].score
    with book(course) as gradebook:
        gradebook.remove_student("ann")
    assert run(course)["ann"].score == before and judged == ["ann", "ann"]


def test_one_student_or_one_chapter_alone(course, judged):
    for student in ("ann", "bob"):
        hand_in(course, student, rest="return 1")
    assert run(course, students=["bob"]).keys() == {"bob"} and judged == ["bob"]
    assert run(course, assignments=["kernel_regression"]).keys() == {"ann", "bob"}
    assert judged == ["bob", "ann"]


def test_a_name_in_two_unicode_forms_is_one_student(course, judged):
    composed, decomposed = (normalize(form, "Müller") for form in ("NFC", "NFD"))
    hand_in(course, decomposed, "2026-01-02 00:00:00 UTC", rest="return 1")
    first = run(course)
    assert first.keys() == {composed} and judged == [composed]
    hand_in(course, composed, "2026-01-01 00:00:00 UTC", softmax="return 'wrong'")
    result = grade(course / "submitted")
    (row,) = result.rows
    assert row.unchanged and row.score == first[composed].score  # the later one counts
    assert len(result.ignored) == 1 and "another Unicode form" in result.ignored[0]
    with book(course) as gradebook:
        assert [student.id for student in gradebook.students] == [composed]


def test_a_student_whom_the_list_spells_in_the_other_form_is_that_student(course):
    composed, decomposed = (normalize(form, "Müller") for form in ("NFC", "NFD"))
    with book(course) as gradebook:
        gradebook.add_student(decomposed, first_name="Mia")
    hand_in(course, composed, rest="return 1")
    assert run(course).keys() == {decomposed}
    with book(course) as gradebook:
        assert len(gradebook.students) == 1


# --- nbgrader's exchange --------------------------------------------------------------------------


def test_what_the_exchange_has_noted_is_carried_to_the_feedback(course):
    path = hand_in(course, "ann", "2026-01-02 03:04:05.123456 UTC", rest="return 1")
    secret = "0123456789abcdef" * 8
    path.with_name("submission_secret.txt").write_text(secret)
    other = hand_in(course, "bob", rest="return 1")
    other.with_name("submission_secret.txt").symlink_to(path.with_name("submission_secret.txt"))
    run(course)
    for made in ("feedback", "autograded"):
        folder = course / made / "ann" / NAME
        assert (folder / "submission_secret.txt").read_text() == secret
        assert (folder / "timestamp.txt").read_text().startswith("2026-01-02 03:04:05")
        assert {p.suffix for p in (course / made / "bob" / NAME).iterdir()} <= {".ipynb", ".html"}
    path.with_name("submission_secret.txt").unlink()
    hand_in(course, "ann", rest="return 2")
    run(course)
    assert not (course / "feedback" / "ann" / NAME / "submission_secret.txt").exists()


# --- Marks by hand --------------------------------------------------------------------------------


@pytest.fixture
def marked(course) -> Path:
    """A course in which a question and a withheld mark have been decided by a person."""
    hand_in(course, "ann", softmax="return 'withheld'", rest="It is the mean.")
    run(course)
    assert waits(course, "ann") == {"check_softmax", QUESTION, OTHER}
    mark(course, "ann", "check_softmax", 1.5)
    mark(course, "ann", QUESTION, 2.0)
    assert waits(course, "ann") == {OTHER}
    return course


def test_a_typo_mended_in_the_prose_returns_no_mark_to_the_marker(marked, judged):
    judged.clear()
    release(marked, RELEASED.replace(TYPO, TYPO.replace("z", "s")))
    (row,) = run(marked).values()
    assert judged == ["ann"] and not row.unchanged
    assert waits(marked, "ann") == {OTHER}
    assert row.marks[QUESTION].score == 2 and row.marks["check_softmax"].score == 1.5


def test_judging_again_returns_no_mark_to_the_marker(marked):
    run(marked, force=True)
    assert waits(marked, "ann") == {OTHER}


def test_another_text_waits_for_the_marker(marked):
    answers = {"softmax": "return 'withheld'", "rest": "It is the mean."}
    hand_in(marked, "ann", **answers | {QUESTION: "It is the median."})
    run(marked)
    assert waits(marked, "ann") == {QUESTION, OTHER}


def test_another_answer_or_verdict_waits_for_the_marker(marked):
    hand_in(marked, "ann", softmax="return 'wrong'", rest="It is the mean.")
    (row,) = run(marked).values()
    assert waits(marked, "ann") == {"check_softmax", OTHER}
    assert row.marks["check_softmax"].score == 1.5  # the person's mark stands meanwhile


def test_where_it_is_not_known_what_was_marked_it_waits_for_the_marker(marked):
    (marked / "autograded" / "ann" / NAME / f"{NAME}.ipynb").unlink()
    run(marked)
    assert waits(marked, "ann") == {"check_softmax", QUESTION, OTHER}


def by_nbgrader(course: Path, **answers: str) -> None:
    """What the end of `nbgrader autograde --force` does, with the judgement of the stand-in."""
    release = (course / "notebooks" / NAME / f"{NAME}.ipynb").read_bytes()
    outcome = stand_in(Job(NAME, release, answered(**answers), None, None, {}, Options(), None))
    where = {"notebook": NAME, "assignment": NAME, "student": "ann"}
    where["db_url"] = f"sqlite:///{course / 'gradebook.db'}"
    resources = {"nbgrader": where, "autograder": outcome.judgement}
    notebook = nbformat.v4.reads(outcome.notebook.decode())
    for step in (SaveAutoGrades(), SaveJudgement()):
        notebook, resources = step.preprocess(notebook, resources)


def test_nbgraders_own_command_returns_no_mark_to_the_marker_either(marked):
    answers = {"softmax": "return 'withheld'", "rest": "It is the mean."}
    by_nbgrader(marked, **answers)
    assert waits(marked, "ann") == {OTHER}
    by_nbgrader(marked, **answers | {QUESTION: "It is the median."})
    assert waits(marked, "ann") == {QUESTION, OTHER}
    by_nbgrader(marked, **answers | {QUESTION: "It is the median."})
    assert waits(marked, "ann") == {QUESTION, OTHER}  # nobody has looked at it yet
    by_nbgrader(marked, rest="It is the mean.")
    assert waits(marked, "ann") == {"check_softmax", QUESTION, OTHER}


# --- Late -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["course", "user"])
def test_a_penalty_follows_due_date_and_policy_without_judging_again(
    course, judged, tmp_path, place
):
    hand_in(course, "ann", "2026-03-02 12:00:00 UTC", rest="return 1")
    full = run(course)["ann"].score
    assert set(totals(course, "ann").values()) == {full}
    due(course, "2026-03-01 12:00:00 UTC")
    assert run(course)["ann"].total == full  # no policy, no penalty
    folder = course if place == "course" else tmp_path / "user"
    (folder / "nbgrader_config.py").write_text(ZERO)
    row = run(course)["ann"]
    assert (row.total, row.penalty, row.score) == (0, full, full)
    assert row.unchanged and set(totals(course, "ann").values()) == {0}
    due(course, "2026-03-03 12:00:00 UTC")
    assert run(course)["ann"].total == full
    assert set(totals(course, "ann").values()) == {full}
    assert judged == ["ann"]


def test_a_policy_of_the_courses_own_is_respected_and_all_totals_agree(course, monkeypatch):
    (course / "by_day_of_a_test.py").write_text(BY_DAY)
    config = 'c = get_config()\nc.AssignLatePenalties.plugin_class = "by_day_of_a_test.ByDay"\n'
    (course / "nbgrader_config.py").write_text(config)
    due(course, "2026-03-01 12:00:00 UTC")
    hand_in(course, "ann", "2026-03-02 12:00:00 UTC", rest="return 1")
    result = grade(course / "submitted")
    (row,) = result.rows
    assert row.penalty == round(0.3 * row.score, 1) > 0
    assert row.total == pytest.approx(row.score - row.penalty)
    assert set(totals(course, "ann").values()) == {row.total}
    (told,) = json.loads(result.to_json())["submissions"]
    assert (told["score"], told["penalty"], told["total"]) == (row.score, row.penalty, row.total)
    mark(course, "ann", QUESTION, 2.0)
    after = run(course)["ann"]  # what it costs is a share of what there is
    assert after.unchanged and after.penalty == round(0.3 * after.score, 1) > row.penalty
    assert set(totals(course, "ann").values()) == {after.total}


def test_a_policy_that_cannot_be_loaded_is_told_in_a_line(course):
    config = 'c = get_config()\nc.AssignLatePenalties.plugin_class = "no_such_module.Late"\n'
    (course / "nbgrader_config.py").write_text(config)
    hand_in(course, "ann", rest="return 1")
    with pytest.raises(ValueError, match="late policy cannot be loaded"):
        run(course)


def test_marks_by_student_and_question_are_a_table(tmp_path, judged):
    course = tmp_path
    release(course)
    hand_in(course, "ann", rest="return 1")
    hand_in(course, "=bob", softmax="return 'wrong'", rest="return 1")
    run(course)
    mark(course, "ann", QUESTION, 1.5)
    report(course, course / "report.html", marks=course / "marks.csv")
    with (course / "marks.csv").open(encoding="utf-8", newline="") as stream:
        rows = {row["student_id"]: row for row in csv.DictReader(stream)}
    assert rows.keys() == {"ann", "'=bob"}
    of = {
        s: {k.partition("/")[2]: v for k, v in row.items() if "/" in k} for s, row in rows.items()
    }
    assert of["ann"] == {
        "softmax": "3", "gaussian_scores": "2", QUESTION: "1.5", OTHER: "?", "total": "6.5"
    }  # fmt: skip
    assert of["'=bob"]["softmax"] == "0.5" and of["'=bob"][QUESTION] == "?"
