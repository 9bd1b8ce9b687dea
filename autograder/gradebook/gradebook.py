"""nbgrader's gradebook: one transaction per submission, and a record of which are graded.

A submission is graded when one commit says so: its marks, its comments, its judgement, and the row
that says what was handed in and which notebook was made of it are written together or not at all.
The database is SQLite, for one grader at a time, or PostgreSQL, for several: each claims a
submission with an advisory lock, which the server releases when a grader dies.

TRUST BOUNDARY. Names and texts come from outside; they go to the database as bound parameters.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

from nbformat import NotebookNode
from nbgrader.api import (
    Assignment,
    Base,
    Course,
    Gradebook,
    MissingEntry,
    SubmittedAssignment,
    SubmittedNotebook,
)
from nbgrader.preprocessors import NbGraderPreprocessor, SaveCells
from nbgrader.utils import parse_utc
from sqlalchemy import (
    Connection,
    create_engine,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError
from sqlalchemy.orm import Session

from autograder.gradebook import tables
from autograder.judge.judgement import Judgement

Penalty = Callable[[SubmittedNotebook, float], float | None]  # for being so many seconds late

PATIENCE = 60  # seconds to wait for a database that another program has locked


class GradebookLost(RuntimeError):
    """The database cannot be used: locked, missing, full or damaged. Nothing can be recorded."""


@dataclass(frozen=True)
class GradedSubmission:
    """What the gradebook says about a graded submission."""

    digest: str
    notebook: str
    times: int


class _Failed(Exception):
    """The database's error, as a type that nbgrader does not blame on a student."""

    def __init__(self, error: DBAPIError):
        super().__init__(str(error))
        self.error = error


class _Steps(Session):
    """A session that ends its transaction when we say so; nbgrader commits after every step."""

    def flush(self, objects: Sequence[object] | None = None) -> None:
        try:
            super().flush(objects)
        except DBAPIError as error:
            raise _Failed(error) from error

    def commit(self) -> None:
        self.flush()

    def really_commit(self) -> None:
        super().commit()


class Book(Gradebook):
    """nbgrader's gradebook, kept open. Raises `GradebookLost`."""

    def __init__(self, db_url: str):
        url = make_url(db_url)
        of_sqlite = url.get_backend_name() == "sqlite"
        self.file = Path(url.database) if of_sqlite and url.database else None
        waits = {"timeout": PATIENCE} if self.file and "timeout" not in url.query else {}
        self.engine = create_engine(url, connect_args=waits)
        self.name = url.render_as_string(hide_password=True)
        self.course_id, self.authenticator = "default_course", None
        self.db = _Steps(self.engine)
        self._claims: Connection | None = None
        with self._understood():
            self._prepare()
        self._inode = self.file and self.file.stat().st_ino

    def close(self) -> None:
        with suppress(DBAPIError):
            self.db.close()
            if self._claims is not None:
                self._claims.close()
        self.engine.dispose()

    def _prepare(self) -> None:
        """Create missing tables, all or none."""
        with self.engine.connect() as connection:
            _begin(connection)
            there = inspect(connection).get_table_names()
            if {*Base.metadata.tables, *tables.OURS.tables, "alembic_version"} - {*there}:
                Base.metadata.create_all(connection)
                tables.OURS.create_all(connection)
                if "alembic_version" not in there:
                    tables.stamp(connection)
            courses = Course.__table__
            if connection.execute(select(courses.c.id)).first() is None:
                connection.execute(courses.insert().values(id=self.course_id))
            connection.commit()

    @contextmanager
    def _understood(self) -> Iterator[None]:
        try:
            yield
        except (DBAPIError, _Failed) as raised:
            error = raised.error if isinstance(raised, _Failed) else raised
            if isinstance(error, (DataError, IntegrityError, ProgrammingError)):
                raise error from raised  # about this submission
            raise GradebookLost(_why(self.name, error)) from raised

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything done inside, or nothing."""
        with self._understood():
            try:
                self._still_there()
                _begin(self.db.connection())
                yield
                self._still_there()
                self.db.really_commit()
            except BaseException:
                self.db.rollback()
                raise
            finally:
                self.db.expunge_all()

    @contextmanager
    def look(self) -> Iterator[None]:
        """Read only; what was read is discarded afterwards."""
        with self._understood():
            try:
                yield
            finally:
                self.db.rollback()
                self.db.expunge_all()

    def _still_there(self) -> None:
        """Make sure that the database is still in place. Raises `GradebookLost`."""
        if self.file is not None:
            try:
                there = self.file.stat().st_ino == self._inode
            except FileNotFoundError:
                there = False
            if not there:
                raise GradebookLost(f"{self.file} was removed or replaced while we worked")
        elif self._claims is not None:  # if that connection is lost, so are our claims
            self._claims.execute(text("SELECT 1"))

    # --- assignments ---

    def register(self, assignment: str, notebook: NotebookNode) -> None:
        """Make sure that the gradebook has an assignment in its current release."""
        with self.look():
            if self._knows(assignment, notebook):
                return
        with self.transaction():
            if not self._knows(assignment, notebook):
                self.update_or_create_assignment(assignment)
                _Cells(parent=None).save(notebook, self, assignment)

    def _knows(self, assignment: str, notebook: NotebookNode) -> bool:
        try:
            known = self.find_notebook(assignment, assignment)
        except MissingEntry:
            return False
        cells = [c.metadata["nbgrader"] for c in notebook.cells if "nbgrader" in c.metadata]
        ours = {mark["grade_id"]: mark.get("checksum") for mark in cells}
        points = {mark["grade_id"]: float(mark["points"]) for mark in cells if mark["grade"]}
        theirs = {cell.name: cell.checksum for cell in known.source_cells}
        return ours == theirs and points == {c.name: c.max_score for c in known.grade_cells}

    # --- submissions ---

    def graded(self) -> dict[tuple[str, str], GradedSubmission]:
        """All graded submissions, by assignment and student.

        Our rows on a student whom nbgrader has removed do not count: nbgrader's marks are gone.
        """
        submitted = select(Assignment.name, SubmittedAssignment.student_id).join(
            Assignment, SubmittedAssignment.assignment_id == Assignment.id
        )
        with self.look():
            rows = self.db.execute(select(tables.GRADED)).all()
            there = {tuple(row) for row in self.db.execute(submitted)}
        found = {
            (r.assignment, r.student): GradedSubmission(r.digest, r.notebook, r.times) for r in rows
        }
        return {key: graded for key, graded in found.items() if key in there}

    def spelled(self) -> dict[str, str]:
        """How the gradebook writes its students' ids, by the same ids in Unicode's form NFC."""
        with self.look():
            ids = [student.id for student in self.students]
        return {
            normalize("NFC", name): name
            for name in sorted(ids, key=lambda n: n == normalize("NFC", n))
        }

    def is_graded(self, assignment: str, student: str) -> GradedSubmission | None:
        """The record of a graded submission, or None."""
        with self.look():
            try:
                self.find_submission(assignment, student)
            except MissingEntry:
                return None
            return self._graded(assignment, student)

    def _graded(self, assignment: str, student: str) -> GradedSubmission | None:
        here = tables.row_of(tables.GRADED, assignment, student)
        row = self.db.execute(select(tables.GRADED).where(here)).first()
        return GradedSubmission(row.digest, row.notebook, row.times) if row else None

    def record(
        self,
        assignment: str,
        student: str,
        graded: tuple[str, str],
        judgement: Judgement,
        scores: Mapping[str, float | None],
        comments: Mapping[str, str | None],
        timestamp: str | None,
        penalty: Penalty,
        same: Collection[str] = (),
        seen: Mapping[str, list] | None = None,
        handed_in: str | None = None,
    ) -> int:
        """Record a submission's judgement and marks; return how often it has been recorded.

        `graded` holds the digests of what was handed in, of which `handed_in` is the notebook's
        alone, and of the autograded notebook. What a person wrote into the gradebook stays; a mark
        by hand waits for review, unless its cell is in `same`. An empty `timestamp` is unreadable.
        """
        digest, notebook = graded
        with self.transaction():
            marked = self._submission(assignment, student, timestamp)
            for given in marked.grades:
                given.auto_score = scores.get(given.name)
                if given.manual_score is None:
                    given.needs_manual_grade = given.auto_score is None
                elif given.name not in same:
                    given.needs_manual_grade = True
            for comment in marked.comments:
                comment.auto_comment = comments.get(comment.name)
            self.db.flush()
            self.db.refresh(marked)  # its score is the database's sum
            marked.late_submission_penalty = _cost(marked, penalty)
            before = self._graded(assignment, student)
            times = before.times + 1 if before and before.digest == digest else 1
            row = {"digest": digest, "notebook": notebook, "times": times}
            tables.put(self.db, tables.GRADED, assignment, student, **row)
            tables.store_judgement(self.db, assignment, student, judgement)
            tables.store_seen(self.db, assignment, student, seen or {})
            if handed_in is not None:
                tables.attempted(self.db, assignment, student, handed_in, timestamp, marked)
        return times

    def penalise(self, assignment: str, student: str, penalty: Penalty) -> bool:
        """Update a late penalty to due date, policy and marks; return whether it changed."""
        where = (assignment, assignment, student)
        with self.look():
            marked = self.find_submission_notebook(*where)
            before, after = marked.late_submission_penalty, _cost(marked, penalty)
        if abs((before or 0.0) - (after or 0.0)) < 1e-6:
            return False
        with self.transaction():
            marked = self.find_submission_notebook(*where)
            marked.late_submission_penalty = _cost(marked, penalty)
        return True

    def withdraw(self, assignment: str, student: str) -> None:
        """Leave a submission whose grading failed without marks, for a person to look at."""
        with self.transaction():
            for given in self._submission(assignment, student, None).grades:
                given.auto_score, given.needs_manual_grade = None, True
            for table in (tables.GRADED, tables.JUDGEMENTS, tables.SEEN):
                tables.remove(self.db, table, assignment, student)

    def judgement(self, assignment: str, student: str) -> Judgement | None:
        """The judgement kept on a submission; None if there is none that we can read."""
        return tables.read_judgement(self.db, assignment, student)

    def _submission(
        self, assignment: str, student: str, timestamp: str | None
    ) -> SubmittedNotebook:
        self.update_or_create_student(student)
        try:
            found = self.find_submission(assignment, student)
        except MissingEntry:
            with self.db.no_autoflush:
                found = self.add_submission(assignment, student)
        if timestamp is not None:
            found.timestamp = parse_utc(timestamp) if timestamp else None
        return self.find_submission_notebook(assignment, assignment, student)

    def find_submission_notebook(
        self, notebook: str, assignment: str, student: str
    ) -> SubmittedNotebook:
        """nbgrader's own, with its marks and comments: one by one, each takes a query or two."""
        found = super().find_submission_notebook(notebook, assignment, student)
        once = self.db.query(SubmittedNotebook).filter_by(id=found.id)
        once.options(*tables.MARKS, *tables.COMMENTS).one()
        return found

    # --- claims ---

    @property
    def shared(self) -> bool:
        """Whether several graders may work on this gradebook at once."""
        return self.engine.dialect.name == "postgresql"

    def claim(self, assignment: str, student: str) -> bool:
        """Claim a submission; return whether no other grader holds it."""
        return not self.shared or self._lock(
            "SELECT pg_try_advisory_lock(:key)", assignment, student
        )

    def give_up(self, assignment: str, student: str) -> None:
        """Give up the claim on a submission."""
        if self.shared:
            self._lock("SELECT pg_advisory_unlock(:key)", assignment, student)

    def _lock(self, statement: str, assignment: str, student: str) -> bool:
        with self._understood():
            if self._claims is None:
                self._claims = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            name = json.dumps(["autograder", self.course_id, assignment, student]).encode()
            key = int.from_bytes(hashlib.sha256(name).digest()[:8], signed=True)
            return bool(self._claims.execute(text(statement), {"key": key}).scalar())


def _cost(marked: SubmittedNotebook, penalty: Penalty) -> float | None:
    """What a submission loses for being late; nothing if it is not."""
    late = marked.assignment.total_seconds_late
    return penalty(marked, late) if late > 0 else None


def _why(name: str, error: DBAPIError) -> str:
    """Why a gradebook cannot be used, and what to do, in one line."""
    said = " ".join(str(error.orig).split())
    hint = ""
    if "locked" in said:
        hint = ": another program is writing to it; close it and run this again"
    elif "no such" in said or "has no column" in said:
        hint = ": back it up and run `nbgrader db upgrade`"
    return f"the gradebook {name} cannot be used ({said}){hint}"


def _begin(connection: Connection) -> None:
    """Begin a writing transaction; in SQLite, before anything is read."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif connection.dialect.name == "postgresql":  # only one at a time may make tables or cells
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7221)")


class _Cells(SaveCells):
    """nbgrader's own, on a gradebook that is already open."""

    def save(self, notebook: NotebookNode, book: Book, assignment: str) -> None:
        self.gradebook, self.notebook_id, self.assignment_id = book, assignment, assignment
        for kind in ("grade", "solution", "task", "source"):
            setattr(self, f"new_{kind}_cells", {})
        NbGraderPreprocessor.preprocess(self, notebook, {})
        self._create_notebook(notebook)


def database(root: Path, db: str | None) -> str:
    """The URL of a course's gradebook: `db`, or the file gradebook.db in its folder."""
    return db or f"sqlite:///{root / 'gradebook.db'}"
