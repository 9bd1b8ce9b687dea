"""Changes to calls, names and indices."""

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise

from benchmarks.mutants.places import MODULES, Place, number

SYMMETRIC = {"transpose", "swapaxes", "maximum"}
NEIGHBOURS: Mapping[str, tuple[str, ...]] = {
    "abs": ("square",),
    "all": ("any",),
    "any": ("all",),
    "arange": ("ones",),
    "argmax": ("argmin",),
    "cat": ("stack",),
    "chunk": ("split",),
    "clamp": ("remainder",),
    "clamp_max": ("clamp_min",),
    "clamp_min": ("clamp_max",),
    "cos": ("sin",),
    "embedding": ("one_hot",),
    "empty": ("ones",),
    "erf": ("tanh",),
    "eval": ("train",),
    "exp": ("exp2", "expm1"),
    "float": ("half", "double"),
    "isneginf": ("isinf", "isnan"),
    "issubdtype": ("isdtype",),
    "log_softmax": ("softmax", "logsigmoid"),
    "max": ("min",),
    "maximum": ("minimum",),
    "mean": ("sum", "median"),
    "min": ("max",),
    "new_full": ("new_zeros",),
    "new_ones": ("new_zeros",),
    "no_grad": ("enable_grad", "inference_mode"),
    "norm": ("sum", "square"),
    "ones": ("zeros",),
    "rand": ("randn",),
    "randn": ("rand",),
    "relu": ("tanh", "sigmoid", "abs"),
    "repeat": ("repeat_interleave",),
    "reshape": ("view",),
    "rsqrt": ("sqrt", "reciprocal"),
    "sin": ("cos",),
    "softmax": ("log_softmax", "sigmoid"),
    "sorted": ("list",),
    "split": ("chunk",),
    "sqrt": ("square", "cbrt"),
    "square": ("abs",),
    "sum": ("mean", "max"),
    "tanh": ("sigmoid", "relu"),
    "tril": ("triu",),
    "triu": ("tril",),
    "unflatten": ("reshape",),
    "var": ("std",),
    "xavier_uniform_": ("xavier_normal_", "kaiming_uniform_"),
    "zeros": ("ones",),
    "Linear": ("Identity",),
    "LayerNorm": ("Identity",),
    "Identity": ("LayerNorm",),
    "Dropout": ("Identity", "AlphaDropout"),
}


def call_dropped(place: Place) -> Iterator[ast.expr]:
    """A function's argument, or a method's object, without the call; `.T` dropped."""
    node = place.node
    if isinstance(node, ast.Attribute) and node.attr == "T":
        yield node.value
    if not isinstance(node, ast.Call) or ast.unparse(node) == "super().__init__()":
        return
    owner = node.func.value if isinstance(node.func, ast.Attribute) else None
    function = owner is None or (isinstance(owner, ast.Name) and owner.id in {*MODULES, "self"})
    if not function:
        yield owner
    elif node.args:
        yield node.args[0]


def argument_dropped(place: Place) -> Iterator[ast.expr]:
    """A call with one argument fewer: a keyword, or the last positional one."""
    node = place.node
    if not isinstance(node, ast.Call):
        return
    for i in range(len(node.keywords)):
        yield ast.Call(node.func, node.args, node.keywords[:i] + node.keywords[i + 1 :])
    if len(node.args) > isinstance(node.func, ast.Name):
        yield ast.Call(node.func, node.args[:-1], node.keywords)


def exchanged(place: Place) -> Iterator[ast.expr]:
    """Two neighbours in an argument list, an index or a tuple, exchanged."""
    node = place.node
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in SYMMETRIC:
        return
    items = getattr(node, "args" if isinstance(node, ast.Call) else "elts", None)
    if not isinstance(node, ast.Call | ast.Tuple | ast.List) or items is None:
        return
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return
    for i, (one, other) in enumerate(pairwise(items)):
        swapped = [*items[:i], other, one, *items[i + 2 :]]
        if isinstance(node, ast.Call):
            yield ast.Call(node.func, swapped, node.keywords)
        else:
            yield type(node)(swapped, ast.Load())


def neighbour(place: Place) -> Iterator[ast.expr]:
    """A function's neighbour: min for max, mean for sum, triu for tril."""
    node = place.node
    if isinstance(node, ast.Attribute):
        for other in NEIGHBOURS.get(node.attr, ()):
            yield ast.Attribute(node.value, other, ast.Load())
    elif isinstance(node, ast.Name) and isinstance(place.parent, ast.Call):
        for other in NEIGHBOURS.get(node.id, ()):
            if place.field == "func":
                yield ast.Name(other, ast.Load())


def name_exchanged(place: Place) -> Iterator[ast.expr]:
    """Another parameter, another of what was assigned together, another part of the same kind."""
    node = place.node
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        groups = [group for group in place.names if node.id in group]
        for other in dict.fromkeys(name for group in groups for name in group):
            if other != node.id:
                yield ast.Name(other, ast.Load())
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
        for other in sorted(place.owned.get(ast.unparse(node.value), ())):
            if other != node.attr and alike(node.attr, other):
                yield ast.Attribute(node.value, other, ast.Load())


def alike(one: str, other: str) -> bool:
    """Whether two names differ in a part or a number only: W_q and W_k, norm1 and norm2."""
    parts, others = (re.findall(r"[^\W\d_]+|\d+", name) for name in (one, other))
    differ = sum(a != b for a, b in zip(parts, others, strict=False))
    return len(parts) == len(others) > 1 and differ == 1


def index(place: Place) -> Iterator[ast.expr]:
    """All of what an index chooses from; a slice without one of its ends."""
    node = place.node
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
    elif isinstance(node, ast.Slice):
        parts = {"lower": node.lower, "upper": node.upper, "step": node.step}
        given = [part for part, value in parts.items() if value is not None]
        yield from (ast.Slice(**{**parts, part: None}) for part in given)


def off_by_one(place: Place) -> Iterator[ast.expr]:
    """One more or less at the end of a range, where that is no number."""
    node, parent = place.node, place.parent
    bound = isinstance(parent, ast.Slice) or (
        isinstance(parent, ast.keyword) and parent.arg == "diagonal"
    )
    called = isinstance(parent, ast.Call) and place.field == "args" and ast.unparse(parent.func)
    bound = bound or called in ("range", "torch.arange", "causal_mask", "sinusoidal_encoding")
    if bound and isinstance(node, ast.expr) and number(node) is None:
        for op in (ast.Add(), ast.Sub()):
            yield ast.BinOp(node, op, ast.Constant(1))
