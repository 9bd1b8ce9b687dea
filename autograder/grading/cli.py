"""The command line: `autograder judge FILE…`."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

import typer

from autograder.exercises import chapters, exercises_of
from autograder.grading.judge import Unusable, judge_file
from autograder.grading.sandbox import ISOLATIONS, IsolationError

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)


@app.callback()
def autograder() -> None:
    """Release, judge and grade the course's notebooks."""


@app.command()
def judge(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help=".py or .ipynb")],
    exercise: Annotated[list[str] | None, typer.Option(help="judge only this; repeatable")] = None,
    device: Annotated[str, typer.Option(help="cpu or cuda")] = "cpu",
    seed: Annotated[int | None, typer.Option(help="repeat the inputs of an earlier call")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a file")] = False,
    isolation: Annotated[str, typer.Option(help=" or ".join(ISOLATIONS))] = "bwrap",
    jobs: Annotated[int | None, typer.Option(min=1, help="files at a time")] = None,
) -> None:
    """Judge files without a gradebook. Exit status: 0 full marks, 1 not, 2 unusable."""
    known = [e.name for slug in chapters() for e in exercises_of(slug)]
    unknown = [name for name in exercise or () if name not in known]
    if unknown:
        raise typer.BadParameter(f"no exercise is called {unknown[0]!r}")
    if isolation not in ISOLATIONS:
        raise typer.BadParameter(f"--isolation is one of {', '.join(ISOLATIONS)}")
    base = os.urandom(32) if seed is None else f"seed {seed}".encode()

    def one(file: str) -> dict[str, Any] | Unusable:
        try:
            return judge_file(file, exercise, base, device, isolation)
        except Unusable as reason:
            return reason

    status = 0
    for file, result in zip(files, _in_order(one, files, jobs), strict=True):
        if isinstance(result, Unusable):
            _complain(f"{file}: {result}")
            status = 2
            continue
        print(json.dumps(result), flush=True) if as_json else _print_table(result)
        status = max(status, int(result["score"] < result["points"]))
    raise typer.Exit(status)


def _in_order(one: Any, files: Sequence[str], jobs: int | None) -> Iterator[Any]:
    """`one` of each file, several at a time, in the order of the files."""
    with ThreadPoolExecutor(min(jobs or os.cpu_count() or 1, len(files))) as pool:
        yield from pool.map(one, files)


def _print_table(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    score, points = (f"{result[key]:g}" for key in ("score", "points"))
    table = Table(title=Text(f"{result['file']}: {score} of {points}"), title_justify="left")
    for column in ("exercise", "verdict", "points", "what fails"):
        table.add_column(column, justify="right" if column == "points" else "left")
    for name, verdict in result["exercises"].items():
        failed = [a for a in verdict["aspects"] if not a["passed"]]
        lines = [f"{a['title']}: {a['error']}" for a in failed]
        lines = lines if len({a["error"] for a in failed}) > 1 else [a["error"] for a in failed[:1]]
        lines = [f"known mistake: {verdict['mistake']}"] * bool(verdict["mistake"]) + lines
        marks = f"{verdict['score']:g}/{verdict['points']:g}"
        table.add_row(name, verdict["verdict"], marks, Text("\n".join(map(str, lines))))
    Console().print(table)


def _complain(text: str) -> None:
    print("autograder: " + " ".join(text.split()), file=sys.stderr, flush=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. What cannot be done ends in one line on stderr and status 2."""
    try:
        status = app(args=arguments, standalone_mode=False)
    except IsolationError as error:
        _complain(str(error))
        status = 2
    except (KeyboardInterrupt, typer.Abort):
        os._exit(130)  # the sandboxes die with this process
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer's own: a call that is not understood
            raise
        _complain(error.format_message())
        status = 2
    sys.exit(status or 0)


if __name__ == "__main__":
    main()
