"""The class as it was graded, a row per submission, read from the gradebook.

TRUST BOUNDARY. Names, messages and notes may quote what students wrote: whoever shows a row makes
them inert. Nothing is read from a notebook, which is for people to look at.
"""

from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import SubmittedNotebook

from autograder.engine.verdict import Verdict
from autograder.grader.classes.gradebook import Book, database
from autograder.grader.judgement import FAILED, GRADED, Judgement

OLD = "It was graded by another version of the grader; its verdicts are not known here."


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
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    unchanged: bool = False


def read_row(book: Book, student: str, assignment: str, unchanged: bool = False) -> Row:
    """The row of one submission. Raises `MissingEntry` if the gradebook does not have it."""
    found = book.find_submission_notebook(assignment, assignment, student)
    return row_of(found, student, assignment, book.judgement(assignment, student), unchanged)


def row_of(
    found: SubmittedNotebook,
    student: str,
    assignment: str,
    judgement: Judgement | None,
    unchanged: bool = False,
) -> Row:
    """The row of a submission, from its marks and its judgement.

    One that has neither a judgement nor a mark has failed.
    """
    marks = {
        given.name: Mark(
            float(given.score or 0.0), float(given.max_score), bool(given.needs_manual_grade)
        )
        for given in found.grades
    }
    row = Row(student, assignment, FAILED, marks=marks, unchanged=unchanged)
    row.points = round(sum(mark.points for mark in marks.values()), 6)
    row.score = round(sum(mark.score for mark in marks.values()), 6)
    if judgement is not None:
        row.status, row.reason, row.seconds = judgement.status, judgement.reason, judgement.seconds
        row.notes, row.verdicts = list(judgement.notes), dict(judgement.verdicts)
    elif any(given.auto_score is not None for given in found.grades):
        row.status, row.notes = GRADED, [OLD]
    else:
        row.reason = "It has no marks: grade this submission again."
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
            return [read_row(book, student, name) for name, student in pairs]
    finally:
        book.close()
