"""Which assignment a notebook is: by the cells that the release gave it, else by its name.

TRUST BOUNDARY. The notebook is hostile JSON; `notebook.reading` bounds it.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import nbformat

from autograder.notebook.reading import UnusableFile, parse_notebook


def assignment_of(data: bytes, name: str, release: Path, assignments: Sequence[str]) -> str | None:
    """The assignment that a notebook belongs to; None if neither cells nor name tell."""
    ids = _ids(data)
    if ids:
        shared = {
            a: len(ids & _released_assignments(release / a / f"{a}.ipynb")) for a in assignments
        }
        best = max(shared.values(), default=0)
        first = [a for a, count in shared.items() if count == best]
        if best and len(first) == 1:
            return first[0]
    return _assignment_in(name, assignments)


def _assignment_in(name: str, assignments: Sequence[str]) -> str | None:
    """The assignment whose name or slug is part of a file's name: the longest, if only one is."""
    stem = (
        "_"
        + re.sub(r"[^a-z0-9]+", "_", name.casefold().partition(".ipynb")[0].removesuffix(".py"))
        + "_"
    )
    hits: dict[str, int] = {}
    for assignment in assignments:
        for form in (assignment, assignment.partition("_")[2]):
            if form and f"_{form.casefold()}_" in stem:
                hits[assignment] = max(len(form), hits.get(assignment, 0))
    longest = [a for a, length in hits.items() if length == max(hits.values())]
    return longest[0] if len(longest) == 1 else None


def _ids(data: bytes) -> set[str]:
    try:
        cells = parse_notebook(data)["cells"]
    except UnusableFile:
        return set()
    found = set()
    for cell in cells:
        metadata = cell.get("metadata") if isinstance(cell, dict) else None
        mark = metadata.get("nbgrader") if isinstance(metadata, dict) else None
        name = mark.get("grade_id") if isinstance(mark, dict) else None
        if isinstance(name, str):
            found.add(name)
    return found


@lru_cache(maxsize=64)
def _released_assignments(path: Path) -> frozenset[str]:
    notebook = nbformat.read(path, as_version=4)
    marks = (cell.metadata.get("nbgrader", {}) for cell in notebook.cells)
    return frozenset(mark["grade_id"] for mark in marks if mark.get("grade_id"))
