"""On a busy machine a sandbox may start late; it is waited for as long as it gets on."""

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sandboxes import SMALL, value_of

from autograder.sandbox import launcher, start_up
from autograder.sandbox.clock import BEHIND, Clock, usage_of
from autograder.sandbox.host import Sandbox
from autograder.sandbox.start_up import Waiting, work_of


@pytest.fixture
def busy() -> Iterator[int]:
    """A process that computes without end."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process.pid
        process.kill()


def stopped(pid: int) -> None:
    """Stop a process, and wait until it does nothing any more."""
    os.kill(pid, signal.SIGSTOP)
    os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)


def test_a_process_that_works_is_waited_for_and_one_that_does_not_is_not(busy):
    patience = Waiting(3600, lambda: [busy])
    before = patience.work
    while work_of([busy]) == before:
        pass
    assert patience.again() and patience.work > before
    stopped(busy)
    patience.again()  # it may have worked until it was stopped
    assert not patience.again()


def test_not_even_work_is_waited_for_without_end(busy):
    patience = Waiting(0.0, lambda: [busy])
    before = patience.work
    while work_of([busy]) == before:
        pass
    assert not patience.again()


def test_a_process_that_is_gone_does_nothing():
    assert work_of([2**22 + 1]) == (0, 0)


@pytest.mark.needs_torch
def test_a_sandbox_that_starts_late_runs_all_the_same(monkeypatch):
    """The warm process imports torch, which takes more than this second."""
    monkeypatch.setattr(start_up, "MOST", 10_000)
    launcher.close_warm_processes()
    limits = dataclasses.replace(SMALL, start_seconds=0.5)
    with Sandbox(limits=limits) as own:
        assert value_of(own, "1 + 1") == "2"


@pytest.mark.needs_torch
def test_a_late_start_is_no_time_of_the_submission(monkeypatch):
    monkeypatch.setattr(start_up, "MOST", 10_000)
    launcher.close_warm_processes()
    with Sandbox(limits=SMALL) as own:
        own.wait_until_up()
        assert own.used == 0


class Told:
    """A process whose usage is made up: seconds by the clock, of computing, and of waiting."""

    def __init__(self):
        self.usage = (0.0, 0.0, 0.0)

    def __call__(self):
        return self.usage


def test_time_that_neighbours_take_is_not_charged():
    told = Told()
    patience = Clock(60.0, told)
    told.usage = (1000.0, 25.0, 975.0)  # 25 s of computing, among forty others
    assert patience.again() and patience.used == 25.0


def test_computing_and_sleeping_are_charged():
    for usage in ((61.0, 61.0, 0.0), (61.0, 0.0, 0.0), (40.0, 61.0, 300.0)):
        told = Told()
        patience = Clock(60.0, told)
        told.usage = usage  # of which the last is that of threads that wait for each other
        assert not patience.again() and patience.used == 61.0


def test_an_end_stands_behind_even_where_all_time_is_the_neighbours():
    told = Told()
    patience = Clock(60.0, told)
    told.usage = (60.0 * BEHIND, 1.0, 60.0 * BEHIND)
    assert patience.used == 0 and not patience.again()


def test_what_has_ended_gives_no_time_back():
    told = Told()
    patience = Clock(60.0, told)
    for told.usage in ((10.0, 10.0, 5.0), (20.0, 2.0, 0.0)):
        patience.again()
    assert patience.used == 20.0


def test_waiting_for_a_core_is_told_from_sleeping(busy):
    """Of two that want the same core, each waits while the other computes."""
    os.sched_setaffinity(busy, {min(os.sched_getaffinity(0))})
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        os.sched_setaffinity(other.pid, {min(os.sched_getaffinity(0))})
        while min(usage_of([busy])[1:]) < 0.2:
            pass
        other.kill()
