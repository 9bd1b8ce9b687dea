"""`autograder new exercise` and `autograder try`: what the command line says."""

import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autograder.student.course import root

if TYPE_CHECKING:
    from rich.table import Table

    from autograder.publishing.authors.trial import Trial


new = typer.Typer(no_args_is_help=True, help="Begin something new: a course, or an exercise.")


@new.command()
def exercise(
    chapter: Annotated[str, typer.Argument(help="the chapter's slug, such as averages")],
    name: Annotated[str, typer.Argument(help="the name of the function to be written")],
    signature: Annotated[
        str, typer.Argument(help="'(x: Float[Tensor, \"n d\"]) -> …', if it is not written yet")
    ] = "",
    title: Annotated[str, typer.Option(help="what students read above it")] = "",
    after: Annotated[str, typer.Option(help="the exercise before it; default: the last")] = "",
) -> None:
    """Begin an exercise: reference, declaration, known answers, cells, test, changelog."""
    from autograder.publishing.authors.scaffold import new_exercise

    plan = new_exercise(root(), chapter, name, signature, title, after)
    plan.write()
    for path in plan.files:
        print(path.relative_to(root()))
    path, line = plan.reference
    print(
        f"\nNow write the reference ({path}:{line}) and whatever else says TODO;\n"
        f"  autograder try {name}: judges it, its mistakes and its right answers;\n"
        f"  autograder release --draft {chapter}: makes the notebook when all is well."
    )


@new.command("course")
def course_(
    folder: Annotated[Path, typer.Argument(help="a new or empty folder")],
    title: Annotated[str, typer.Option(help="the book's title")] = "",
) -> None:
    """Make a course of one small chapter, for you to turn into your own."""
    from autograder.publishing.authors.new_course import new_course

    for path in new_course(folder, title):
        print(path)
    print(
        f"\nNow `cd {folder}` and read README.md; `autograder release --draft` makes the notebook."
    )


def try_exercise(
    name: Annotated[str, typer.Argument(help="the exercise")],
) -> None:
    """Judge an exercise's reference, mistakes and right answers. Exit status: 0 if all is well.

    It shows what each answer earns with two sets of inputs, which mistake it is taken for, which
    aspects no mistake fails, and what is still to be written.
    """
    from rich.console import Console

    from autograder.publishing.authors.trial import Trial, find_todos

    console = Console()
    try:
        trial = Trial(name)
    except KeyError:
        raise ValueError(f"no exercise is called {name!r}: `autograder new exercise`") from None
    places = find_todos(root(), trial.slug, name)
    problems: list[str] = []
    if trial.is_written:
        with console.status("judging the reference, the mistakes and the right answers"):
            try:
                problems += trial.problems()
            except (ArithmeticError, AttributeError, LookupError, NameError, TypeError) as error:
                raise ValueError(_in_the_course(error)) from error
        for table in _tables(trial):
            console.print(table)
    else:
        problems.append("the reference is not written: nothing can be judged yet")
    for line in problems:
        console.print(f"✗ {line}", markup=False, highlight=False)
    if places:
        console.print("✗ still to write:", *places, sep="\n  ", markup=False, highlight=False)
    if not problems and not places:
        console.print(f"✓ all is well: now `autograder release --draft {trial.slug}`", markup=False)
    raise typer.Exit(int(bool(problems or places)))


def _in_the_course(error: Exception) -> str:
    """An error in one line, with the last place in the course's own files that led to it."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/exercises/" in f.filename or "/solutions/" in f.filename]
    place = f"{Path(ours[-1].filename)}:{ours[-1].lineno}, in {ours[-1].name}: " if ours else ""
    told = f"{place}{type(error).__name__}: {error}"
    if "Array" in str(error) or "scalar arrays" in str(error):
        told += " (draw.tensor describes a tensor: change a NumPy array first, then tensor(array))"
    return told


def _tables(trial: "Trial") -> Iterator["Table"]:
    """The aspects with what fails them, and the answers with what they earn."""
    from rich.table import Table

    from autograder.publishing.authors.trial import MISTAKES

    aspects = Table("aspect", title=f"{trial.name}: {trial.exercise.points:g} points")
    aspects.add_column("points", justify="right")
    aspects.add_column("mistakes that fail it", justify="right")
    aspects.add_column("and nothing else", justify="right")
    failed = [trial.try_answer(MISTAKES, a).failed_titles() for a in trial.bank[MISTAKES]]
    for aspect in trial.exercise.aspects:
        title = aspect.title
        counts = sum(title in f for f in failed), sum({*f} == {title} for f in failed)
        aspects.add_row(title, f"{aspect.points:g}", *map(str, counts))
    answers = Table()
    for column in ("answer", "kind", "earns", "taken for"):
        right = column == "earns"  # and no name is cut
        answers.add_column(column, justify="right" if right else "left", overflow="fold")
    for kind, answer in trial.answers():
        tried = trial.try_answer(kind, answer)
        earned = " ".join(f"{s:g}" for s in dict.fromkeys(v.score for v in tried.verdicts))
        names = dict.fromkeys(v.mistake or v.verdict for v in tried.verdicts)
        taken = ("itself" if name == answer else name for name in names)
        answers.add_row(answer, kind.removesuffix("s"), earned, ", ".join(taken))
    yield aspects
    yield answers
