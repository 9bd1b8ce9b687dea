"""A place in a syntax tree, and what an operator is: it proposes what to put there instead."""

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

MODULES = {"torch", "np", "math", "F", "nn"}


class Place(NamedTuple):
    """A node, its parent, the field of the parent that it is in, and what is known around it.

    `names` are groups of names, one of which might stand where another does; `owned` are the
    attributes of each object, by its text; `library` is "torch" or "numpy".
    """

    node: ast.AST
    parent: ast.AST
    field: str
    names: Sequence[Sequence[str]]
    owned: Mapping[str, frozenset[str]]
    library: str


# For an expression it yields other expressions, for a statement lists of statements.
Operator = Callable[[Place], Iterator[ast.AST | list[ast.stmt]]]


def code(text: str, **parts: ast.expr) -> ast.expr:
    """An expression from text, with other expressions in place of some of its names."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return parts.get(node.id, node)

    return Fill().visit(ast.parse(text, mode="eval").body)


def number(node: ast.AST) -> int | float | None:
    """The number that an expression is, with its sign, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        found = number(node.operand)
        return None if found is None else -found
    constant = isinstance(node, ast.Constant) and type(node.value) in (int, float)
    return node.value if constant else None
