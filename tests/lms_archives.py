"""Archives and tables as Moodle and Canvas make them, after their documented formats.

Moodle: `mod/assign/classes/downloader.php`, `mod/assign/gradingtable.php`. Canvas:
`lib/content_zipper.rb`, `lib/gradebook_exporter.rb`.
"""

import csv
import io
import json
import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from unicodedata import category

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "notebooks"
NAME = next(NOTEBOOKS.glob("*_kernel_regression")).name
OTHER = next(NOTEBOOKS.glob("*_masking")).name
FILE = f"{NAME}.ipynb"
MOODLE_HEAD = [
    "Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade",
    "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
    "Feedback comments",
]  # fmt: skip
GERMAN_HEAD = [
    "ID", "Vollständiger Name", "E-Mail-Adresse", "Status", "Bewertung", "Bestwertung",
    "Bewertung kann geändert werden", "Zuletzt geändert (Abgabe)", "Zuletzt geändert (Bewertung)",
    "Feedback als Kommentar",
]  # fmt: skip


def notebook(answer: str = "", grade_id: str = "softmax", nbgrader: bool = True) -> bytes:
    """A small notebook that holds one cell of a chapter."""
    mark = {"nbgrader": {"grade_id": grade_id, "solution": True}} if nbgrader else {}
    cell = {"cell_type": "code", "source": answer, "metadata": mark, "outputs": []}
    tree = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [cell]}
    return json.dumps(tree).encode()


def moodle(name: str, number: int, file: str = FILE, plugin: str = "file", old: bool = True) -> str:
    """The name of a file in Moodle's archive, in folders; `old`: before version 4.1."""
    return f"{name}_{number}_assignsubmission_{plugin}{'_' if old else ''}/{file}"


def flat(name: str, number: int) -> str:
    """The same where submissions are not downloaded in folders."""
    return f"{name}_{number}_assignsubmission_file_{FILE}"


def canvas(name: str, user: int, number: int, file: str = FILE, late: bool = False) -> str:
    """The name of a file in Canvas's archive; `name` is the sortable one: King, Ada."""
    plain = "".join(c for c in name.lower() if re.match(r"\w", c) or category(c)[0] == "M")
    return "_".join([plain, *(["LATE"] if late else []), str(user), str(number), file])


def archive(path: Path, files: Mapping[str, bytes] | Sequence[tuple[str, bytes]]) -> Path:
    """A ZIP archive; a file's name may be followed by its time, as in `name @ 2030-03-01 12:00`."""
    items = files.items() if isinstance(files, Mapping) else files
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for given, data in items:
            name, _, when = given.partition(" @ ")
            moment = tuple(map(int, re.findall(r"\d+", when))) if when else (2030, 5, 1, 9, 0)
            packed.writestr(zipfile.ZipInfo(name, (*moment, 0)), data, zipfile.ZIP_DEFLATED)
    return path


def table(path: Path, rows: Sequence[Sequence[str]], delimiter: str = ",") -> Path:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    path.write_text(text.getvalue(), encoding="utf-8-sig", newline="")
    return path


def moodle_row(
    number: int,
    name: str,
    email: str,
    submitted: str = "-",
    maximum: str = "25.50",
    participant: str = "Participant",
    comment: str = "",
) -> list[str]:
    """A participant's row in the grading worksheet."""
    status = "Submitted for grading - Not graded" if submitted != "-" else "No submission"
    marks = ["", maximum, "Yes", submitted, "-", comment]
    return [f"{participant} {number}", name, email, status, *marks]


def canvas_rows(
    people: Sequence[tuple[str, int, str]], column: str, points: str
) -> list[list[str]]:
    """Canvas's gradebook: a row of headings, one of points, one for each student."""
    totals = ["Current Score", "Final Score"]
    head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Essay (814)", column]
    rows = [[*head, *totals]]
    rows.append(
        ["    Points Possible", "", "", "", "", "10.00", points, "(read only)", "(read only)"]
    )
    for name, user, login in people:
        rows.append([name, str(user), f"S{user}", login, "Group 1", "7.00", "", "70.00", "70.00"])
    return rows


def read_table(path: Path, delimiter: str = ",") -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.reader(stream, delimiter=delimiter))


def handed_in(course: Path) -> dict[str, bytes]:
    """What lies in submitted/, by path."""
    files = (course / "submitted").rglob("*") if (course / "submitted").exists() else ()
    return {str(p.relative_to(course / "submitted")): p.read_bytes() for p in files if p.is_file()}
