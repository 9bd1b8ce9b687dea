"""Makes the wrong answers of every kind, judges them, and prints and stores what came of them."""

import argparse
import json
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from autograder.student.course import chapters, exercises_of
from benchmarks.holes.judging import APART_, CAUGHT, KEPT, outcomes, problems

DETAILS = Path("build") / "holes.json"
COLUMNS = (CAUGHT, KEPT, APART_)


def main() -> int:
    """Exit status 1 if a wrong answer keeps full marks, or loses some and is set apart."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.holes", description=__doc__)
    parser.add_argument("--only", nargs="*", help="judge the answers to these exercises only")
    only = parser.parse_args().only
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    details: dict[str, dict[str, str]] = {}
    wrong: list[str] = []
    for slug in chapters():
        for exercise in exercises_of(slug):
            if exercise.recorded and (not only or exercise.name in only):
                details[exercise.name] = outcomes(slug, exercise)
                found = problems(exercise.name, details[exercise.name])
                wrong += found
                print(*found, sep="\n", end="\n" if found else "", flush=True)
    DETAILS.parent.mkdir(exist_ok=True)
    DETAILS.write_text(json.dumps(details, ensure_ascii=False, indent=1), encoding="utf-8")
    Console().print(table(details))
    return int(bool(wrong))


def table(details: dict[str, dict[str, str]]) -> Table:
    """For each exercise and kind: caught / full marks / does not apply."""
    kinds = dict.fromkeys(name.partition(":")[0] for d in details.values() for name in d)
    shown = Table(box=None, pad_edge=False)
    for column in ("exercise", *kinds):
        shown.add_column(column, justify="left" if column == "exercise" else "right")
    total: dict[str, Counter] = {kind: Counter() for kind in kinds}
    for exercise, found in details.items():
        cells = []
        for kind in kinds:
            counts = Counter(came for name, came in found.items() if name.startswith(f"{kind}:"))
            total[kind] += counts
            cells.append(_cell(counts))
        shown.add_row(exercise, *cells)
    shown.add_row("all", *(_cell(counts) for counts in total.values()), style="bold")
    return shown


def _cell(counts: Counter) -> str:
    return " / ".join(str(counts[column]) for column in COLUMNS) if counts else "–"


if __name__ == "__main__":
    sys.exit(main())
