"""A class is graded: each gets what it deserves, nobody disturbs another, nothing is done twice."""

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.gradebook import classroom
from autograder.gradebook import sample_class as sample_class_module
from autograder.gradebook.classroom import grade
from autograder.gradebook.rows import read_class
from autograder.gradebook.sample_class import compare, grade_sample, make_sample_class
from autograder.gradebook.writer import Writer
from autograder.judge.job import Job, Outcome, judge_job
from autograder.judge.judgement import FAILED, GRADED, UNUSABLE
from autograder.judge.seeds import secret_of
from solutions.sample_class import EXPECTED
from solutions.sample_class.notebooks import FULL

pytestmark = pytest.mark.needs_torch  # as the course does

ROOT = Path(__file__).resolve().parents[3]
NOTEBOOKS = ROOT / "notebooks"
NAME = next(NOTEBOOKS.glob("*_kernel_regression")).name
RELEASED = (NOTEBOOKS / NAME / f"{NAME}.ipynb").read_bytes()


@pytest.fixture(scope="session")
def gradebook_file(tmp_path_factory) -> Path:
    """An empty gradebook that knows the chapter, to copy: making one takes seconds."""
    root = tmp_path_factory.mktemp("gradebook")
    with Writer(root, None, NOTEBOOKS) as one:
        one.register(NAME)
    return root / "gradebook.db"


@pytest.fixture
def course(tmp_path, gradebook_file) -> Path:
    shutil.copy(gradebook_file, tmp_path)
    return tmp_path


def hand_in(course: Path, student: str, data: bytes = b"", name: str = f"{NAME}.ipynb") -> Path:
    path = course / "submitted" / student / NAME / name
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    return path


def rows_of(result) -> dict:
    return {row.student: row for row in result.rows}


# --- The sample class -----------------------------------------------------------------------------


@pytest.mark.parametrize("student", EXPECTED)
def test_each_sample_student_gets_the_marks_deserved(sample_class, student):
    assert compare(sample_class)[student] == []


def test_what_is_deserved_adds_up_as_reasoned():
    scores = {name: deserved.score for name, deserved in EXPECTED.items()}
    assert scores == {
        "ada": 21.5, "ben": 20.75, "cleo": 14.5, "dan": 0, "eve": 18.5, "finn": 19.5, "gus": 18.5,
        "hana": 21.5, "ivo": 21.5, "jun": 21.5, "kim": 19.5, "leo": 21.5, "mia": 0, "noor": 0,
        "otto": 5, "pia": 21.5, "rosa": 14,
    }  # fmt: skip
    assert sum(FULL.values()) == 21.5


def test_the_sample_class_is_the_same_bytes_every_time(tmp_path):
    for folder in ("one", "two"):
        make_sample_class(NOTEBOOKS, tmp_path / folder)
    one, two = (
        {p.relative_to(tmp_path / f): p.read_bytes() for p in (tmp_path / f).rglob("*.ipynb")}
        for f in ("one", "two")
    )
    assert one == two and len(one) == len(EXPECTED) - 1  # one hands in nothing


def test_the_sample_class_begins_anew_where_a_graded_cell_is_another(tmp_path, monkeypatch):
    """nbgrader's gradebook would refuse: submissions have the cells that were there before."""
    monkeypatch.setattr(sample_class_module, "grade", lambda folder, **settings: folder)
    released, dest = tmp_path / "notebooks" / NAME, tmp_path / "class"
    released.mkdir(parents=True)
    (released / f"{NAME}.ipynb").write_bytes(RELEASED)
    grade_sample(released.parent, dest)
    (dest / "gradebook.db").write_text("of these cells")
    grade_sample(released.parent, dest)
    assert (dest / "gradebook.db").exists()
    changed = RELEASED.replace(b'"points": 2.0', b'"points": 2.25', 1)
    assert changed != RELEASED
    (released / f"{NAME}.ipynb").write_bytes(changed)
    assert grade_sample(released.parent, dest) == dest / "submitted"
    assert not (dest / "gradebook.db").exists()


def test_the_exit_status_says_that_some_could_not_be_graded(sample_class):
    assert sample_class.exit_status == 1
    assert {r.student for r in sample_class.rows if r.status == UNUSABLE} == {"mia", "noor"}


def test_a_second_run_judges_nothing_and_says_the_same(sample_class, grade_the_sample, monkeypatch):
    def run(self, source, judge):
        assert list(source) == []
        return iter(())

    monkeypatch.setattr(classroom.LocalPool, "run", run)
    again = grade_the_sample()
    assert all(row.unchanged for row in again.rows)
    assert [(r.student, r.score, r.status, r.verdicts) for r in again.rows] == [
        (r.student, r.score, r.status, r.verdicts) for r in sample_class.rows
    ]


def test_the_gradebook_and_the_result_agree(sample_class):
    db = f"sqlite:///{sample_class.root / 'gradebook.db'}"
    with Gradebook(db) as gradebook:
        for row in sample_class.rows:
            assert gradebook.find_submission(NAME, row.student).score == pytest.approx(row.score)
    assert [r.student for r in read_class(sample_class.root)] == sorted(EXPECTED)


def test_reasons_stand_in_the_gradebook(sample_class):
    db = f"sqlite:///{sample_class.root / 'gradebook.db'}"
    wanted = {
        ("ben", "softmax"): "known mistake",
        ("dan", "softmax"): "No response.",
        ("finn", "attention_pool"): "did not finish in time",
        ("gus", "leave_one_out_mse"): "ended its process",
        ("noor", "softmax"): "not valid JSON",
        ("mia", "question_even_spacing"): "no notebook",
    }
    with Gradebook(db) as gradebook:
        for (student, cell), words in wanted.items():
            assert words in gradebook.find_comment(cell, NAME, NAME, student).comment
        assert gradebook.find_comment("softmax", NAME, NAME, "ada").comment is None


def test_the_result_is_json_without_nan(sample_class):
    def refuse(name):
        raise AssertionError(name)

    told = json.loads(sample_class.to_json(), parse_constant=refuse)
    assert len(told["submissions"]) == len(EXPECTED)
    for path in sample_class.root.glob("autograded/*/*/*.ipynb"):
        json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


# --- Bad input ------------------------------------------------------------------------------------


def bad_submissions(course: Path) -> dict[str, str]:
    """Make one submission of each bad kind; a word of the reason for each student."""
    hand_in(course, "empty", b"")
    hand_in(course, "binary", bytes(range(256)) * 50)
    hand_in(course, "latin", '{"nbformat": 4, "cells": ["é"]}'.encode("latin-1"))
    hand_in(course, "half", RELEASED[: len(RELEASED) // 2])
    hand_in(course, "two", b'{"nbformat": 2, "nbformat_minor": 0, "worksheets": []}')
    hand_in(course, "deep", b"[" * 200_000)
    hand_in(course, "other", b'{"nbformat": 4, "cells": []}', "essay.ipynb")
    with hand_in(course, "big").open("r+b") as stream:
        stream.truncate(50_000_000)
    (course / "submitted" / "absent" / NAME).mkdir(parents=True)
    (course / "submitted" / "folder" / NAME / f"{NAME}.ipynb").mkdir(parents=True)
    for student in ("link", "pipe", "socket"):
        (course / "submitted" / student / NAME).mkdir(parents=True)
    place = course / "submitted"
    (place / "link" / NAME / f"{NAME}.ipynb").symlink_to(NOTEBOOKS / NAME / f"{NAME}.ipynb")
    os.mkfifo(place / "pipe" / NAME / f"{NAME}.ipynb")
    (place / "linked").mkdir()
    (place / "linked" / NAME).symlink_to(NOTEBOOKS / NAME)
    (place / "file").mkdir()
    (place / "file" / NAME).write_bytes(RELEASED)
    return {
        "absent": "no notebook",
        "big": "50 MB",
        "binary": "UTF-8",
        "deep": "not valid JSON",
        "empty": "empty",
        "file": "not a folder",
        "folder": "a folder",
        "half": "not valid JSON",
        "latin": "UTF-8",
        "link": "a link",
        "linked": "not a folder",
        "other": "under another name",
        "pipe": "not an ordinary file",
        "two": "format 2",
    }


@pytest.fixture(scope="module")
def bad(tmp_path_factory, gradebook_file):
    course = tmp_path_factory.mktemp("bad")
    shutil.copy(gradebook_file, course)
    reasons = bad_submissions(course)
    (course / "submitted" / "socket" / NAME).rmdir()
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(course / "submitted" / "socket")
        os.mkdir(NAME)
        made.bind(f"{NAME}/{NAME}.ipynb")
        os.chdir(here)
    for name in ("<b>bold", "a&b", "star*", "x\ny", "..."):
        (course / "submitted" / name / NAME).mkdir(parents=True)
    (course / "submitted" / "readme.txt").write_text("not a student")
    (course / "submitted" / "nothing").mkdir()
    return course, reasons, grade(course / "submitted", release=NOTEBOOKS, jobs=2)


def test_every_bad_submission_gets_a_zero_and_its_reason(bad):
    _, reasons, result = bad
    rows = rows_of(result)
    assert rows.keys() == reasons.keys() | {"socket"}
    for student, words in reasons.items():
        assert rows[student].status == UNUSABLE
        assert rows[student].score == 0
        assert words in rows[student].reason, student
    assert result.exit_status == 1


def test_the_reason_stands_on_the_feedback_page_and_in_the_gradebook(bad):
    course, reasons, _ = bad
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        for student, words in reasons.items():
            page = (course / "feedback" / student / NAME / f"{NAME}.html").read_text("utf-8")
            assert "could not be graded" in page and words in page
            submission = gradebook.find_submission(NAME, student)
            assert submission.score == 0 and not submission.needs_manual_grade
            assert words in gradebook.find_comment("softmax", NAME, NAME, student).comment


def test_what_is_no_student_is_left_alone_and_told(bad):
    course, _, result = bad
    told = " ".join(result.ignored)
    assert "readme.txt" in told and "nothing: handed in nothing" in told and "bold" in told
    assert len(result.ignored) == 6
    assert not any("<" in path.name for path in (course / "autograded").iterdir())


def test_the_secret_is_made_once_and_is_nobody_elses(tmp_path):
    first = secret_of(tmp_path)
    assert secret_of(tmp_path) == first and len(first) == 64
    (path,) = tmp_path.iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("short")
    with pytest.raises(ValueError, match="does not hold a secret"):
        secret_of(tmp_path)


def test_there_must_be_something_to_grade(tmp_path):
    with pytest.raises(ValueError, match="no folder"):
        grade(tmp_path / "submitted")
    (tmp_path / "submitted").mkdir()
    with pytest.raises(ValueError, match="isolation"):
        grade(tmp_path / "submitted", isolation="hope")


# --- One student's failure is nobody else's -------------------------------------------------------


def test_a_failure_leaves_no_mark_and_is_told(course, monkeypatch):
    for student in ("ann", "bob", "cid"):
        hand_in(course, student)
    write = Writer.write

    def fails(self, task, outcome):
        row = write(self, task, outcome)
        if task.student == "bob":
            raise RuntimeError("no such luck")
        return row

    monkeypatch.setattr(Writer, "write", fails)
    rows = rows_of(grade(course / "submitted", release=NOTEBOOKS, jobs=1))
    assert [rows[s].status for s in ("ann", "bob", "cid")] == [UNUSABLE, FAILED, UNUSABLE]
    assert "no such luck" in rows["bob"].reason
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert gradebook.find_submission(NAME, "bob").needs_manual_grade
        grades = gradebook.find_submission_notebook(NAME, NAME, "bob").grades
        assert all(given.auto_score is None for given in grades)
    monkeypatch.undo()
    again = rows_of(grade(course / "submitted", release=NOTEBOOKS, jobs=1))
    assert again["bob"].status == UNUSABLE and not again["bob"].unchanged
    assert again["ann"].unchanged and again["cid"].unchanged


def dies_for_bob(job: Job) -> Outcome:
    """Stands in for `judge_job`, in a process that judges."""
    if job.submission == b"bob":
        os.kill(os.getpid(), signal.SIGKILL)
    return judge_job(job)


def test_a_judge_that_dies_takes_nobody_with_it(course, monkeypatch):
    for student in ("ann", "bob", "cid", "dora"):
        hand_in(course, student, student.encode())
    monkeypatch.setattr(classroom, "judge_job", dies_for_bob)
    rows = rows_of(grade(course / "submitted", release=NOTEBOOKS, jobs=2))
    assert rows.pop("bob").status == FAILED
    assert {row.status for row in rows.values()} == {UNUSABLE} and len(rows) == 3


# --- Killed, and run again ------------------------------------------------------------------------

RUN = """
import sys
from pathlib import Path
from autograder.gradebook.classroom import grade

if __name__ == "__main__":
    tell = lambda row, done, total: print(row.student, row.unchanged, flush=True)
    grade(Path(sys.argv[1]), release=Path(sys.argv[2]), jobs=1, progress=tell)
"""


@pytest.mark.share(0)
def test_killed_at_any_moment_and_run_again_each_is_graded_exactly_once(course):
    students = [f"s{number}" for number in range(5)]
    for student in students:
        hand_in(course, student)
    script = course / "run.py"
    script.write_text(RUN)
    command = [sys.executable, str(script), str(course / "submitted"), str(NOTEBOOKS)]
    for after in (1, 3):  # submissions that are told before the kill, and a little more
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            seen = [process.stdout.readline() for _ in range(after)]
            time.sleep(0.15)
            os.killpg(process.pid, signal.SIGKILL)
            assert all(seen)
    told: list[tuple[str, bool]] = []
    result = grade(
        course / "submitted",
        release=NOTEBOOKS,
        jobs=1,
        progress=lambda row, done, total: told.append((row.student, row.unchanged)),
    )
    assert sorted(s for s, _ in told) == students
    assert sum(unchanged for _, unchanged in told) >= 3
    assert [row.status for row in result.rows] == [UNUSABLE] * 5
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert sorted(s.student.id for s in gradebook.assignment_submissions(NAME)) == students


def test_a_changed_submission_is_graded_again_and_no_other(course):
    paths = {student: hand_in(course, student) for student in ("ann", "bob")}
    grade(course / "submitted", release=NOTEBOOKS, jobs=1)
    paths["bob"].write_bytes(b"[]")
    rows = rows_of(grade(course / "submitted", release=NOTEBOOKS, jobs=1))
    assert rows["ann"].unchanged and not rows["bob"].unchanged
    assert "no notebook" in rows["bob"].reason


def test_two_runs_do_not_meet(course):
    hand_in(course, "ann")
    with classroom._only_one(course, shared=False), pytest.raises(BlockingIOError, match="already"):
        grade(course / "submitted", release=NOTEBOOKS)


# --- What a person wrote into the gradebook stays -------------------------------------------------


def test_a_manual_grade_survives_a_regrade(course):
    path = hand_in(course, "ann")
    grade(course / "submitted", release=NOTEBOOKS, jobs=1)
    db = f"sqlite:///{course / 'gradebook.db'}"
    with Gradebook(db) as gradebook:
        gradebook.find_grade("check_softmax", NAME, NAME, "ann").manual_score = 1.5
        gradebook.db.commit()
    path.write_bytes(b"{}")
    (row,) = grade(course / "submitted", release=NOTEBOOKS, jobs=1).rows
    assert row.marks["check_softmax"].score == 1.5 and row.marks["check_softmax"].by_hand
    assert row.status != GRADED


def test_a_timestamp_makes_it_late_and_a_wrong_one_does_no_harm(course):
    for student, stamp in (("ann", "2026-01-02 03:04:05 UTC"), ("bob", "yesterday\x00")):
        path = hand_in(course, student)
        (path.parent / "timestamp.txt").write_text(stamp)
    rows = grade(course / "submitted", release=NOTEBOOKS, jobs=1).rows
    assert [row.status for row in rows] == [UNUSABLE, UNUSABLE]
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        assert gradebook.find_submission(NAME, "ann").timestamp.year == 2026
        assert gradebook.find_submission(NAME, "bob").timestamp is None
