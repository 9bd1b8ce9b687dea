"""Parts of a run are killed, as the kernel or an administrator would: nobody loses anything."""

import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from faults import DESERVED, LEAVES, RIGHT, alive, family, hand_in, outcome_of, start

from autograder.judge.judgement import GRADED

pytestmark = pytest.mark.share(0)  # takes long


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

    commands = family(grader)
    own = [pid for pid in children([grader]) if pid in commands]
    servers = [pid for pid in own if b"forkserver" in commands[pid]]
    judges = children(servers)
    # Above a warm process are bubblewrap's two. The grader starts it; a judge whose own has died,
    # another.
    walls = [pid for pid in (*own, *children(judges)) if b"/bwrap\0" in commands.get(pid, b"")]
    warm = children(children(walls))
    return dict(zip(PARTS, ([grader], servers, judges, warm, children(warm)), strict=True))


def _children(pid: int) -> list[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
        texts = [Path(f"/proc/{pid}/task/{task}/children").read_text() for task in tasks]
    except OSError:
        return []
    return [int(child) for text in texts for child in text.split()]


def storm(course: Path, random: Random, kills: int) -> Counter:
    """Grade a course, killing random parts of the run at random moments, and start it again.

    At most `kills` are killed, each a pause of at most 1.5 seconds after it was there; gives
    how many of which.
    """
    killed: Counter = Counter()
    while killed.total() < kills:
        with start(course, "--jobs", "2") as process:
            while process.poll() is None and killed.total() < kills:
                kind = random.choice(PARTS)
                while process.poll() is None and not parts(process.pid)[kind]:
                    time.sleep(0.02)
                time.sleep(random.uniform(0, 1.5))
                victims = parts(process.pid)[kind]
                if victims and process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.kill(random.choice(victims), signal.SIGKILL)
                        killed[kind] += 1
            process.communicate(timeout=300)
        if process.returncode == 0:
            break  # all are graded
    return killed


NIGHTLY = [pytest.param(seed, 8, marks=pytest.mark.nightly) for seed in (12, 13, 14)]


@pytest.mark.parametrize(("seed", "kills"), [(11, 4), *NIGHTLY])
def test_random_parts_that_are_killed_at_random_moments_cost_nobody_anything(
    tmp_path, release, seed, kills
):
    random, killed = Random(seed), Counter()
    while killed.total() < kills:
        course = tmp_path / f"course{killed.total()}"
        for student, score in STORM.items():
            hand_in(course, release, student, RIGHT if score else LEAVES)
        shutil.copytree(release, course / "notebooks")
        killed += storm(course, random, kills - killed.total())
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
    assert len(killed) > (2 if kills > 4 else 1)
