"""The tables that are ours in nbgrader's database, beside nbgrader's own, which are left alone.

`autograder_judgement` keeps each submission's judgement, once, as JSON; `autograder_graded` says
which submission, in which version, `autograder grade` has recorded (see `gradebook`);
`autograder_seen` what a person saw of its answers and verdicts (see `review`);
`autograder_extension` says who has more time by course.toml;
`autograder_attempt` each notebook that was graded, when, and its marks then.

TRUST BOUNDARY. Names and texts come from outside; they go to the database as bound parameters.
"""

import json
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import nbgrader
from alembic.config import Config as AlembicConfig
from alembic.script import ScriptDirectory
from nbgrader.api import Comment, Grade, SubmittedNotebook
from nbgrader.utils import parse_utc
from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Float,
    Integer,
    MetaData,
    Row,
    String,
    Table,
    Text,
    inspect,
    select,
)
from sqlalchemy.orm import Session, selectinload

from autograder.judge.judgement import Judgement

# How to read a submission's marks and comments at once: one by one, each takes a query or two.
_GRADES = selectinload(SubmittedNotebook.grades)
MARKS = (_GRADES.joinedload(Grade.cell), _GRADES.undefer(Grade.max_score))
COMMENTS = (selectinload(SubmittedNotebook.comments).joinedload(Comment.cell),)

OURS = MetaData()
GRADED = Table(
    "autograder_graded",
    OURS,
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("digest", String(64), nullable=False),  # of what was handed in, and of the judge
    Column("notebook", String(64), nullable=False),  # of the autograded notebook
    Column("times", Integer, nullable=False),  # how often this exact submission was recorded
)
JUDGEMENTS = Table(
    "autograder_judgement",
    OURS,
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("judgement", Text, nullable=False),  # JSON
)
SEEN = Table(
    "autograder_seen",
    OURS,
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("seen", Text, nullable=False),  # JSON
)
EXTENSIONS = Table(  # those that come from course.toml, not from nbgrader
    "autograder_extension",
    OURS,
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
)
ATTEMPTS = Table(
    "autograder_attempt",
    OURS,
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("notebook", String(64), primary_key=True),  # digest of what was handed in
    Column("moment", String(32), nullable=False),  # ISO 8601, in UTC
    Column("score", Float, nullable=False),
    Column("points", Float, nullable=False),
)


def make(session: Session) -> None:
    """Make those of the tables that are missing."""
    OURS.create_all(session.connection())


def row_of(table: Table, assignment: str, student: str) -> ColumnElement[bool]:
    """The condition for the row of a submission."""
    return (table.c.assignment == assignment) & (table.c.student == student)


def put(session: Session, table: Table, assignment: str, student: str, **values: object) -> None:
    """Write a submission's row in place of an earlier one, if there is one."""
    remove(session, table, assignment, student)
    session.execute(table.insert().values(assignment=assignment, student=student, **values))


def remove(session: Session, table: Table, assignment: str, student: str) -> None:
    """Remove a submission's row, if there is one."""
    session.execute(table.delete().where(row_of(table, assignment, student)))


def store_judgement(session: Session, assignment: str, student: str, judgement: Judgement) -> None:
    """Keep a judgement, in the caller's transaction."""
    put(session, JUDGEMENTS, assignment, student, judgement=judgement.to_json())


def read_judgement(session: Session, assignment: str, student: str) -> Judgement | None:
    """The judgement on a submission; None if none is kept that this version can read."""
    if not inspect(session.connection()).has_table(JUDGEMENTS.name):
        return None
    row = session.execute(select(JUDGEMENTS).where(row_of(JUDGEMENTS, assignment, student))).first()
    return _read(row.judgement) if row else None


def read_judgements(session: Session) -> Iterator[tuple[str, str, Judgement | None]]:
    """Assignment, student and judgement of all submissions on which a judgement is kept."""
    if inspect(session.connection()).has_table(JUDGEMENTS.name):
        for row in session.execute(select(JUDGEMENTS)):
            yield row.assignment, row.student, _read(row.judgement)


def _read(judgement: str) -> Judgement | None:
    try:
        return Judgement.from_json(judgement)
    except ValueError:  # another version of the grader has written it
        return None


def store_seen(session: Session, assignment: str, student: str, seen: Mapping[str, list]) -> None:
    """Keep what a person sees of a submission, in the caller's transaction."""
    put(session, SEEN, assignment, student, seen=json.dumps(dict(seen)))


def read_seen(session: Session, assignment: str, student: str) -> dict[str, list]:
    """What a person saw of a submission when it was last recorded; empty if it was not."""
    if not inspect(session.connection()).has_table(SEEN.name):
        return {}
    row = session.execute(select(SEEN).where(row_of(SEEN, assignment, student))).first()
    return json.loads(row.seen) if row else {}


def attempted(
    session: Session,
    assignment: str,
    student: str,
    notebook: str,
    when: str | None,
    marked: SubmittedNotebook,
) -> None:
    """Note an attempt, or its new marks, in the caller's transaction.

    `notebook` is the digest of what was handed in; `when` its time, in nbgrader's form, if that is
    known; `marked` nbgrader's record of it.
    """
    here = row_of(ATTEMPTS, assignment, student) & (ATTEMPTS.c.notebook == notebook)
    before = session.execute(select(ATTEMPTS.c.moment).where(here)).first()
    session.execute(ATTEMPTS.delete().where(here))
    moment = parse_utc(when).replace(tzinfo=UTC) if when else datetime.now(UTC)
    row = {"assignment": assignment, "student": student, "notebook": notebook}
    row["moment"] = before.moment if before and not when else moment.isoformat()
    row |= {"score": marked.score, "points": marked.max_score}
    session.execute(ATTEMPTS.insert().values(**row))


def attempts(session: Session) -> list[Row]:
    """All attempts that were noted."""
    if not inspect(session.connection()).has_table(ATTEMPTS.name):
        return []
    return list(session.execute(select(ATTEMPTS)))


def stamp(connection: Connection) -> None:
    """Record nbgrader's schema version, as nbgrader does."""
    config = AlembicConfig()
    config.set_main_option("script_location", os.path.join(nbgrader.__path__[0], "alembic"))
    head = ScriptDirectory.from_config(config).get_current_head()
    table = Table("alembic_version", MetaData(), Column("version_num", String(32), nullable=False))
    table.create(connection)
    connection.execute(table.insert().values(version_num=head))
