"""A scheduler: processes of this machine, each with one submission at a time."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import wait

from autograder.gradebook import fork_server
from autograder.gradebook.judging_process import JudgingProcess, answer, dismiss, start
from autograder.gradebook.schedulers import (
    LOOK_AGAIN,
    PATIENCE,
    JobQueue,
    Judge,
    Results,
    Source,
    seeds_of,
)


@dataclass(frozen=True)
class LocalPool:
    """Judges with `jobs` processes of this machine.

    One that has not answered after `patience` seconds is killed, and counts as dead. If `isolation`
    is named, they share warm processes of that kind.
    """

    jobs: int
    patience: float = PATIENCE
    isolation: str | None = None

    def run(self, source: Source, judge: Judge) -> Results:
        context = fork_server.get_ready()
        todo, workers = JobQueue(source), list[JudgingProcess]()
        begin = partial(start, judge, self.isolation, context)
        try:
            self._dispatch(todo, workers, begin)
            while True:
                busy = {worker.pipe: worker for worker in workers if worker.task is not None}
                if not busy:
                    if todo.is_empty:
                        return
                    time.sleep(LOOK_AGAIN)
                    self._dispatch(todo, workers, begin)
                    continue
                spare = len(busy) < self.jobs and not todo.is_empty
                left = max(0.0, min(worker.deadline for worker in busy.values()) - time.monotonic())
                ready = wait(list(busy), min(LOOK_AGAIN, left) if spare else left)
                late = [pipe for pipe in busy if busy[pipe].deadline <= time.monotonic()]
                completed = []
                for pipe in [pipe for pipe in busy if pipe in ready or pipe in late]:
                    worker = busy[pipe]
                    task, worker.task = worker.task, None
                    assert task is not None  # it is busy
                    told = answer(worker, pipe in ready, task[1], self.patience)
                    if worker.pipe.closed:
                        workers.remove(worker)
                    if todo.complete_or_retry(task, told):
                        completed.append((task[0], told))
                # First, since the writer takes its time:
                self._dispatch(todo, workers, begin)
                yield from completed
        finally:
            for worker in workers:
                worker.process.kill()
            for worker in workers:
                dismiss(worker)

    def _dispatch(
        self,
        todo: JobQueue,
        workers: list[JudgingProcess],
        begin: Callable[[int], JudgingProcess],
    ) -> None:
        """Give a job to every free process; start another if all are busy and it may."""
        while sum(worker.task is not None for worker in workers) < self.jobs:
            worker = next((worker for worker in workers if worker.task is None), None)
            task = todo.take(worker and worker.seeds, [each.seeds for each in workers])
            if task is None:
                return
            for _ in range(3):  # a free process may have died meanwhile
                worker = next((worker for worker in workers if worker.task is None), None)
                if worker is None:
                    workers.append(worker := begin(len(workers)))
                try:
                    worker.pipe.send(task[1])
                    worker.task, worker.deadline = task, time.monotonic() + self.patience
                    worker.seeds = seeds_of(task[1])
                    break
                except OSError:
                    workers.remove(worker)
                    dismiss(worker)
            else:
                raise RuntimeError("the judging processes die as soon as they start")
