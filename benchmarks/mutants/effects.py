"""Changes to gradients, dtypes, devices and memory, and to whole statements."""

import ast
from collections.abc import Iterator

import torch

from benchmarks.mutants.places import MODULES, Place, code

CONVERSIONS = {"astype", "float", "double"}
FLOATS = ("torch.float32", "torch.float64")
OTHER_DTYPE = {
    "torch.float64": ("torch.float32",),
    "torch.float32": ("torch.float64",),
    "torch.bool": ("torch.int64",),
    "np.float64": ("np.float32",),
}
IN_PLACE = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
UFUNCS = {ast.Add: "add", ast.Sub: "subtract", ast.Mult: "multiply", ast.Div: "divide"}


def _a_value(place: Place) -> bool:
    """Whether this is what is assigned to a variable or returned, or a part of it."""
    parent, node = place.parent, place.node
    if isinstance(node, ast.Tuple | ast.Constant) or place.field not in ("value", "elt", "elts"):
        return False
    if isinstance(parent, ast.Tuple | ast.List):
        return isinstance(node, ast.Name | ast.Call | ast.BinOp)
    if isinstance(parent, ast.Assign):
        return not isinstance(parent.targets[0], ast.Attribute)  # what a constructor builds
    return isinstance(parent, ast.Return | ast.ListComp | ast.GeneratorExp)


def detached(place: Place) -> Iterator[ast.expr]:
    """A value cut off from what it was computed from: no gradient passes."""
    node, parent = place.node, place.parent
    if place.library == "numpy" or place.field == "func" or isinstance(parent, ast.Attribute):
        return
    if isinstance(parent, ast.Call) and ast.unparse(parent.func) == "len":
        return
    loaded = isinstance(getattr(node, "ctx", None), ast.Load)
    named = isinstance(node, ast.Name) and loaded and node.id not in {*MODULES, "self"}
    part = isinstance(node, ast.Attribute) and loaded and ast.unparse(node.value) == "self"
    if named or part or _a_value(place):
        yield code("X.detach()", X=node)


def dtype(place: Place) -> Iterator[ast.expr]:
    """A fixed dtype instead of the input's; a value of another precision."""
    node = place.node
    if isinstance(node, ast.Attribute):
        if node.attr == "dtype" and isinstance(node.ctx, ast.Load):
            yield from map(code, FLOATS)
        yield from map(code, OTHER_DTYPE.get(ast.unparse(node), ()))
    called = getattr(node.func, "attr", "") if isinstance(node, ast.Call) else ""
    if _a_value(place) and called not in CONVERSIONS:
        as_ = {"torch": ("float()", "double()"), "numpy": ("astype(np.float32)",)}
        yield from (code(f"X.{way}", X=node) for way in as_[place.library])


def device(place: Place) -> Iterator[ast.expr]:
    """The CPU instead of the input's device."""
    node = place.node
    handed_on = getattr(place.parent, "arg", "") == "device" and isinstance(node, ast.Name)
    if handed_on or getattr(node, "attr", "") == "device":
        yield ast.Constant("cpu")


def in_place(place: Place) -> Iterator[ast.expr | list[ast.stmt]]:
    """Written into what it was computed from: `x.masked_fill_`, `x.mul_(y)`, `x += y`."""
    node = place.node
    if isinstance(node, ast.Attribute) and place.field == "func":
        if (
            place.library == "torch"
            and hasattr(torch.Tensor, f"{node.attr}_")
            and ast.unparse(node.value) != "nn"
        ):
            yield ast.Attribute(node.value, f"{node.attr}_", ast.Load())
    elif isinstance(node, ast.BinOp) and isinstance(node.left, ast.Name | ast.Attribute):
        if type(node.op) in IN_PLACE:
            numpy = place.library == "numpy"
            text = f"np.{UFUNCS[type(node.op)]}(X, Y, out=X)" if numpy else None
            text = text or f"X.{IN_PLACE[type(node.op)]}_(Y)"
            yield code(text, X=node.left, Y=node.right)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp):
        target, value = node.targets[0], node.value
        if ast.unparse(target) == ast.unparse(value.left):
            yield [ast.AugAssign(target, value.op, value.right)]


# --- statements ---------------------------------------------------------------------------------


def statement_deleted(place: Place) -> Iterator[list[ast.stmt]]:
    """A statement deleted; a `with` replaced by what is inside it."""
    node = place.node
    if isinstance(node, ast.With):
        yield node.body
    elif isinstance(node, ast.Assign | ast.AugAssign | ast.Expr | ast.Raise | ast.For | ast.While):
        yield []


def loop(place: Place) -> Iterator[ast.expr | list[ast.stmt]]:
    """A loop that runs once, or leaves out the first; a condition of a comprehension dropped."""
    node = place.node
    if isinstance(node, ast.For | ast.While):
        body = [*node.body, ast.Break()]
        yield (
            [ast.While(node.test, body, [])]
            if isinstance(node, ast.While)
            else [ast.For(node.target, node.iter, body, [])]
        )
    if isinstance(place.parent, ast.For | ast.comprehension) and place.field == "iter":
        yield from (code(f"[*X][{part}]", X=node) for part in ("1:", ":-1", "::-1"))


def error(place: Place) -> Iterator[ast.expr]:
    """Another exception; a message that does not say a number."""
    node = place.node
    if isinstance(node, ast.Name) and node.id in ("ValueError", "TypeError"):
        yield from (code(name) for name in ("RuntimeError", "AssertionError"))
    elif isinstance(node, ast.JoinedStr):
        for i, part in enumerate(node.values):
            if isinstance(part, ast.FormattedValue):
                yield ast.JoinedStr(node.values[:i] + node.values[i + 1 :])
