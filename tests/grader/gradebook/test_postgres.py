"""A gradebook on a PostgreSQL server, with several graders at once."""

import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from faults import Bomb, fork, grade_quickly, in_a_child, new_course, outcome_of, tiny_release
from nbgrader.api import Gradebook
from servers import postgres
from sqlalchemy import create_engine, text

from autograder.gradebook import classroom
from autograder.gradebook.classroom import GradingStopped
from autograder.gradebook.gradebook import Book
from autograder.gradebook.rows import read_class
from autograder.report.report import report

ROOT = Path(__file__).resolve().parents[3]
SCORES = {f"s{number:02}": number / 4 for number in range(12)}


@pytest.fixture(scope="module")
def server():
    with postgres() as url:
        yield url


@pytest.fixture
def db(server) -> str:
    """An empty database on the server."""
    name = f"course{time.monotonic_ns()}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    return tiny_release(tmp_path_factory.mktemp("release"))


@pytest.fixture
def course(tmp_path, release) -> Path:
    return new_course(tmp_path / "course", release, SCORES)


def grader(
    course: Path, release: Path, db: str, name: str, bomb: int | None = None, together: int = 1
):
    """A grader of its own: a fork that tells in a file whom it graded.

    After a submission it waits until as many graders as are `together` have graded one.
    """

    def act() -> None:
        random = Random(name)

        def wait(*_: object) -> None:
            (course / f"{name}.begun").touch()
            patience = time.monotonic() + 60
            while len([*course.glob("*.begun")]) < together and time.monotonic() < patience:
                time.sleep(0.01)
            time.sleep(random.uniform(0, 0.05))

        with Bomb(bomb):
            result = grade_quickly(course, release, db=db, progress=wait)
        ours = [row.student for row in result.rows if not row.unchanged]
        (course / f"{name}.json").write_text(json.dumps(ours))

    return fork(act)


def once(course: Path, db: str) -> bool:
    outcome = outcome_of(course, db)
    assert all(page and notebook for *_, notebook, page in outcome.values())
    return {name: entry[:2] for name, entry in outcome.items()} == {
        name: (1, score) for name, score in SCORES.items()
    }


@pytest.mark.share(0)
def test_several_graders_at_once_grade_each_submission_exactly_once(course, release, db):
    names = ("one", "two", "three")
    for child in [grader(course, release, db, name, together=2) for name in names]:
        assert child.end() == 0
    ours = [json.loads((course / f"{name}.json").read_text()) for name in names]
    assert sorted(sum(ours, [])) == sorted(SCORES)
    assert once(course, db)
    assert sum(map(bool, ours)) >= 2  # they did share the work


@pytest.mark.share(0)
def test_what_a_killed_grader_had_claimed_is_graded_by_the_others(course, release, db):
    with Bomb() as counted:
        grade_quickly(course, release, db=db, force=True)
    engine = create_engine(db)
    ends = []
    for part in (0.2, 0.5, 0.8):
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM autograder_graded"))
        killed = grader(course, release, db, "killed", int(part * counted.count / 2))
        other = grader(course, release, db, "other")
        ends.append(killed.end())
        assert other.end() == 0
        assert once(course, db)
    engine.dispose()
    assert 9 in ends


@pytest.mark.share(0)
def test_killed_and_run_again_each_is_graded_exactly_once(course, release, db):
    with Bomb() as counted:
        Book(db).close()
        grade_quickly(course, release, db=db)
    wanted = outcome_of(course, db)
    engine = create_engine(db)
    for after in Random(3).sample(range(counted.count), 6):
        with engine.begin() as connection:
            for table in ("autograder_graded", "grade", "comment", "submitted_notebook"):
                connection.execute(text(f"DELETE FROM {table}"))
            connection.execute(text("DELETE FROM submitted_assignment"))

        def killed(after=after) -> None:
            with Bomb(after):
                grade_quickly(course, release, db=db)

        in_a_child(killed)
        in_a_child(lambda: grade_quickly(course, release, db=db))
        assert outcome_of(course, db) == wanted and once(course, db)
    engine.dispose()


@pytest.mark.share(0)
def test_a_connection_that_is_lost_stops_the_run_and_the_next_one_ends_it(course, release, db):
    engine = create_engine(db)

    def cut(row, done, total) -> None:
        if done == 3:
            with engine.begin() as connection:
                connection.execute(
                    text(
                        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
                    )
                )

    with pytest.raises(GradingStopped, match="cannot be used"):
        grade_quickly(course, release, db=db, progress=cut)
    engine.dispose()
    again = grade_quickly(course, release, db=db)
    assert sum(row.unchanged for row in again.rows) == 3
    assert once(course, db)


@pytest.mark.share(0)
def test_a_server_that_is_not_there_is_told_in_one_line(tmp_path, course):
    command = [sys.executable, "-m", "autograder.cli", "grade", "submitted", "--db"]
    done = subprocess.run(
        [*command, f"postgresql://grader:secret@/none?host={tmp_path}"],
        cwd=course, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "cannot be used" in line and "secret" not in line


@pytest.mark.share(0)
def test_nbgrader_and_the_report_read_the_same_marks(course, release, db, monkeypatch):
    grade_quickly(course, release, db=db)
    rows = {row.student: row.score for row in read_class(course, db)}
    assert rows == SCORES
    assert "s07" in report(course, course / "report.html", db).read_text()
    (course / "nbgrader_config.py").write_text((ROOT / "nbgrader_config.py").read_text())
    monkeypatch.setenv("AUTOGRADER_DB", db)
    nbgrader = [sys.executable, "-m", "nbgrader"]
    for command in (["export"], ["db", "student", "list"], ["db", "upgrade"]):
        done = subprocess.run(
            [*nbgrader, *command], cwd=course, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr[-2000:]
    lines = (course / "grades.csv").read_text().splitlines()
    assert len(lines) == 1 + len(SCORES) and any(",s07," in line for line in lines)
    assert not (course / "gradebook.db").exists()
    with Gradebook(db) as gradebook:  # what formgrader asks for
        assert {s["student"]: s["score"] for s in gradebook.submission_dicts("tiny")} == SCORES
        assert gradebook.average_assignment_score("tiny") == pytest.approx(
            sum(SCORES.values()) / 12
        )


@pytest.mark.share(0)
def test_one_grader_at_a_time_where_the_gradebook_is_a_file(course, release):
    with classroom._only_one(course, shared=False), pytest.raises(BlockingIOError):
        grade_quickly(course, release)
