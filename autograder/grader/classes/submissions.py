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
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize

import nbformat
from nbformat import NotebookNode
from nbgrader.utils import parse_utc

from autograder import course
from autograder.exercises import find_exercise
from autograder.grader.classes.calls import chosen
from autograder.grader.notebook.judging import exercises_in, seeds_of
from autograder.grader.notebook.reading import MAX_BYTES, Unusable, exercise_of, read_file
from autograder.grader.work import Job, Options, version_of

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


def released(root: Path) -> Path:
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
) -> tuple[list[Task], list[str]]:
    """The submissions, and the other entries, each with the reason why it is skipped.

    `students` and `only` (assignments) narrow it down. A student is found by name, in whatever
    Unicode form the folder has it. Raises `ValueError` for a student or assignment that is not
    there.
    """
    assignments = assignments_in(release)
    places = [place for place in sorted(submissions.iterdir()) if place.name[:1] != "."]
    names = sorted({normalize("NFC", place.name) for place in places})
    asked = chosen(students, names, "student's folder")
    wanted = chosen(only, assignments, "assignment", aliases=True) or {*assignments}
    found: dict[tuple[str, str], list[Path]] = {}
    ignored: list[str] = []
    for place in places:
        name = place.name
        if asked is not None and normalize("NFC", name) not in asked:
            continue
        if place.is_symlink() or not place.is_dir():
            ignored.append(f"{_shown(name)}: not a student's folder")
        elif not STUDENT.fullmatch(name) or name != name.strip() or not _printable(name):
            ignored.append(f"{_shown(name)}: rename the folder; not a safe name for a student")
        else:
            here = [a for a in assignments if os.path.lexists(place / a)]
            ignored += [
                f"{name}/{_shown(p.name)}: no assignment of that name"
                for p in sorted(place.iterdir())
                if p.name not in assignments and not p.name.startswith(".")
            ]
            if not here and not any(place.iterdir()):
                ignored.append(f"{name}: handed in nothing")
            for assignment in wanted.intersection(here):
                found.setdefault((normalize("NFC", name), assignment), []).append(
                    place / assignment
                )
    digests = {name: _course_digest(release, name, options) for name in wanted}
    tasks = []
    for (student, assignment), folders in sorted(found.items()):
        *others, folder = sorted(folders, key=_when)
        ignored += [
            f"{other.parent.name}/{assignment}: the same student has a newer one, in a folder "
            "whose name looks the same and is written in another Unicode form"
            for other in others
        ]
        digest = hashlib.sha256(f"{digests[assignment]} {_fingerprint(folder)}".encode())
        path = release / assignment / f"{assignment}.ipynb"
        tasks.append(Task(student, assignment, folder, path, digest.hexdigest()))
    return tasks, ignored


def _when(folder: Path) -> tuple[float, float]:
    """When a submission came: by its timestamp, else by its files."""
    stamp = timestamp_in(folder / "timestamp.txt")
    paths = [folder, *folder.glob("*.ipynb")] if folder.is_dir() else [folder]
    changed = max(path.lstat().st_mtime for path in paths)
    return (parse_utc(stamp).timestamp() if stamp else 0.0, changed)


def _printable(name: str) -> bool:
    """Whether a name is encodable text on one line."""
    return name.isprintable() and name.encode("utf-8", "replace").decode() == name


def _shown(name: str) -> str:
    return ascii(name)[1:-1][:80] if not _printable(name) else name[:80]


def _course_digest(release: Path, assignment: str, options: Options) -> str:
    """A digest that changes when an unchanged submission has to be judged again."""
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
        parts += [f"{path.name!r} {path.lstat().st_mode}", _contents_of(path)]
    return "\n".join(parts)


def _contents_of(path: Path) -> str:
    info = path.lstat()
    if path.is_file() and not path.is_symlink() and info.st_size <= MAX_BYTES:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{info.st_size} {info.st_mtime_ns}"


def handed_in_as(folder: Path) -> str:
    """The digest of what a student handed in, whatever the time and the grader's version."""
    try:
        names = sorted(path for path in folder.iterdir() if path.suffix == ".ipynb")
        parts = [_contents_of(path) for path in names]
    except OSError as error:
        parts = [f"unreadable: {error.errno}"]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


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


def job_for(task: Task, secret: bytes, options: Options, elsewhere: bool) -> Job:
    """What the judge, here or on another machine, gets to see of a submission."""
    text, notebook = read_release(task.release)
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
def read_release(path: Path) -> tuple[bytes, NotebookNode]:
    """A released notebook, as bytes and parsed; not to be changed."""
    text = path.read_bytes()
    return text, nbformat.v4.reads(text.decode())


def secret_in(path: Path) -> str | None:
    """The secret that nbgrader's exchange noted for a submission, by which it releases feedback."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 1000:
        return None
    text = path.read_bytes().decode("ascii", "replace")
    return text if re.fullmatch(r"[0-9a-f]{32,}\s*", text) else None


def timestamp_in(path: Path) -> str | None:
    """The time of submission that a file gives, if it is one that nbgrader can read."""
    if path.is_symlink() or not path.is_file() or path.stat().st_size > 100:
        return None
    try:
        text = path.read_text(encoding="utf-8").strip()
        return text if text and parse_utc(text) else None
    except (ValueError, OverflowError):
        return None
