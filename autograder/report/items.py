"""Item analysis: how each exercise and question was done, and how well it tells students apart.

The discrimination of an item is its corrected item-total correlation: Pearson's correlation, over
the students, of its mark with the sum of the others. The item is left out of the sum, since it
would correlate with itself: S. Henrysson, *Correction of item-total correlations in item
analysis*, Psychometrika 28 (1963), 211–218. Items below 0.2 are usually looked at again, negative
ones first: there, those who did well elsewhere failed. With few students the number says little, so
it is not given for fewer than ten.

TRUST BOUNDARY. Names of items come from the gradebook; in the table, formulas are defused.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from statistics import fmean

from autograder.gradebook.export import escape_formula
from autograder.gradebook.rows import Row
from autograder.judge.judgement import FAILED, GRADED
from autograder.notebook.reading import CHECK

FEWEST = 10  # students, for a correlation
HEAD = (
    "assignment", "item", "kind", "points", "submissions", "not_attempted", "wrong", "partial",
    "full", "waiting", "mean", "mean_share", "discrimination",
)  # fmt: skip


@dataclass(frozen=True)
class Item:
    """A graded cell: how many submissions did it in which way; the mean of the known marks.

    `waiting` were written and wait for a mark by hand. `discrimination` lies between -1 and 1.
    """

    assignment: str
    name: str
    points: float
    submissions: int
    blank: int
    wrong: int
    partial: int
    full: int
    waiting: int
    mean: float | None
    discrimination: float | None

    @property
    def exercise(self) -> str:
        return self.name.removeprefix(CHECK)

    @property
    def is_question(self) -> bool:
        return not self.name.startswith(CHECK)

    @property
    def share(self) -> float | None:
        """The mean as a share of the points."""
        return self.mean / self.points if self.mean is not None and self.points else None


def items_of(assignment: str, rows: Sequence[Row]) -> list[Item]:
    """The items of an assignment, exercises first, each in the order in which it was checked."""
    graded = [row for row in rows if row.status == GRADED]
    names = columns(graded)
    settled = [name for name in names if all(_known(row, name) for row in graded)]
    return [_item(assignment, name, graded, settled) for name in names]


def columns(rows: Iterable[Row]) -> list[str]:
    """The graded cells, exercises first, each in the order in which it was checked."""
    rows, ordered = list(rows), dict[str, None]()
    for row in rows:
        ordered |= dict.fromkeys(CHECK + name for name in row.verdicts if CHECK + name in row.marks)
    for row in rows:
        ordered |= dict.fromkeys(sorted(row.marks))
    return list(ordered)


def _known(row: Row, name: str) -> bool:
    return name in row.marks and row.marks[name].known


def _item(assignment: str, name: str, rows: Sequence[Row], settled: Sequence[str]) -> Item:
    there = [row for row in rows if name in row.marks]
    marks = [row.marks[name] for row in there]
    points = max((mark.points for mark in marks), default=0.0)
    known = [mark for mark in marks if mark.known]
    tried = [mark.score for mark in known if not mark.blank]
    rest = [other for other in settled if other != name]
    pairs = [
        (row.marks[name].score, sum(row.marks[other].score for other in rest))
        for row in there
        if row.marks[name].known
    ]
    return Item(
        assignment,
        name,
        points,
        len(marks),
        sum(mark.blank for mark in known),
        sum(score <= 0 for score in tried),
        sum(0 < score < points - 1e-6 for score in tried),
        sum(score > 0 and score >= points - 1e-6 for score in tried),
        len(marks) - len(known),
        fmean(mark.score for mark in known) if known else None,
        correlation(pairs) if rest else None,
    )


def correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Pearson's correlation; None for fewer than ten pairs, or where one side does not vary."""
    if len(pairs) < FEWEST:
        return None
    first, second = fmean(a for a, _ in pairs), fmean(b for _, b in pairs)
    both = sum((a - first) * (b - second) for a, b in pairs)
    one = sum((a - first) ** 2 for a, _ in pairs)
    other = sum((b - second) ** 2 for _, b in pairs)
    size = sqrt(one * other)
    return both / size if size > 1e-12 else None


def write_items(path: Path, items: Iterable[Item]) -> None:
    """Write the items as a table that a spreadsheet can open without harm."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(HEAD)
        for item in items:
            kind = "question" if item.is_question else "exercise"
            counts = (item.submissions, item.blank, item.wrong, item.partial, item.full)
            numbers = (item.mean, item.share, item.discrimination)
            writer.writerow(
                [
                    escape_formula(item.assignment),
                    escape_formula(item.exercise),
                    kind,
                    f"{item.points:.6g}",
                    *counts,
                    item.waiting,
                    *("" if n is None else f"{n:.6g}" for n in numbers),
                ]
            )


def write_marks(
    path: Path, rows: Sequence[Row], absent: Iterable[str], names: Mapping[str, str]
) -> None:
    """Write the marks as a table: a row for each student, a column for each item of a chapter.

    A mark that waits for a person is `?`; what was not handed in, or has no marks, is empty.
    `absent` are in it, too; `names` maps students to what they are called.
    """
    assignments = sorted({row.assignment for row in rows})
    by_name = {a: columns([row for row in rows if row.assignment == a]) for a in assignments}
    there = {(row.student, row.assignment): row for row in rows if row.status != FAILED}
    heads = [f"{a}/{n.removeprefix(CHECK)}" for a in assignments for n in [*by_name[a], "total"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="", errors="replace") as stream:
        writer = csv.writer(stream)
        writer.writerow(["student_id", "name", *map(escape_formula, heads)])
        for student in sorted({*(row.student for row in rows), *absent}):
            cells = [escape_formula(student), escape_formula(names.get(student, ""))]
            for assignment in assignments:
                row = there.get((student, assignment))
                cells += [_mark_of(row, name) for name in by_name[assignment]]
                cells.append(f"{row.total:.6g}" if row else "")
            writer.writerow(cells)


def _mark_of(row: Row | None, name: str) -> str:
    mark = row.marks.get(name) if row else None
    if mark is None:
        return ""
    return "?" if mark.by_hand else f"{mark.score:.6g}"
