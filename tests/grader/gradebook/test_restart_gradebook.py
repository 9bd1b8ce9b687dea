"""A full disk, a gradebook or files that are locked, lost or damaged, a clock that jumps."""

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest
from faults import SCORES, grade_quickly, outcome_of

from autograder.gradebook import writer
from autograder.gradebook.classroom import GradingStopped
from autograder.gradebook.gradebook import Book, GradebookLost

# --- a full disk ----------------------------------------------------------------------------------

ON_A_SMALL_DISK = """
import json, shutil, sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from faults import grade_quickly, leftovers, outcome_of
from autograder.gradebook.classroom import GradingStopped

told = []
for room in {rooms}:
    course = Path({disk!r}) / "course"
    shutil.copytree({template!r}, course)
    ballast = Path({disk!r}) / "ballast"
    free = shutil.disk_usage(course).free - room * 1024
    ballast.write_bytes(bytes(max(0, free)))
    try:
        grade_quickly(course, Path({release!r}))
        stopped = None
    except GradingStopped as error:
        stopped = str(error)
    ballast.unlink()
    grade_quickly(course, Path({release!r}))
    outcome = {{name: list(entry[:2]) for name, entry in outcome_of(course).items()}}
    whole = all(None not in entry for entry in outcome_of(course).values())
    told.append([stopped, outcome, whole, len(leftovers(course))])
    shutil.rmtree(course)
print(json.dumps(told))
"""


@pytest.mark.share(0)
def test_a_full_disk_stops_the_run_and_the_next_one_ends_it(tmp_path, template, release):
    rooms = [*range(0, 240, 12), *range(240, 1000, 76)]  # KB that are free
    disk = tmp_path / "disk"
    disk.mkdir()
    script = ON_A_SMALL_DISK.format(
        tests=str(Path(__file__).resolve().parents[2]), rooms=rooms, disk=str(disk),
        template=str(template), release=str(release),
    )  # fmt: skip
    command = ["bwrap", "--dev-bind", "/", "/", "--size", str(4 << 20), "--tmpfs", str(disk)]
    done = subprocess.run(
        [*command, sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.splitlines()[-1])
    for stopped, outcome, whole, left in told:
        assert outcome == {name: [1, score] for name, score in SCORES.items()}
        assert whole and left == 0
        assert stopped is None or "What is graded stays graded" in stopped
    reasons = [stopped for stopped, *_ in told if stopped]
    assert len(reasons) >= 10 and told[-1][0] is None
    assert any("database or disk is full" in why or "disk I/O" in why for why in reasons)
    assert any("No space left" in why for why in reasons)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_every_write_may_be_the_one_that_fails(course, release, undisturbed, monkeypatch, number):
    put, count = writer.put, 0

    def fails(*arguments) -> None:
        nonlocal count
        count += 1
        if count == fail_at:
            raise OSError(number, os.strerror(number))
        put(*arguments)

    monkeypatch.setattr(writer, "put", fails)
    for fail_at in range(1, 7):  # each run comes further
        count = 0
        with pytest.raises(GradingStopped, match="run this again"):
            grade_quickly(course, release, force=fail_at > 3)
    monkeypatch.undo()
    grade_quickly(course, release)
    assert {name: entry[1:] for name, entry in outcome_of(course).items()} == {
        name: entry[1:] for name, entry in undisturbed[0].items()
    }


# --- a gradebook that is locked, lost or damaged --------------------------------------------------


def lock(course: Path) -> sqlite3.Connection:
    other = sqlite3.connect(course / "gradebook.db", check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")
    return other


def test_a_gradebook_that_stays_locked_stops_the_run(course, release, undisturbed):
    other = lock(course)
    db = f"sqlite:///{course / 'gradebook.db'}?timeout=0.3"
    with pytest.raises(GradingStopped, match="another program is writing to it"):
        grade_quickly(course, release, db=db)
    other.close()
    grade_quickly(course, release, db=db)
    assert outcome_of(course) == undisturbed[0]


def test_one_that_is_locked_between_two_submissions_stops_it_too(course, release, undisturbed):
    held = []

    def hold(row, done, total) -> None:
        if not held:
            held.append(lock(course))

    db = f"sqlite:///{course / 'gradebook.db'}?timeout=0.3"
    with pytest.raises(GradingStopped, match="locked"):
        grade_quickly(course, release, db=db, progress=hold)
    held[0].close()
    again = grade_quickly(course, release)
    assert [row.unchanged for row in again.rows].count(True) == 1
    assert outcome_of(course) == undisturbed[0]


def test_one_that_is_locked_for_a_moment_is_waited_for(course, release, undisturbed):
    other = lock(course)
    threading.Timer(1.0, other.close).start()
    grade_quickly(course, release)
    assert outcome_of(course) == undisturbed[0]


def test_a_gradebook_that_is_removed_between_runs_is_made_again(course, release, undisturbed):
    grade_quickly(course, release)
    (course / "gradebook.db").unlink()
    again = grade_quickly(course, release)
    assert not any(row.unchanged for row in again.rows)
    assert outcome_of(course) == undisturbed[0]


def test_a_backup_that_is_put_back_lacks_what_came_after_it(course, release, undisturbed):
    bob = course / "submitted" / "bob"
    bob.rename(course / "bob")
    grade_quickly(course, release)
    shutil.copy(course / "gradebook.db", course / "backup.db")
    (course / "bob").rename(bob)
    grade_quickly(course, release)
    shutil.copy(course / "backup.db", course / "gradebook.db")
    again = {row.student: row.unchanged for row in grade_quickly(course, release).rows}
    assert again == {"ann": True, "bob": False, "cid": True}
    assert outcome_of(course) == undisturbed[0]


def test_one_that_is_removed_while_we_grade_stops_the_run(course, release, undisturbed):
    def remove(row, done, total) -> None:
        (course / "gradebook.db").unlink(missing_ok=True)

    with pytest.raises(GradingStopped, match="removed or replaced"):
        grade_quickly(course, release, progress=remove)
    grade_quickly(course, release)
    assert outcome_of(course) == undisturbed[0]


def test_a_damaged_gradebook_is_left_as_it_is(course, release):
    damaged = b"not a database" * 1000
    (course / "gradebook.db").write_bytes(damaged)
    with pytest.raises(GradingStopped, match="cannot be used"):
        grade_quickly(course, release)
    assert (course / "gradebook.db").read_bytes() == damaged


def test_an_open_gradebook_notices_that_its_file_is_another(tmp_path):
    book = Book(f"sqlite:///{tmp_path / 'a.db'}")
    (tmp_path / "a.db").rename(tmp_path / "b.db")
    Book(f"sqlite:///{tmp_path / 'a.db'}").close()
    with pytest.raises(GradebookLost, match="replaced"), book.transaction():
        pass
    book.close()


# --- files that are lost --------------------------------------------------------------------------


def test_a_missing_feedback_page_is_made_again_without_judging(
    course, release, undisturbed, monkeypatch
):
    grade_quickly(course, release)
    shutil.rmtree(course / "feedback" / "ann")
    (course / "feedback" / "bob" / "tiny" / "tiny.html").write_bytes(b"")
    again = grade_quickly(course, release)
    assert all(row.unchanged for row in again.rows)
    assert outcome_of(course) == undisturbed[0]


def test_a_lost_or_changed_notebook_is_judged_again(course, release, undisturbed):
    grade_quickly(course, release)
    (course / "autograded" / "ann" / "tiny" / "tiny.ipynb").unlink()
    changed = course / "autograded" / "bob" / "tiny" / "tiny.ipynb"
    changed.chmod(0o600)
    changed.write_bytes(changed.read_bytes()[:500])  # as after a power cut
    again = {row.student: row.unchanged for row in grade_quickly(course, release).rows}
    assert again == {"ann": False, "bob": False, "cid": True}
    after = outcome_of(course)
    assert {name: entry[0] for name, entry in after.items()} == {"ann": 2, "bob": 2, "cid": 1}
    assert {name: entry[1:] for name, entry in after.items()} == {
        name: entry[1:] for name, entry in undisturbed[0].items()
    }


# --- a clock that jumps ---------------------------------------------------------------------------


def test_a_clock_that_jumps_changes_nothing(course, release, undisturbed, monkeypatch):
    random, real = Random(7), time.time
    monkeypatch.setattr(time, "time", lambda: real() + random.uniform(-1e9, 1e9))
    monkeypatch.setattr(time, "time_ns", lambda: int(1e9 * time.time()))
    monkeypatch.setattr(time, "gmtime", lambda *_: time.struct_time((1970, 1, 1) + (0,) * 6))
    with pytest.raises(GradingStopped):
        grade_quickly(course, release, progress=_stop)
    for path in course.rglob("*"):
        when = real() + random.uniform(-1e9, 1e9)
        os.utime(path, (when, when))
    again = grade_quickly(course, release)
    assert [row.unchanged for row in again.rows].count(True) == 1
    assert outcome_of(course) == undisturbed[0]


def _stop(row, done, total) -> None:
    raise GradebookLost("the test has had enough")
