"""A term: due dates, marks by hand, a student who leaves, feedback that is released.

The judge is a stand-in that gives every written answer full marks: what is tested is what becomes
of its judgements.
"""

import csv
import json
import re
import shutil
from pathlib import Path
from unicodedata import normalize

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.engine.verdict import (
    CORRECT,
    MISSING,
    POLICY,
    WRONG,
    AspectVerdict,
    Verdict,
    withheld,
)
from autograder.grader.classes import classroom
from autograder.grader.classes.classroom import grade
from autograder.grader.classes.feedback import PageFailed, PageMaker
from autograder.grader.classes.report import report
from autograder.grader.classes.writer import Writer
from autograder.grader.judgement import GRADED, Judgement
from autograder.grader.notebook.export import SafeCsv
from autograder.grader.notebook.judging import exercises_in
from autograder.grader.notebook.marks import show_verdicts
from autograder.grader.notebook.reading import parse_notebook
from autograder.grader.notebook.rebuild import rebuild
from autograder.grader.work import Job, Outcome

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
NAME = next(NOTEBOOKS.glob("*_kernel_regression")).name
RELEASED = (NOTEBOOKS / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8")
QUESTION, OTHER = "question_bandwidth_of_zero", "question_even_spacing"
ZERO = 'c = get_config()\nc.LateSubmissionPlugin.penalty_method = "zero"\n'
BY_DAY = """
from nbgrader.plugins import BasePlugin

class ByDay(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return round(0.3 * score, 1)
"""


def stand_in(job: Job) -> Outcome:
    """Full marks for every answer that is not the stub; "wrong" and "withheld" in it say that."""
    release = nbformat.v4.reads(job.release.decode())
    notebook, notes = rebuild(release, parse_notebook(job.submission))
    texts = {c.metadata.get("nbgrader", {}).get("grade_id"): c.source for c in notebook.cells}
    verdicts = {}
    for _, exercise in exercises_in(release):
        text = texts[exercise.name]
        aspects = (AspectVerdict("the values", exercise.points, True, None, None),)
        verdict = Verdict(exercise.name, exercise.points, exercise.points, CORRECT, aspects)
        if "raise NotImplementedError" in text:
            verdict = withheld(exercise, MISSING, "Not written yet.")
        elif "wrong" in text:
            verdict = Verdict(exercise.name, exercise.points, 0.5, WRONG, aspects)
        elif "withheld" in text:
            verdict = withheld(exercise, POLICY, "For a person to look at.")
        verdicts[exercise.name] = verdict
    show_verdicts(notebook, verdicts)
    judgement = Judgement(GRADED, verdicts, 0.1, None, tuple(notes))
    return Outcome(judgement, nbformat.writes(notebook).encode(), "here")


@pytest.fixture
def judged(monkeypatch) -> list[str]:
    """The students whose submissions are judged, by the stand-in."""
    seen: list[str] = []

    def local(source, *_):
        for task, job in source:
            seen.append(task.student)
            yield task, stand_in(job)

    def plain(self, *_):
        raise PageFailed("a test wants it plain")

    monkeypatch.setattr(classroom.schedulers, "local", local)
    monkeypatch.setattr(PageMaker, "start", lambda self: None)
    monkeypatch.setattr(PageMaker, "page", plain)
    return seen


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("term")
    with Writer(root, None, NOTEBOOKS) as one:
        one.register(NAME)
    return root / "gradebook.db"


@pytest.fixture
def course(tmp_path, empty, judged, monkeypatch) -> Path:
    root = tmp_path / "course"
    root.mkdir()
    shutil.copy(empty, root)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()
    return root


def hand_in(course: Path, student: str, stamp: str = "", **answers: str) -> Path:
    """Hand in a notebook; `answers` maps grade ids to what stands in the place of the stub."""
    notebook = nbformat.reads(RELEASED, as_version=4)
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("solution"):
            said = answers.get(mark["grade_id"], answers.get("rest", ""))
            for stub in ("raise NotImplementedError", "*Write your answer here.*"):
                cell.source = cell.source.replace(stub, said) if said else cell.source
    path = course / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook), encoding="utf-8")
    if stamp:
        path.with_name("timestamp.txt").write_text(stamp)
    return path


def run(course: Path, release: Path = NOTEBOOKS, **how) -> dict:
    result = grade(course / "submitted", release=release, **how)
    return {row.student: row for row in result.rows}


def book(course: Path) -> Gradebook:
    return Gradebook(f"sqlite:///{course / 'gradebook.db'}")


def mark(course: Path, student: str, cell: str, score: float) -> None:
    """What formgrader does when a person gives a mark."""
    with book(course) as gradebook:
        given = gradebook.find_grade(cell, NAME, NAME, student)
        given.manual_score, given.needs_manual_grade = score, False
        gradebook.db.commit()


def waits(course: Path, student: str) -> set[str]:
    with book(course) as gradebook:
        grades = gradebook.find_submission_notebook(NAME, NAME, student).grades
        return {given.name for given in grades if given.needs_manual_grade}


def due(course: Path, when: str) -> None:
    with book(course) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate=when)


def totals(course: Path, student: str) -> dict[str, float]:
    """What report, export, feedback and log say that a student has in all."""
    page = report(course, course / "report.html").read_text(encoding="utf-8")
    row = re.search(rf"<tr><th[^>]*>(?:<a [^>]*>)?{student}<.*?</tr>", page, re.DOTALL)[0]
    with book(course) as gradebook:
        plugin = SafeCsv()
        plugin.to = str(course / "grades.csv")
        plugin.export(gradebook)
    with (course / "grades.csv").open(encoding="utf-8") as stream:
        exported = next(r for r in csv.DictReader(stream) if r["student_id"] == student)
    feedback = (course / "feedback" / student / NAME / f"{NAME}.html").read_text(encoding="utf-8")
    log = (course / "logs" / student / f"{NAME}.log").read_text(encoding="utf-8")
    return {
        "report": float(re.findall(r"<b>([\d.]+)</b>", row)[-1]),
        "export": float(exported["score"]),
        "feedback": float(re.search(r"Score: ([\d.]+)", feedback)[1]),
        "log": float(re.findall(r"([\d.]+) of [\d.]+ points", log)[-1]),
    }


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
    result = grade(course / "submitted", release=NOTEBOOKS)
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


def release_with(course: Path, old: str, new: str) -> Path:
    """The released notebooks with a typo mended."""
    folder = course / "notebooks" / NAME
    folder.mkdir(parents=True)
    assert old in RELEASED
    (folder / f"{NAME}.ipynb").write_text(RELEASED.replace(old, new, 1), encoding="utf-8")
    return course / "notebooks"


def test_a_typo_mended_in_the_prose_returns_no_mark_to_the_marker(marked, judged):
    judged.clear()
    (row,) = run(marked, release_with(marked, "Errata of the folklore", "Errata")).values()
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
    result = grade(course / "submitted", release=NOTEBOOKS)
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
