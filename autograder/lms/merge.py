"""Two names of one person become one: what was handed in, marks by hand and comments move over.

Of two notebooks of an assignment the later one counts, or, where times do not tell, the one with
answers, else the one already there; the other is kept in collected/<assignment>/earlier/. What a
person gave the second name stays; what only the first name has is added. What grading can make
again is left to the next `autograder grade`.

TRUST BOUNDARY. Ids and folders come from outside: ids are checked before they become paths, and
links are not followed.
"""

import os
import shutil
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from unicodedata import normalize

import nbformat
from nbgrader.api import MissingEntry, SubmittedAssignment, SubmittedNotebook
from nbgrader.utils import parse_utc

from autograder.gradebook import tables
from autograder.gradebook.course_file import read_course
from autograder.gradebook.gradebook import Book, database
from autograder.gradebook.graded_file import notebooks_in
from autograder.gradebook.submissions import (
    STUDENT,
    TIME,
    assignments_in,
    release_folder,
    timestamp_in,
)
from autograder.lms.record import folder_of, read_record, write_record
from autograder.notebook.effort import effort_in
from autograder.notebook.reading import UnusableFile, read_file

_MADE = ("autograded", "feedback", "logs")
_OURS = (tables.GRADED, tables.JUDGEMENTS, tables.SEEN, tables.ATTEMPTS, tables.EXTENSIONS)


def merge(root: Path, first: str, second: str, db: str | None = None) -> list[str]:
    """Make what a course has under the name `first` part of `second`; return what was done.

    Raises `ValueError` for ids that are unsafe, the same, or unknown.
    """
    first, second = normalize("NFC", first), normalize("NFC", second)
    for student in (first, second):
        if not STUDENT.fullmatch(student) or student != student.strip():
            raise ValueError(f"{student!r} is not a safe name for a student")
    if first == second:
        raise ValueError(f"{first} is one student already")
    release = release_folder(root)
    assignments, course = assignments_in(release), read_course(root)
    known = _folder(root, first).is_dir()
    told: list[str] = []
    if db is not None or (root / "gradebook.db").is_file():
        book = Book(database(root, db))
        try:
            known |= first in book.spelled()
            for name in assignments:
                compared = _texts(root, first, name) == _texts(root, second, name)
                told += _move_marks(book, name, first, second, compared)
            _remove(book, first)
        finally:
            book.close()
    if not known:
        raise ValueError(f"no student {first} in submitted/ or the gradebook")
    for name in assignments:
        told += _move_files(root, release, name, first, second, course.zone)
        places = read_record(root, name)
        if first in places:
            place = places.pop(first)
            write_record(root, name, {second: place} | places)
    for kind in ("submitted", *_MADE):
        _tidy(root / kind / first)
    if first in course.people:
        told.append(f"{first} is still in course.toml: take it out there")
    return [*told, "now run `autograder grade`"]


# --- the gradebook --------------------------------------------------------------------------------


def _move_marks(book: Book, name: str, first: str, second: str, same: bool) -> list[str]:
    with book.transaction():
        ids = {normalize("NFC", s.id): s.id for s in book.students}
        if first not in ids:
            return []
        one, other = ids[first], ids.get(second, second)
        try:
            found = book.find_submission(name, one)
        except MissingEntry:
            return []
        book.update_or_create_student(other)
        try:
            there = book.find_submission_notebook(name, name, other)
        except MissingEntry:
            table = SubmittedAssignment.__table__
            moved = table.update().where(table.c.id == found.id).values(student_id=other)
            book.db.execute(moved)
            for ours in _OURS:
                book.db.execute(ours.delete().where(tables.row_of(ours, name, other)))
                here = tables.row_of(ours, name, one)
                book.db.execute(ours.update().where(here).values(student=other))
            return [f"{name}: marks and comments of {first} are {second}'s now"]
        count = _add(book.find_submission_notebook(name, name, one), there, same)
        book.db.flush()
        return [f"{name}: {count} marks and comments by hand added to {second}'s"]


def _add(found: SubmittedNotebook, there: SubmittedNotebook, same: bool) -> int:
    """Add what a person gave one submission to the other; a mark waits if the answers differ."""
    grades = {given.name: given for given in there.grades}
    comments = {given.name: given for given in there.comments}
    count = 0
    for given in found.grades:
        ours = grades.get(given.name)
        if ours is None:
            continue
        if given.manual_score is not None and ours.manual_score is None:
            ours.manual_score = given.manual_score
            ours.needs_manual_grade = given.needs_manual_grade or not same
            count += 1
        if given.extra_credit and not ours.extra_credit:
            ours.extra_credit = given.extra_credit
            count += 1
    for given in found.comments:
        ours = comments.get(given.name)
        if ours is not None and given.manual_comment and not ours.manual_comment:
            ours.manual_comment = given.manual_comment
            count += 1
    return count


def _remove(book: Book, student: str) -> None:
    with book.transaction():
        ids = {normalize("NFC", s.id): s.id for s in book.students}
        if student not in ids:
            return
        book.db.expire_all()
        for assignment in book.assignments:
            for ours in _OURS:
                tables.remove(book.db, ours, assignment.name, ids[student])
        book.remove_student(ids[student])


def _texts(root: Path, student: str, name: str) -> list[str] | None:
    """The answers in a submission as they were graded; None if there are none."""
    path = root / "autograded" / student / name / f"{name}.ipynb"
    try:
        cells = nbformat.reads(read_file(path).decode(), as_version=4).cells
    except (OSError, ValueError):
        return None
    return [c.source for c in cells if c.metadata.get("nbgrader", {}).get("solution")]


# --- files ----------------------------------------------------------------------------------------


def _move_files(
    root: Path, release: Path, name: str, first: str, second: str, zone: tzinfo
) -> list[str]:
    one, other = _folder(root, first) / name, _folder(root, second) / name
    if one.is_symlink() or not one.is_dir() or one.parent.is_symlink():
        return []
    told = []
    if os.path.lexists(other):
        path = release / name / f"{name}.ipynb"
        loser = other if _rank(one, path, zone) > _rank(other, path, zone) else one
        kept = folder_of(root, name) / "earlier" / second
        kept.mkdir(parents=True, exist_ok=True)
        number = 1
        while os.path.lexists(kept / f"merged-{number}"):
            number += 1
        loser.rename(kept / f"merged-{number}")
        whose = first if loser is one else second
        told.append(f"{name}: what {whose} had handed in is in {kept / f'merged-{number}'}")
    if one.is_dir():
        other.parent.mkdir(parents=True, exist_ok=True)
        one.rename(other)
        told.append(f"{name}: what {first} had handed in counts for {second}")
    for kind in _MADE:
        made = f"{name}.log" if kind == "logs" else name
        source, target = root / kind / first / made, root / kind / second / made
        if os.path.lexists(source) and not os.path.lexists(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
    with suppress(OSError):  # the next `grade` makes it again, with all marks
        (root / "feedback" / second / name / f"{name}.html").unlink()
    return told


def _rank(folder: Path, release: Path, zone: tzinfo) -> tuple[int, datetime]:
    """Sorts submissions: by what was done in them, by time."""
    said = timestamp_in(folder / TIME, zone)
    moment = parse_utc(said).replace(tzinfo=UTC) if said else datetime.min.replace(tzinfo=UTC)
    try:
        effort = effort_in(read_file(notebooks_in(folder, release)[0]), release)
    except (OSError, UnusableFile, IndexError):
        effort = -1
    return effort, moment


def _folder(root: Path, student: str) -> Path:
    """A student's folder, in whatever Unicode form its name is there."""
    there = (root / "submitted").iterdir() if (root / "submitted").is_dir() else ()
    same = [path for path in there if normalize("NFC", path.name) == student]
    return same[0] if same else root / "submitted" / student


def _tidy(folder: Path) -> None:
    """Remove what grading makes again, and folders in which nothing is left."""
    if folder.is_dir() and not folder.is_symlink():
        if folder.parent.name in ("autograded", "feedback"):
            shutil.rmtree(folder, ignore_errors=True)
        elif not any(folder.iterdir()):
            folder.rmdir()
