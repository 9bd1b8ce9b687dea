"""A class: judges many submissions in parallel, while one writer keeps gradebook and feedback.

TRUST BOUNDARY. Folders and files under `submitted/` are hostile: names are checked before
use, links are not followed, and files are read as bytes only. The judging processes (`work`,
`schedulers`) return rebuilt notebooks and verdicts of our own. Whatever goes wrong with one
submission is caught and reported, and no unearned mark stands: a submission whose grading failed
has none.

A submission is graded when one commit in the gradebook says so (`gradebook`). Before it, the
autograded notebook is put in its place; after it, the feedback page, which is made again if it is
missing. If `grade` is killed in between, the next run does only what is left.
"""

import errno
import fcntl
import hashlib
import json
import os
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.api import SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from sqlalchemy.exc import SAWarning
from traitlets.config.loader import PyFileConfigLoader

from autograder.grader.classes import schedulers
from autograder.grader.classes.feedback import Marked, PageMaker, plain_page
from autograder.grader.classes.gradebook import Book, GradebookLost, Graded, database
from autograder.grader.notebook.preprocessors import (
    auto_comments,
    auto_scores,
    exercises_in,
    secret_of,
    seeds_of,
)
from autograder.grader.notebook.reading import Unusable, exercise_of
from autograder.grader.notebook.rebuild import MAX_BYTES, read_file
from autograder.grader.sandbox.host import ISOLATIONS, clean
from autograder.grader.work import (
    FAILED,
    GRADED,
    PROJECT,
    UNUSABLE,
    Job,
    Options,
    Outcome,
    judge_job,
    version_of,
)

__all__ = ["FAILED", "GRADED", "UNUSABLE", "ClassResult", "Mark", "Row", "grade", "read_class"]

LOGS = "logs"  # logs/<student>/<assignment>.log
STUDENT = re.compile(r"[^\x00-\x1f\x7f<>&\"\\*?\[\]{}|./~ ][^\x00-\x1f\x7f<>&\"\\*?\[\]{}|/]{0,99}")
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


@dataclass(frozen=True)
class Task:
    """One submission to judge: its student, assignment and folder, the release, its digest."""

    student: str
    assignment: str
    folder: Path
    release: Path
    digest: str

    @property
    def key(self) -> tuple[str, str]:
        return self.assignment, self.student


@dataclass
class Mark:
    """The points of one graded cell. `by_hand`: a person still has to mark it."""

    score: float
    points: float
    by_hand: bool = False


@dataclass
class Row:
    """One submission in the class: `status` is graded, unusable (a clear zero) or failed (none)."""

    student: str
    assignment: str
    status: str
    score: float = 0.0
    points: float = 0.0
    seconds: float | None = None
    reason: str | None = None
    notes: list[str] = field(default_factory=list)
    marks: dict[str, Mark] = field(default_factory=dict)
    verdicts: dict[str, dict[str, Any]] = field(default_factory=dict)
    unchanged: bool = False


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
        rows = [asdict(row) for row in self.rows]
        told = {"event": "result", "submissions": rows, "ignored": self.ignored}
        return json.dumps(told | {"seconds": self.seconds})


class Stopped(RuntimeError):
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
    cell_seconds: float = 60.0,
    probe_seconds: float = 20.0,
    force: bool = False,
    progress: Progress | None = None,
) -> ClassResult:
    """Grade `submissions`/<student>/<assignment>/<assignment>.ipynb; resume where it left off.

    Gradebook, autograded/, feedback/, logs/ and the secret live in the parent of `submissions`,
    except that `db` may name another database. `release` holds the released notebooks (default:
    those of the course, else the project's). `jobs` is the number of processes (default: one per
    core); `scheduler` the address of a Dask cluster that judges in their place. `progress` is
    called after each submission with its row, how many are done, and of how many.
    Raises `ValueError` if there is nothing to grade with, `BlockingIOError` if another run is in
    progress, `IsolationError` if students' code cannot be isolated, `Stopped` when nothing more can
    be recorded: what has been graded stays graded.
    """
    if isolation not in ISOLATIONS:
        raise ValueError(f"isolation is one of {', '.join(ISOLATIONS)}, not {isolation!r}")
    started = time.monotonic()
    submissions = submissions.absolute()
    if not submissions.is_dir():
        raise ValueError(f"no folder {submissions}")
    root = submissions.parent.resolve()
    release = (release or released(root)).absolute()
    options = Options(device, isolation, cell_seconds, probe_seconds)
    with warnings.catch_warnings(), _stopping(), Writer(root, db, release) as writer:
        warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's way with its sessions
        with _only_one(root, shared=writer.book.shared):
            tasks, ignored = find_tasks(submissions, release, options)
            for assignment in sorted({task.assignment for task in tasks}):
                writer.register(assignment)
            secret, elsewhere = secret_of(root), scheduler is not None
            run = _Run(writer, tasks, secret, options, elsewhere, force, progress)
            with closing(_judged(run.jobs(), jobs, scheduler)) as judged:
                for task, outcome in judged:
                    run.done(_recorded(writer, task, outcome), task)
    rows = sorted(run.rows, key=lambda row: (row.assignment, row.student))
    return ClassResult(root, rows, ignored, round(time.monotonic() - started, 1))


def released(root: Path) -> Path:
    """The folder of released notebooks: the course's own, else the project's.

    Raises `ValueError` if neither exists.
    """
    for folder in (root / "notebooks", PROJECT / "notebooks"):
        if any(folder.glob("*/*.ipynb")):
            return folder
    raise ValueError("no released notebooks: run `autograder release` first")


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
    """Turn errors that prevent recording into a one-line `Stopped`."""
    try:
        yield
    except GradebookLost as error:
        raise Stopped(f"{error}. What is graded stays graded.") from error
    except OSError as error:
        if error.errno not in _FULL:
            raise
        why = f"{error.strerror}: {error.filename}" if error.filename else error.strerror
        raise Stopped(
            f"{why}. What is graded stays graded; make room and run this again."
        ) from error


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
        self.writer.book.release(*task.key)
        self.rows.append(row)
        if self.progress is not None:
            self.progress(row, len(self.rows), len(self.tasks))

    def jobs(self) -> Iterator[tuple[Task, Job] | None]:
        """What is not graded yet, each claimed for us; None while other graders hold the rest."""
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
                    with suppress(OSError):  # then pages are plain
                        self.writer.pages.start()
                    yield task, _job(task, *self.how)
            todo = others
            if todo and not ours:
                yield None
            ours = False

    def _skipped(self, task: Task, graded: Graded | None) -> bool:
        if not self.writer.finished(task, graded):
            return False
        self.done(self.writer.read(task), task)
        return True


# --- What there is to grade -----------------------------------------------------------------------


def find_tasks(submissions: Path, release: Path, options: Options) -> tuple[list[Task], list[str]]:
    """The submissions, and the other entries, each with the reason why it is skipped."""
    assignments = sorted(
        p.parent.name for p in release.glob("*/*.ipynb") if p.stem == p.parent.name
    )
    tasks, ignored = [], []
    course = {name: _course_digest(release, name, options) for name in assignments}
    for place in sorted(submissions.iterdir()):
        name = place.name
        if name.startswith("."):
            continue
        if place.is_symlink() or not place.is_dir():
            ignored.append(f"{_shown(name)}: not a student's folder")
        elif not STUDENT.fullmatch(name) or name != name.strip() or not _printable(name):
            ignored.append(f"{_shown(name)}: rename the folder; this is no safe name for a student")
        else:
            found = [a for a in assignments if os.path.lexists(place / a)]
            ignored += [
                f"{name}/{_shown(p.name)}: no assignment of that name"
                for p in sorted(place.iterdir())
                if p.name not in assignments and not p.name.startswith(".")
            ]
            if not found and not any(place.iterdir()):
                ignored.append(f"{name}: handed nothing in")
            for assignment in found:
                folder = place / assignment
                digest = hashlib.sha256(f"{course[assignment]} {_fingerprint(folder)}".encode())
                path = release / assignment / f"{assignment}.ipynb"
                tasks.append(Task(name, assignment, folder, path, digest.hexdigest()))
    return tasks, ignored


def _printable(name: str) -> bool:
    """Whether a name is encodable text on one line."""
    return name.isprintable() and name.encode("utf-8", "replace").decode() == name


def _shown(name: str) -> str:
    return ascii(name)[1:-1][:80] if not _printable(name) else name[:80]


def _course_digest(release: Path, assignment: str, options: Options) -> str:
    """Changes when an unchanged submission has to be judged again."""
    path = release / assignment / f"{assignment}.ipynb"
    version = version_of(slug for slug, _ in exercises_in(nbformat.read(path, as_version=4)))
    whole = hashlib.sha256(repr((options, version)).encode())
    whole.update(path.read_bytes())
    return whole.hexdigest()


def _fingerprint(folder: Path) -> str:
    """The relevant contents of a submission; the same text for the same submission."""
    try:
        return _contents(folder)
    except OSError as error:  # what cannot be read must not hold up the others
        return f"unreadable: {error.errno}"


def _contents(folder: Path) -> str:
    if folder.is_symlink() or not folder.is_dir():
        return f"mode {folder.lstat().st_mode}"
    parts = []
    for path in sorted(folder.iterdir()):
        if path.suffix != ".ipynb" and path.name != "timestamp.txt":
            continue
        info = path.lstat()
        parts.append(f"{path.name!r} {info.st_mode}")
        if path.is_file() and not path.is_symlink() and info.st_size <= MAX_BYTES:
            parts.append(hashlib.sha256(path.read_bytes()).hexdigest())
        else:
            parts.append(f"{info.st_size} {info.st_mtime_ns}")
    return "\n".join(parts)


def find_file(folder: Path, assignment: str) -> tuple[bytes, str | None]:
    """The notebook handed in, and its name if it is not the expected one.

    Raises `Unusable` if there is none to grade.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise Unusable(f"{assignment} is not a folder.")
    path = folder / f"{assignment}.ipynb"
    if os.path.lexists(path):
        return read_file(path), None
    others = [p for p in sorted(folder.iterdir()) if p.suffix == ".ipynb"]
    missing = f"There is no notebook {assignment}.ipynb"
    if not others:
        raise Unusable(f"{missing}.")
    if len(others) > 1:
        raise Unusable(f"{missing}, and it is not clear which of {len(others)} others to take.")
    return read_file(others[0]), _shown(others[0].name)


def _job(task: Task, secret: bytes, options: Options, elsewhere: bool) -> Job:
    """What the judge, here or on another machine, gets to see of a submission."""
    text, notebook = _released(task.release)
    slugs = {slug for slug, _ in exercises_in(notebook)}
    version = version_of(slugs) if elsewhere else None
    problem, data, renamed = None, b"", None
    try:
        data, renamed = find_file(task.folder, task.assignment)
    except Unusable as error:
        problem = str(error)
    except OSError as error:
        problem = f"The folder cannot be read ({error.strerror})."
    seeds = seeds_of(notebook, secret, task.student, task.assignment)
    return Job(task.assignment, text, data, problem, renamed, seeds, options, version)


@lru_cache(maxsize=32)
def _released(path: Path) -> tuple[bytes, NotebookNode]:
    text = path.read_bytes()
    return text, nbformat.v4.reads(text.decode())


def _judged(
    source: Iterator[tuple[Task, Job] | None], jobs: int | None, scheduler: str | None
) -> Iterator[tuple[Task, Outcome | Exception]]:
    """Each task with its outcome, as they come."""
    if scheduler is not None:
        yield from schedulers.cluster(source, judge_job, scheduler)
    else:
        jobs = max(1, jobs or len(os.sched_getaffinity(0)))
        yield from schedulers.local(source, judge_job, jobs)


# --- Recording: the one writer --------------------------------------------------------------------


def _recorded(writer: "Writer", task: Task, outcome: Outcome | Exception) -> Row:
    """Write one outcome to gradebook and feedback; if that fails, leave it without a mark."""
    try:
        if isinstance(outcome, Exception):
            raise outcome
        return writer.write(task, outcome)
    except GradebookLost:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _FULL:
            raise
        reason = f"{type(error).__name__}: {error}"[:2000]
        _log(writer.root, task, "failed", "".join(traceback.format_exception(error)))
        writer.withdraw(task)
        return Row(task.student, task.assignment, FAILED, reason=reason)


class Writer:
    """Owns the gradebook, autograded/, feedback/ and logs/ of one course. A context manager."""

    def __init__(self, root: Path, db: str | None, release: Path):
        self.root, self.release = root, release
        self.book = Book(database(root, db))
        self.config = PyFileConfigLoader("nbgrader_config.py", path=str(PROJECT)).load_config()
        self.pages = PageMaker(root)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.pages.close()
        self.book.close()

    def register(self, assignment: str) -> None:
        """Make sure that the gradebook has an assignment in its current release."""
        _, notebook = _released(self.release / assignment / f"{assignment}.ipynb")
        self.book.register(assignment, notebook)

    def finished(self, task: Task, graded: Graded | None) -> bool:
        """Whether this exact submission is graded; makes its feedback page again if needed."""
        if graded is None or graded.digest != task.digest:
            return False
        try:
            data = self._autograded(task).read_bytes()
        except OSError:
            return False
        if _digest(data) != graded.notebook:
            return False
        page = self._page(task)
        if not page.is_file() or not page.stat().st_size:
            self._feedback(task, data)
        return True

    def write(self, task: Task, outcome: Outcome) -> Row:
        """Record a judgement: the notebook, then the gradebook, then the feedback page."""
        notebook = nbformat.v4.reads(outcome.notebook.decode())
        timestamp = _timestamp(task.folder / "timestamp.txt")
        self._page(task).unlink(missing_ok=True)  # it may show an earlier judgement
        stamp = self._autograded(task).with_name("timestamp.txt")
        if timestamp is None:
            stamp.unlink(missing_ok=True)
        else:
            _put(stamp, timestamp.encode(), 0o444)
        _put(self._autograded(task), outcome.notebook, 0o444)
        times = self.book.record(
            *task.key,
            (task.digest, _digest(outcome.notebook)),
            auto_scores(notebook),
            auto_comments(notebook),
            timestamp,
            self._penalty,
        )
        row = self._feedback(task, outcome.notebook)
        _log(self.root, task, f"graded on {outcome.where}", *_told(row, times))
        return row

    def withdraw(self, task: Task) -> None:
        """Leave a submission whose grading failed without marks, for a person to look at."""
        self._page(task).unlink(missing_ok=True)
        self._autograded(task).unlink(missing_ok=True)
        self.book.withdraw(*task.key)

    def read(self, task: Task) -> Row:
        """The row of a graded submission, from the gradebook and the autograded notebook."""
        with self.book.look():
            return read_row(self.book, self.root, task.student, task.assignment, unchanged=True)

    def _feedback(self, task: Task, data: bytes) -> Row:
        """Write the feedback page of a graded submission: a plain one if it cannot be made."""
        with self.book.look():
            found = self.book.find_submission_notebook(
                task.assignment, task.assignment, task.student
            )
            notebook = nbformat.v4.reads(data.decode())
            row = _row(found, task.student, task.assignment, notebook)
            marked = Marked(
                {name: (mark.score, mark.points) for name, mark in row.marks.items()},
                {comment.name: comment.comment for comment in found.comments},
                found.score,
                found.max_score,
                found.late_submission_penalty or 0.0,
            )
        try:
            page = self.pages.page(data, task.assignment, task.student, marked)
        except Exception as error:  # noqa: BLE001  (the marks stand, and the class goes on)
            note = f"Its feedback page is a plain one: {error}."[:500]
            _log(self.root, task, "has a plain page", note)
            row.notes.append(note)
            page = plain_page(task.assignment, task.student, marked)
        try:
            _put(self._page(task), page.encode("utf-8", "replace"), 0o644)
        except OSError as error:
            if error.errno in _FULL:
                raise
            row.notes.append(f"Its feedback page could not be written ({error.strerror}).")
            _log(self.root, task, "has no page", row.notes[-1])
        return row

    def _penalty(self, notebook: SubmittedNotebook, seconds_late: float) -> float | None:
        """What being late costs, by nbgrader's plugin."""
        assign = AssignLatePenalties(config=self.config)
        assign.init_plugin()
        student = notebook.student.id
        penalty = assign.plugin_inst.late_submission_penalty(student, notebook.score, seconds_late)
        return None if penalty is None else assign._check_late_penalty(notebook, penalty)

    def _autograded(self, task: Task) -> Path:
        folder = self.root / "autograded" / task.student / task.assignment
        return folder / f"{task.assignment}.ipynb"

    def _page(self, task: Task) -> Path:
        return self.root / "feedback" / task.student / task.assignment / f"{task.assignment}.html"


def _put(path: Path, data: bytes, mode: int) -> None:
    """Write a file atomically: it holds either the new contents or the old ones."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.new")  # a killed run may have left one
    fresh.unlink(missing_ok=True)
    try:
        fresh.write_bytes(data)
        fresh.chmod(mode)
        fresh.replace(path)
    except BaseException:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _log(root: Path, task: Task, what: str, *lines: str) -> None:
    """Append to a submission's log. A full disk is reported elsewhere."""
    path = root / LOGS / task.student / f"{task.assignment}.log"
    now = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    inner = [part for line in lines for part in clean(line).splitlines()]
    text = "\n".join([f"{now} {what}", *(f"    {line}" for line in inner)])
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")


def _told(row: Row, times: int) -> Iterator[str]:
    """The log lines of a graded submission."""
    yield f"{row.status}: {row.score:g} of {row.points:g} points, {row.seconds or 0:.2f} s"
    if times > 1:
        yield f"graded {times} times in all, on request or because the notebook was lost"
    if row.reason:
        yield row.reason
    for name, verdict in row.verdicts.items():
        mistake = f", known mistake {verdict['mistake']}" if verdict.get("mistake") else ""
        note = f": {verdict['note']}" if verdict.get("note") else ""
        yield f"{name}: {verdict['verdict']}, {verdict['score']:g}{mistake}{note}"
    yield from row.notes


def _timestamp(path: Path) -> str | None:
    """The time of submission that a file gives, if it is one that nbgrader can read."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 100:
        return None
    try:
        text = path.read_text(encoding="utf-8").strip()
        return text if text and parse_utc(text) else None
    except (ValueError, OverflowError):
        return None


# --- Reading the class back -----------------------------------------------------------------------


def read_row(
    gradebook: Book, root: Path, student: str, assignment: str, unchanged: bool = False
) -> Row:
    """The row of one submission, from the gradebook and the autograded notebook.

    A submission without an autograded notebook has failed. Raises `MissingEntry` if the gradebook
    does not have it.
    """
    found = gradebook.find_submission_notebook(assignment, assignment, student)
    path = root / "autograded" / student / assignment / f"{assignment}.ipynb"
    notebook = nbformat.v4.reads(path.read_text("utf-8")) if path.is_file() else None
    return _row(found, student, assignment, notebook, unchanged)


def _row(
    found: SubmittedNotebook,
    student: str,
    assignment: str,
    notebook: NotebookNode | None,
    unchanged: bool = False,
) -> Row:
    marks = {
        given.name: Mark(
            float(given.score or 0.0), float(given.max_score), bool(given.needs_manual_grade)
        )
        for given in found.grades
    }
    row = Row(student, assignment, FAILED, marks=marks, unchanged=unchanged)
    row.points = round(sum(mark.points for mark in marks.values()), 6)
    row.score = round(sum(mark.score for mark in marks.values()), 6)
    if notebook is None:
        row.reason = "There is no autograded notebook: grade this submission again."
        return row
    record: Mapping[str, Any] = notebook.metadata.get("autograder", {})
    row.status = record.get("status", GRADED)
    row.reason, row.seconds = record.get("reason"), record.get("seconds")
    row.notes = list(record.get("notes", ()))
    for cell in notebook.cells:
        name = exercise_of(cell)
        if name and "autograder" in cell.metadata:
            row.verdicts[name] = dict(cell.metadata["autograder"])
    return row


def read_class(root: Path, db: str | None = None) -> list[Row]:
    """Every submission in a course's gradebook, by assignment and student."""
    book = Book(database(root, db))
    try:
        with book.look():
            pairs = sorted(
                (assignment.name, submission.student.id)
                for assignment in book.assignments
                for submission in assignment.submissions
            )
            return [read_row(book, root, student, name) for name, student in pairs]
    finally:
        book.close()
