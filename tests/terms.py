"""A small course, for terms: one chapter with two exercises and two questions.

The judge is a stand-in that gives every written answer full marks: what is tested is what becomes
of its judgements.
"""

import csv
import re
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder.gradebook import classroom
from autograder.gradebook.classroom import grade
from autograder.gradebook.export import SafeCsv
from autograder.gradebook.feedback import PageFailed, PageMaker
from autograder.judge.job import Job, Outcome
from autograder.judge.judge_notebook import exercises_in
from autograder.judge.judgement import GRADED, Judgement
from autograder.judge.marks import show_verdicts
from autograder.notebook.reading import parse_notebook
from autograder.notebook.rebuild import rebuild
from autograder.report.report import report
from autograder.student.engine.verdict import (
    CORRECT,
    MISSING,
    POLICY,
    WRONG,
    AspectVerdict,
    Verdict,
    no_marks,
)

ROOT = Path(__file__).resolve().parents[1]
NAME = next((ROOT / "notebooks").glob("*_kernel_regression")).name
QUESTION, OTHER = "question_w_of_zero", "question_even_spacing"
TYPO = "Two exercizes and two questions."


def _released() -> str:
    """Chapter 1, as it is released, without most of it."""
    notebook = nbformat.read(ROOT / "notebooks" / NAME / f"{NAME}.ipynb", as_version=4)
    kept = ("softmax", "check_softmax", "gaussian_scores", "check_gaussian_scores", QUESTION, OTHER)
    notebook.cells = [
        c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") in kept
    ]
    assert len(notebook.cells) == len(kept)
    notebook.cells.insert(0, nbformat.v4.new_markdown_cell(TYPO, id="opening"))
    return nbformat.writes(notebook)


RELEASED = _released()


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
            verdict = no_marks(exercise, MISSING, "Not written yet.")
        elif "wrong" in text:
            verdict = Verdict(exercise.name, exercise.points, 0.5, WRONG, aspects)
        elif "withheld" in text:
            verdict = no_marks(exercise, POLICY, "For a person to look at.")
        verdicts[exercise.name] = verdict
    show_verdicts(notebook, verdicts)
    judgement = Judgement(GRADED, verdicts, 0.1, None, tuple(notes))
    return Outcome(judgement, nbformat.writes(notebook).encode(), "here")


def with_stand_in(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the stand-in judge, and make pages plain; return the students that it judges."""
    seen: list[str] = []

    def run(self, source, judge):
        for task, job in source:
            seen.append(task.student)
            yield task, stand_in(job)

    def plain(self, *_):
        raise PageFailed("a test wants it plain")

    monkeypatch.setattr(classroom.LocalPool, "run", run)
    monkeypatch.setattr(PageMaker, "start", lambda self: None)
    monkeypatch.setattr(PageMaker, "page", plain)
    return seen


def release(course: Path, text: str = RELEASED) -> None:
    folder = course / "notebooks" / NAME
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{NAME}.ipynb").write_text(text, encoding="utf-8")


def answered(**answers: str) -> bytes:
    """A notebook; `answers` maps grade ids to what replaces the stub."""
    notebook = nbformat.reads(RELEASED, as_version=4)
    for cell in notebook.cells:
        mark = cell.metadata.get("nbgrader", {})
        if mark.get("solution"):
            said = answers.get(mark["grade_id"], answers.get("rest", ""))
            for stub in ("raise NotImplementedError", "*Write your answer here.*"):
                cell.source = cell.source.replace(stub, said) if said else cell.source
    return nbformat.writes(notebook).encode()


def hand_in(course: Path, student: str, stamp: str = "", **answers: str) -> Path:
    """Hand in a notebook; see `answered`."""
    path = course / "submitted" / student / NAME / f"{NAME}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(answered(**answers))
    if stamp:
        path.with_name("timestamp.txt").write_text(stamp)
    return path


def run(course: Path, **how) -> dict:
    return {row.student: row for row in grade(course / "submitted", **how).rows}


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
    row = re.search(rf'<tr data-student="{student}".*?</tr>', page, re.DOTALL)[0]
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
