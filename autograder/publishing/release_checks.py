"""What is checked before a release writes anything: the gradebook, and the book's address.

Once a chapter has been handed in, nbgrader lets its cells change, but not be added or removed.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from nbgrader.api import Gradebook, MissingEntry

from autograder.gradebook.course_file import FILE as COURSE
from autograder.gradebook.course_file import read_course
from autograder.gradebook.gradebook import database
from autograder.publishing.bookindex import BookIndex
from autograder.publishing.release import chapter_files, instructor_notebook

_ADDRESS = re.compile(r"\s+baseurl:\s*[\"']?([^\s\"'#]+)")


def check_handed_in(root: Path, wanted: Sequence[str] | None = None) -> None:
    """Make sure that no chapter that was handed in gets other graded cells than it had.

    Raises `ValueError`, which names the cells and says what to do.
    """
    url = database(root, os.environ.get("AUTOGRADER_DB"))
    if url.startswith("sqlite") and not Path(url.removeprefix("sqlite:///")).is_file():
        return
    paths = chapter_files(root, wanted)
    with Gradebook(url) as gradebook:
        known = {path: _cells(gradebook, path.stem) for path in paths}
    book = BookIndex(root) if any(known.values()) else None
    for path, cells in known.items():
        if cells:
            notebook = instructor_notebook(path, book)
            marks = (cell.metadata.get("nbgrader", {}) for cell in notebook.cells)
            now = {mark["grade_id"] for mark in marks if mark}
            if now != cells:
                raise ValueError(_told(path.stem, sorted(now - cells), sorted(cells - now)))


def nobodys_address(root: Path) -> str | None:
    """What to change if the notebooks would link to an address that is only a placeholder."""
    if address := read_course(root).address:
        wrong = _is_nobodys(urlsplit(address).hostname or "")
        return _told_of(f"{COURSE}: {address}", "there") if wrong else None
    lines = (root / "_config.yml").read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        found = _ADDRESS.match(line)
        if found and _is_nobodys(urlsplit(found[1]).hostname or ""):
            return _told_of(f"_config.yml:{number}: {found[1]}", f"into {COURSE}")
    return None


def _is_nobodys(host: str) -> bool:
    return f".{host}".endswith(".example")


def _told_of(place: str, where: str) -> str:
    return (
        f"{place} is a placeholder, and the notebooks' links would go there. Put the address where "
        f'you publish the book {where}: [book] address = "https://…" (or release a draft: --draft)'
    )


def _cells(gradebook: Gradebook, assignment: str) -> set[str]:
    """The cells of an assignment that somebody has handed in, by grade id; none if nobody has."""
    try:
        notebook = gradebook.find_notebook(assignment, assignment)
    except MissingEntry:
        return set()
    return {cell.name for cell in notebook.source_cells} if notebook.submissions else set()


def _told(assignment: str, new: list[str], gone: list[str]) -> str:
    kinds = ((new, "would be new"), (gone, "would go"))
    changes = [f"{', '.join(names)} {verb}" for names, verb in kinds if names]
    return (
        f"{assignment} has been handed in, and nbgrader can no longer add or remove its cells "
        f"({'; '.join(changes)}). Nothing was written. Keep the exercise for the next term, with a "
        "new gradebook, or for a chapter that nobody has handed in"
    )
