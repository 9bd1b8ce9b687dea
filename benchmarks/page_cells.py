"""The cells of a chapter's page: their code, and what those that are wanted define."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder.publishing.chapter_runs import CELL


def cell_of(page: Path, begins: str) -> str:
    """The code of the one cell of which a line begins so."""
    line = re.compile(rf"^{re.escape(begins)}(?!\w)", re.MULTILINE)
    (found,) = filter(line.search, CELL.findall(page.read_text(encoding="utf-8")))
    return found


def run_cells(page: Path, wanted: Iterable[str], scope: dict[str, Any] | None = None) -> dict:
    """The names that these cells leave, each found by how one of its lines begins."""
    scope = {} if scope is None else dict(scope)
    for begins in wanted:
        exec(cell_of(page, begins), scope)
    return scope
