"""Grading on a Dask cluster: real schedulers and workers, over TCP on the loopback."""

import json
import pickle
import subprocess
import sys
import time
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import pytest
from faults import DESERVED, RIGHT, SECRET, alive, family, outcome_of, quick, stuck
from servers import Cluster

from autograder.gradebook import progress, schedulers, submissions
from autograder.gradebook.dask_cluster import ClusterLost, DaskCluster
from autograder.gradebook.local_pool import LocalPool
from autograder.gradebook.rows import Row
from autograder.gradebook.schedulers import JudgeDied
from autograder.judge.job import Job, Options, OtherVersion, judge_job
from autograder.judge.judgement import GRADED
from autograder.sandbox.limits import Limits


@pytest.mark.share(0)
def test_workers_come_and_go_and_each_submission_is_graded_once(real_course, tmp_path):
    with Cluster(tmp_path) as dask:
        first = dask.add_worker()
        command = [sys.executable, "-m", "autograder.cli", "grade", "submitted", "--json"]
        with subprocess.Popen(
            [*command, "--scheduler", dask.address],
            cwd=real_course, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        ) as grader:  # fmt: skip
            assert '"event": "submission"' in grader.stdout.readline()
            sandboxes = family(first.pid)
            assert any(b"warm.py" in command for command in sandboxes.values())
            assert not any(b"warm.py" in command for command in family(grader.pid).values())
            first.kill()  # while it is at the second
            dask.add_worker(threads=2)
            said, complained = grader.communicate(timeout=300)
        assert grader.returncode == 0, complained
        deadline = time.monotonic() + 60
        while alive(sandboxes) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert alive(sandboxes) == []
    result = json.loads(said.splitlines()[-1])
    assert {row["student"]: row["score"] for row in result["submissions"]} == DESERVED
    assert {row["status"] for row in result["submissions"]} == {GRADED}
    outcome = outcome_of(real_course)
    assert {name: entry[:2] for name, entry in outcome.items()} == {
        name: (1, score) for name, score in DESERVED.items()
    }


@pytest.mark.share(0)
def test_nothing_secret_and_no_name_travels(real_course, release):
    tasks, _ = submissions.find_tasks(real_course / "submitted", release, Options())
    task = next(task for task in tasks if task.student == "cleo")
    job = submissions.job_for(task, SECRET.encode(), Options(), elsewhere=True)
    sent = pickle.dumps(job)
    for hidden in (SECRET.encode(), b"cleo", str(real_course).encode(), b"gradebook"):
        assert hidden not in sent
    assert set(job.seeds) == {"softmax"} and len(job.seeds["softmax"]) == 32
    assert type(job.submission) is bytes and RIGHT.splitlines()[1].strip().encode() in sent


@pytest.mark.share(0)
def test_a_worker_with_another_version_of_the_course_judges_nothing(real_course, release):
    tasks, _ = submissions.find_tasks(real_course / "submitted", release, Options())
    job = submissions.job_for(tasks[0], SECRET.encode(), Options(), elsewhere=True)
    other = Job(**{**vars(job), "version": "0" * 64})
    with pytest.raises(OtherVersion, match="another version"):
        judge_job(other)


@pytest.mark.share(0)
def test_a_cluster_that_is_not_there_is_told(tmp_path):
    with pytest.raises(ClusterLost, match="no Dask scheduler"):
        next(DaskCluster("tcp://127.0.0.1:1", within=0.5).run(iter(()), quick))
    with Cluster(tmp_path) as dask, pytest.raises(ClusterLost, match="no workers"):
        next(DaskCluster(dask.address, within=0.5).run(iter(()), quick))


# --- second tries ---------------------------------------------------------------------------------


@pytest.mark.share(0)
def test_a_job_whose_process_dies_is_tried_twice_and_the_others_first():
    todo = schedulers.JobQueue(iter([("a", 1), ("b", 2)]))
    first = todo.take()
    assert not todo.complete_or_retry(first, JudgeDied())
    second = todo.take()
    assert second[0] == "b" and todo.complete_or_retry(second, "an outcome")
    last = todo.take()
    assert last == ("a", 1, 2) and todo.complete_or_retry(last, JudgeDied()) and todo.is_empty


@pytest.mark.share(0)
def test_a_machine_that_cannot_isolate_stops_everything_at_the_second_try():
    todo = schedulers.JobQueue(iter([("a", 1), ("b", 2)]))
    assert not todo.complete_or_retry(todo.take(), schedulers.IsolationError())
    again = todo.take()
    assert again == ("a", 1, 2)
    with pytest.raises(schedulers.IsolationError):
        todo.complete_or_retry(again, schedulers.IsolationError())


@pytest.mark.share(0)
def test_an_iterator_that_has_nothing_just_now_is_tried_again():
    todo = schedulers.JobQueue(iter([None, ("a", 1), None, ("b", 2)]))
    assert todo.take() is None and not todo.is_empty
    assert todo.take() == ("a", 1, 1) and not todo.is_empty
    assert todo.take() == ("b", 2, 1)
    assert todo.take() is None and todo.is_empty


def test_a_process_gets_the_inputs_that_it_has_had_or_else_those_of_no_other():
    @dataclass
    class Work:
        seeds: str

    todo = schedulers.JobQueue((word, Work(word[0])) for word in ("a1", "b1", "a2", "b2", "c1"))
    held = [("b", "a"), ("a", "b"), (None, "ab"), ("b", "a"), ("c", "b")]  # its own, all others'
    assert [todo.take(own, others)[0] for own, others in held] == ["b1", "a1", "c1", "b2", "a2"]
    assert todo.take() is None and todo.is_empty


@pytest.mark.share(0)
def test_a_judge_that_never_comes_back_is_cut_off_and_costs_the_others_nothing():
    assert list(LocalPool(1).run(iter([("a", "right")]), stuck)) == [("a", "RIGHT")]
    jobs = [(name, name) for name in ("busy", "right", "asleep", "stopped", "left")]
    told = dict(LocalPool(2, patience=4.0).run(iter(jobs), stuck))
    assert told.keys() == dict(jobs).keys()
    assert (told["right"], told["left"]) == ("RIGHT", "LEFT")
    for name in ("busy", "asleep", "stopped"):
        assert isinstance(told[name], JudgeDied) and "without an answer" in str(told[name])


@pytest.mark.share(0)
@pytest.mark.parametrize("nanny", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_a_judge_that_never_comes_back_costs_neither_a_dask_worker_nor_the_others(
    tmp_path, monkeypatch, nanny
):
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))  # where `stuck` is
    with Cluster(tmp_path) as dask:
        dask.add_worker(nanny=nanny)
        jobs = iter([(name, name) for name in ("right", "asleep", "left")])
        told = dict(
            DaskCluster(dask.address, patience=15.0).run(jobs, stuck)
        )  # a process starts in it
        assert dask.workers[0].poll() is None
    assert (told.pop("right"), told.pop("left")) == ("RIGHT", "LEFT")
    assert isinstance(told.pop("asleep"), JudgeDied) and not told


@pytest.mark.share(0)
def test_a_judge_has_more_time_than_its_submission():
    limits = Limits()
    assert limits.total_seconds + limits.start_seconds < schedulers.PATIENCE


# --- progress -------------------------------------------------------------------------------------


@pytest.mark.share(0)
def test_pace_and_time_left_count_what_was_judged_in_this_run():
    now = 0.0
    counted = progress.GradingRate(lambda: now)
    assert counted.step(Row("a", "x", GRADED, unchanged=True), 1, 10) == (None, None)
    now = 30.0
    assert counted.step(Row("b", "x", GRADED), 2, 10) == (2.0, 240.0)
    now = 40.0
    assert counted.step(Row("c", "x", GRADED), 3, 10) == (3.0, 140.0)
    assert progress.in_words(3.0, 140.4) == "3 a minute, 2:20 left"
    assert progress.in_words(37.5, 3725) == "37.5 a minute, 1:02:05 left"


@pytest.mark.share(0)
def test_lines_are_json_one_a_submission():
    told = StringIO()
    with progress.lines(told) as step:
        step(Row("ann", "x", GRADED, score=1.5, points=3.0), 1, 2)
        step(Row('b"\n', "x", "failed"), 2, 2)
    first, second = map(json.loads, told.getvalue().splitlines())
    assert (first["event"], first["done"], first["total"]) == ("submission", 1, 2)
    assert (first["score"], first["seconds_left"] >= 0) == (1.5, True)
    assert (second["student"], second["status"], second["seconds_left"]) == ('b"\n', "failed", 0)
