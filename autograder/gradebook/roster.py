"""What the report knows of a class besides its marks: names, dates, attempts, and who needs help.

TRUST BOUNDARY. Names and addresses come from outside; code that shows them must make them inert.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from autograder.gradebook import tables
from autograder.gradebook.course_file import read_course
from autograder.gradebook.gradebook import Book, database
from autograder.gradebook.rows import Row
from autograder.judge.judgement import FAILED

Key = tuple[str, str]  # student and assignment
LOW, DROP = 0.5, 0.25  # shares of the points
MANY = 0.5  # of the class: an assignment that so many have handed in is under way


@dataclass(frozen=True)
class Attempt:
    """A notebook that was graded: when it was handed in (in UTC), and its marks at that time."""

    moment: datetime
    score: float
    points: float


@dataclass
class Roster:
    """People by id; due dates by assignment; submissions and attempts by student and assignment."""

    names: dict[str, str] = field(default_factory=dict)
    due: dict[str, datetime] = field(default_factory=dict)
    submissions: dict[Key, str] = field(default_factory=dict)  # formgrader's ids
    attempts: dict[Key, list[Attempt]] = field(default_factory=dict)

    def name(self, student: str) -> str:
        """A student's real name, or else the id."""
        return self.names.get(student) or student


def read_roster(root: Path, db: str | None = None) -> Roster:
    """Read names, dates and attempts from a course's gradebook and file."""
    course, roster = read_course(root), Roster()
    book = Book(database(root, db))
    try:
        with book.look():
            for student in book.students:
                told = course.person(student.id).details
                first = told.get("first_name", student.first_name or "")
                last = told.get("last_name", student.last_name or "")
                roster.names[student.id] = f"{first} {last}".strip()
            for assignment in book.assignments:
                due = assignment.duedate
                if assignment.name in course.due:
                    roster.due[assignment.name] = course.due[assignment.name]
                elif due is not None:
                    roster.due[assignment.name] = due.replace(tzinfo=due.tzinfo or UTC)
                for submitted in assignment.submissions:
                    for notebook in submitted.notebooks:
                        key = submitted.student.id, assignment.name
                        roster.submissions[key] = notebook.id
            for row in tables.attempts(book.db):
                moment = datetime.fromisoformat(row.moment)
                key = row.student, row.assignment
                roster.attempts.setdefault(key, []).append(Attempt(moment, row.score, row.points))
    finally:
        book.close()
    for attempts in roster.attempts.values():
        attempts.sort(key=lambda attempt: attempt.moment)
    return roster


def who_needs_help(
    rows: Sequence[Row], absent: Mapping[str, Sequence[str]]
) -> list[tuple[str, list[str]]]:
    """Students with the reasons to ask how they are, those with the most reasons first.

    A reason is a missing assignment that half of the class has handed in, less than half of its
    points, or a share of the points that is a quarter of them lower than in the ones before. Marks
    that still wait for a person are left out of the points.
    """
    shares: dict[str, dict[str, float]] = {}
    for row in rows:
        known = [mark for mark in row.marks.values() if mark.known]
        points = sum(mark.points for mark in known)
        if row.status != FAILED and points:
            share = sum(mark.score for mark in known) / points
            shares.setdefault(row.student, {})[row.assignment] = share
    reasons: dict[str, list[str]] = {}
    for assignment in sorted({row.assignment for row in rows}):
        came = sum(row.assignment == assignment for row in rows)
        missing = absent.get(assignment, ())
        if came >= MANY * (came + len(missing)):
            for student in missing:
                reasons.setdefault(student, []).append(f"{assignment} not handed in")
    for student, theirs in shares.items():
        before: list[float] = []
        for assignment, share in sorted(theirs.items()):
            if share < LOW:
                text = f"{share:.0%} of the points of {assignment}"
                reasons.setdefault(student, []).append(text)
            elif before and share < fmean(before) - DROP:
                text = f"{assignment}: {share:.0%}, after {fmean(before):.0%} before"
                reasons.setdefault(student, []).append(text)
            before.append(share)
    return sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
