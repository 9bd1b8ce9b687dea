"""A process of this machine that judges one submission after another, and dies with the grader.

TRUST BOUNDARY. See `judge.job`: it runs our own code, and may be killed at any time.
"""

import ctypes
import gc
import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import parent_process
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING

from autograder.gradebook.schedulers import Judge, JudgeDied, Task
from autograder.judge.allowance import SECONDS, LimitExceeded
from autograder.judge.job import Job, Outcome, unusable
from autograder.sandbox.bubblewrap import IsolationError
from autograder.sandbox.launcher import LentProcess, borrow, warm_process
from autograder.student.engine.verdict import TIMEOUT

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, ForkServerProcess

SHARING = 4  # judging processes that share a warm process, which watches all their sandboxes
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG


@dataclass
class JudgingProcess:
    """One of them, and its current job."""

    process: "ForkServerProcess"
    pipe: Connection
    task: Task | None = None
    deadline: float = 0.0
    seeds: object = None  # of its last job: what the references give on them is known there


def start(
    judge: Judge, isolation: str | None, context: "ForkServerContext", number: int
) -> JudgingProcess:
    """Start a judging process, and lend it a warm process that it shares with some others."""
    lent = None
    if isolation is not None:
        with suppress(IsolationError):  # the process will report that itself
            lent = warm_process(isolation, number=number // SHARING)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, judge, lent), daemon=False)
    process.start()
    theirs.close()
    return JudgingProcess(process, ours)


def answer(worker: JudgingProcess, ready: bool, job: Job, patience: float) -> Outcome | Exception:
    """What a judging process answers to a job; one that has died, or is killed, is dismissed."""
    try:
        if not ready:
            worker.process.kill()
            raise TimeoutError
        return worker.pipe.recv()
    except (EOFError, OSError) as error:
        dismiss(worker)
        if worker.process.exitcode == -signal.SIGXCPU:  # of its own limit: it would die of it again
            limit = LimitExceeded(TIMEOUT, f"{SECONDS:g} s of computing time")
            return unusable(job, f"Judging it {limit}.")
        code = f"status {worker.process.exitcode}"
        if isinstance(error, TimeoutError):
            code = f"killed after {patience:g} s without an answer"
        return JudgeDied(f"the judging process died twice ({code})")


def dismiss(worker: JudgingProcess) -> None:
    worker.pipe.close()
    worker.process.join(5)
    if worker.process.exitcode is None:
        worker.process.kill()
        worker.process.join()


def _serve(pipe: Connection, judge: Judge, lent: LentProcess | None) -> None:
    """Judge jobs until the other end closes the pipe. Runs in its own process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader handles Ctrl-C
    _die_with_parent()
    gc.freeze()  # so that a collection does not go through all that was imported
    if lent is not None:
        borrow(lent)
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        try:
            answer: Outcome | Exception = judge(job)
        except Exception as error:
            answer = error
        try:
            pipe.send(answer)
        except BrokenPipeError:
            return
        except Exception:  # noqa: BLE001  (an exception that cannot be pickled)
            pipe.send(RuntimeError(f"{type(answer).__name__}: {answer}"[:2000]))


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, the fork server; that one dies with
    the grader."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)
    grader = parent_process()
    if grader is not None and wait([grader.sentinel], 0):  # it has died already
        os._exit(1)
