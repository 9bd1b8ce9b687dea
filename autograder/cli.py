"""The command line: `autograder release`, `book`, `grade`, `judge`, `report` and others."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from autograder.gradebook import command_suggestions, fork_server
from autograder.gradebook.course_file import read_course
from autograder.lms import commands
from autograder.publishing.authors.commands import new, try_exercise
from autograder.sandbox.bubblewrap import IsolationError
from autograder.sandbox.device import require
from autograder.sandbox.isolation import ISOLATIONS
from autograder.sandbox.launcher import warm_process
from autograder.sandbox.limits import Limits
from autograder.student.course import NoCourse, chapters, exercises_of, root
from autograder.student.engine.verdict import CORRECT, Verdict
from autograder.student.engine.words import one_line
from autograder.student.table import number, table_text

if TYPE_CHECKING:
    from autograder.gradebook.classroom import ClassResult

Found = TypeVar("Found")
PACKAGE = "notebook-autograder"  # as pip knows it

# Errors from outside, whose own words are the message.
_TOLD = (FileExistsError, FileNotFoundError, NotADirectoryError, BlockingIOError)

_CELL_SECONDS = Annotated[
    float | None,
    typer.Option(
        min=1, help="how long a cell may compute; default: course.toml's cell_seconds, or 60"
    ),
]

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.add_typer(new, name="new")
app.command("try")(try_exercise)


@app.callback()
def autograder(context: typer.Context) -> None:
    """Release, judge and grade the course's notebooks."""
    if context.invoked_subcommand not in ("book", "pdf"):
        # Tensors of a few numbers gain nothing from threads, and lose by waiting for a core.
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported


@app.command()
def judge(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help=".py or .ipynb")],
    exercise: Annotated[list[str] | None, typer.Option(help="judge only this; repeatable")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    seed: Annotated[int | None, typer.Option(help="repeat the inputs of an earlier call")] = None,
    in_json: Annotated[bool, typer.Option("--json", help="one JSON object per file")] = False,
    isolation: Annotated[str, typer.Option(help=" or ".join(ISOLATIONS))] = "bwrap",
    jobs: Annotated[int | None, typer.Option(min=1, help="how many files at a time")] = None,
    cell_seconds: _CELL_SECONDS = None,
) -> None:
    """Judge files without a gradebook. Exit status: 0 for full marks, 1 for less, 2 if unusable."""
    from autograder.judge.judge_file import as_json, verdicts_on
    from autograder.notebook.reading import UnusableFile

    known = [e.name for slug in chapters() for e in exercises_of(slug)]
    unknown = [name for name in exercise or () if name not in known]
    if unknown:
        raise typer.BadParameter(f"no exercise is called {unknown[0]!r}")
    if isolation not in ISOLATIONS:
        raise typer.BadParameter(f"--isolation is one of {', '.join(ISOLATIONS)}")
    jobs = _one_at_a_time(device, jobs)
    base = os.urandom(32) if seed is None else f"seed {seed}".encode()
    limits = Limits(cell_seconds=cell_seconds or read_course(root()).cell_seconds)

    def one(file: str) -> dict[str, Verdict] | UnusableFile:
        try:
            return verdicts_on(file, exercise, base, device, isolation, limits)
        except UnusableFile as reason:
            return reason

    status = 0
    for file, found in zip(files, _in_order(one, files, jobs), strict=True):
        if isinstance(found, UnusableFile):
            _complain(f"{file}: {found}")
            status = 2
            continue
        result = as_json(file, device, found)
        print(json.dumps(result) if in_json else _format_verdicts(file, found), flush=True)
        status = max(status, int(result["score"] < result["points"]))
    raise typer.Exit(status)


@app.command()
def release(
    chapter: Annotated[
        list[str] | None, typer.Argument(help="slugs; default: course.toml's chapters, or all")
    ] = None,
    draft: Annotated[
        bool, typer.Option(help="release, though the book's address is a placeholder")
    ] = False,
    solutions: Annotated[
        bool, typer.Option(help="with solutions, once a chapter's deadline in course.toml is over")
    ] = False,
) -> None:
    """Make the students' notebooks from the chapters, and what `check` compares with."""
    from autograder.publishing import collect_garbage_seldom
    from autograder.publishing.expected_values import write_expected
    from autograder.publishing.path_values import write_paths
    from autograder.publishing.pencils import MADE, write_pencils
    from autograder.publishing.release import release as release_chapters
    from autograder.publishing.release_checks import check_handed_in, nobodys_address
    from autograder.student.expected import file_of

    if not draft and (told := nobodys_address(root())):
        raise ValueError(told)
    collect_garbage_seldom()
    chapter = chapter or [*read_course(root()).chapters]
    if solutions:
        from autograder.publishing.solved_chapters import release_solved

        for path in release_solved(root(), chapter or None):
            print(path.relative_to(root()))
        return
    check_handed_in(root(), chapter or None)
    asked = {name.partition("_")[2] if name[:1].isdigit() else name for name in chapter or ()}
    for slug in chapters():
        for path in write_expected(slug) + write_paths(slug) if not asked or slug in asked else ():
            print(path.relative_to(root()), "written" if path.is_file() else "removed")
    if write_pencils(root()):
        print(file_of(MADE).relative_to(root()), "written")
    for path in release_chapters(root(), chapter or None):
        print(path.relative_to(root()))


@app.command()
def book(
    strict: Annotated[bool, typer.Option(help="treat warnings as errors")] = True,
    run: Annotated[bool, typer.Option(help="first run chapters that have changed")] = True,
) -> None:
    """Build the book's pages."""
    from rich.console import Console

    from autograder.publishing.publish import build_book

    console = Console(stderr=True)
    with console.status("building the book (the first time, every cell is run)"):
        html = build_book(root(), strict=strict, run=run, report=console.print)
    print(html / "index.html")


@app.command()
def pdf(
    out: Annotated[Path | None, typer.Argument(help="the file; default: in build/")] = None,
) -> None:
    """Build the book, and print it as one PDF."""
    from rich.console import Console

    try:
        from autograder.publishing.print_edition import print_book
    except ModuleNotFoundError as missing:
        raise RuntimeError(f"{missing}: `pip install '{PACKAGE}[paper]'`") from missing
    from autograder.publishing.publish import build_book

    with Console(stderr=True).status("building the book, then printing it"):
        printed = print_book(root(), build_book(root()), out)
    print(printed)


@app.command(context_settings={"allow_extra_args": True})
def grade(
    context: typer.Context,
    submissions: Annotated[Path, typer.Argument(metavar="[DIR]")] = Path("submitted"),
    jobs: Annotated[int | None, typer.Option(min=1, help="processes; default: all cores")] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="tcp://…", help="a Dask cluster that judges")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    db: Annotated[str | None, commands.DATABASE] = None,
    isolation: Annotated[str, typer.Option(help=" or ".join(ISOLATIONS))] = "bwrap",
    force: Annotated[bool, typer.Option(help="grade again what is already graded")] = False,
    student: Annotated[list[str] | None, typer.Option(help="only this one; repeatable")] = None,
    assignment: Annotated[list[str] | None, typer.Option(help="only this; repeatable")] = None,
    cell_seconds: _CELL_SECONDS = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="a line of JSON per submission, then one with the result")
    ] = False,
) -> None:
    """Grade DIR/<student>/<assignment>/<assignment>.ipynb into the gradebook, with feedback.

    It can be stopped and run again: what is graded stays graded. Exit status: 0, or 1 if some
    submission could not be graded, or 2 if grading had to stop.
    """
    if context.args:
        raise ValueError(command_suggestions.instead_of_many(submissions, context.args, chapters()))
    if scheduler is None:
        jobs = _one_at_a_time(device, jobs)
        fork_server.get_ready()
        if device == "cpu" and isolation in ISOLATIONS:
            with suppress(IsolationError):  # the judging processes will report that
                warm_process(isolation)
    with fork_server.without_collecting():
        from autograder.gradebook import progress
        from autograder.gradebook.classroom import grade as grade_class

    with progress.lines() if as_json else progress.bar("grading") as step:
        result = grade_class(
            submissions,
            jobs=jobs,
            scheduler=scheduler,
            db=db,
            isolation=isolation,
            device=device,
            force=force,
            progress=step,
            students=student,
            assignments=assignment,
            cell_seconds=cell_seconds,
        )
    print(result.to_json()) if as_json else _print_class(result)
    raise typer.Exit(result.exit_status)


@app.command()
def report(
    course: Annotated[Path, typer.Argument(help="the folder with gradebook.db")] = Path("."),
    out: Annotated[Path | None, typer.Option(help="the page; default: report.html")] = None,
    items: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="a table of the exercises, too")
    ] = None,
    marks: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="a table of all marks, too")
    ] = None,
    formgrader: Annotated[
        str, typer.Option(metavar="URL", help="the address of formgrader, for links")
    ] = "http://localhost:8888/formgrader",
    db: Annotated[str | None, commands.DATABASE] = None,
) -> None:
    """Draw the class: marks, exercises, mistakes, who needs help and what waits; one HTML page."""
    from autograder.report.report import report as draw

    page = out or course / "report.html"
    print(draw(course, page, db=db, items=items, marks=marks, formgrader=formgrader))


@app.command()
def marking(
    chapter: Annotated[str, typer.Argument(help="a slug")],
    course: Annotated[Path, typer.Option(metavar="DIR", help="the course's folder")] = Path("."),
    out: Annotated[Path | None, typer.Option(help="the page; default: marking.html")] = None,
    formgrader: Annotated[
        str, typer.Option(metavar="URL", help="the address of formgrader, for links")
    ] = "http://localhost:8888/formgrader",
    db: Annotated[str | None, commands.DATABASE] = None,
) -> None:
    """Show all answers to a chapter's written questions, beside model answer and rubric."""
    from autograder.report.marking import marking_page

    print(marking_page(course, chapter, out or course / "marking.html", db, formgrader))


app.command("collect")(commands.collect)
app.command("merge")(commands.merge)
app.command("return")(commands.return_grades)


@app.command()
def sample(
    folder: Annotated[Path, typer.Argument()] = Path("build/sample_class"),
    jobs: Annotated[int | None, typer.Option(min=1)] = None,
) -> None:
    """Grade the sample class, draw its report, and compare the marks with those it deserves."""
    from autograder.gradebook import progress
    from autograder.gradebook.sample_class import compare, grade_sample
    from autograder.report.report import report as draw

    with progress.bar("grading the sample class") as step:
        result = grade_sample(root() / "notebooks", folder, jobs=jobs, progress=step)
    told = compare(result)
    for name, differences in told.items():
        print(f"{'✗' if differences else '✓'} {name}", *differences, sep="; ")
    wrong = [name for name, differences in told.items() if differences]
    print(f"{len(result.rows)} submissions graded, {len(wrong)} with marks they do not deserve")
    print(draw(folder, folder / "report.html"))
    raise typer.Exit(int(bool(wrong)))


@app.command()
def bundle(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CHAPTER...] [FILE]",
            help="chapters (default: course.toml's, or all); an archive, .zip or .tar.gz",
        ),
    ] = None,
) -> None:
    """Pack what a student downloads: the notebooks and the student's side, not the reference."""
    from autograder.publishing.bundle import KINDS
    from autograder.publishing.bundle import bundle as pack
    from autograder.publishing.release_checks import nobodys_address

    def is_file(name: str) -> bool:
        return name.endswith(KINDS) or "/" in name or "." in name

    files = [Path(name) for name in names or () if is_file(name)]
    wanted = [name for name in names or () if not is_file(name)]
    if len(files) > 1:
        raise ValueError(f"one archive at a time, not {files[0]} and {files[1]}")
    wanted = wanted or [*read_course(root()).chapters]
    print(pack(root(), files[0] if files else None, wanted or None))
    if told := nobodys_address(root()):
        _complain(f"this archive is a draft, and says so: {told.partition(' (or ')[0]}")


def _print_class(result: "ClassResult") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in ("student", "assignment", "marks", "seconds", "status"):
        right = column in ("marks", "seconds")
        table.add_column(column, justify="right" if right else "left", overflow="fold")  # none cut
    for row in result.rows:
        marks = f"{row.total:g}/{row.points:g}"
        marks += f" (late: −{row.penalty:g})" if row.penalty else ""
        seconds = "" if row.seconds is None else f"{row.seconds:.1f}"
        status = "unchanged" if row.unchanged else row.status
        status += f": {one_line(row.reason)}" if row.reason else ""
        cells = (row.student, row.assignment, marks, seconds, status)
        table.add_row(*map(Text, cells))
    Console().print(table)
    for name in result.ignored:
        _complain(f"skipped: {name}")


def _one_at_a_time(device: str, jobs: int | None) -> int | None:
    """How many jobs at a time: as many as the device allows, unless told otherwise.

    Raises `IsolationError` if there is no such device here.
    """
    at_once = require(device).at_once
    return jobs or at_once


def _in_order(
    one: Callable[[str], Found], files: Sequence[str], jobs: int | None
) -> Iterator[Found]:
    """The results of `one` for the files, in their order; several are made at a time."""
    with ThreadPoolExecutor(min(jobs or os.cpu_count() or 1, len(files))) as pool:
        yield from pool.map(one, files)


def _format_verdicts(file: str, verdicts: Mapping[str, Verdict]) -> str:
    """What `check` says of each answer, below the points; what is all right takes a line."""
    score, points = (sum(getattr(v, of) for v in verdicts.values()) for of in ("score", "points"))
    lines = [f"{one_line(file)}: {number(score)} of {number(points)} points"]
    for verdict in verdicts.values():
        first, *rest = table_text(verdict).splitlines()
        kind = ": ".join(filter(None, (verdict.verdict, verdict.mistake)))
        lines += [f"{first} ({kind})", *(rest if verdict.verdict != CORRECT else ())]
    return "\n".join("".join(filter(str.isprintable, line)) for line in lines)


def _complain(text: str) -> None:
    print("autograder: " + one_line(text), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. An error ends it with one line on stderr and exit status 2."""
    try:
        status = app(args=arguments, standalone_mode=False)
    except (IsolationError, NoCourse) as error:
        _complain(str(error))
        status = 2
    except (KeyboardInterrupt, typer.Abort):
        os._exit(130)  # the sandboxes die with this process
    except (*_TOLD, ValueError) as error:
        _complain(str(error))
        status = 2
    except RuntimeError as error:  # a tool that we called has failed; its words are the message
        print(f"autograder: {error}", file=sys.stderr)
        status = 2
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own: a call that is not understood
            raise
        _complain(error.format_message())
        status = 2
    sys.exit(status or 0)


if __name__ == "__main__":
    main()
