"""Changes to numbers, signs, sums, products, comparisons and conditions."""

import ast
from collections.abc import Iterator, Mapping

from benchmarks.mutants.places import Place, code, number

AXES = {"dim", "axis"}
ONCE_MORE = (-2, -1, 0, 1)  # the axes to try in place of an axis
COMPARISONS: Mapping[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt, ast.NotEq),
    ast.LtE: (ast.Lt, ast.GtE, ast.Eq),
    ast.Gt: (ast.GtE, ast.Lt, ast.NotEq),
    ast.GtE: (ast.Gt, ast.LtE, ast.Eq),
    ast.Eq: (ast.NotEq, ast.LtE, ast.GtE),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


def axis(place: Place) -> Iterator[ast.expr]:
    """Another axis."""
    n = number(place.node)
    if isinstance(place.parent, ast.keyword) and place.parent.arg in AXES and n is not None:
        yield from (code(str(other)) for other in ONCE_MORE if other != n)


def constant(place: Place) -> Iterator[ast.expr]:
    """An integer one more or less; another floating-point number."""
    n = number(place.node)
    if n is None or (isinstance(place.parent, ast.keyword) and place.parent.arg in AXES):
        return
    if isinstance(place.parent, ast.UnaryOp) and isinstance(place.parent.op, ast.USub):
        return  # it is looked at with its sign
    if isinstance(n, int):
        yield from (code(str(other)) for other in (n - 1, n + 1))
    else:
        yield from (code(repr(other)) for other in ((2 * n, n / 2) if n else (1.0,)))


def sign(place: Place) -> Iterator[ast.expr]:
    """A minus dropped; plus for minus, minus for plus; a difference the other way round."""
    node = place.node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        yield ast.BinOp(node.left, ast.Sub(), node.right)
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
        yield ast.BinOp(node.left, ast.Add(), node.right)
        yield ast.BinOp(node.right, ast.Sub(), node.left)


def term_dropped(place: Place) -> Iterator[ast.expr]:
    """One of two terms."""
    node = place.node
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield node.left
        yield node.right if isinstance(node.op, ast.Add) else ast.UnaryOp(ast.USub(), node.right)


def factor_dropped(place: Place) -> Iterator[ast.expr]:
    """One of two factors, a dividend without its divisor, a base without its exponent."""
    node = place.node
    kinds = ast.Mult | ast.Div | ast.MatMult | ast.FloorDiv | ast.Mod | ast.Pow
    if isinstance(node, ast.BinOp) and isinstance(node.op, kinds):
        yield node.left
        yield node.right


def other_operation(place: Place) -> Iterator[ast.expr]:
    """Times for divided by, and the like; factors of a matrix product exchanged."""
    node = place.node
    others: Mapping[type, tuple] = {
        ast.Mult: (ast.Div(), ast.MatMult()),
        ast.Div: (ast.Mult(),),
        ast.MatMult: (ast.Mult(),),
        ast.FloorDiv: (ast.Div(), ast.Mod()),
        ast.Mod: (ast.FloorDiv(),),
        ast.Pow: (ast.Mult(),),
        ast.BitAnd: (ast.BitOr(), ast.BitXor()),
        ast.BitOr: (ast.BitAnd(), ast.BitXor()),
    }
    if isinstance(node, ast.BinOp):
        for op in others.get(type(node.op), ()):
            yield ast.BinOp(node.left, op, node.right)
        if isinstance(node.op, ast.MatMult | ast.Div | ast.Pow):
            yield ast.BinOp(node.right, node.op, node.left)


# --- truth --------------------------------------------------------------------------------------


def comparison(place: Place) -> Iterator[ast.expr]:
    """Another comparison of the same two."""
    node = place.node
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        for op in COMPARISONS[type(node.ops[0])]:
            yield ast.Compare(node.left, [op()], node.comparators)


def boolean(place: Place) -> Iterator[ast.expr]:
    """A truth value turned round, a negation dropped, or for and, one condition of two."""
    node = place.node
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert | ast.Not):
        yield node.operand
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
        yield from node.values
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr):
        yield from (node.left, node.right)
    elif getattr(node, "attr", "") == "training" and isinstance(node.ctx, ast.Load):
        yield from (ast.Constant(True), ast.Constant(False))


def branch(place: Place) -> Iterator[ast.expr | list[ast.stmt]]:
    """The one branch or the other, whatever the condition says; the two exchanged."""
    node = place.node
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse, ast.IfExp(node.test, node.orelse, node.body))
    elif isinstance(node, ast.If):
        yield from (node.body, node.orelse)
        yield [ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)]
