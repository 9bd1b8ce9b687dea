"""What a scheduler is to the gradebook, and the jobs that each of them takes.

It takes jobs from an iterator as processes become free, and yields each with its outcome, or the
exception raised instead, in order of completion. An iterator that has nothing at the moment yields
None. A judging process that dies costs one retry: only a submission whose process died twice fails.

TRUST BOUNDARY. See `judge.job`: the processes that judge run our own code.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Protocol, TypeVar

from autograder.judge.job import Job, OtherVersion, Outcome
from autograder.sandbox.bubblewrap import IsolationError
from autograder.sandbox.limits import Limits
from autograder.sandbox.start_up import MOST

Key = TypeVar("Key")
Task = tuple[object, Job, int]  # a key, its job, and the number of this try
Source = Iterator[tuple[Key, Job] | None]
Results = Generator[tuple[Key, Outcome | Exception], None, None]
Judge = Callable[[Job], Outcome]

TRIES = 2
AHEAD = 16  # jobs from which a judging process gets one with the inputs that it has had before
FATAL = (IsolationError, OtherVersion)  # every other submission would fail the same way
# A judge enforces its submission's limits; one that is busy long after they have passed is stuck.
PATIENCE = MOST * (Limits.total_seconds + Limits.start_seconds)  # seconds, on a busy machine
LOOK_AGAIN = 0.2  # seconds until an iterator that had nothing is tried again


class Scheduler(Protocol):
    """Where the judging takes place."""

    def run(self, source: Source, judge: Judge) -> Results:
        """Judge all jobs of the source; yield each with its outcome."""


class JudgeDied(RuntimeError):
    """The process that judged a submission died, or never answered, twice."""


class JobQueue:
    """The jobs; retries come last, or at once after an error that may end the run."""

    def __init__(self, source: Source):
        self.source, self.again = source, deque[Task]()
        self.now: list[Task] = []
        self.next: list[tuple[object, Job]] = []
        self.ended = False

    def take(self, own: object = None, others: Sequence[object] = ()) -> Task | None:
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
            rank = [(seeds_of(job) != own, seeds_of(job) in others) for _, job in self.next]
            return (*self.next.pop(rank.index(min(rank))), 1)
        return self.again.popleft() if self.again else None

    def complete_or_retry(self, task: Task, answer: object) -> bool:
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


def seeds_of(job: object) -> object:
    """What a job's inputs are drawn from, if it says so."""
    return getattr(job, "seeds", None)  # any work can be dispatched
