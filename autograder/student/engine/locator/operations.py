"""What operations do with numbers, by the names they have, and what else code tells.

TRUST BOUNDARY. As in `locate`.
"""

import ast
from dataclasses import replace

import numpy as np

from autograder.student.engine.locator.instrument import Node, Site, last_name
from autograder.student.engine.locator.signatures import ValueSignature, signature

OF_ITS_FORM = (  # what takes no numbers of an array, but its size, dtype or device
    *("arange", "zeros", "ones", "eye", "full", "empty", "tri", "new_zeros", "new_ones"),
    *("new_full", "new_empty", "zeros_like", "ones_like", "full_like", "empty_like"),
)
IDLE = ("detach", "clone", "contiguous", "copy", "numpy", "cpu")  # what leaves the numbers alone
MULTIPLYING = (
    *("mul", "mul_", "multiply", "div", "div_", "divide", "true_divide"),
    *("matmul", "einsum", "bmm", "dot", "sum", "mean"),
)
GROWING = ("exp", "exp_", "expm1", "exp2", "Pow", "pow", "power", "square")
DIVIDING = ("Mod", "FloorDiv", "remainder", "fmod", "floor_divide", "mod", "divmod")
NEGATED = ("Invert", "invert", "logical_not", "bitwise_not")
SELECTING = ("topk", "sort")  # of an array, as many as any answer may want
OF_ONE_NUMBER = tuple(n for n in OF_ITS_FORM if n.startswith(("zeros", "ones", "new_z", "new_o")))
ORDERLY = ("exponential",)  # kinds that leave each number in its place, and often come late


def complement(found: ValueSignature) -> ValueSignature:
    """For zeros and ones: the signature of what has ones where these are zeros."""
    ones = signature(np.ones(found.shape))
    assert ones is not None  # it is no larger than what was seen
    ordered = tuple(a - b for a, b in zip(ones.ordered, found.ordered, strict=True))
    share = 1 - found.loose[0]
    return replace(found, scale=float(share > 0), ordered=ordered, loose=(share,) * 3)


def is_summing(node: Node) -> bool:
    """Whether a statement is such as `total += x`."""
    return isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)


def call_of_self(site: Site) -> bool:
    """Whether a place is a call such as `self.W_q(…)`."""
    node = site.node
    line = site.lines[node.lineno - 1].encode()[node.col_offset :].decode(errors="replace")
    return line.startswith(f"self.{last_name(node.func)}(")


def given_by(statement: Node) -> set[str]:
    """The attributes that a statement gives to a module."""
    if isinstance(statement, ast.Assign):
        parts = (part for target in statement.targets for part in ast.walk(target))
        return {part.attr for part in parts if isinstance(part, ast.Attribute)}
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not last_name(call.func).startswith(("register_", "add_")):
        return set()
    return {a.value for a in call.args if isinstance(a, ast.Constant) and type(a.value) is str}
