"""Tables that only the page's cells print: for a notebook, as text.

A chapter shows what scripts have measured beforehand (`benchmarks/*.json`), in cells tagged
`page-only`, as a student has no such file. They are run here, with what they need of the chapter's
imports and functions; one that needs more, such as a trained model, has no text.

TRUST BOUNDARY. Runs the book's own cells, with the rights of the person who makes the release.
"""

import ast
import contextlib
import io
from collections.abc import Iterable
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from autograder.publishing.cell_names import python

DRAWS = {"plt", "plots"}


class Measured:
    """The measured tables of a chapter, asked for in their order."""

    def __init__(self, cells: Iterable[NotebookNode]):
        self.space: dict[str, Any] = {}
        self.defined: dict[str, ast.stmt] = {}
        for cell in cells:
            if cell.cell_type != "code" or "exercise" in cell.metadata.get("tags", ()):
                continue
            for node in ast.parse(python(cell.source)).body:
                if isinstance(node, ast.Import | ast.ImportFrom):
                    names = {(a.asname or a.name).split(".")[0] for a in node.names}
                    self.defined |= dict.fromkeys(names, node)
                elif isinstance(node, ast.FunctionDef):
                    self.defined[node.name] = node

    def shown(self, cell: NotebookNode) -> list[NotebookNode]:
        """What a cell prints, as a cell of Markdown; nothing where that is not known."""
        if cell.cell_type != "code":
            return []
        code = python(cell.source)
        tree = ast.parse(code)
        reads = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        measured = ".json" in code or bool(reads & self.space.keys())
        if not measured or "print" not in reads or reads & DRAWS:
            return []
        text = self._printed(tree)
        if not text:
            return []
        outcome = {"outcome"} & {*cell.metadata.get("tags", ())}  # its explanation follows it
        metadata = {"tags": [*outcome]} if outcome else {}
        return [new_markdown_cell(f"```text\n{text.rstrip()}\n```", metadata=metadata)]

    def _printed(self, tree: ast.Module) -> str:
        """What some code prints; nothing if it needs a name that the chapter makes as it runs."""
        code = compile(tree, "<measured>", "exec")
        space = dict(self.space)
        while True:
            said = io.StringIO()
            try:
                with contextlib.redirect_stdout(said):
                    exec(code, space)
            except NameError as error:
                if error.name not in self.defined:
                    return ""
                node = ast.Module([self.defined.pop(error.name)], [])
                exec(compile(node, "<measured>", "exec"), space)
            else:
                space.pop("__builtins__", None)
                self.space = space
                return said.getvalue()
