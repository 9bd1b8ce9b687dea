"""A script as the notebook that it could be: cells by its marks, or else by its statements.

Cells are marked as by Jupytext's percent format, `# %%`, whose `nbgrader={…}` says which answer a
cell is, or as nbconvert writes them, `# In[3]:`.

TRUST BOUNDARY. The script is hostile text: it is taken apart, never run.
"""

import json
import re
from collections.abc import Iterator

from autograder.notebook.names import statements_of
from autograder.notebook.reading import UnusableFile, text_in

SUFFIX = ".py"
_MARK = re.compile(r"^# ?(?:%%(.*)|In ?\[[ \d]*\]:?\s*)$", re.MULTILINE)
_KIND = re.compile(r"\[(markdown|md|raw)\]")
_QUOTES = ('"""', "'''")


def notebook_of(data: bytes) -> bytes:
    """A script's contents as a notebook's; what is no text comes back as it is."""
    try:
        text = text_in(data, "file").replace("\r\n", "\n").replace("\r", "\n")
    except UnusableFile:
        return data
    cells = [*(_marked_cells(text) if _MARK.search(text) else _statement_cells(text))]
    tree = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(tree, ensure_ascii=True, indent=1).encode()


def _marked_cells(text: str) -> Iterator[dict[str, object]]:
    marks = [*_MARK.finditer(text)]
    yield _cell(text[: marks[0].start()])
    for mark, end in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
        title, source = mark[1] or "", text[mark.end() : end]
        kind = _KIND.search(title)
        yield _cell(_uncomment(source) if kind else source, bool(kind), _grade_mark(title))


def _statement_cells(text: str) -> Iterator[dict[str, object]]:
    """A cell for each statement, with the comments above it."""
    try:
        yield from (_cell(source) for _, source in statements_of(text))
    except SyntaxError:  # whoever judges it says where
        yield _cell(text)


def _cell(source: str, markdown: bool = False, mark: object = None) -> dict[str, object]:
    cell: dict[str, object] = {
        "cell_type": "markdown" if markdown else "code",
        "source": source.strip("\n"),
    }
    cell["metadata"] = {"nbgrader": mark} if isinstance(mark, dict) else {}
    return cell if markdown else cell | {"outputs": [], "execution_count": None}


def _grade_mark(title: str) -> object:
    """nbgrader's mark in the title of a cell, if there is one."""
    _, found, rest = title.partition("nbgrader=")
    try:
        return json.JSONDecoder().raw_decode(rest)[0] if found else None
    except (ValueError, RecursionError):
        return None


def _uncomment(text: str) -> str:
    """Markdown in a script: in comments, or between three quotes."""
    plain = text.strip()
    if plain[:3] in _QUOTES and plain[-3:] == plain[:3]:
        return plain[3:-3]
    return re.sub(r"^# ?", "", plain, flags=re.MULTILINE)
