"""The one writer of a course: gradebook, autograded/, feedback/ and logs/.

A submission is graded when one commit in the gradebook says so (`gradebook`). Before it, the
autograded notebook is put in its place; after it, the feedback page, which is made again if it is
missing. If `grade` is killed in between, the next run does only what is left.

TRUST BOUNDARY. What is written here comes from our own judges. Names of students have been checked
(`submissions`); what their texts show is made inert where a page is made (`feedback`).
"""

import errno
import hashlib
import os
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import nbformat
from jupyter_core.paths import jupyter_config_path
from nbgrader.api import SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import parse_utc
from traitlets import TraitError
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.gradebook.course_file import CourseFile
from autograder.gradebook.feedback import MarkedNotebook, PageMaker, plain_page
from autograder.gradebook.gradebook import Book, GradebookLost, GradedSubmission, database
from autograder.gradebook.review import Seen, seen_in, unchanged_cells
from autograder.gradebook.rows import UNDATED, Row, read_row, row_of
from autograder.gradebook.submissions import (
    EXCHANGE_SECRET,
    TIME,
    Task,
    has_odd_time,
    read_release,
    secret_in,
    submission_digest,
    timestamp_in,
)
from autograder.judge.job import Outcome
from autograder.judge.judgement import FAILED
from autograder.judge.marks import auto_comments, auto_scores
from autograder.student.course import root as course_root
from autograder.student.engine.words import one_line

LOGS = "logs"  # logs/<student>/<assignment>.log
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}


class Writer:
    """Owns the gradebook, autograded/, feedback/ and logs/ of one course. A context manager."""

    def __init__(self, root: Path, db: str | None, release: Path, course: CourseFile | None = None):
        self.root, self.release, self.course = root, release, course or CourseFile()
        self.book = Book(database(root, db))
        self.late = late_policy(root)
        self.pages = PageMaker(root)

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self.pages.close()
        self.book.close()

    def register(self, assignment: str) -> None:
        """Make sure that the gradebook has an assignment in its current release."""
        _, notebook = read_release(self.release / assignment / f"{assignment}.ipynb")
        self.book.register(assignment, notebook)

    def finished(self, task: Task, graded: GradedSubmission | None) -> bool:
        """Whether this exact submission is graded; makes its feedback page again if needed."""
        if graded is None or graded.digest != task.digest:
            return False
        with self.book.look():
            if self.book.judgement(*task.key) is None:  # it was another version that graded it
                return False
        try:
            data = self._made(task)
        except OSError:
            return False
        if _digest(data) != graded.notebook:
            return False
        self._date(task)
        page, changed = self._page(task), self.book.penalise(*task.key, self._penalty)
        if changed or not os.path.isfile(page) or not os.path.getsize(page):
            row = self._feedback(task, data)
            if changed:
                _log(self.root, task, f"has another late penalty: {_total(row)}")
        return True

    def _date(self, task: Task) -> None:
        """Bring the time of a graded submission up to date: the course's zone may be a new one."""
        said = timestamp_in(task.folder / TIME, self.course.zone)
        with self.book.look():
            before = self.book.find_submission(*task.key).timestamp
        if said and parse_utc(said) != before:
            with self.book.transaction():
                self.book.find_submission(*task.key).timestamp = parse_utc(said)

    def write(self, task: Task, outcome: Outcome) -> Row:
        """Record a judgement: the notebook, then the gradebook, then the feedback page."""
        notebook, judgement = nbformat.v4.reads(outcome.notebook.decode()), outcome.judgement
        if undated := has_odd_time(task.folder, self.course.zone):
            judgement = replace(judgement, notes=(*judgement.notes, UNDATED))
        scores = auto_scores(notebook, judgement)
        seen = seen_in(notebook, judgement)
        same = self._same(task, seen)
        with suppress(OSError):  # where a page cannot be, `_feedback` says so
            self._page(task).unlink()  # it may show an earlier judgement
        carried = {
            TIME: timestamp_in(task.folder / TIME, self.course.zone),
            EXCHANGE_SECRET: secret_in(task.folder / EXCHANGE_SECRET),
        }
        _carry(self._autograded(task), carried)
        with suppress(OSError):
            _carry(self._page(task), carried)
        put(self._autograded(task), outcome.notebook, 0o444)
        times = self.book.record(
            *task.key,
            (task.digest, _digest(outcome.notebook)),
            judgement,
            scores,
            auto_comments(notebook, judgement),
            "" if undated else carried[TIME],
            self._penalty,
            same,
            seen,
            submission_digest(task.folder, task.release),
        )
        row = self._feedback(task, outcome.notebook)
        _log(self.root, task, f"graded on {outcome.where}", *_told(row, times))
        return row

    def _same(self, task: Task, seen: Seen) -> set[str]:
        """The graded cells whose answer and verdict are those that the gradebook has recorded."""
        with self.book.look():
            known, before = self.book.is_graded(*task.key), self.book.judgement(*task.key)
        try:
            data = self._made(task)
            earlier = nbformat.v4.reads(data.decode()) if known and before else None
        except (OSError, ValueError):
            earlier = None
        if not (earlier and known and before) or _digest(data) != known.notebook:
            return set()
        return unchanged_cells(seen_in(earlier, before), seen)

    def withdraw(self, task: Task) -> None:
        """Leave a submission whose grading failed without marks, for a person to look at."""
        for path in (self._page(task), self._autograded(task)):
            with suppress(OSError):  # where nothing could be written, nothing is shown
                path.unlink()
        self.book.withdraw(*task.key)

    def renew(self, student: str, assignment: str) -> None:
        """Bring a graded submission's late penalty and feedback page up to date with its marks."""
        task = _of(student, assignment)
        self.book.penalise(*task.key, self._penalty)
        with suppress(OSError):
            self._feedback(task, self._made(task))

    def note(self, row: Row, what: str) -> None:
        """Say in a submission's log what has become of its marks."""
        _log(self.root, _of(row.student, row.assignment), f"{what}: {_total(row)}")

    def read(self, task: Task) -> Row:
        """The row of a graded submission."""
        with self.book.look():
            return read_row(self.book, task.student, task.assignment, unchanged=True)

    def _feedback(self, task: Task, data: bytes) -> Row:
        """Write the feedback page of a graded submission: a plain one if it cannot be made."""
        with self.book.look():
            found = self.book.find_submission_notebook(
                task.assignment, task.assignment, task.student
            )
            judgement = self.book.judgement(*task.key)
            row = row_of(found, task.student, task.assignment, judgement)
            marked = MarkedNotebook(
                {name: (mark.score, mark.points) for name, mark in row.marks.items()},
                {comment.name: comment.comment for comment in found.comments},
                found.score,
                found.max_score,
                found.late_submission_penalty or 0.0,
                row.verdicts,
            )
        try:
            page = self.pages.page(data, task.assignment, task.student, marked)
        except Exception as error:  # noqa: BLE001  (the marks stand, and the class goes on)
            note = f"Its feedback page is a plain one: {error}."[:500]
            _log(self.root, task, "has a plain page", note)
            row.notes.append(note)
            page = plain_page(task.assignment, task.student, marked)
        try:
            put(self._page(task), page.encode("utf-8", "replace"), 0o644)
        except OSError as error:
            if error.errno in FULL:
                raise
            row.notes.append(f"Its feedback page could not be written ({error.strerror}).")
            _log(self.root, task, "has no page", row.notes[-1])
        return row

    def _penalty(self, notebook: SubmittedNotebook, seconds_late: float) -> float | None:
        """What being late costs: by course.toml, or else by nbgrader's plugin."""
        student, score = notebook.student.id, notebook.score
        longer = self.course.person(student).extension.get(notebook.assignment.name)
        if longer is not None and notebook.assignment.extension != longer:  # it is a new one
            notebook.assignment.extension = longer
            seconds_late = notebook.assignment.total_seconds_late
        if seconds_late <= 0:
            return None
        if self.course.late is not None:
            return self.course.late.cost(score, seconds_late)
        plugin = self.late.plugin_inst
        penalty = plugin.late_submission_penalty(student, score, seconds_late)
        return None if penalty is None else self.late._check_late_penalty(notebook, penalty)

    def _autograded(self, task: Task) -> Path:
        folder = self.root / "autograded" / task.student / task.assignment
        return folder / f"{task.assignment}.ipynb"

    def _made(self, task: Task) -> bytes:
        """The contents of an autograded notebook. Raises `OSError`, and waits for nothing."""
        path = self._autograded(task)
        if not os.path.isfile(path):
            raise FileNotFoundError(f"{path} is not there, or no file")
        return path.read_bytes()

    def _page(self, task: Task) -> Path:
        return self.root / "feedback" / task.student / task.assignment / f"{task.assignment}.html"


def late_policy(root: Path) -> AssignLatePenalties:
    """nbgrader's late policy, as `nbgrader autograde` would find it in the course's folder.

    The course's own nbgrader_config.py comes before the user's, and that before the project's.
    Raises `ValueError` if the policy cannot be loaded.
    """
    if str(root) not in sys.path:
        sys.path.append(str(root))  # as nbgrader does: a policy may be a module of the course
    config = Config()
    folders = [str(course_root()), *reversed(jupyter_config_path()), str(root)]
    for folder in reversed(dict.fromkeys(reversed(folders))):  # the last one decides
        if Path(folder, "nbgrader_config.py").is_file():
            loader = PyFileConfigLoader("nbgrader_config.py", path=folder)
            config.merge(loader.load_config())
    try:
        policy = AssignLatePenalties(config=config)
        policy.init_plugin()
    except (TraitError, ImportError, AttributeError) as error:
        raise ValueError(f"nbgrader's late policy cannot be loaded: {error}") from error
    return policy


def _of(student: str, assignment: str) -> Task:
    """A submission by its name alone, for what does not depend on what was handed in."""
    return Task(student, assignment, Path(), Path(), "")


def _carry(beside: Path, texts: Mapping[str, str | None]) -> None:
    """Put texts beside a file, by name: nbgrader's exchange releases feedback by them."""
    for name, text in texts.items():
        if text is None:
            beside.with_name(name).unlink(missing_ok=True)
        else:
            put(beside.with_name(name), text.encode(), 0o444)


def put(path: Path, data: bytes, mode: int) -> None:
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
    text = "\n".join([f"{now} {what}", *(f"    {one_line(line)}" for line in lines)])
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as stream:
            stream.write(text + "\n")


def _total(row: Row) -> str:
    late = f" ({row.score:g}, and {row.penalty:g} off for being late)" if row.penalty else ""
    return f"{row.total:g} of {row.points:g} points{late}"


def _told(row: Row, times: int) -> Iterator[str]:
    """The log lines of a graded submission."""
    yield f"{row.status}: {_total(row)}, {row.seconds or 0:.2f} s"
    if times > 1:
        yield f"graded {times} times in all, on request or because the notebook was lost"
    if row.reason:
        yield row.reason
    for name, verdict in row.verdicts.items():
        mistake = f", known mistake {verdict.mistake}" if verdict.mistake else ""
        note = f": {verdict.note}" if verdict.note else ""
        yield f"{name}: {verdict.verdict}, {verdict.score:g}{mistake}{note}"
    yield from row.notes


def record_outcome(writer: Writer, task: Task, outcome: Outcome | Exception) -> Row:
    """Write one outcome to gradebook and feedback; if that fails, leave it without a mark."""
    try:
        if isinstance(outcome, Exception):
            raise outcome
        return writer.write(task, outcome)
    except GradebookLost:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            raise
        reason = f"{type(error).__name__}: {error}"[:2000]
        lines = "".join(traceback.format_exception(error)).splitlines()
        _log(writer.root, task, "failed", *(f"| {line}" for line in lines))
        writer.withdraw(task)
        return Row(task.student, task.assignment, FAILED, reason=reason)
