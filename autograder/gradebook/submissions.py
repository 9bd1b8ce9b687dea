"""What there is to grade: the submissions under a folder, and what a judge gets to see of each.

TRUST BOUNDARY. Folders and files under `submitted/` are hostile: names are checked before use,
links are not followed, and files are read as bytes only. A job holds what was handed in and the
seeds for it; neither the course's secret nor the student's name.
"""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize

import nbformat
from dateutil import parser, tz
from nbformat import NotebookNode
from nbgrader.utils import parse_utc

from autograder.gradebook.command_suggestions import assignment_named, select
from autograder.gradebook.graded_file import (
    MOST_TOLD,
    data_in,
    is_printable,
    notebooks_in,
    passed_over,
    shown_name,
)
from autograder.gradebook.scripts import SUFFIX
from autograder.gradebook.times import clock_to_utc, moment_in
from autograder.judge.job import Job, Options, version_of
from autograder.judge.judge_notebook import exercises_in, seeds_of
from autograder.notebook.reading import MAX_BYTES, UnusableFile, exercise_of, read_file, text_in
from autograder.student import course
from autograder.student.course import find_exercise

TIME, EXCHANGE_SECRET = "timestamp.txt", "submission_secret.txt"
_YEARS = range(2000, 2100)  # in which a notebook can have come
_ZONE = re.compile(r"[A-Za-z][\w+-]*(/[\w+-]+)*")
STUDENT = re.compile(r"[^\x00-\x1f\x7f<>&\"\\*?\[\]{}|./~ ][^\x00-\x1f\x7f<>&\"\\*?\[\]{}|/]{0,99}")


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


def release_folder(root: Path) -> Path:
    """The folder of released notebooks: the course's own, else the project's.

    Raises `ValueError` if neither exists.
    """
    for folder in (root / "notebooks", course.root() / "notebooks"):
        if any(folder.glob("*/*.ipynb")):
            return folder
    raise ValueError("no released notebooks: run `autograder release` first")


def check_release(release: Path, assignment: str) -> None:
    """Make sure that a released notebook gives the points that the exercises give now.

    Raises `ValueError` if not: submissions would be judged by one and marked by the other.
    """
    _, notebook = read_release(release / assignment / f"{assignment}.ipynb")
    for cell in notebook.cells:
        name = exercise_of(cell)
        if name is None:
            continue
        slug, exercise = find_exercise(name)
        said = float(cell.metadata["nbgrader"]["points"])
        if abs(said - exercise.points) > 1e-6:
            raise ValueError(
                f"{assignment} was released with {said:g} points for {name}, which is now worth "
                f"{exercise.points:g}: run `autograder release {slug}` first"
            )


def assignments_in(release: Path) -> list[str]:
    """The assignments that have been released."""
    return sorted(p.parent.name for p in release.glob("*/*.ipynb") if p.stem == p.parent.name)


def find_tasks(
    submissions: Path,
    release: Path,
    options: Options,
    students: Sequence[str] | None = None,
    only: Sequence[str] | None = None,
    zone: tzinfo = UTC,
) -> tuple[list[Task], list[str]]:
    """The submissions, and the other entries, each with the reason why it is skipped.

    `students` and `only` (assignments) narrow it down; `zone` is that of the course's clock. A
    student is found by name, in whatever Unicode form the folder has it. Raises `ValueError` for a
    student or assignment that is not there.
    """
    assignments = assignments_in(release)
    places = [place for place in sorted(submissions.iterdir()) if place.name[:1] != "."]
    names = sorted({normalize("NFC", place.name) for place in places})
    asked = select(students, names, "student's folder")
    wanted = select(only, assignments, "assignment", aliases=True) or {*assignments}
    found: dict[tuple[str, str], list[Path]] = {}
    ignored: list[str] = []
    for place in places:
        if asked is not None and normalize("NFC", place.name) not in asked:
            continue
        try:
            here, told = _looked_into(place, assignments)
        except OSError as error:
            here, told = [], [f"{shown_name(place.name)}: cannot be read ({error.strerror})"]
        ignored += told
        for assignment in wanted.intersection(here):
            key = normalize("NFC", place.name), assignment
            found.setdefault(key, []).append(place / assignment)
    digests = {name: _course_digest(release, name, options) for name in {key[1] for key in found}}
    tasks = []
    for (student, assignment), folders in sorted(found.items()):
        *others, folder = sorted(folders, key=_when) if len(folders) > 1 else folders
        if has_odd_time(folder, zone):
            ignored.append(f"{student}/{assignment}/{TIME}: {ODD_TIME}")
        ignored += [
            f"{other.parent.name}/{assignment}: the same student has a newer one, in a folder "
            "whose name looks the same and is written in another Unicode form"
            for other in others
        ]
        path = release / assignment / f"{assignment}.ipynb"
        ignored += passed_over(folder, path)
        digest = hashlib.sha256(f"{digests[assignment]} {_fingerprint(folder, path)}".encode())
        tasks.append(Task(student, assignment, folder, path, digest.hexdigest()))
    return tasks, ignored


def _looked_into(place: Path, assignments: Sequence[str]) -> tuple[list[str], list[str]]:
    """The assignments in a student's folder, and the other entries with the reasons."""
    name = place.name
    if place.is_symlink() or not place.is_dir():
        return [], [f"{shown_name(name)}: not a student's folder"]
    if not STUDENT.fullmatch(name) or name != name.strip() or not is_printable(name):
        return [], [f"{shown_name(name)}: rename the folder; not a safe name for a student"]
    there = sorted(os.listdir(place))
    here = [name for name in assignments if name in there]
    others = [n for n in there if n not in assignments and not n.startswith(".")]
    told = [
        f"{name}/{shown_name(n)}: no assignment of that name"
        + (f"; if it is {meant}, rename it" if (meant := assignment_named(n, assignments)) else "")
        for n in others[:MOST_TOLD]
    ]
    if len(others) > MOST_TOLD:
        told.append(f"{name}: {len(others) - MOST_TOLD} more entries that are no assignments")
    return here, told if there else [f"{name}: handed in nothing"]


def _when(folder: Path) -> tuple[float, float]:
    """When a submission came: by its timestamp, else by its files."""
    stamp = timestamp_in(folder / TIME)
    try:
        paths = [folder, *folder.glob("*.ipynb")]
        changed = max(path.lstat().st_mtime for path in paths)
    except OSError:
        changed = 0.0
    return (parse_utc(stamp).replace(tzinfo=UTC).timestamp() if stamp else 0.0, changed)


def _course_digest(release: Path, assignment: str, options: Options) -> str:
    """A digest that changes when an unchanged submission has to be judged again."""
    path = release / assignment / f"{assignment}.ipynb"
    version = version_of(slug for slug, _ in exercises_in(nbformat.read(path, as_version=4)))
    whole = hashlib.sha256(repr((options, version)).encode())
    whole.update(path.read_bytes())
    return whole.hexdigest()


def _fingerprint(folder: Path, release: Path) -> str:
    """The relevant contents of a submission; the same text for the same submission."""
    try:
        return _contents(folder, release)
    except OSError as error:  # what cannot be read must not hold up the others
        return f"unreadable: {error.errno}"


def _contents(folder: Path, release: Path) -> str:
    if folder.is_symlink() or not folder.is_dir():
        return f"mode {folder.lstat().st_mode}"
    parts = []
    for path in [*notebooks_in(folder, release), folder / TIME]:
        if os.path.lexists(path):
            parts += [f"{path.name!r} {path.lstat().st_mode}", _contents_of(path)]
    return "\n".join(parts)


def _contents_of(path: Path) -> str:
    info = path.lstat()
    if path.is_file() and not path.is_symlink() and info.st_size <= MAX_BYTES:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{info.st_size} {info.st_mtime_ns}"


def submission_digest(folder: Path, release: Path) -> str:
    """The digest of what a student handed in, whatever the time and the grader's version."""
    try:
        parts = [_contents_of(path) for path in notebooks_in(folder, release)]
    except OSError as error:
        parts = [f"unreadable: {error.errno}"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def find_file(folder: Path, assignment: str, release: Path) -> tuple[bytes, str | None]:
    """The notebook handed in, and its name if it is not the expected one.

    Raises `UnusableFile` if there is none to grade.
    """
    if folder.is_symlink() or not folder.is_dir():
        raise UnusableFile(f"{assignment} is not a folder.")
    there = notebooks_in(folder, release)
    missing = f"There is no notebook {assignment}.ipynb"
    if not there:
        raise UnusableFile(f"{missing}.")
    if len(there) > 1:
        raise UnusableFile(f"{missing}, and it is not clear which of the others to take.")
    name, data = data_in(there[0])
    is_named = name == f"{assignment}.ipynb" or name.casefold().endswith(SUFFIX)
    return data, None if is_named else shown_name(name)


def job_for(task: Task, secret: bytes, options: Options, elsewhere: bool) -> Job:
    """What the judge, here or on another machine, gets to see of a submission."""
    text, notebook = read_release(task.release)
    slugs = {slug for slug, _ in exercises_in(notebook)}
    version = version_of(slugs) if elsewhere else None
    problem, data, renamed = None, b"", None
    try:
        data, renamed = find_file(task.folder, task.assignment, task.release)
    except UnusableFile as error:
        problem = str(error)
    except OSError as error:
        problem = f"The folder cannot be read ({error.strerror})."
    seeds = seeds_of(notebook, secret, task.student, task.assignment)
    return Job(task.assignment, text, data, problem, renamed, seeds, options, version)


@lru_cache(maxsize=32)
def read_release(path: Path) -> tuple[bytes, NotebookNode]:
    """A released notebook, as bytes and parsed; not to be changed."""
    text = path.read_bytes()
    return text, nbformat.v4.reads(text.decode())


ODD_TIME = "holds no date and time that can be read: whether it came late is not known"


def secret_in(path: Path) -> str | None:
    """The secret that nbgrader's exchange noted for a submission, by which it releases feedback."""
    text = _line_in(path)
    return text if text and re.fullmatch(r"[0-9a-f]{32,}\s*", text) else None


def timestamp_in(path: Path, zone: tzinfo = UTC) -> str | None:
    """The time of submission that a file gives, if it says all of it, in a form nbgrader reads.

    One without a zone is by the clock of `zone`; nbgrader takes it for UTC.
    """
    text = (_line_in(path) or "").strip("\ufeff \t\r\n")
    if not text.isprintable():
        return None
    if not _is_time(text):
        moment = None if re.match(r"\d{4}-", text) else moment_in(text, zone)
    elif zone is UTC or _names_zone(text):
        return text
    else:
        moment = clock_to_utc(parse_utc(text), zone)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment and moment.year in _YEARS else None


def _names_zone(text: str) -> bool:
    return (
        len(text.split(" ")) == 3
        and bool(_ZONE.fullmatch(text.split(" ")[2]))
        or (parser.parse(text, tzinfos=_zone).tzinfo is not None)
    )


def has_odd_time(folder: Path, zone: tzinfo) -> bool:
    """Whether a submission has a timestamp that says no time."""
    path = folder / TIME
    there = not folder.is_symlink() and os.path.lexists(path)
    return there and timestamp_in(path, zone) is None


def _line_in(path: Path) -> str | None:
    """The text of a small file in a submission's folder; None if there is no such file."""
    try:
        data = b"" if path.parent.is_symlink() else read_file(path)
        return text_in(data) if len(data) <= 1000 else None
    except (UnusableFile, OSError):
        return None


def _is_time(text: str) -> bool:
    """Whether a text says a date, down to the minute, that nbgrader reads as it is meant.

    What a text leaves open, nbgrader fills in from the present day; a zone that it does not know
    it takes for UTC, and a number for seconds.
    """
    *_, zone = parts = text.split(" ")
    if len(parts) == 3:  # nbgrader's own form: date, time, zone
        text = " ".join(parts[:2])
        if not _ZONE.fullmatch(zone) or tz.gettz(zone) is None:
            return False
    try:
        is_iso = re.match(r"\d{4}-", text)
        one, other = (
            parser.parse(text, None, default=at, dayfirst=at.day == 2 and not is_iso, tzinfos=_zone)
            for at in (datetime(2000, 1, 1, 1, 1), datetime(2001, 2, 2, 2, 2))
        )
        return one == other and parse_utc(" ".join(parts)).year in _YEARS
    except (ValueError, ArithmeticError, TypeError):
        return False


def _zone(name: str | None, seconds: int | None) -> tzinfo | None:
    """The zone of an offset, if there is one; raises `ValueError` for a name without."""
    if seconds is None and name is not None:
        raise ValueError(name)
    return None if seconds is None else tz.tzoffset(name, seconds)
