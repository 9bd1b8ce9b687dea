"""Notebooks that may be changed: nbformat and nbconvert copy one first, node by node."""

from nbformat import NotebookNode


def given_away(notebook: NotebookNode) -> NotebookNode:
    """A notebook that nobody uses afterwards, so that to copy it takes no time."""
    return _GivenAway(notebook)


class _GivenAway(NotebookNode):
    def __deepcopy__(self, memo: dict) -> NotebookNode:
        return self
