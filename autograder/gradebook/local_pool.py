"""A scheduler: processes of this machine, each with one submission at a time."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
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
    Task,
    seeds_of,
)
from autograder.judge.job import Outcome


@dataclass
class LocalPool:
    """Judges with `jobs` processes of this machine.

    One that has not answered after `patience` seconds is killed, and counts as dead. If `isolation`
    is named, they share warm processes of that kind.
    """

    jobs: int
    patience: float = PATIENCE
    isolation: str | None = None
    _collect: Callable[..., None] | None = field(default=None, init=False)
    _answers: deque[tuple[Task, Outcome | Exception]] = field(default_factory=deque, init=False)

    def run(self, source: Source, judge: Judge) -> Results:
        context = fork_server.get_ready()
        todo, workers = JobQueue(source), list[JudgingProcess]()
        begin, self._answers = partial(start, judge, self.isolation, context), deque()
        self._collect = partial(self._collect_from, workers, todo, begin)
        try:
            self._dispatch(todo, workers, begin)
            while self._answers or any(w.task for w in workers) or not todo.is_empty:
                if self._answers:
                    task, told = self._answers.popleft()
                    if todo.complete_or_retry(task, told):
                        yield task[0], told
                elif any(worker.task for worker in workers):
                    self._collect()
                else:
                    self._dispatch(todo, workers, begin)
                    if not any(worker.task for worker in workers):
                        time.sleep(LOOK_AGAIN)
        finally:
            self._collect = None
            for worker in workers:
                worker.process.kill()
            for worker in workers:
                dismiss(worker)

    def serve(self) -> None:
        with suppress(Exception):  # `run` will meet it, too
            if self._collect is not None:
                self._collect(0.0)

    def _collect_from(
        self,
        workers: list[JudgingProcess],
        todo: JobQueue,
        begin: Callable[[int], JudgingProcess],
        seconds: float | None = None,
    ) -> None:
        """Wait for an answer, and give what is free its next job, since the writer takes its time.

        With `seconds`, wait so long at most, and for jobs at hand alone.
        """
        busy = {worker.pipe: worker for worker in workers if worker.task is not None}
        fetch = seconds is None
        if seconds is None:
            spare = len(busy) < self.jobs and not todo.is_empty
            left = max(0.0, min(worker.deadline for worker in busy.values()) - time.monotonic())
            seconds = min(LOOK_AGAIN, left) if spare else left
        ready = wait(list(busy), seconds)
        late = [pipe for pipe in busy if busy[pipe].deadline <= time.monotonic()]
        for pipe in [pipe for pipe in busy if pipe in ready or pipe in late]:
            worker = busy[pipe]
            task, worker.task = worker.task, None
            assert task is not None  # it is busy
            self._answers.append((task, answer(worker, pipe in ready, task[1], self.patience)))
            if worker.pipe.closed:
                workers.remove(worker)
        self._dispatch(todo, workers, begin, fetch)

    def _dispatch(
        self,
        todo: JobQueue,
        workers: list[JudgingProcess],
        begin: Callable[[int], JudgingProcess],
        fetch: bool = True,
    ) -> None:
        """Give a job to every free process; start another if all are busy and it may."""
        while sum(worker.task is not None for worker in workers) < self.jobs:
            free = next((worker for worker in workers if worker.task is None), None)
            task = todo.take(free and free.seeds, [each.seeds for each in workers], fetch)
            if task is None:
                return
            try:
                self._hand(task, workers, begin)
            except BaseException:
                todo.now.append(task)
                raise

    def _hand(
        self,
        task: Task,
        workers: list[JudgingProcess],
        begin: Callable[[int], JudgingProcess],
    ) -> None:
        for _ in range(3):  # a free process may have died meanwhile
            worker = next((worker for worker in workers if worker.task is None), None)
            if worker is None:
                workers.append(worker := begin(len(workers)))
            try:
                worker.pipe.send(task[1])
            except OSError:
                workers.remove(worker)
                dismiss(worker)
                continue
            worker.task, worker.deadline = task, time.monotonic() + self.patience
            worker.seeds = seeds_of(task[1])
            return
        raise RuntimeError("the judging processes die as soon as they start")
