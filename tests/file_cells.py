"""Cells of a file, put into a chapter's notebook as their author would have put them there.

In such a file `# %%` begins a new cell. An `.ipy` holds what only IPython understands.
"""

import re
from collections.abc import Collection

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.notebook.names import defined_names


def cells_of(text: str) -> list[str]:
    """The cells of a file, without those that hold nothing but comments."""
    cells = [cell.strip("\n") for cell in re.split(r"^# %%.*\n", text, flags=re.MULTILINE)]
    return [cell for cell in cells if not re.fullmatch(r"(#.*\n?)*", cell)]


def fill_in(notebook: NotebookNode, answers: Collection[str], text: str) -> NotebookNode:
    """The notebook with a file's cells in it, in the file's order, with answers in their places."""
    sources = cells_of(text)
    ids = [cell.id for cell in notebook.cells]
    owner = {_at(sources, name): name for name in answers}
    assert len(owner) == len(answers), "each answer has a cell of its own"
    order = [ids.index(owner[number]) for number in sorted(owner)]
    assert order == sorted(order), "the answers stand in the chapter's order"
    place = order[0] - 1
    for number, source in enumerate(sources):
        if number in owner:
            place = next(n for n, cell in enumerate(notebook.cells) if cell.id == owner[number])
            notebook.cells[place].source = source
        else:
            place += 1
            notebook.cells.insert(place, new_code_cell(source))
    return notebook


def _at(sources: list[str], name: str) -> int:
    """The cell that answers an exercise: the last that defines it, or else that mentions it."""
    defining = [n for n, source in enumerate(sources) if name in defined_names(source)]
    return (defining or [n for n, s in enumerate(sources) if re.search(rf"\b{name}\b", s)])[-1]
