"""The class as it was graded, a row per submission, read from the gradebook.

TRUST BOUNDARY. Names, messages and notes may quote what students wrote: code that shows a row must
make them inert. Nothing is read from a notebook, which is for people to look at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Assignment, Grade, Notebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy.orm import Session

from autograder.gradebook.course_file import read_course
from autograder.gradebook.gradebook import Book, database
from autograder.gradebook.tables import MARKS, read_judgements
from autograder.judge.judgement import FAILED, GRADED, Judgement
from autograder.judge.runner import DEFINING
from autograder.notebook.reading import CHECK
from autograder.student.engine.verdict import MISSING, Verdict

UNDATED = "Its timestamp.txt says no time that can be read: whether it came late is not known."
OLD = "It was graded by another version of the grader; its verdicts are not known here."


@dataclass
class Mark:
    """The points of one graded cell.

    `by_hand`: it waits for a person; if `given`, a person has marked it before, and the answer has
    changed since. `blank`: nothing was written there.
    """

    score: float
    points: float
    by_hand: bool = False
    given: bool = False
    blank: bool = False

    @property
    def known(self) -> bool:
        """Whether there is a mark to show."""
        return self.given or not self.by_hand


@dataclass
class Row:
    """One submission in the class: `status` is graded, unusable (a clear zero) or failed (none).

    `score` is the sum of the marks, from which being late takes off `penalty`.
    """

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
    penalty: float = 0.0

    @property
    def total(self) -> float:
        """What counts, and what console, report, export and feedback show."""
        return round(max(0.0, self.score - self.penalty), 6)


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
    verdicts = judgement.verdicts if judgement and judgement.status == GRADED else {}
    marks = {given.name: _mark(given, verdicts) for given in found.grades}
    row = Row(student, assignment, FAILED, marks=marks, unchanged=unchanged)
    row.points = round(sum(mark.points for mark in marks.values()), 6)
    row.score = round(sum(mark.score for mark in marks.values()), 6)
    row.penalty = round(found.late_submission_penalty or 0.0, 6)
    if judgement is not None:
        row.status, row.reason, row.seconds = judgement.status, judgement.reason, judgement.seconds
        row.notes, row.verdicts = list(judgement.notes), dict(judgement.verdicts)
    elif any(given.auto_score is not None for given in found.grades):
        row.status, row.notes = GRADED, [OLD]
    else:
        row.reason = "It has no marks: grade this submission again."
    return row


def _mark(given: Grade, verdicts: Mapping[str, Verdict]) -> Mark:
    by_person = given.manual_score is not None
    verdict = verdicts.get(given.name.removeprefix(CHECK))
    if verdict is not None:
        blank = verdict.verdict == MISSING and not (verdict.note or "").startswith(DEFINING)
    else:  # a question is marked without a person only if it was left unchanged
        blank = bool(verdicts) and given.auto_score == 0 and not given.name.startswith(CHECK)
    return Mark(
        float(given.score or 0.0),
        float(given.max_score),
        bool(given.needs_manual_grade),
        by_person,
        blank and not by_person,
    )


def read_absent(root: Path, db: str | None = None) -> dict[str, list[str]]:
    """The students in the gradebook who have handed in nothing, by assignment."""
    book = Book(database(root, db))
    try:
        with book.look():
            course = read_course(root)
            students = {s.id for s in book.students if not course.withdrawn(s.id)}
            return {
                assignment.name: sorted(students - {s.student.id for s in assignment.submissions})
                for assignment in book.assignments
            }
    finally:
        book.close()


def read_class(root: Path, db: str | None = None) -> list[Row]:
    """The submissions in a course's gradebook, by assignment and student, without the withdrawn.

    Raises `MissingEntry` if one of them lacks its notebook.
    """
    course = read_course(root)
    book = Book(database(root, db))
    try:
        with book.look():
            judgements = {(name, student): kept for name, student, kept in read_judgements(book.db)}
            notebooks = _notebooks(book.db)
            pairs = sorted(pair for pair in _submitted(book.db) if not course.withdrawn(pair[1]))
            return [
                row_of(notebooks[pair], pair[1], pair[0], judgements.get(pair))
                if pair in notebooks
                else read_row(book, pair[1], pair[0])
                for pair in pairs
            ]
    finally:
        book.close()


def _submitted(session: Session) -> list[tuple[str, str]]:
    """Assignment and student of every submission."""
    found = session.query(Assignment.name, SubmittedAssignment.student_id)
    return [(name, student) for name, student in found.join(SubmittedAssignment.assignment)]


def _notebooks(session: Session) -> dict[tuple[str, str], SubmittedNotebook]:
    """The notebook of every submission, by assignment and student, with its grades.

    All are read at once: one by one, a class of hundreds takes tens of thousands of queries.
    """
    found = (
        session.query(SubmittedNotebook, Assignment.name, SubmittedAssignment.student_id)
        .join(SubmittedNotebook.assignment)
        .join(SubmittedAssignment.assignment)
        .join(SubmittedNotebook.notebook)
        .filter(Notebook.name == Assignment.name)
        .options(*MARKS)
    )
    return {(name, student): notebook for notebook, name, student in found}
