"""A class: judge many submissions at once, and let one writer keep gradebook and feedback.

TRUST BOUNDARY. Folders and files under `submitted/` are hostile: names are checked before nbgrader
sees them, links are not followed, and students' code runs in the judge's sandboxes only. The
processes of the pool run our own code; they send the writer notebooks that are rebuilt and
verdicts that are ours. Whatever goes wrong with one submission is caught and told, and no mark
stands that was not earned: a submission whose grading failed has none.
"""

import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from io import StringIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells
from nbgrader.utils import parse_utc
from sqlalchemy.exc import SAWarning
from traitlets import Any as AnyTrait
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader

import autograder
from autograder.grading.preprocessors import (
    exercise_of,
    exercises_in,
    judge_notebook,
    secret_of,
)
from autograder.grading.rebuild import MAX_BYTES, Unusable, read_notebook, rebuild
from autograder.grading.sandbox import ISOLATIONS, IsolationError, Limits
from autograder.verdict import MISSING, Verdict, withheld

GRADED, UNUSABLE, FAILED = "graded", "unusable", "failed"
PROJECT = Path(autograder.__file__).resolve().parents[1]
STAGE = ".grading"
DONE = ".autograder.json"
ENGINE = (  # what decides about marks, besides a chapter's own files
    "exercises/aspects.py",
    "exercises/declaration.py",
    "grading/judge.py",
    "grading/preprocessors.py",
    "grading/rebuild.py",
    "grading/reference.py",
    "grading/sandbox.py",
    "grading/seccomp.py",
    "grading/warm.py",
    "grading/worker.py",
    "probe.py",
    "records.py",
    "table.py",
    "values.py",
    "verdict.py",
)
STUDENT = re.compile(r"[^\x00-\x1f\x7f<>&\"\\*?\[\]{}|./~ ][^\x00-\x1f\x7f<>&\"\\*?\[\]{}|/]{0,99}")


@dataclass(frozen=True)
class Options:
    """How to judge; goes to every process of the pool."""

    device: str = "cpu"
    isolation: str = "bwrap"
    cell_seconds: float = 60.0
    probe_seconds: float = 20.0
    memory_mb: int = 4096


@dataclass(frozen=True)
class Task:
    """One submission to judge: whose, of what, where it is, and what it is now."""

    student: str
    assignment: str
    folder: Path
    release: Path
    digest: str


@dataclass
class Outcome:
    """What came back from the pool: a rebuilt notebook as JSON, and the judgement of it."""

    notebook: str
    outputs: dict[int, list[dict[str, Any]]]
    verdicts: dict[str, Verdict]
    record: dict[str, Any]


@dataclass
class Mark:
    """The points of one graded cell. `by_hand` says that a person has yet to look at it."""

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
    """Everything that `grade` did. `ignored` tells what under `submitted/` was left alone."""

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
        return json.dumps({"submissions": rows, "ignored": self.ignored, "seconds": self.seconds})


class GradingError(Exception):
    """nbgrader could not do its part; the message holds its log."""


Progress = Callable[[Row, int, int], None]


def grade(
    submissions: Path = Path("submitted"),
    *,
    jobs: int | None = None,
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

    Gradebook, autograded/, feedback/ and the secret live in the parent of `submissions`, except
    that `db` may name another database. `release` holds the released notebooks (default: those
    of the course, else the project's). `jobs` is the number of processes (default: one per core).
    `progress` is called after each submission with its row, how many are done, and of how many.
    Raises `ValueError` if there is nothing to grade with, `BlockingIOError` if another run is on,
    `IsolationError` where students' code cannot be isolated.
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
    jobs = max(1, jobs or os.cpu_count() or 1)
    with _only_one(root), warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=SAWarning)  # nbgrader's way with its sessions
        secret = secret_of(root)
        tasks, ignored = find_tasks(submissions, release, options)
        writer = Writer(root, db or f"sqlite:///{root / 'gradebook.db'}", release)
        for assignment in sorted({task.assignment for task in tasks}):
            writer.register(assignment)
        rows: list[Row] = []
        todo: list[Task] = []

        def done(row: Row) -> None:
            rows.append(row)
            if progress is not None:
                progress(row, len(rows), len(tasks))

        for task in tasks:
            if not force and writer.finished(task):
                done(writer.read(task, unchanged=True))
            else:
                todo.append(task)
        for task, outcome in _judged(todo, secret, options, jobs):
            done(_recorded(writer, task, outcome))
        shutil.rmtree(root / STAGE, ignore_errors=True)
    rows.sort(key=lambda row: (row.assignment, row.student))
    return ClassResult(root, rows, ignored, round(time.monotonic() - started, 1))


def released(root: Path) -> Path:
    """The folder of released notebooks: the course's own, else the project's.

    Raises `ValueError` if neither is there.
    """
    for folder in (root / "notebooks", PROJECT / "notebooks"):
        if any(folder.glob("*/*.ipynb")):
            return folder
    raise ValueError("no released notebooks: run `autograder release` first")


@contextmanager
def _only_one(root: Path) -> Iterator[None]:
    """Hold the course to ourselves; raises `BlockingIOError` if another `grade` holds it."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BlockingIOError(f"{root} is being graded already") from None
    finally:
        os.close(handle)


# --- What there is to grade -----------------------------------------------------------------------


def find_tasks(submissions: Path, release: Path, options: Options) -> tuple[list[Task], list[str]]:
    """The submissions, and what else lies there, each with the reason why it is left alone."""
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
    """Whether a name is text that can be written and stands in one line."""
    return name.isprintable() and name.encode("utf-8", "replace").decode() == name


def _shown(name: str) -> str:
    return ascii(name)[1:-1][:80] if not _printable(name) else name[:80]


def _course_digest(release: Path, assignment: str, options: Options) -> str:
    """Changes when a submission must be judged again although it is the same."""
    path = release / assignment / f"{assignment}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    parts = [path]
    for slug in sorted({slug for slug, _ in exercises_in(notebook)}):
        parts += [PROJECT / "autograder" / "exercises" / f"{slug}.py"]
        parts += [PROJECT / "solutions" / f"{slug}.py"]
        parts += [PROJECT / "solutions" / "mistakes" / f"{slug}.py"]
    parts += [PROJECT / "autograder" / name for name in ENGINE]
    whole = hashlib.sha256(repr(options).encode())
    for part in parts:
        whole.update(part.read_bytes())
    return whole.hexdigest()


def _fingerprint(folder: Path) -> str:
    """What is in a submission, as far as it matters; the same text for the same submission."""
    try:
        return _contents(folder)
    except OSError as error:  # nobody else must wait for what cannot be read
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


def find_notebook(folder: Path, assignment: str, grade_ids: set[str]) -> tuple[dict, list[str]]:
    """The notebook handed in, as JSON, and notes. Raises `Unusable` if there is none to grade.

    A notebook under another name is taken if it is the only one and at least half of the grade
    ids are in it.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise Unusable(f"{assignment} is not a folder.")
    path = folder / f"{assignment}.ipynb"
    if os.path.lexists(path):
        return read_notebook(path), []
    others = [p for p in sorted(folder.iterdir()) if p.suffix == ".ipynb"]
    missing = f"There is no notebook {assignment}.ipynb"
    if not others:
        raise Unusable(f"{missing}.")
    if len(others) > 1:
        raise Unusable(f"{missing}, and it is not clear which of {len(others)} others to take.")
    notebook = read_notebook(others[0])
    found = set(_grade_ids(notebook["cells"])) & grade_ids
    if 2 * len(found) < len(grade_ids):
        raise Unusable(f"{missing}, and the one under another name is not it.")
    return notebook, [
        f"The notebook's name is {_shown(others[0].name)}; it was taken all the same."
    ]


def _grade_ids(cells: list[Any]) -> Iterator[str]:
    """The grade ids in hostile cells."""
    for cell in cells:
        metadata = cell.get("metadata") if isinstance(cell, dict) else None
        mark = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        grade_id = mark.get("grade_id") if isinstance(mark, dict) else None
        if isinstance(grade_id, str):
            yield grade_id


# --- Judging: in the pool -------------------------------------------------------------------------


def judge_task(task: Task, secret: bytes, options: Options) -> Outcome:
    """Judge one submission. Runs in a process of the pool."""
    release = nbformat.read(task.release, as_version=4)
    ids = {cell.metadata.get("nbgrader", {}).get("grade_id") for cell in release.cells} - {None}
    try:
        submitted, notes = find_notebook(task.folder, task.assignment, ids)
    except Unusable as error:
        return _unusable(release, str(error))
    notebook, more = rebuild(release, submitted)
    judged = judge_notebook(
        notebook,
        secret,
        task.student,
        task.assignment,
        device=options.device,
        isolation=options.isolation,
        limits=Limits(
            memory_mb=options.memory_mb,
            cell_seconds=options.cell_seconds,
            probe_seconds=options.probe_seconds,
        ),
    )
    record = {
        "status": GRADED,
        "notes": [*notes, *more, *judged.notes],
        "seconds": round(judged.seconds, 3),
    }
    return Outcome(nbformat.writes(notebook), judged.outputs, judged.verdicts, record)


def _unusable(release: NotebookNode, reason: str) -> Outcome:
    """The released notebook, headed by the reason, with no marks."""
    notebook, _ = rebuild(release, {})
    head = f"# This submission could not be graded\n\n**{reason}** It counts as not answered."
    notebook.cells.insert(0, new_markdown_cell(head, id="added-0"))
    verdicts = {e.name: withheld(e, MISSING, reason) for _, e in exercises_in(release)}
    record = {"status": UNUSABLE, "reason": reason, "notes": [], "seconds": 0.0}
    return Outcome(nbformat.writes(notebook), {}, verdicts, record)


def _judged(
    tasks: Sequence[Task], secret: bytes, options: Options, jobs: int
) -> Iterator[tuple[Task, Outcome | Exception]]:
    """Each task with its outcome, as they come; a task whose process died is tried once more."""
    again: list[Task] = []
    for task, outcome in _pooled(tasks, secret, options, jobs):
        if isinstance(outcome, Exception):
            again.append(task)
        else:
            yield task, outcome
    for task in again:  # alone, so that nothing else can be the reason
        yield from _pooled([task], secret, options, 1)


def _pooled(
    tasks: Sequence[Task], secret: bytes, options: Options, jobs: int
) -> Iterator[tuple[Task, Outcome | Exception]]:
    if not tasks:
        return
    context = get_context("forkserver")
    context.set_forkserver_preload([__name__, "torch"])  # imported once, for every process
    pool = ProcessPoolExecutor(min(jobs, len(tasks)), mp_context=context)
    try:
        futures: dict[Future, Task] = {
            pool.submit(judge_task, task, secret, options): task for task in tasks
        }
        for future in as_completed(futures):
            error = future.exception()
            if isinstance(error, IsolationError) or not isinstance(error, Exception | None):
                raise error
            yield futures[future], error or future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


# --- Recording: the one writer --------------------------------------------------------------------


def _recorded(writer: "Writer", task: Task, outcome: Outcome | Exception) -> Row:
    """Write one outcome into gradebook and feedback; on any failure leave no mark."""
    try:
        if isinstance(outcome, Exception):
            raise outcome
        writer.write(task, outcome)
        return writer.read(task)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"[:2000]
        try:
            writer.withdraw(task)
        except Exception as second:
            reason += f" (and {type(second).__name__}: {second})"[:500]
        return Row(task.student, task.assignment, FAILED, reason=reason)


class _Graded(Autograde):
    """nbgrader's own converter, on one staged submission whose judgement is made."""

    judgement = AnyTrait()

    def init_notebooks(self) -> None:
        _one_notebook(self)

    def init_single_notebook_resources(self, notebook_filename: str) -> dict[str, Any]:
        resources = super().init_single_notebook_resources(notebook_filename)
        return resources | {"autograder": self.judgement}


class _Feedback(GenerateFeedback):
    def init_notebooks(self) -> None:
        _one_notebook(self)


def _one_notebook(converter: Any) -> None:
    """Set what nbgrader would look for by glob, which a folder's name could mislead."""
    assignment, student = converter.coursedir.assignment_id, converter.coursedir.student_id
    folder = converter._format_source(assignment, student)
    converter.assignments = {folder: [os.path.join(folder, f"{assignment}.ipynb")]}
    converter.notebooks = []


class Writer:
    """Owns the gradebook, autograded/ and feedback/ of one course."""

    def __init__(self, root: Path, db_url: str, release: Path):
        self.root, self.db_url, self.release = root, db_url, release
        self.config = PyFileConfigLoader("nbgrader_config.py", path=str(PROJECT)).load_config()
        self.config.CourseDirectory.merge(
            Config(
                root=str(root),
                db_url=db_url,
                release_directory=str(release),
                submitted_directory=STAGE,
                autograded_directory="autograded",
                feedback_directory="feedback",
            )
        )

    def register(self, assignment: str) -> None:
        """Make sure that the gradebook knows an assignment as it is released now."""
        path = self.release / assignment / f"{assignment}.ipynb"
        notebook = nbformat.read(path, as_version=4)
        with Gradebook(self.db_url) as gradebook:
            if _known(gradebook, assignment, notebook):
                return
            gradebook.update_or_create_assignment(assignment)
        ours = {"notebook": assignment, "assignment": assignment, "db_url": self.db_url}
        SaveCells(parent=None).preprocess(notebook, {"nbgrader": ours})

    def finished(self, task: Task) -> bool:
        """Whether this very submission is graded, recorded, and has its feedback."""
        try:
            done = json.loads((self._autograded(task) / DONE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        page = self.root / "feedback" / task.student / task.assignment / f"{task.assignment}.html"
        if not isinstance(done, dict) or done.get("digest") != task.digest or not page.is_file():
            return False
        with Gradebook(self.db_url) as gradebook:
            try:
                gradebook.find_submission(task.assignment, task.student)
            except MissingEntry:
                return False
        return True

    def write(self, task: Task, outcome: Outcome) -> None:
        """Record a judgement: gradebook, autograded notebook, feedback, and then that it is done.

        Raises `GradingError` if nbgrader fails.
        """
        stage = self.root / STAGE / task.student / task.assignment
        shutil.rmtree(self.root / STAGE, ignore_errors=True)
        stage.mkdir(parents=True)
        staged = stage / f"{task.assignment}.ipynb"
        staged.write_text(outcome.notebook, encoding="utf-8")
        timestamp = _timestamp(task.folder / "timestamp.txt")
        if timestamp is not None:
            (stage / "timestamp.txt").write_text(timestamp, encoding="utf-8")
        judgement = {
            "outputs": outcome.outputs,
            "verdicts": outcome.verdicts,
            "record": outcome.record,
        }
        self._run(_Graded, task, judgement=judgement)
        self._run(_Feedback, task)
        done = self._autograded(task) / DONE
        fresh = done.with_name(DONE + ".new")
        fresh.write_text(json.dumps({"digest": task.digest}), encoding="utf-8")
        fresh.replace(done)

    def withdraw(self, task: Task) -> None:
        """Leave no mark of a submission whose grading failed, and have a person look at it."""
        with Gradebook(self.db_url) as gradebook:
            gradebook.update_or_create_student(task.student)
            gradebook.update_or_create_submission(task.assignment, task.student)
            where = (task.assignment, task.assignment, task.student)
            for given in gradebook.find_submission_notebook(*where).grades:
                given.auto_score, given.needs_manual_grade = None, True
            gradebook.db.commit()
        (self._autograded(task) / DONE).unlink(missing_ok=True)

    def read(self, task: Task, unchanged: bool = False) -> Row:
        """The row of a graded submission, from the gradebook and the autograded notebook."""
        with Gradebook(self.db_url) as gradebook:
            return read_row(gradebook, self.root, task.student, task.assignment, unchanged)

    def _autograded(self, task: Task) -> Path:
        return self.root / "autograded" / task.student / task.assignment

    def _run(self, kind: type, task: Task, **traits: Any) -> None:
        """Run one of nbgrader's converters on one submission, quietly."""
        log, buffer = logging.getLogger(f"{__name__}.nbgrader"), StringIO()
        log.propagate, log.handlers = False, [logging.StreamHandler(buffer)]
        log.setLevel(logging.WARNING)
        coursedir = CourseDirectory(config=self.config, log=log)
        coursedir.assignment_id, coursedir.student_id = task.assignment, task.student
        converter = kind(coursedir=coursedir, config=self.config, log=log, force=True, **traits)
        try:
            converter.start()
        except (Exception, SystemExit) as error:
            lines = [line for line in buffer.getvalue().splitlines() if line.strip()]
            raise GradingError("\n".join(lines[-12:]) or str(error)) from error


def _known(gradebook: Gradebook, assignment: str, notebook: NotebookNode) -> bool:
    """Whether the gradebook's record of an assignment is that of the released notebook."""
    try:
        known = gradebook.find_notebook(assignment, assignment)
    except MissingEntry:
        return False
    marks = [cell.metadata["nbgrader"] for cell in notebook.cells if "nbgrader" in cell.metadata]
    ours = {mark["grade_id"]: mark.get("checksum") for mark in marks}
    points = {mark["grade_id"]: float(mark["points"]) for mark in marks if mark["grade"]}
    theirs = {cell.name: cell.checksum for cell in known.source_cells}
    return ours == theirs and points == {c.name: c.max_score for c in known.grade_cells}


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
    gradebook: Gradebook, root: Path, student: str, assignment: str, unchanged: bool = False
) -> Row:
    """What gradebook and autograded notebook say of one submission.

    A submission without an autograded notebook has failed. Raises `MissingEntry` if the gradebook
    has none.
    """
    submission = gradebook.find_submission_notebook(assignment, assignment, student)
    marks = {
        given.name: Mark(
            float(given.score or 0.0), float(given.max_score), bool(given.needs_manual_grade)
        )
        for given in submission.grades
    }
    row = Row(student, assignment, FAILED, marks=marks, unchanged=unchanged)
    row.points = round(sum(mark.points for mark in marks.values()), 6)
    row.score = round(sum(mark.score for mark in marks.values()), 6)
    path = root / "autograded" / student / assignment / f"{assignment}.ipynb"
    if not path.is_file():
        row.reason = "There is no autograded notebook: grade this submission again."
        return row
    notebook = nbformat.read(path, as_version=4)
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
    with Gradebook(db or f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        pairs = sorted(
            (assignment.name, submission.student.id)
            for assignment in gradebook.assignments
            for submission in assignment.submissions
        )
        return [read_row(gradebook, root, student, name) for name, student in pairs]
