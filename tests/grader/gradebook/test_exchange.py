"""nbgrader's exchange, there and back: a student fetches and submits; the page comes back."""

import os
import subprocess
import sys

import pytest
from terms import NAME, ROOT, answered, release, run, with_stand_in

from autograder.notebook.settings import configure

COURSE = "attention"


@pytest.fixture
def exchange(tmp_path):
    """Calls nbgrader in a folder of `tmp_path`, and returns what it says."""
    (tmp_path / "exchange").mkdir()
    (tmp_path / "exchange").chmod(0o777)
    options = [f"--Exchange.root={tmp_path / 'exchange'}", f"--CourseDirectory.course_id={COURSE}"]
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JUPYTER")}
    settings = kept | {"JUPYTER_CONFIG_DIR": str(tmp_path / "none"), "PYTHONPATH": str(ROOT)}

    def call(folder: str, command: str, *more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", command, NAME, *options, *more],
            cwd=tmp_path / folder, env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stderr

    return call


@pytest.mark.share(0)
def test_a_notebook_comes_by_the_exchange_and_its_page_goes_back(exchange, tmp_path, monkeypatch):
    course, student = tmp_path / "course", tmp_path / "student"
    release(course)
    student.mkdir()
    (course / "nbgrader_config.py").write_text(
        "from pathlib import Path\n"
        f"from {configure.__module__} import configure\n"
        "configure(get_config(), Path(__file__).resolve().parent)\n"
    )
    exchange("course", "release_assignment")
    exchange("student", "fetch_assignment")
    (student / NAME / f"{NAME}.ipynb").write_bytes(answered(rest="return 1"))
    exchange("student", "submit")
    exchange("course", "collect")
    with_stand_in(monkeypatch)
    ((who, row),) = run(course).items()
    assert row.total == 5.0
    assert (course / "submitted" / who / NAME / "timestamp.txt").is_file()
    exchange("course", "release_feedback")
    exchange("student", "fetch_feedback")
    (page,) = (student / NAME / "feedback").rglob("*.html")
    assert "Score: 5" in page.read_text(encoding="utf-8")


@pytest.mark.share(0)
def test_who_did_not_use_the_exchange_can_be_left_out(exchange, tmp_path, monkeypatch):
    """The page says so, because nbgrader stops at a page without a time."""
    course = tmp_path / "course"
    release(course)
    for name in ("ada", "ben"):
        place = course / "submitted" / name / NAME / f"{NAME}.ipynb"
        place.parent.mkdir(parents=True)
        place.write_bytes(answered(rest="return 1"))
    with_stand_in(monkeypatch)
    run(course)
    with pytest.raises(AssertionError, match=r"timestamp\.txt"):
        exchange("course", "release_feedback")
    exchange("course", "release_feedback", "--CourseDirectory.student_id_exclude=ada,ben")
