"""Makes all mutants, judges them, prints what came of them and stores the score."""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from autograder.judge.reference import reference
from autograder.student.course import chapters, exercises_of
from benchmarks.mutants.judging import Judged, judged
from benchmarks.mutants.listed import equivalents, problems, read, row, write
from benchmarks.mutants.making import Mutant, mutants_of

DETAILS = Path("build") / "mutants.json"
COLUMNS = ("made", "caught", "named", "equivalent", "survived", "broken")


def judge_all(
    made: dict[str, tuple[str, Sequence[Mutant]]],
) -> Iterator[tuple[str, list[Judged]]]:
    """What comes of the mutants of each exercise, with a bar on stderr."""
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=sum(len(mutants) for _, mutants in made.values()))
        for name, (slug, mutants) in made.items():
            progress.update(bar, description=name)
            found = []
            for outcome in judged(slug, name, mutants):
                found.append(outcome)
                progress.advance(bar)
            yield name, found


def main() -> int:
    """Exit status 1 if a mutant that is not listed keeps full marks, or one that is loses some."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutants", description=__doc__)
    parser.add_argument("--only", nargs="*", help="judge the mutants of these exercises only")
    only = parser.parse_args().only
    every = {e.name: slug for slug in chapters() for e in exercises_of(slug)}
    if unknown := set(only or ()) - every.keys():
        parser.error(f"no exercise is called {', '.join(sorted(unknown))}")
    made = {
        name: (slug, mutants_of(reference(slug, name)))
        for name, slug in every.items()
        if not only or name in only
    }
    listed, rows, details, wrong = equivalents(), {}, {}, []
    wrong += [f"{name}: is not an exercise, and has equivalents" for name in listed.keys() - every]
    start = time.monotonic()
    for name, found in judge_all(made):
        mutants, known = made[name][1], listed.get(name, {})
        rows[name] = row(mutants, found, known)
        wrong += [f"{name} {problem}" for problem in problems(mutants, found, known)]
        details[name] = [[m.operator, m.name, *j] for m, j in zip(mutants, found, strict=True)]
    stored = read() | rows
    write({name: stored[name] for name in every if name in stored})
    DETAILS.parent.mkdir(exist_ok=True)
    DETAILS.write_text(json.dumps(details, ensure_ascii=False, indent=1), encoding="utf-8")
    Console().print(table({name: rows[name] for name in made}))
    print(f"{time.monotonic() - start:.0f} seconds; every mutant is in {DETAILS}")
    print(*wrong, sep="\n")
    return int(bool(wrong))


def table(rows: dict[str, dict]) -> Table:
    """What came of the mutants, an exercise a line."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("exercise")
    for column in COLUMNS:
        shown.add_column(column, justify="right")
    for name, counts in rows.items():
        shown.add_row(name, *(str(counts[column]) for column in COLUMNS))
    total = (sum(counts[column] for counts in rows.values()) for column in COLUMNS)
    shown.add_row("all", *map(str, total), style="bold")
    return shown


if __name__ == "__main__":
    sys.exit(main())
