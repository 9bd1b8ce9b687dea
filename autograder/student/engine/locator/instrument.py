"""Puts a tap around every expression of a source, so that its value is seen when it runs.

`x / n` becomes `__tap__(3, __tap__(1, x) / __tap__(2, n))`, where `__tap__` returns its second
argument. Positions in the source are kept, so that an exception's traceback still shows them.

TRUST BOUNDARY. Students' source is read here as a syntax tree, and not run. What comes out behaves
as before, unless code looks for the taps; the answer itself is left unchanged.
"""

import ast
from dataclasses import dataclass, field
from typing import Any, TypeAlias

# What instrumented code calls, and the name under which it catches an exception.
TAP, ITEMS, AT, RAISED, ERROR = "__tap__", "__items__", "__at__", "__raised__", "__error__"
_TAPPED = (
    ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.Subscript, ast.Attribute,
    ast.IfExp, ast.ListComp, ast.GeneratorExp, ast.Name, ast.Constant, ast.NamedExpr,
)  # fmt: skip
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Comprehended = ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp
Node: TypeAlias = Any  # an expression or a statement, as `Site.kind` tells: with all its places


@dataclass
class Site:
    """A place in the source: an expression, or a statement that stores or returns something.

    `kind` is "name" (or a constant), "attribute", "expression", "item" (of a loop), "store",
    "return", "test" (of an `if`) or "statement". `children` are the sites whose values go into it.
    """

    node: Node
    kind: str
    children: list[int]
    function: str
    lines: list[str]
    owner: str = ""  # the function or class at the top that it is in
    guards: list[ast.Raise] = field(default_factory=list)  # the statements a test leads to
    targets: frozenset[str] = frozenset()  # the names that a loop gives its items
    loop: bool = False  # for a test: whether it is that of a `while`
    ends: bool = False  # for the test of an `if`: whether it ends a loop
    given: bool = False  # for a call: whether what is called is an argument or a variable
    passed: bool = False  # whether it is an argument as the caller gave it, or a part of one

    @property
    def operation(self) -> str:
        """What is done here, in one word: `softmax`, `Div`, `transpose`."""
        node = self.node
        if self.kind in ("item", "store"):
            return self.kind
        if isinstance(node, ast.Call):
            return last_name(node.func)
        if isinstance(node, ast.BinOp | ast.UnaryOp | ast.AugAssign):
            return type(node.op).__name__
        return last_name(node)


def last_name(node: ast.AST) -> str:
    """The last name in an expression such as `torch.softmax` or `self.W_q`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else type(node).__name__


class Instrumenter(ast.NodeTransformer):
    """Taps functions and classes; `sites` lists the places by the number that a tap passes."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.open: list[int] = []  # the sites found so far inside the expression being visited
        self.functions: list[str] = []
        self.lines: list[str] = []  # the source that the nodes are of
        self.owner = ""
        self.variables: list[set[str]] = []  # of the functions that are being visited
        self.arguments: set[str] = set()  # of the outermost one, if they keep their values

    def visit(self, node: ast.AST) -> Any:
        if isinstance(node, ast.JoinedStr | ast.pattern) or _silent(node):
            return node
        stored = isinstance(getattr(node, "ctx", ast.Load()), ast.Store | ast.Del)
        if stored or not isinstance(node, _TAPPED) or not self.functions:
            return super().visit(node)
        outer, self.open = self.open, []
        passed = _base(node) in self.arguments
        super().visit(node)
        children, self.open = self.open, outer
        kind = "expression"
        if isinstance(node, ast.Name | ast.Constant):
            kind = "name"
        elif isinstance(node, ast.Attribute):
            kind = "attribute"
        made = self.tap(node, kind, children)
        self.sites[-1].passed = passed
        return made

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """The function called is not a value, but the object of a method is."""
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        elif not isinstance(node.func, ast.Name):
            node.func = self.visit(node.func)
        node.args = [self.visit(arg) for arg in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node

    def tap(
        self,
        node: ast.expr,
        kind: str,
        children: list[int],
        *,
        place: Node = None,
        by: str = TAP,
    ) -> ast.Call:
        number = self.site(place or node, kind, children)
        self.open.append(number)
        call = ast.Call(ast.Name(by, ast.Load()), [ast.Constant(number), node], [])
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def site(self, node: Node, kind: str, children: list[int]) -> int:
        function = self.functions[-1] if self.functions else ""
        site = Site(node, kind, children, function, self.lines, self.owner)
        called = node.func if isinstance(node, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else None
        site.given = any(name in variables for variables in self.variables)
        self.sites.append(site)
        return len(self.sites) - 1

    # --- statements ---

    def visit_FunctionDef(self, node: _Function) -> _Function:
        """A function: its body is watched; decorators and defaults are left unchanged.

        Annotations are dropped: what they name may be missing, as `from __future__` allows.
        """
        node.returns = None
        for argument in ast.walk(node.args):
            if isinstance(argument, ast.arg):
                argument.annotation = None
        outer, self.open = self.open, []
        if not self.functions:
            self.arguments = _arguments(node) - _names_stored(node)
        self.functions.append(node.name)
        self.variables.append(_variables(node))
        docstring = node.body[:1] if ast.get_docstring(node, clean=False) is not None else []
        body = self._block(node.body[len(docstring) :])
        report = ast.parse(
            f"try:\n pass\nexcept BaseException as {ERROR}:\n {RAISED}({ERROR})\n raise"
        ).body[0]
        assert isinstance(report, ast.Try)
        if body and not _yields(node):
            report.body = body
            body = [ast.fix_missing_locations(ast.copy_location(report, body[0]))]
        node.body = [*docstring, *body] or node.body
        self.functions.pop()
        self.variables.pop()
        self.open = outer
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> ast.Lambda:
        outer, self.open = self.open, []
        node.body = self.visit(node.body)
        self.open = outer
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.body = [
            self.visit(part) if isinstance(part, _Function | ast.ClassDef) else part
            for part in node.body
        ]
        return node

    def _block(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, each preceded by a note of where the run is."""
        made: list[ast.stmt] = []
        for statement in statements:
            self.open = []
            number = self.site(statement, "statement", [])
            word = ast.Expr(ast.Call(ast.Name(AT, ast.Load()), [ast.Constant(number)], []))
            made.append(ast.fix_missing_locations(ast.copy_location(word, statement)))
            new = self.visit(statement)
            made += new if isinstance(new, list) else [new]
        return made

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not self.functions:
            return super().generic_visit(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_comment"):
                continue
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(node, name, self._block(value))
            elif isinstance(value, list):
                parts = [self.visit(v) if isinstance(v, ast.AST) else v for v in value]
                setattr(node, name, parts)
            elif isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
        return node

    def visit_If(self, node: ast.If) -> ast.If:
        guards = [s for s in node.body if isinstance(s, ast.Raise)]
        place = node.test
        self.open = []
        test = self.visit(node.test)
        node.test = self.tap(test, "test", self.open[-1:], place=place)
        self.sites[self.open[-1]].guards = guards
        self.sites[self.open[-1]].ends = any(isinstance(s, ast.Break) for s in node.body)
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        return node

    def visit_While(self, node: ast.While) -> ast.While:
        place = node.test
        self.open = []
        test = self.visit(node.test)
        node.test = self.tap(test, "test", self.open[-1:], place=place)
        self.sites[self.open[-1]].loop = True
        node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        return node

    def visit_For(self, node: ast.For | ast.comprehension) -> ast.For | ast.comprehension:
        """The items of a loop, and of a comprehension."""
        place = node.iter
        node.iter = self.visit(node.iter)
        node.iter = self.tap(node.iter, "item", self.open[-1:], place=place, by=ITEMS)
        names = (part.id for part in ast.walk(node.target) if isinstance(part, ast.Name))
        self.sites[self.open[-1]].targets = frozenset(names)
        if isinstance(node, ast.For):
            node.body, node.orelse = self._block(node.body), self._block(node.orelse)
        else:
            node.ifs = [self.visit(test) for test in node.ifs]
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        return node if node.is_async else self.visit_For(node)

    def _visit_comprehended(self, node: _Comprehended) -> _Comprehended:
        """Loops first: they are run first."""
        node.generators = [self.visit(loop) for loop in node.generators]
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(node, name, self.visit(getattr(node, name)))
        return node

    visit_ListComp = visit_GeneratorExp = visit_SetComp = visit_DictComp = _visit_comprehended

    def visit_Return(self, node: ast.Return) -> ast.Return:
        self.open = []
        if node.value is None:
            return node
        place = node.value
        node.value = self.visit(node.value)
        node.value = self.tap(node.value, "return", self.open[:], place=place)
        return node

    def visit_Assign(self, node: ast.Assign | ast.AugAssign) -> list[ast.stmt]:
        """`a[i] = b` and `a += b` write into a: it is looked at before and after."""
        targets = [node.target] if isinstance(node, ast.AugAssign) else node.targets
        stores = [t for t in targets if isinstance(t, ast.Subscript) or hasattr(node, "target")]
        bases = [t.value if isinstance(t, ast.Subscript) else t for t in stores]
        looks = [ast.unparse(base) for base in bases if _harmless(base)]
        self.open = []
        before = [ast.Expr(self.tap(_read(look, node), "name", [])) for look in looks]
        node.value = self.visit(node.value)
        for target in targets:
            self.visit(target)
        sources = self.open[:]
        after = [
            ast.Expr(self.tap(_read(look, node), "store", sources, place=node)) for look in looks
        ]
        made = (*before, node, *after)
        return [ast.fix_missing_locations(ast.copy_location(s, node)) for s in made]

    visit_AugAssign = visit_Assign


def _silent(node: ast.AST) -> bool:
    """Whether a node is a text, True, False or None."""
    return isinstance(node, ast.Constant) and type(node.value) not in (int, float)


def _harmless(base: ast.AST) -> bool:
    """Whether reading it once more does nothing: `a`, `self.a`, `a.b.c`, `a[0]`."""
    allowed = (ast.Name, ast.Attribute, ast.Subscript, ast.Constant, ast.expr_context)
    return all(isinstance(node, allowed) for node in ast.walk(base))


def _read(text: str, at: ast.AST) -> ast.expr:
    """An expression that reads a name, at the place of another node."""
    read = ast.parse(text, mode="eval").body
    for node in ast.walk(read):
        ast.copy_location(node, at)
    return read


def _variables(function: _Function) -> set[str]:
    """The arguments of a function, and the names that it gives to values."""
    return _arguments(function) | _names_stored(function)


def _arguments(function: _Function) -> set[str]:
    return {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}


def _names_stored(function: ast.AST) -> set[str]:
    names = (n for n in ast.walk(function) if isinstance(n, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Store)}


def _base(node: ast.AST) -> str | None:
    """The name in `x`, `x[i]` and `x[i][j]`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _yields(function: ast.AST) -> bool:
    return any(isinstance(n, ast.Yield | ast.YieldFrom | ast.Await) for n in ast.walk(function))
