"""course.toml: a course's chapters, due dates, late policy and people, and its book's address.

    chapters = ["01_kernel_regression", "02_attention_scoring"]   # of this term; default: all
    timezone = "Europe/Berlin"
    cell_seconds = 120       # how long a cell may compute; default: 60

    [book]
    address = "https://example.org/attention/"

    [due]
    01_averages = 2030-03-01T12:00:00

    [late]                   # without it, nbgrader's policy counts
    grace_minutes = 15
    per_day = 0.1            # of the marks, for each day begun
    at_most = 0.5            # of the marks

    [students.ada]
    first_name = "Ada"
    last_name = "King"
    email = "ada@example.org"
    extension = { 01_averages = 2.5 }   # in days

    [students.ivo]
    withdrawn = true

TRUST BOUNDARY. The file is the instructor's own. What it says is checked, so that a slip of the pen
is reported with its place and never changes a mark silently.
"""

import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from math import ceil, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from autograder.gradebook.command_suggestions import assignment_named
from autograder.sandbox.limits import Limits

if TYPE_CHECKING:
    from autograder.gradebook.gradebook import Book

FILE = "course.toml"
_NAMES = ("first_name", "last_name", "email")
_DAY = 24 * 3600.0


@dataclass(frozen=True)
class Late:
    """What being late costs: a share of the marks for each day begun after some grace."""

    per_day: float
    at_most: float = 1.0
    grace_minutes: float = 0.0

    def cost(self, score: float, seconds: float) -> float:
        """The points that a score loses for being so many seconds late."""
        days = ceil(max(0.0, seconds - 60 * self.grace_minutes) / _DAY)
        return round(score * min(self.at_most, self.per_day * days), 2)


@dataclass(frozen=True)
class Person:
    """A student: what the gradebook should say about them, and how much extra time they have."""

    details: Mapping[str, str] = field(default_factory=dict)
    extension: Mapping[str, timedelta] = field(default_factory=dict)
    withdrawn: bool = False


@dataclass(frozen=True)
class CourseFile:
    """What course.toml says; empty if there is none. Students are keyed by their ids in form NFC.

    `chapters` are those of this term, as they were named; none means all. `address` is where the
    book is published, without a slash at its end.
    """

    due: Mapping[str, datetime] = field(default_factory=dict)
    late: Late | None = None
    people: Mapping[str, Person] = field(default_factory=dict)
    chapters: tuple[str, ...] = ()
    address: str = ""
    zone: tzinfo = UTC
    cell_seconds: float = Limits.cell_seconds

    def withdrawn(self, student: str) -> bool:
        return self.person(student).withdrawn

    def person(self, student: str) -> Person:
        return self.people.get(normalize("NFC", student), Person())


def read_course(root: Path, assignments: Sequence[str] | None = None) -> CourseFile:
    """Read the file of a course; `assignments` are those that it may name.

    Raises `ValueError`, which names the file and the key, for anything that cannot be meant.
    """
    path = root / FILE
    if not path.is_file():
        return CourseFile()
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
        return _course(tree, assignments)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, _Slip) as error:
        raise ValueError(f"{path.name}: {error}") from None


class _Slip(ValueError):
    """Something that cannot be meant."""


def _course(tree: dict[str, Any], assignments: Sequence[str] | None) -> CourseFile:
    _refuse_unknown_keys(
        tree, ("chapters", "timezone", "cell_seconds", "book", "due", "late", "students"), ""
    )
    try:
        zone = ZoneInfo(tree["timezone"]) if "timezone" in tree else UTC
    except (ZoneInfoNotFoundError, ValueError, TypeError):
        raise _Slip(f"timezone: {tree['timezone']!r} is not a time zone") from None
    due = {
        _assignment(name, assignments, "due"): _moment(when, zone, f"due.{name}")
        for name, when in _table(tree, "due").items()
    }
    late = None
    if "late" in tree:
        given = _table(tree, "late")
        _refuse_unknown_keys(given, ("per_day", "at_most", "grace_minutes"), "late.")
        if "per_day" not in given:
            raise _Slip("late.per_day is missing")
        shares = {key: _number(given[key], f"late.{key}", 1.0) for key in given if key[0] != "g"}
        grace = _number(given.get("grace_minutes", 0), "late.grace_minutes")
        late = Late(**shares, grace_minutes=grace)
    people = {
        normalize("NFC", student): _person(student, person, assignments)
        for student, person in _table(tree, "students").items()
    }
    seconds = _number(tree.get("cell_seconds", Limits.cell_seconds), "cell_seconds", 86_400)
    if seconds < 1:
        raise _Slip(f"cell_seconds: expected at least 1, got {seconds:g}")
    chapters = _chapters(tree, assignments)
    return CourseFile(due, late, people, chapters, _address(tree), zone, seconds)


def _chapters(tree: dict[str, Any], assignments: Sequence[str] | None) -> tuple[str, ...]:
    given = tree.get("chapters", [])
    if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
        raise _Slip(f"chapters: expected a list of names, got {given!r}")
    return tuple(_assignment(name, assignments, "chapters") for name in given)


def _address(tree: dict[str, Any]) -> str:
    given = _table(tree, "book")
    _refuse_unknown_keys(given, ("address",), "book.")
    address = given.get("address", "")
    parts = urlsplit(address) if isinstance(address, str) else None
    if address and (parts is None or parts.scheme not in ("http", "https") or not parts.hostname):
        raise _Slip(f"book.address: expected something like https://example.org/, got {address!r}")
    return address.rstrip("/")


def _person(student: str, given: object, assignments: Sequence[str] | None) -> Person:
    place = f"students.{student}"
    if not isinstance(given, dict):
        raise _Slip(f"{place}: expected a table")
    _refuse_unknown_keys(given, (*_NAMES, "extension", "withdrawn"), f"{place}.")
    told = {key: given[key] for key in _NAMES if key in given}
    for key, value in told.items():
        if not isinstance(value, str):
            raise _Slip(f"{place}.{key}: expected a text, got {value!r}")
    withdrawn = given.get("withdrawn", False)
    if not isinstance(withdrawn, bool):
        raise _Slip(f"{place}.withdrawn: expected true or false, got {withdrawn!r}")
    extension = {
        _assignment(name, assignments, f"{place}.extension"): timedelta(
            days=_number(days, f"{place}.extension.{name}")
        )
        for name, days in _table(given, "extension").items()
    }
    return Person(told, extension, withdrawn)


def _table(tree: Mapping[str, Any], key: str) -> dict[str, Any]:
    found = tree.get(key, {})
    if not isinstance(found, dict):
        raise _Slip(f"{key}: expected a table, got {found!r}")
    return found


def _refuse_unknown_keys(tree: Mapping[str, Any], known: Sequence[str], place: str) -> None:
    unknown = [key for key in tree if key not in known]
    if unknown:
        raise _Slip(f"{place}{unknown[0]} is not known here; there are {', '.join(known)}")


def _assignment(name: str, assignments: Sequence[str] | None, place: str) -> str:
    if assignments is None:
        return name
    found = assignment_named(name, assignments)
    if found is None:
        raise _Slip(f"{place}: no assignment {name}; there are {', '.join(assignments)}")
    return found


def _moment(value: object, zone: tzinfo, place: str) -> datetime:
    if not isinstance(value, datetime):
        raise _Slip(f"{place}: expected a date and a time, such as 2030-03-01T12:00:00")
    return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)


def _number(value: Any, place: str, most: float | None = None) -> float:
    right = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not right or value < 0 or (most is not None and value > most):
        upper = "" if most is None else f" to {most:g}"
        raise _Slip(f"{place}: expected a number from 0{upper}, got {value!r}")
    return float(value)


def enter(book: "Book", course: CourseFile) -> None:
    """Enter dates, people and extensions into nbgrader's gradebook (a `gradebook.Book`).

    What the file does not mention stays as it is; an extension that it mentioned before, and does
    no longer, is taken back.
    """
    from nbgrader.api import MissingEntry
    from sqlalchemy import select

    from autograder.gradebook.tables import EXTENSIONS, put, remove

    ids = book.spelled()
    with book.transaction():
        for assignment in book.assignments:
            when = course.due.get(assignment.name)
            if when is not None:
                assignment.duedate = when.replace(tzinfo=None)  # as nbgrader keeps it, in UTC
        before = {(row.student, row.assignment) for row in book.db.execute(select(EXTENSIONS))}
        for name, person in course.people.items():
            if not person.withdrawn:
                student = book.update_or_create_student(ids.get(name, name), **person.details)
                for submission in student.submissions:
                    longer = person.extension.get(submission.assignment.name)
                    if longer is not None:
                        submission.extension = longer
        given = {(ids.get(s, s), a) for s, p in course.people.items() for a in p.extension}
        for student, assignment in given - before:
            put(book.db, EXTENSIONS, assignment, student)
        for student, assignment in before - given:
            remove(book.db, EXTENSIONS, assignment, student)
            with suppress(MissingEntry):
                book.find_submission(assignment, student).extension = None
