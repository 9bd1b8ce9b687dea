"""Runs the judging: in processes of this machine, or on a Dask cluster.

Both take jobs from an iterator as processes become free, and yield each with its outcome, or the
exception raised instead, in order of completion. An iterator that has nothing at the moment yields
None. A judging process that dies costs one retry: only a submission whose process died twice fails.

TRUST BOUNDARY. See `judge.job`: the processes here run our own code. Those on this machine die with
the grader, however it ends.
"""

import ctypes
import gc
import os
import queue
import signal
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing import current_process, parent_process
from multiprocessing.connection import Connection, wait
from typing import Any, TypeVar

from autograder.gradebook import fork_server
from autograder.judge.allowance import SECONDS, Overdrawn
from autograder.judge.job import Job, OtherVersion, Outcome, unusable
from autograder.sandbox.bubblewrap import IsolationError
from autograder.sandbox.launcher import LentProcess, borrow, warm_process
from autograder.sandbox.limits import Limits
from autograder.sandbox.start_up import MOST
from autograder.student.engine.verdict import TIMEOUT

Key = TypeVar("Key")
Source = Iterator[tuple[Key, Job] | None]
Results = Generator[tuple[Key, Outcome | Exception], None, None]
Judge = Callable[[Job], Outcome]

TRIES = 2
SHARING = 4  # judging processes that share a warm process, which watches all their sandboxes
AHEAD = 16  # jobs from which a judging process gets one with the inputs that it has had before
FATAL = (IsolationError, OtherVersion)  # every other submission would fail the same way
# A judge enforces its submission's limits; one that is busy long after they have passed is stuck.
PATIENCE = MOST * (Limits.total_seconds + Limits.start_seconds)  # seconds, on a busy machine
_LOOK_AGAIN = 0.2  # seconds until an iterator that had nothing is tried again
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG


class JudgeDied(RuntimeError):
    """The process that judged a submission died, or never answered, twice."""


class ClusterLost(RuntimeError):
    """The cluster cannot be reached, or has no workers."""


class _JobQueue:
    """The jobs; retries come last, or at once after an error that may end the run."""

    def __init__(self, source: Source):
        self.source, self.again = source, deque[tuple[Any, Job, int]]()
        self.now: list[tuple[Any, Job, int]] = []
        self.next: list[tuple[Any, Job]] = []
        self.ended = False

    def take(self, own: Any = None, others: Sequence[Any] = ()) -> tuple[Any, Job, int] | None:
        """A key, its job, and the number of this try; None if there is nothing at the moment.

        Of the next jobs, the first is one whose seeds the process has had, or else no other has.
        """
        if self.now:
            return self.now.pop()
        while not self.ended and len(self.next) < AHEAD:
            item = next(self.source, self)
            self.ended = item is self
            if not isinstance(item, tuple):
                break
            self.next.append(item)
        if self.next:
            rank = [(_seeds(job) != own, _seeds(job) in others) for _, job in self.next]
            return (*self.next.pop(rank.index(min(rank))), 1)
        return self.again.popleft() if self.again else None

    def complete_or_retry(self, task: tuple[Any, Job, int], answer: Any) -> bool:
        """Whether a task is complete with this answer; if not, it is tried again.

        Raises an error that every other submission would meet, too: a machine cannot isolate.
        """
        key, job, tries = task
        if isinstance(answer, FATAL):
            if tries >= TRIES:
                raise answer
            self.now.append((key, job, tries + 1))
            return False
        if isinstance(answer, JudgeDied) and tries < TRIES:
            self.again.append((key, job, tries + 1))
            return False
        return True

    @property
    def is_empty(self) -> bool:
        return self.ended and not (self.next or self.again or self.now)


def _seeds(job: Any) -> Any:
    return getattr(job, "seeds", None)  # any work can be dispatched


# --- this machine ---------------------------------------------------------------------------------


@dataclass
class _Worker:
    """A judging process, and its current job."""

    process: Any
    pipe: Connection
    task: tuple[Any, Job, int] | None = None
    deadline: float = 0.0
    seeds: Any = None  # of its last job: what the references give on them is known there


def local(
    source: Source,
    judge: Judge,
    jobs: int,
    patience: float = PATIENCE,
    isolation: str | None = None,
) -> Results:
    """Judge with `jobs` processes on this machine.

    One that has not answered after `patience` seconds is killed, and counts as dead. If `isolation`
    is named, they share warm processes of that kind.
    """
    context = fork_server.get_ready()
    todo, workers = _JobQueue(source), list[_Worker]()
    start = partial(_start, judge, isolation, context)
    try:
        _dispatch(todo, workers, jobs, patience, start)
        while True:
            busy = {worker.pipe: worker for worker in workers if worker.task is not None}
            if not busy:
                if todo.is_empty:
                    return
                time.sleep(_LOOK_AGAIN)
                _dispatch(todo, workers, jobs, patience, start)
                continue
            spare = len(busy) < jobs and not todo.is_empty
            left = max(0.0, min(worker.deadline for worker in busy.values()) - time.monotonic())
            ready = wait(list(busy), min(_LOOK_AGAIN, left) if spare else left)
            late = [pipe for pipe in busy if busy[pipe].deadline <= time.monotonic()]
            completed = []
            for pipe in [pipe for pipe in busy if pipe in ready or pipe in late]:
                worker = busy[pipe]
                task, worker.task = worker.task, None
                assert task is not None  # it is busy
                answer = _answer(worker, pipe in ready, task[1], patience)
                if worker.pipe.closed:
                    workers.remove(worker)
                if todo.complete_or_retry(task, answer):
                    completed.append((task[0], answer))
            # First, since the writer takes its time:
            _dispatch(todo, workers, jobs, patience, start)
            yield from completed
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            _dismiss(worker)


def _dispatch(
    todo: _JobQueue,
    workers: list[_Worker],
    jobs: int,
    patience: float,
    start: Callable[[int], _Worker],
) -> None:
    """Give a job to every free process; start another if all are busy and `jobs` allows it."""
    while sum(worker.task is not None for worker in workers) < jobs:
        worker = next((worker for worker in workers if worker.task is None), None)
        task = todo.take(worker and worker.seeds, [each.seeds for each in workers])
        if task is None:
            return
        for _ in range(3):  # a free process may have died meanwhile
            worker = next((worker for worker in workers if worker.task is None), None)
            if worker is None:
                workers.append(worker := start(len(workers)))
            try:
                worker.pipe.send(task[1])
                worker.task, worker.deadline = task, time.monotonic() + patience
                worker.seeds = _seeds(task[1])
                break
            except OSError:
                workers.remove(worker)
                _dismiss(worker)
        else:
            raise RuntimeError("the judging processes die as soon as they start")


def _start(judge: Judge, isolation: str | None, context: Any, number: int) -> _Worker:
    """Start a judging process, and lend it a warm process that it shares with some others."""
    lent = None
    if isolation is not None:
        with suppress(IsolationError):  # the process will report that itself
            lent = warm_process(isolation, number=number // SHARING)
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, judge, lent), daemon=False)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _answer(worker: _Worker, ready: bool, job: Job, patience: float) -> Outcome | Exception:
    """What a judging process answers to a job; one that has died, or is killed, is dismissed."""
    try:
        if not ready:
            worker.process.kill()
            raise TimeoutError
        return worker.pipe.recv()
    except (EOFError, OSError) as error:
        _dismiss(worker)
        if worker.process.exitcode == -signal.SIGXCPU:  # of its own limit: it would die of it again
            limit = Overdrawn(TIMEOUT, f"{SECONDS:g} s of computing time")
            return unusable(job, f"Judging it {limit}.")
        code = f"status {worker.process.exitcode}"
        if isinstance(error, TimeoutError):
            code = f"killed after {patience:g} s without an answer"
        return JudgeDied(f"the judging process died twice ({code})")


def _dismiss(worker: _Worker) -> None:
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


# --- a cluster ------------------------------------------------------------------------------------


SILENCE = "300s"  # for which a busy machine may not answer; Dask gives up after 30


def cluster(
    source: Source,
    judge: Judge,
    address: str,
    within: float = 60.0,
    patience: float = PATIENCE,
    isolation: str | None = None,
) -> Results:
    """Judge on the Dask cluster whose scheduler is at `address`, as many at once as it has threads.

    Workers may come and go. Each judges in processes of its own; one that has not answered after
    `patience` seconds is killed, and counts as dead.
    Raises `ClusterLost` if there is no worker after `within` seconds.
    """
    import dask
    import distributed

    patient = {"connect": SILENCE, "tcp": SILENCE}  # unless the user's configuration says otherwise
    dask.config.update_defaults({"distributed": {"comm": {"timeouts": patient}}})
    try:
        client = distributed.Client(address, timeout=within, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterLost(f"no Dask scheduler answers at {address} ({error})") from None
    try:
        try:
            client.wait_for_workers(1, timeout=within)
        except TimeoutError:
            raise ClusterLost(f"the scheduler at {address} has no workers") from None
        yield from _on_cluster(
            client, _JobQueue(source), partial(_apart, judge, patience, isolation)
        )
    finally:
        client.close()


_FREE: list[_Worker] = []  # the judging processes of a Dask worker that have no job


def _apart(judge: Judge, patience: float, isolation: str | None, job: Job) -> Outcome:
    """Judge on a Dask worker, in a process: the worker's threads cannot be interrupted."""
    current_process().daemon = False  # or else a nanny's worker may start no process
    while _FREE:
        worker = _FREE.pop()
        if worker.process.is_alive():
            break
        _dismiss(worker)
    else:
        worker = _start(judge, isolation, fork_server.get_ready(), 0)
    worker.pipe.send(job)
    answer = _answer(worker, worker.pipe.poll(patience), job, patience)
    if not worker.pipe.closed:
        _FREE.append(worker)
    if isinstance(answer, Exception):
        raise answer
    return answer


def _on_cluster(client: Any, todo: _JobQueue, judge: Judge) -> Results:
    done: queue.SimpleQueue = queue.SimpleQueue()
    running: dict[Any, tuple[Any, Job, int]] = {}
    while True:
        threads = max(1, sum(client.nthreads().values()))
        while len(running) < 2 * threads:  # one running, one waiting
            task = todo.take()
            if task is None:
                break
            future = client.submit(judge, task[1], pure=False, retries=0)
            running[future] = task
            future.add_done_callback(done.put)
        if not running and todo.is_empty:
            return
        try:
            future = done.get(timeout=_LOOK_AGAIN if not todo.is_empty else 5.0)
        except queue.Empty:
            if client.status not in ("running", "connecting"):
                raise ClusterLost("the connection to the cluster is lost") from None
            continue
        task = running.pop(future)
        if future.status == "finished":
            answer = future.result()
        elif future.status == "error":
            answer = future.exception()
            if type(answer).__name__ == "KilledWorker":
                answer = JudgeDied("the workers that judged it died")
        else:
            raise ClusterLost("the connection to the cluster is lost")
        if todo.complete_or_retry(task, answer):
            yield task[0], answer
