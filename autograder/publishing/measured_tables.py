"""Tables that only the page's cells print: for a notebook, as text.

A chapter shows what scripts have measured beforehand (`benchmarks/*.json`), in cells tagged
`page-only`, as a student has no such file. They are run here, with what they need of the chapter's
imports and functions, and of what page-only cells above them have read; one that needs more, such
as a trained model, has no text.

TRUST BOUNDARY. Runs the book's own cells, with the rights of the person who makes the release.
"""

import ast
import contextlib
import io

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from autograder.publishing.cell_names import names_bound, python

DRAWS = {"plt", "plots"}


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


class MeasuredTables:
    """The measured tables of a chapter, asked for cell by cell, in their order."""

    def __init__(self) -> None:
        self.space: dict[str, object] = {}  # never another dict: it is what functions see
        self.defined: dict[str, ast.stmt] = {}

    def show(self, cell: NotebookNode) -> list[NotebookNode]:
        """What a page-only cell prints, as a cell of Markdown; nothing where that is not known."""
        if cell.cell_type != "code":
            return []
        code, tags = python(cell.source), {*cell.metadata.get("tags", ())}
        tree = ast.parse(code)
        if "exercise" not in tags:
            self._define(tree)
        reads = _names(tree)
        measured = "page-only" in tags and (".json" in code or bool(reads & self.space.keys()))
        prints = measured and "print" in reads and not reads & DRAWS
        text = self._run(tree) if prints else None
        if text is None:
            self._keep(tree, measured)
        if not text:
            return []
        outcome = {"outcome"} & tags  # its explanation follows it
        metadata = {"tags": [*outcome]} if outcome else {}
        return [new_markdown_cell(f"```text\n{text.rstrip()}\n```", metadata=metadata)]

    def _define(self, tree: ast.Module) -> None:
        """Note the imports and functions of a cell, for those that need them."""
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef):
                self.defined |= dict.fromkeys(names_bound(ast.unparse(node)), node)

    def _keep(self, tree: ast.Module, measured: bool) -> None:
        """Of what a cell without a text binds, keep what was `measured`; the rest is not known."""
        for node in tree.body:
            kept = measured and isinstance(node, ast.Assign) and not _names(node) & DRAWS
            if not kept or self._run(ast.Module([node], [])) is None:
                for name in names_bound(ast.unparse(node)):
                    self.space.pop(name, None)

    def _run(self, tree: ast.Module) -> str | None:
        """What some code prints; None if it needs a name that the chapter makes as it runs."""
        code = compile(tree, "<measured>", "exec")
        while True:
            before, said = dict(self.space), io.StringIO()
            try:
                with contextlib.redirect_stdout(said):
                    exec(code, self.space)
            except NameError as error:
                self.space.clear()
                self.space |= before
                node = self.defined.get(str(error.name))
                if node is None or error.name in before:
                    return None
                if self._run(ast.Module([node], [])) is None:
                    return None
            else:
                return said.getvalue()
