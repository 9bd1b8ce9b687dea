"""A class: judges many submissions in parallel, while one writer keeps gradebook and feedback.

TRUST BOUNDARY. The judging processes (`judge.job`, `schedulers`) return rebuilt notebooks and
judgements of our own. Whatever goes wrong with one submission is caught and reported, and no
unearned mark stands: a submission whose grading failed has none.
"""

import fcntl
import json
import os
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sqlalchemy.exc import SAWarning

from autograder.gradebook.command_suggestions import check_folder, nothing_there
from autograder.gradebook.course_file import enter, read_course
from autograder.gradebook.dask_cluster import DaskCluster
from autograder.gradebook.gradebook import GradebookLost, GradedSubmission
from autograder.gradebook.local_pool import LocalPool
from autograder.gradebook.rows import Row
from autograder.gradebook.schedulers import Results, Scheduler
from autograder.gradebook.submissions import (
    Task,
    assignments_in,
    check_release,
    find_tasks,
    job_for,
    release_folder,
)
from autograder.gradebook.writer import FULL, Writer, record_outcome
from autograder.judge.job import Job, Options, judge_job
from autograder.judge.judgement import GRADED, finite
from autograder.judge.seeds import group_of, secret_of
from autograder.sandbox.isolation import isolation_called


@dataclass
class ClassResult:
    """Everything that `grade` did. `ignored` lists what under `submitted/` was skipped."""

    root: Path
    rows: list[Row]
    ignored: list[str]
    seconds: float = 0.0

    @property
    def exit_status(self) -> int:
        """0 if every submission could be graded, 1 if not."""
        return int(bool(self.ignored) or any(row.status != GRADED for row in self.rows))

    def to_json(self) -> str:
        rows = [finite(asdict(row)) | {"total": row.total} for row in self.rows]
        told = {"event": "result", "submissions": rows, "ignored": self.ignored}
        return json.dumps(told | {"seconds": self.seconds})


class GradingStopped(RuntimeError):
    """Nothing more can be recorded: the disk is full, or the gradebook locked or missing."""


Progress = Callable[[Row, int, int], None]


def grade(
    submissions: Path = Path("submitted"),
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    db: str | None = None,
    isolation: str = "bwrap",
    device: str = "cpu",
    release: Path | None = None,
    cell_seconds: float | None = None,
    probe_seconds: float = 20.0,
    force: bool = False,
    progress: Progress | None = None,
    students: Sequence[str] | None = None,
    assignments: Sequence[str] | None = None,
) -> ClassResult:
    """Grade `submissions`/<student>/<assignment>/<assignment>.ipynb; resume where it left off.

    `students` and `assignments` narrow it down to these. `cell_seconds` (default: course.toml's)
    is how long a cell may compute.

    Gradebook, autograded/, feedback/, logs/ and the secret live in the parent of `submissions`,
    except that `db` may name another database. `release` holds the released notebooks (default:
    those of the course, else the project's). `jobs` is the number of processes (default: one per
    core); `scheduler` the address of a Dask cluster that judges in their place. `progress` is
    called after each submission with its row, how many are done, and how many there are.
    Raises `ValueError` if there is nothing to grade with, `BlockingIOError` if another run is in
    progress, `IsolationError` if students' code cannot be isolated, `GradingStopped` when nothing
    more can be recorded: what has been graded stays graded.
    """
    isolation_called(isolation)
    started = time.monotonic()
    root = submissions.absolute().parent.resolve()
    release = (release or release_folder(root)).absolute()
    check_folder(submissions, release, assignments_in(release))
    submissions = submissions.absolute()
    course = read_course(root, assignments_in(release))
    options = Options(device, isolation, cell_seconds or course.cell_seconds, probe_seconds)
    found, ignored = find_tasks(submissions, release, options, students, assignments, course.zone)
    tasks = [task for task in found if not course.withdrawn(task.student)]
    if not tasks and not ignored:
        left = {task.student for task in found}
        raise ValueError(nothing_there(submissions, students, assignments, left))
    if not tasks and db is None:  # make no gradebook in what may be the wrong folder
        return ClassResult(root, [], ignored)
    for assignment in sorted({task.assignment for task in tasks}):
        check_release(release, assignment)
    with warnings.catch_warnings(), _stopping(), Writer(root, db, release, course) as writer:
        warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's way with its sessions
        with _only_one(root, shared=writer.book.shared):
            known = writer.book.spelled()
            tasks = [replace(task, student=known.get(task.student, task.student)) for task in tasks]
            for assignment in sorted({task.assignment for task in tasks}):
                writer.register(assignment)
            enter(writer.book, course)
            secret, elsewhere = secret_of(root), scheduler is not None
            jobs = max(1, jobs or len(os.sched_getaffinity(0)))
            tasks = in_turn(tasks, secret, jobs)
            run = _Run(writer, tasks, secret, options, elsewhere, force, progress)
            with closing(_judged(run.jobs(), jobs, scheduler, options)) as judged:
                for task, outcome in judged:
                    run.done(record_outcome(writer, task, outcome), task)
    rows = sorted(run.rows, key=lambda row: (row.assignment, row.student))
    return ClassResult(root, rows, ignored, round(time.monotonic() - started, 1))


@contextmanager
def _only_one(root: Path, shared: bool) -> Iterator[None]:
    """Lock the course; raises `BlockingIOError` if another `grade` holds the lock.

    Where graders can share the gradebook, they share the lock, too.
    """
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BlockingIOError(f"{root} is being graded already") from None
    finally:
        os.close(handle)


@contextmanager
def _stopping() -> Iterator[None]:
    """Turn errors that prevent recording into a one-line `GradingStopped`."""
    try:
        yield
    except GradebookLost as error:
        raise GradingStopped(f"{error}. What is graded stays graded.") from error
    except OSError as error:
        if error.errno not in FULL:
            raise
        why = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        raise GradingStopped(
            f"{why}. What is graded stays graded; make room and run this again."
        ) from error


def in_turn(tasks: Sequence[Task], secret: bytes, jobs: int) -> list[Task]:
    """The tasks, in an order in which each process meets few assignments and groups of students:
    what the references give on a group's inputs is computed in each process that needs it."""
    return sorted(tasks, key=lambda t: (t.assignment, group_of(secret, t.student) // jobs))


class _Run:
    """What one run has to do, and what it has done."""

    def __init__(
        self,
        writer: "Writer",
        tasks: Sequence[Task],
        secret: bytes,
        options: Options,
        elsewhere: bool,
        force: bool,
        progress: Progress | None,
    ):
        self.writer, self.tasks, self.force, self.progress = writer, tasks, force, progress
        self.how = (secret, options, elsewhere)
        self.rows: list[Row] = []

    def done(self, row: Row, task: Task) -> None:
        self.writer.book.give_up(*task.key)
        self.rows.append(row)
        if self.progress is not None:
            self.progress(row, len(self.rows), len(self.tasks))

    def jobs(self) -> Iterator[tuple[Task, Job] | None]:
        """The jobs not yet done, each claimed for us; None while other graders hold the rest."""
        graded, todo = self.writer.book.graded(), list[Task]()
        for task in self.tasks:
            if self.force or not self._skipped(task, graded.get(task.key)):
                todo.append(task)
        ours = True
        while todo:
            others = []
            for task in todo:
                if not self.writer.book.claim(*task.key):
                    others.append(task)
                elif (
                    self.writer.book.shared
                    and not self.force
                    and self._skipped(task, self.writer.book.is_graded(*task.key))
                ):
                    continue  # another grader has graded it meanwhile
                else:
                    ours = True
                    with suppress(OSError, EOFError):  # then pages are plain
                        self.writer.pages.start()
                    try:
                        job = job_for(task, *self.how)
                    except Exception as error:  # noqa: BLE001  (it costs this submission alone)
                        self.done(record_outcome(self.writer, task, error), task)
                    else:
                        yield task, job
            todo = others
            if todo and not ours:
                yield None
            ours = False

    def _skipped(self, task: Task, graded: GradedSubmission | None) -> bool:
        if not self.writer.finished(task, graded):
            return False
        self.done(self.writer.read(task), task)
        return True


def _judged(
    source: Iterator[tuple[Task, Job] | None],
    jobs: int,
    scheduler: str | None,
    options: Options,
) -> Results:
    """Each task with its outcome, in order of completion."""
    shared = options.isolation if options.device == "cpu" else None
    chosen: Scheduler
    if scheduler is not None:
        chosen = DaskCluster(scheduler, isolation=shared)
    else:
        chosen = LocalPool(jobs, isolation=shared)
    yield from chosen.run(source, judge_job)
