"""How much of a notebook is the student's: whether it is more than an untouched copy.

TRUST BOUNDARY. The notebook is hostile JSON, of which `notebook.reading` bounds the size; its code
is parsed, never run.
"""

from collections.abc import Set
from functools import lru_cache
from pathlib import Path

import nbformat

from autograder.notebook.names import defined_names
from autograder.notebook.reading import UnusableFile, cells_of, parse_notebook, text_of

UNTOUCHED, BESIDE, ANSWERED = 0, 1, 2


def effort_in(data: bytes, release: Path) -> int:
    """What a notebook has beyond a released one: nothing, cells beside the answers, or answers.

    What cannot be read counts as answers, since it may have held some.
    """
    try:
        cells = [*cells_of(parse_notebook(data), [])]
    except UnusableFile:
        return ANSWERED
    answers, texts, names = _released_texts(release)
    beside = UNTOUCHED
    for cell in cells:
        text = _plain(cell.source)
        if not text or text in texts:
            continue
        is_code = cell.kind == "code"
        if cell.grade_id in answers or (is_code and defined_names(cell.source) & names):
            return ANSWERED
        beside = BESIDE
    return beside


def names_answered(data: bytes) -> Set[str]:
    """All names that the code of a notebook defines."""
    try:
        cells = [*cells_of(parse_notebook(data), [])]
    except UnusableFile:
        return frozenset()
    return {name for cell in cells if cell.kind == "code" for name in defined_names(cell.source)}


def answers_named(names: Set[str], release: Path) -> int:
    """How many of some names are those of a release's answers."""
    return len(names & _released_texts(release)[2])


def is_notebook_of(data: bytes, release: Path) -> bool:
    """Whether a notebook has at least half of a release's answers, by their grade ids."""
    try:
        ids = {cell.grade_id for cell in cells_of(parse_notebook(data), [])}
    except UnusableFile:
        return False
    answers = _released_texts(release)[0]
    return 2 * len(ids & answers) >= len(answers)


@lru_cache(maxsize=32)
def _released_texts(release: Path) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """The grade ids of a release's answers, all its texts, and the names that answers define."""
    answers, texts, names = set[str](), set[str](), set[str]()
    for cell in nbformat.read(release, as_version=4).cells:
        mark = cell.metadata.get("nbgrader", {})
        texts.add(_plain(text_of(cell.source) or ""))
        if mark.get("solution"):
            answers.add(mark["grade_id"])
            names |= defined_names(cell.source) if cell.cell_type == "code" else set()
    return frozenset(answers), frozenset(texts), frozenset(names)


def _plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())
