"""On a busy machine a sandbox may start late; it is waited for as long as it gets on."""

import dataclasses
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from sandboxes import SMALL, value_of

from autograder.grader.sandbox import launcher, waiting
from autograder.grader.sandbox.host import Sandbox
from autograder.grader.sandbox.limits import Limits
from autograder.grader.sandbox.waiting import Waiting, work_of


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


def test_a_sandbox_that_starts_late_runs_all_the_same(monkeypatch):
    """The warm process imports torch, which takes more than this second."""
    monkeypatch.setattr(waiting, "MOST", 10_000)
    launcher.close_warm_processes()
    limits = dataclasses.replace(SMALL, start_seconds=0.5)
    with Sandbox(limits=limits) as own:
        assert value_of(own, "1 + 1") == "2"


def test_a_late_start_does_not_shorten_a_submissions_time(monkeypatch):
    from autograder.grader import runner

    clock = [0.0]
    monkeypatch.setattr(runner.time, "monotonic", lambda: clock[0])

    class Late:
        def __init__(self, *_):
            self.waits = [40.0, 0.0]

        def wait_until_up(self):
            clock[0] += self.waits.pop(0)

        def execute(self, source, seconds, module):
            return [{"output_type": "stream", "name": "stdout", "text": str(seconds)}]

        def close(self): ...

    monkeypatch.setattr(runner, "Sandbox", Late)
    limits = Limits(total_seconds=30.0, cell_seconds=60.0)
    with runner.Runner("bwrap", limits, "cpu", "__main__", []) as one:
        (output,), fate = one.execute("1")
    assert fate is None and output["text"] == "30.0"
