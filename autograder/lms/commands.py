"""The commands `autograder collect`, `autograder merge` and `autograder return`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from autograder.student.engine.words import one_line

DATABASE = typer.Option(
    envvar="AUTOGRADER_DB", metavar="URL", help="the gradebook's database, if not gradebook.db"
)
_COURSE = typer.Option(metavar="DIR", help="the course's folder")
_WORKSHEET = typer.Option(
    metavar="FILE.csv", help="the system's table of people and marks, or a list of people"
)


def collect(
    archive: Annotated[Path, typer.Argument(metavar="FILE.zip")],
    assignment: Annotated[str | None, typer.Option(help="the one the archive is for")] = None,
    worksheet: Annotated[Path | None, _WORKSHEET] = None,
    archive_times: Annotated[
        bool,
        typer.Option("--archive-times", help="take the archive's file times as submission times"),
    ] = False,
    course: Annotated[Path, _COURSE] = Path("."),
    db: Annotated[str | None, DATABASE] = None,
) -> None:
    """Sort an archive from Moodle, Canvas or Blackboard into submitted/<student>/<assignment>/.

    The newest notebook of each student counts. Exit status: 0, or 1 if something was put aside for
    you to look at, or 2 if the archive cannot be read.
    """
    from autograder.lms.collect import NEW, NEWER, OLDER, SAME
    from autograder.lms.collect import collect as sort_into

    done = sort_into(
        archive,
        course.absolute(),
        assignment=assignment,
        worksheet=worksheet,
        archive_times=archive_times,
        db=db,
    )
    words = {NEW: "new", NEWER: "in place of an earlier one", SAME: "there already"}
    words[OLDER] = "older than what is there"
    for name in sorted({assignment for _, assignment in done.outcomes}):
        outcomes = [how for (_, which), how in done.outcomes.items() if which == name]
        counts = [f"{outcomes.count(how)} {what}" for how, what in words.items() if how in outcomes]
        print(f"{name}: {len(outcomes)} students ({', '.join(counts)})")
    for line in done.remarks:
        _tell(line)
    for line in done.problems:
        _tell(f"look at this: {line}")
    raise typer.Exit(done.exit_status)


def merge(
    first: Annotated[str, typer.Argument(metavar="FROM", help="the id that goes")],
    second: Annotated[str, typer.Argument(metavar="INTO", help="the id that stays")],
    course: Annotated[Path, _COURSE] = Path("."),
    db: Annotated[str | None, DATABASE] = None,
) -> None:
    """Make one student of two ids of the same person; marks given by hand are kept."""
    from autograder.lms.merge import merge as merge_ids

    for line in merge_ids(course.absolute(), first, second, db):
        print(one_line(line))


def return_grades(
    system: Annotated[str, typer.Argument(help="moodle, canvas or blackboard")],
    assignment: Annotated[list[str] | None, typer.Option(help="only this; repeatable")] = None,
    worksheet: Annotated[Path | None, _WORKSHEET] = None,
    column: Annotated[
        str | None, typer.Option(help="the assignment in the system's table: 'Chapter 1 (815)'")
    ] = None,
    open_too: Annotated[
        bool, typer.Option("--open-too", help="also totals that lack marks by hand")
    ] = False,
    scale: Annotated[
        bool, typer.Option("--scale", help="convert the points to the system's maximum")
    ] = False,
    course: Annotated[Path, _COURSE] = Path("."),
    db: Annotated[str | None, DATABASE] = None,
) -> None:
    """Write feedback.zip and grades.csv for Moodle, Canvas or Blackboard to returned/<assignment>/.

    Totals that still lack marks by hand are left out. Exit status: 0, or 1 if anybody was left out.
    """
    from autograder.lms.return_grades import return_grades as back

    done = back(
        course.absolute(),
        system,
        assignments=assignment,
        worksheet=worksheet,
        column=column,
        open_too=open_too,
        scale=scale,
        db=db,
    )
    for one in done:
        print(f"{one.assignment}: {len(one.totals)} students")
        for path in one.files:
            print(f"  {path.relative_to(course.absolute())}")
        for line in one.remarks:
            _tell(line)
        for line in one.left_out:
            _tell(f"left out: {line}")
    raise typer.Exit(int(any(one.left_out for one in done)))


def _tell(line: str) -> None:
    print("autograder: " + one_line(line), file=sys.stderr, flush=True)
