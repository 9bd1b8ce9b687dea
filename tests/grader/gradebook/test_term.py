"""A term: due dates, marks by hand, a student who leaves, feedback that is released."""

import csv
import json
import shutil
from pathlib import Path
from unicodedata import normalize

import nbformat
import pytest
import terms
from terms import release

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
    return terms.with_stand_in(monkeypatch)


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("term")
    release(root)
    with Writer(root, None, root / "notebooks") as one:
        one.register(terms.NAME)
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
        terms.hand_in(course, student, rest="return 1")
    terms.run(course)
    with terms.book(course) as gradebook:
        gradebook.remove_student("bob")
    shutil.rmtree(course / "submitted" / "bob")
    assert terms.run(course).keys() == {"ann"}
    terms.hand_in(course, "bob", rest="return 1")  # and one who comes back is graded again
    judged.clear()
    rows = terms.run(course)
    assert judged == ["bob"] and rows["ann"].unchanged and rows["bob"].score == rows["ann"].score


def test_a_removed_student_whose_folder_stays_is_graded_anew(course, judged):
    terms.hand_in(course, "ann", rest="return 1")
    before = terms.run(course)["ann"].score
    with terms.book(course) as gradebook:
        gradebook.remove_student("ann")
    assert terms.run(course)["ann"].score == before and judged == ["ann", "ann"]


def test_one_student_or_one_chapter_alone(course, judged):
    for student in ("ann", "bob"):
        terms.hand_in(course, student, rest="return 1")
    assert terms.run(course, students=["bob"]).keys() == {"bob"} and judged == ["bob"]
    assert terms.run(course, assignments=["kernel_regression"]).keys() == {"ann", "bob"}
    assert judged == ["bob", "ann"]


def test_a_name_in_two_unicode_forms_is_one_student(course, judged):
    composed, decomposed = (normalize(form, "Müller") for form in ("NFC", "NFD"))
    terms.hand_in(course, decomposed, "2026-01-02 00:00:00 UTC", rest="return 1")
    first = terms.run(course)
    assert first.keys() == {composed} and judged == [composed]
    terms.hand_in(course, composed, "2026-01-01 00:00:00 UTC", softmax="return 'wrong'")
    result = grade(course / "submitted")
    (row,) = result.rows
    assert row.unchanged and row.score == first[composed].score  # the later one counts
    assert len(result.ignored) == 1 and "another Unicode form" in result.ignored[0]
    with terms.book(course) as gradebook:
        assert [student.id for student in gradebook.students] == [composed]


def test_a_student_whom_the_list_spells_in_the_other_form_is_that_student(course):
    composed, decomposed = (normalize(form, "Müller") for form in ("NFC", "NFD"))
    with terms.book(course) as gradebook:
        gradebook.add_student(decomposed, first_name="Mia")
    terms.hand_in(course, composed, rest="return 1")
    assert terms.run(course).keys() == {decomposed}
    with terms.book(course) as gradebook:
        assert len(gradebook.students) == 1


# --- nbgrader's exchange --------------------------------------------------------------------------


def test_what_the_exchange_has_noted_is_carried_to_the_feedback(course):
    path = terms.hand_in(course, "ann", "2026-01-02 03:04:05.123456 UTC", rest="return 1")
    secret = "0123456789abcdef" * 8
    path.with_name("submission_secret.txt").write_text(secret)
    other = terms.hand_in(course, "bob", rest="return 1")
    other.with_name("submission_secret.txt").symlink_to(path.with_name("submission_secret.txt"))
    terms.run(course)
    for made in ("feedback", "autograded"):
        folder = course / made / "ann" / terms.NAME
        assert (folder / "submission_secret.txt").read_text() == secret
        assert (folder / "timestamp.txt").read_text().startswith("2026-01-02 03:04:05")
        assert {p.suffix for p in (course / made / "bob" / terms.NAME).iterdir()} <= {
            ".ipynb",
            ".html",
        }
    path.with_name("submission_secret.txt").unlink()
    terms.hand_in(course, "ann", rest="return 2")
    terms.run(course)
    assert not (course / "feedback" / "ann" / terms.NAME / "submission_secret.txt").exists()


# --- Marks by hand --------------------------------------------------------------------------------


@pytest.fixture
def marked(course) -> Path:
    """A course in which a question and a withheld mark have been decided by a person."""
    terms.hand_in(course, "ann", softmax="return 'withheld'", rest="It is the mean.")
    terms.run(course)
    assert terms.waits(course, "ann") == {"check_softmax", terms.QUESTION, terms.OTHER}
    terms.mark(course, "ann", "check_softmax", 1.5)
    terms.mark(course, "ann", terms.QUESTION, 2.0)
    assert terms.waits(course, "ann") == {terms.OTHER}
    return course


def test_a_typo_mended_in_the_prose_returns_no_mark_to_the_marker(marked, judged):
    judged.clear()
    release(marked, terms.RELEASED.replace(terms.TYPO, terms.TYPO.replace("z", "s")))
    (row,) = terms.run(marked).values()
    assert judged == ["ann"] and not row.unchanged
    assert terms.waits(marked, "ann") == {terms.OTHER}
    assert row.marks[terms.QUESTION].score == 2 and row.marks["check_softmax"].score == 1.5


def test_judging_again_returns_no_mark_to_the_marker(marked):
    terms.run(marked, force=True)
    assert terms.waits(marked, "ann") == {terms.OTHER}


def test_another_text_waits_for_the_marker(marked):
    answers = {"softmax": "return 'withheld'", "rest": "It is the mean."}
    terms.hand_in(marked, "ann", **answers | {terms.QUESTION: "It is the median."})
    terms.run(marked)
    assert terms.waits(marked, "ann") == {terms.QUESTION, terms.OTHER}


def test_another_answer_or_verdict_waits_for_the_marker(marked):
    terms.hand_in(marked, "ann", softmax="return 'wrong'", rest="It is the mean.")
    (row,) = terms.run(marked).values()
    assert terms.waits(marked, "ann") == {"check_softmax", terms.OTHER}
    assert row.marks["check_softmax"].score == 1.5  # the person's mark stands meanwhile


def test_where_it_is_not_known_what_was_marked_it_waits_for_the_marker(marked):
    (marked / "autograded" / "ann" / terms.NAME / f"{terms.NAME}.ipynb").unlink()
    terms.run(marked)
    assert terms.waits(marked, "ann") == {"check_softmax", terms.QUESTION, terms.OTHER}


def by_nbgrader(course: Path, **answers: str) -> None:
    """What the end of `nbgrader autograde --force` does, with the judgement of the stand-in."""
    release = (course / "notebooks" / terms.NAME / f"{terms.NAME}.ipynb").read_bytes()
    outcome = terms.stand_in(
        Job(terms.NAME, release, terms.answered(**answers), None, None, {}, Options(), None)
    )
    where = {"notebook": terms.NAME, "assignment": terms.NAME, "student": "ann"}
    where["db_url"] = f"sqlite:///{course / 'gradebook.db'}"
    resources = {"nbgrader": where, "autograder": outcome.judgement}
    notebook = nbformat.v4.reads(outcome.notebook.decode())
    for step in (SaveAutoGrades(), SaveJudgement()):
        notebook, resources = step.preprocess(notebook, resources)


def test_nbgraders_own_command_returns_no_mark_to_the_marker_either(marked):
    answers = {"softmax": "return 'withheld'", "rest": "It is the mean."}
    by_nbgrader(marked, **answers)
    assert terms.waits(marked, "ann") == {terms.OTHER}
    by_nbgrader(marked, **answers | {terms.QUESTION: "It is the median."})
    assert terms.waits(marked, "ann") == {terms.QUESTION, terms.OTHER}
    by_nbgrader(marked, **answers | {terms.QUESTION: "It is the median."})
    assert terms.waits(marked, "ann") == {
        terms.QUESTION,
        terms.OTHER,
    }  # nobody has looked at it yet
    by_nbgrader(marked, rest="It is the mean.")
    assert terms.waits(marked, "ann") == {"check_softmax", terms.QUESTION, terms.OTHER}


# --- Late -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["course", "user"])
def test_a_penalty_follows_due_date_and_policy_without_judging_again(
    course, judged, tmp_path, place
):
    terms.hand_in(course, "ann", "2026-03-02 12:00:00 UTC", rest="return 1")
    full = terms.run(course)["ann"].score
    assert set(terms.totals(course, "ann").values()) == {full}
    terms.due(course, "2026-03-01 12:00:00 UTC")
    assert terms.run(course)["ann"].total == full  # no policy, no penalty
    folder = course if place == "course" else tmp_path / "user"
    (folder / "nbgrader_config.py").write_text(ZERO)
    row = terms.run(course)["ann"]
    assert (row.total, row.penalty, row.score) == (0, full, full)
    assert row.unchanged and set(terms.totals(course, "ann").values()) == {0}
    terms.due(course, "2026-03-03 12:00:00 UTC")
    assert terms.run(course)["ann"].total == full
    assert set(terms.totals(course, "ann").values()) == {full}
    assert judged == ["ann"]


def test_a_policy_of_the_courses_own_is_respected_and_all_totals_agree(course, monkeypatch):
    (course / "by_day_of_a_test.py").write_text(BY_DAY)
    config = 'c = get_config()\nc.AssignLatePenalties.plugin_class = "by_day_of_a_test.ByDay"\n'
    (course / "nbgrader_config.py").write_text(config)
    terms.due(course, "2026-03-01 12:00:00 UTC")
    terms.hand_in(course, "ann", "2026-03-02 12:00:00 UTC", rest="return 1")
    result = grade(course / "submitted")
    (row,) = result.rows
    assert row.penalty == round(0.3 * row.score, 1) > 0
    assert row.total == pytest.approx(row.score - row.penalty)
    assert set(terms.totals(course, "ann").values()) == {row.total}
    (told,) = json.loads(result.to_json())["submissions"]
    assert (told["score"], told["penalty"], told["total"]) == (row.score, row.penalty, row.total)
    terms.mark(course, "ann", terms.QUESTION, 2.0)
    after = terms.run(course)["ann"]  # what it costs is a share of what there is
    assert after.unchanged and after.penalty == round(0.3 * after.score, 1) > row.penalty
    assert set(terms.totals(course, "ann").values()) == {after.total}


def test_a_policy_that_cannot_be_loaded_is_told_in_a_line(course):
    config = 'c = get_config()\nc.AssignLatePenalties.plugin_class = "no_such_module.Late"\n'
    (course / "nbgrader_config.py").write_text(config)
    terms.hand_in(course, "ann", rest="return 1")
    with pytest.raises(ValueError, match="late policy cannot be loaded"):
        terms.run(course)


def test_marks_by_student_and_question_are_a_table(tmp_path, judged):
    course = tmp_path
    release(course)
    terms.hand_in(course, "ann", rest="return 1")
    terms.hand_in(course, "=bob", softmax="return 'wrong'", rest="return 1")
    terms.run(course)
    terms.mark(course, "ann", terms.QUESTION, 1.5)
    report(course, course / "report.html", marks=course / "marks.csv")
    with (course / "marks.csv").open(encoding="utf-8", newline="") as stream:
        rows = {row["student_id"]: row for row in csv.DictReader(stream)}
    assert rows.keys() == {"ann", "'=bob"}
    of = {
        s: {k.partition("/")[2]: v for k, v in row.items() if "/" in k} for s, row in rows.items()
    }
    assert of["ann"] == {
        "softmax": "3", "gaussian_scores": "2",
        terms.QUESTION: "1.5", terms.OTHER: "?", "total": "6.5",
    }  # fmt: skip
    assert of["'=bob"]["softmax"] == "0.5" and of["'=bob"][terms.QUESTION] == "?"
