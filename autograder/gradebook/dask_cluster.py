"""A scheduler: the workers of a Dask cluster, on other machines too.

TRUST BOUNDARY. The cluster is the teacher's own; whoever can reach its scheduler can run code.
"""

import queue
from dataclasses import dataclass
from functools import partial
from multiprocessing import current_process
from typing import TYPE_CHECKING

from autograder.gradebook import fork_server
from autograder.gradebook.judging_process import JudgingProcess, answer, dismiss, start
from autograder.gradebook.schedulers import (
    LOOK_AGAIN,
    PATIENCE,
    JobQueue,
    Judge,
    JudgeDied,
    Results,
    Source,
    Task,
)
from autograder.judge.job import Job, Outcome

if TYPE_CHECKING:
    from distributed import Client, Future

SILENCE = "300s"  # for which a busy machine may not answer; Dask gives up after 30


class ClusterLost(RuntimeError):
    """The cluster cannot be reached, or has no workers."""


@dataclass(frozen=True)
class DaskCluster:
    """Judges on the cluster whose scheduler is at `address`, as many at once as it has threads.

    Workers may come and go. Each judges in processes of its own; one that has not answered after
    `patience` seconds is killed, and counts as dead.
    `run` raises `ClusterLost` if there is no worker after `within` seconds.
    """

    address: str
    within: float = 60.0
    patience: float = PATIENCE
    isolation: str | None = None

    def run(self, source: Source, judge: Judge) -> Results:
        import dask
        import distributed

        patient = {"connect": SILENCE, "tcp": SILENCE}  # unless the user's configuration says more
        dask.config.update_defaults({"distributed": {"comm": {"timeouts": patient}}})
        try:
            client = distributed.Client(self.address, timeout=self.within, set_as_default=False)
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterLost(f"no Dask scheduler answers at {self.address} ({error})") from None
        try:
            try:
                client.wait_for_workers(1, timeout=self.within)
            except TimeoutError:
                raise ClusterLost(f"the scheduler at {self.address} has no workers") from None
            there = partial(_judge_there, judge, self.patience, self.isolation)
            yield from _submit_all(client, JobQueue(source), there)
        finally:
            client.close()


_FREE: list[JudgingProcess] = []  # the judging processes of a Dask worker that have no job


def _judge_there(judge: Judge, patience: float, isolation: str | None, job: Job) -> Outcome:
    """Judge on a Dask worker, in a process: the worker's threads cannot be interrupted."""
    current_process().daemon = False  # or else a nanny's worker may start no process
    while _FREE:
        worker = _FREE.pop()
        if worker.process.is_alive():
            break
        dismiss(worker)
    else:
        worker = start(judge, isolation, fork_server.get_ready(), 0)
    worker.pipe.send(job)
    told = answer(worker, worker.pipe.poll(patience), job, patience)
    if not worker.pipe.closed:
        _FREE.append(worker)
    if isinstance(told, Exception):
        raise told
    return told


def _submit_all(client: "Client", todo: JobQueue, judge: Judge) -> Results:
    done: queue.SimpleQueue = queue.SimpleQueue()
    running: dict[Future, Task] = {}
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
            future = done.get(timeout=LOOK_AGAIN if not todo.is_empty else 5.0)
        except queue.Empty:
            if client.status not in ("running", "connecting"):
                raise ClusterLost("the connection to the cluster is lost") from None
            continue
        task = running.pop(future)
        if future.status == "finished":
            told = future.result()
        elif future.status == "error":
            told = future.exception()
            if type(told).__name__ == "KilledWorker":
                told = JudgeDied("the workers that judged it died")
        else:
            raise ClusterLost("the connection to the cluster is lost")
        if todo.complete_or_retry(task, told):
            yield task[0], told
