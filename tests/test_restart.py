"""Faults at random moments: each submission is graded exactly once, with the marks it deserves."""

import errno
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from faults import (
    Bomb,
    grade_quickly,
    hand_in,
    in_a_child,
    leftovers,
    new_course,
    outcome_of,
    tiny_release,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.grader.classes import classroom
from autograder.grader.classes.classroom import GRADED, Stopped
from autograder.grader.classes.gradebook import Book, GradebookLost

SCORES = {"ann": 3.0, "bob": 0.5, "cid": 1.25}  # what `quick` gives, of 3


@pytest.fixture(scope="module")
def release(tmp_path_factory) -> Path:
    return tiny_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(scope="module")
def template(tmp_path_factory, release) -> Path:
    """A course in which nothing is graded, and whose gradebook is there: to copy."""
    course = new_course(tmp_path_factory.mktemp("template"), release, SCORES)
    with classroom.Writer(course, None, release) as writer:
        writer.register("tiny")
    return course


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, template, release) -> tuple[dict, int]:
    """What comes of an undisturbed run, and of how many calls it consists."""
    course = tmp_path_factory.mktemp("undisturbed") / "course"
    shutil.copytree(template, course)
    grade_quickly(course, release)  # what is made once is made
    shutil.rmtree(course)
    shutil.copytree(template, course)
    with Bomb() as counted:
        grade_quickly(course, release)
    outcome = outcome_of(course)
    assert {name: (times, score) for name, (times, score, *_) in outcome.items()} == {
        name: (1, score) for name, score in SCORES.items()
    }
    return outcome, counted.count


@pytest.fixture
def course(tmp_path, template) -> Path:
    return Path(shutil.copytree(template, tmp_path / "course"))


def test_the_page_and_the_notebook_tell_of_these_marks(undisturbed):
    for name, (_, score, notebook, page) in undisturbed[0].items():
        assert f"return {SCORES[name]}".encode() in notebook
        assert f"(Score: {score:g} / 3.0)".encode() in page or f"{score} / 3.0".encode() in page


# --- kill -9 --------------------------------------------------------------------------------------


def test_killed_at_random_moments_each_is_graded_exactly_once(
    tmp_path_factory, template, release, undisturbed
):
    wanted, calls = undisturbed
    ends = []

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(st.lists(st.floats(0, 1), min_size=1, max_size=3))
    def check(moments) -> None:
        course = Path(shutil.copytree(template, tmp_path_factory.mktemp("killed") / "course"))
        for moment in moments:

            def killed(after=1 + int(moment * calls)) -> None:
                with Bomb(after):
                    grade_quickly(course, release)

            ends.append(in_a_child(killed))
        in_a_child(lambda: grade_quickly(course, release))
        assert outcome_of(course) == wanted
        assert leftovers(course) == []
        shutil.rmtree(course)

    check()
    # A later run has less to do, and may be over before the moment comes.
    assert ends.count(signal.SIGKILL) > len(ends) / 2 and len(ends) >= 40


def test_killed_while_the_gradebook_is_made(tmp_path, release):
    Book(f"sqlite:///{tmp_path / 'first.db'}").close()  # what is made once is made
    with Bomb() as counted:
        Book(f"sqlite:///{tmp_path / 'whole.db'}").close()
    ends = []
    for number, after in enumerate(range(1, counted.count, counted.count // 12)):
        db = f"sqlite:///{tmp_path / f'{number}.db'}"

        def killed(db=db, after=after) -> None:
            with Bomb(after):
                Book(db).close()

        ends.append(in_a_child(killed))
        book = Book(db)
        book.update_or_create_assignment("tiny")
        book.close()
    assert ends.count(signal.SIGKILL) >= 10
    assert tables(tmp_path / f"{number}.db") == tables(tmp_path / "whole.db")


def tables(path: Path) -> list[tuple]:
    with sqlite3.connect(path) as database:
        version = database.execute("select version_num from alembic_version").fetchall()
        return database.execute("select name, sql from sqlite_master").fetchall() + version


def test_a_regrade_that_is_killed_leaves_old_marks_or_new_ones(course, release, undisturbed):
    """And never an old feedback page beside new marks."""
    grade_quickly(course, release)
    hand_in(course, release, "bob", "def softmax(scores, axis=-1):\n    return 2.5")
    before = Path(shutil.copytree(course, course.parent / "before"))
    with Bomb() as counted:
        grade_quickly(course, release)
    wanted = outcome_of(course)
    assert wanted["bob"][:2] == (1, 2.5)
    for after in sorted(Random(5).sample(range(counted.count), 12)):
        shutil.rmtree(course)
        shutil.copytree(before, course)

        def killed(after=after) -> None:
            with Bomb(after):
                grade_quickly(course, release)

        in_a_child(killed)
        times, score, _, page = outcome_of(course)["bob"]
        assert (times, score) in ((1, 0.5), (1, 2.5))
        assert page in (None, undisturbed[0]["bob"][3] if score == 0.5 else wanted["bob"][3])
        in_a_child(lambda: grade_quickly(course, release))
        assert outcome_of(course) == wanted


# --- the real thing -------------------------------------------------------------------------------

RIGHT = """def softmax(scores, axis=-1):
    top = np.max(scores, axis=axis, keepdims=True)
    shares = np.exp(scores - np.where(np.isneginf(top), 0, top))
    total = shares.sum(axis=axis, keepdims=True)
    return shares / np.where(total > 0, total, 1)"""
LEAVES = "def softmax(scores, axis=-1):\n    import os\n    os._exit(0)"
DESERVED = {"ada": 3.0, "ben": 0.0, "cleo": 3.0, "dan": 0.0, "eve": 3.0, "finn": 3.0}


@pytest.fixture
def real_course(tmp_path, release) -> Path:
    course = tmp_path / "course"
    for student, score in DESERVED.items():
        hand_in(course, release, student, RIGHT if score else LEAVES)
    shutil.copytree(release, course / "notebooks")
    return course


def start(course: Path, *options: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "autograder.cli", "grade", "submitted", "--json"]
    return subprocess.Popen(
        [*command, *options], cwd=course, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def family(pid: int) -> dict[int, bytes]:
    """A process's descendants, with their command lines."""
    found, queue = {}, [pid]
    for parent in queue:
        try:
            for thread in os.listdir(f"/proc/{parent}/task"):
                children = Path(f"/proc/{parent}/task/{thread}/children").read_text().split()
                queue += map(int, children)
        except OSError:
            continue
    for child in queue[1:]:
        try:
            found[child] = Path(f"/proc/{child}/cmdline").read_bytes()
        except OSError:
            continue
    return found


def alive(pids: dict[int, bytes]) -> list[int]:
    """Which of these are still the processes that they were."""
    found = []
    for pid, command in pids.items():
        try:
            zombie = ") Z " in Path(f"/proc/{pid}/stat").read_text()
            if not zombie and Path(f"/proc/{pid}/cmdline").read_bytes() == command:
                found.append(pid)
        except OSError:
            continue
    return found


def test_nothing_outlives_a_grader_that_is_killed_and_each_is_graded_once(real_course):
    seen: dict[int, bytes] = {}
    for after in (1, 3):  # submissions that are told before the kill
        with start(real_course, "--jobs", "2") as process:
            for _ in range(after):
                assert '"event": "submission"' in process.stdout.readline()
            seen |= family(process.pid)
            process.kill()
    assert any(b"bwrap" in command for command in seen.values())
    assert any(b"forkserver" in command for command in seen.values())
    deadline = time.monotonic() + 60
    while alive(seen) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive(seen) == []
    check_real(real_course, start(real_course, "--jobs", "2"))


def test_workers_and_warm_processes_that_are_killed_cost_nobody_anything(real_course):
    process = start(real_course, "--jobs", "2")
    killed = set()
    assert '"event": "submission"' in process.stdout.readline()
    for kind in (b"warm.py", b"forkserver"):
        victims = [pid for pid, command in family(process.pid).items() if kind in command]
        victim = max(victims)  # a warm process or its child; a process of ours that judges
        os.kill(victim, signal.SIGKILL)
        killed.add(kind)
        assert '"event"' in process.stdout.readline()
    assert killed == {b"warm.py", b"forkserver"}
    check_real(real_course, process)


def check_real(course: Path, process: subprocess.Popen) -> None:
    """A run that ends well, after which each submission is graded once, with its marks."""
    said, complained = process.communicate(timeout=300)
    assert process.returncode == 0, complained
    *_, result = map(json.loads, said.splitlines())
    scores = {row["student"]: row["score"] for row in result["submissions"]}
    assert scores == DESERVED
    assert {row["status"] for row in result["submissions"]} == {GRADED}
    outcome = outcome_of(course)
    assert {name: entry[:2] for name, entry in outcome.items()} == {
        name: (1, score) for name, score in DESERVED.items()
    }
    assert all(page for *_, page in outcome.values())
    logs = [course / "logs" / name / "tiny.log" for name in DESERVED]
    assert all(log.read_text().count("graded on") == 1 for log in logs)


PARTS = ("grader", "fork server", "judge", "warm process", "sandbox")
STORM = {f"s{number:02}": 3.0 * (number % 3 > 0) for number in range(9)}


def parts(grader: int) -> dict[str, list[int]]:
    """A run's processes that are there now, by what they are."""

    def children(pids: list[int]) -> list[int]:
        return [child for pid in pids for child in _children(pid)]

    servers = [pid for pid, command in family(grader).items() if b"forkserver" in command]
    servers = [pid for pid in servers if pid in children([grader])]
    judges = children(servers)
    warm = children(children(children(judges)))  # above it are bubblewrap's two
    return dict(zip(PARTS, ([grader], servers, judges, warm, children(warm)), strict=True))


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        texts = [Path(f"/proc/{pid}/task/{task}/children").read_text() for task in tasks]
    except OSError:
        return []
    return [int(child) for text in texts for child in text.split()]


def storm(course: Path, random: Random, kills: int, pause: float = 1.5) -> Counter:
    """Grade a course, killing random parts of the run at random moments, and start it again.

    At most `kills` are killed, each a pause of at most `pause` seconds after it was there; gives
    how many of which.
    """
    killed: Counter = Counter()
    while killed.total() < kills:
        with start(course, "--jobs", "2") as process:
            while process.poll() is None and killed.total() < kills:
                kind = random.choice(PARTS)
                while process.poll() is None and not parts(process.pid)[kind]:
                    time.sleep(0.02)
                time.sleep(random.uniform(0, pause))
                victims = parts(process.pid)[kind]
                if victims and process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.kill(random.choice(victims), signal.SIGKILL)
                        killed[kind] += 1
            process.communicate(timeout=300)
        if process.returncode == 0:
            break  # all are graded
    return killed


def test_random_parts_that_are_killed_at_random_moments_cost_nobody_anything(tmp_path, release):
    random, killed = Random(11), Counter()
    while killed.total() < 8:
        course = tmp_path / f"course{killed.total()}"
        for student, score in STORM.items():
            hand_in(course, release, student, RIGHT if score else LEAVES)
        shutil.copytree(release, course / "notebooks")
        killed += storm(course, random, 8 - killed.total())
        for _ in range(3):  # whoever was at work when two of its judges died is graded later
            with start(course, "--jobs", "2") as process:
                process.communicate(timeout=300)
            if process.returncode == 0:
                break
        outcome = outcome_of(course)
        assert {name: entry[:2] for name, entry in outcome.items()} == {
            name: (1, score) for name, score in STORM.items()
        }
        assert all(notebook and page for *_, notebook, page in outcome.values())
    assert len(killed) > 2


# --- a full disk ----------------------------------------------------------------------------------

ON_A_SMALL_DISK = """
import json, shutil, sys
from pathlib import Path
sys.path[:0] = [{tests!r}]
from faults import grade_quickly, leftovers, outcome_of
from autograder.grader.classes.classroom import Stopped

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
    except Stopped as error:
        stopped = str(error)
    ballast.unlink()
    grade_quickly(course, Path({release!r}))
    outcome = {{name: list(entry[:2]) for name, entry in outcome_of(course).items()}}
    whole = all(None not in entry for entry in outcome_of(course).values())
    told.append([stopped, outcome, whole, len(leftovers(course))])
    shutil.rmtree(course)
print(json.dumps(told))
"""


def test_a_full_disk_stops_the_run_and_the_next_one_ends_it(tmp_path, template, release):
    rooms = [*range(0, 240, 12), *range(240, 1000, 76)]  # KB that are free
    disk = tmp_path / "disk"
    disk.mkdir()
    script = ON_A_SMALL_DISK.format(
        tests=str(Path(__file__).parent), rooms=rooms, disk=str(disk), template=str(template),
        release=str(release),
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
    put, count = classroom._put, 0

    def fails(*arguments) -> None:
        nonlocal count
        count += 1
        if count == fail_at:
            raise OSError(number, os.strerror(number))
        put(*arguments)

    monkeypatch.setattr(classroom, "_put", fails)
    for fail_at in range(1, 7):  # each run comes further
        count = 0
        with pytest.raises(Stopped, match="run this again"):
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
    with pytest.raises(Stopped, match="another program is writing to it"):
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
    with pytest.raises(Stopped, match="locked"):
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

    with pytest.raises(Stopped, match="removed or replaced"):
        grade_quickly(course, release, progress=remove)
    grade_quickly(course, release)
    assert outcome_of(course) == undisturbed[0]


def test_a_damaged_gradebook_is_left_as_it_is(course, release):
    damaged = b"not a database" * 1000
    (course / "gradebook.db").write_bytes(damaged)
    with pytest.raises(Stopped, match="cannot be used"):
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
    with pytest.raises(Stopped):
        grade_quickly(course, release, progress=_stop)
    for path in course.rglob("*"):
        when = real() + random.uniform(-1e9, 1e9)
        os.utime(path, (when, when))
    again = grade_quickly(course, release)
    assert [row.unchanged for row in again.rows].count(True) == 1
    assert outcome_of(course) == undisturbed[0]


def _stop(row, done, total) -> None:
    raise GradebookLost("the test has had enough")
