"""Names that an answer must not use, found by syntax tree: nothing is run.

TRUST BOUNDARY. The code read here is hostile text. What is found makes a person look at an answer;
what is not found proves nothing, since code can hide any name from a reader. No mark is earned or
lost here: a verdict of `policy` withholds the marks until somebody has looked.

There are two kinds of names. **Shortcuts** are ready-made answers (`Exercise.shortcuts`): looked
for in the answer and in whatever of the same file it uses. **Tampering** is reaching for what makes
or carries the grader's records, or for the machinery by which it could be found: looked for in the
whole file, since it matters wherever it happens.
"""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache

TAMPERING = (
    *(f"autograder.{name}" for name in ("expected", "probe", "records", "values", "verdict")),
    *("autograder.exercises", "autograder.grading", "solutions", "worker", "warm"),
    *("ctypes", "_ctypes", "gc.get_objects", "gc.get_referrers", "gc.get_referents"),
    *("sys._getframe", "sys._current_frames", "sys.settrace", "sys.setprofile"),
    *("inspect.currentframe", "inspect.stack", "inspect.trace", "threading.settrace"),
)
ATTRIBUTES = (
    *("f_back", "f_globals", "f_locals", "f_builtins", "tb_frame", "gi_frame", "cr_frame"),
    *("__globals__", "__subclasses__"),
)
_SUSPECT = re.compile(  # a cell without any of these needs no second look
    r"autograder\s*\.|from\s+autograder\b|solutions|worker|\bwarm\b|ctypes|\bgc\b|\bsys\b|inspect"
    r"|settrace|import_module|__(?!init__|name__|main__|call__)|attr|\bexec\b|(?<!\.)\beval\b"
    r"|_frame|\bf_(?:back|globals|locals|builtins)|compile|vars"
)
_BUILTIN = frozenset(dir(builtins))
_DEPTH = 20  # of names that stand for names
_MEANINGS = 20  # of one name, the last ones
_STEPS = 300_000  # of reading a file; an honest notebook takes a few thousand
_SMALL = 20_000  # characters of a cell; most are the release's, the same in a whole class
TANGLED = "more than can be read"
UNREAD = "something that is defined where nobody can read it"
_SETTERS = ("setattr", "__setattr__", "__setitem__", "setdefault", "update")


@dataclass(frozen=True)
class Use:
    """A name that must not be used: what it stands for, and where it is written."""

    name: str
    line: int
    cell: int = 0

    def place(self, cells: int) -> str:
        """Where to look, in a file of so many cells."""
        return f"line {self.line}" + (f" of code cell {self.cell + 1}" if cells > 1 else "")


@dataclass
class _Scope:
    """What names stand for: a dotted name (imports), nodes (definitions), or nothing we know."""

    names: dict[str, list["str | _Node"]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    outer: "_Scope | None" = None

    def find(self, name: str) -> list["str | _Node"]:
        scope: _Scope | None = self
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        scope = self
        while scope.outer is not None:
            scope = scope.outer
        known = [name] if name in _BUILTIN else []
        return known + [f"{module}.{name}" for module in scope.stars]


@dataclass(frozen=True)
class _Node:
    """A piece of code, the scope in which its names mean something, and its cell."""

    tree: ast.AST
    scope: _Scope = field(compare=False, repr=False)
    cell: int = 0


class _Tangled(Exception):
    """There is so much to follow that nobody can have written it to be read."""


class _Steps:
    """Counts the steps of reading, so that no file keeps the judge busy."""

    def __init__(self) -> None:
        self.left = _STEPS

    def one(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _Tangled


class Code:
    """The cells of a file, to be asked what their names stand for."""

    def __init__(self) -> None:
        self.cells, self.steps = 0, _Steps()
        self.top = _Scope()
        self.tampering: list[Use] = []

    def add(self, tree: ast.Module, source: str) -> None:
        """Take in one more cell: its tree and its text."""
        try:
            _bind(tree.body, self.top, self.cells, often=len(source) < _SMALL)
            if _SUSPECT.search(source):
                self.tampering += _tampering(tree, self.top, self.cells, self.steps)
        except (_Tangled, RecursionError):
            self.tampering.append(Use(TANGLED, 1, self.cells))
        self.cells += 1

    def shortcuts(self, answer: str, forbidden: Sequence[str]) -> list[Use]:
        """Where `answer`, or something of this file that it uses, uses a forbidden name.

        Names are dotted, with `*` for anything: `torch.nn.functional.softmax`, `torch.*softmax`.
        """
        try:
            found = dict.fromkeys(self._uses(answer, forbidden))
            return sorted(found, key=lambda use: (use.cell, use.line))
        except (_Tangled, RecursionError):
            return [Use(TANGLED, 1, max(0, self.cells - 1))]

    def _uses(self, answer: str, forbidden: Sequence[str]) -> Iterator[Use]:
        todo, seen = [], set()
        meanings = self.top.find(answer)
        if not meanings:
            yield Use(UNREAD, 1, max(0, self.cells - 1))
        for meaning in meanings:
            if isinstance(meaning, _Node):
                todo.append(meaning)
            elif _matches(meaning, forbidden):  # the answer itself is imported
                yield Use(meaning, 1, max(0, self.cells - 1))
        while todo:
            node = todo.pop()
            if id(node.tree) in seen:
                continue
            seen.add(id(node.tree))
            for part, scope in _walk(node.tree, node.scope, node.cell):
                for name, meaning in _meanings(part, scope, self.steps):
                    if isinstance(meaning, _Node):
                        todo.append(meaning)
                    elif _matches(name, forbidden):
                        yield Use(name, getattr(part, "lineno", 1), node.cell)


def told(uses: Sequence[Use], cells: int) -> str:
    """The first of some uses in words, and how many more there are."""
    first = uses[0]
    more = len({(use.cell, use.line) for use in uses}) - 1
    return f"{first.name} in {first.place(cells)}" + (f" (and {more} more)" if more else "")


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


# --- what names stand for -----------------------------------------------------------------------


def _bind(body: Sequence[ast.stmt], scope: _Scope, cell: int, often: bool = False) -> None:
    """Note what the statements of a block bind; of two bindings of a name the later one counts.

    What is read `often` is remembered.
    """
    for statement in body:
        forgotten, bound = (_binding_once if often else _binding)(statement)
        for name in forgotten:
            scope.names.pop(name, None)
        for name, meaning in bound:
            if name == "*":
                scope.stars.append(str(meaning))
            else:
                # what stands for itself, like the base in `class f(f)`, may come from a star
                stars = [] if name in forgotten else [f"{star}.{name}" for star in scope.stars]
                known = scope.names.setdefault(name, stars)
                known.append(meaning if isinstance(meaning, str) else _Node(meaning, scope, cell))
                del known[:-_MEANINGS]


def _binding(statement: ast.stmt) -> tuple[list[str], list[tuple[str, "str | ast.AST"]]]:
    """The names that a statement binds anew, and all that it binds with what that stands for."""
    return list(_forgotten(statement)), list(_bound(statement))


_binding_once = lru_cache(maxsize=8192)(_binding)


def _forgotten(statement: ast.stmt) -> set[str]:
    """The names whose old meaning a statement ends; not that of f in `f = wrap(f)`."""
    names: set[str] = set()
    if isinstance(statement, ast.Assign):
        targets = [n for target in statement.targets for n in ast.walk(target)]
        names = {n.id for n in targets if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        names -= {n.id for n in _loads(statement)}
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        names = {statement.name} - {n.id for d in statement.decorator_list for n in _loads(d)}
        names -= {n.id for b in getattr(statement, "bases", ()) for n in _loads(b)}
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        names = {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    return names


def _loads(tree: ast.AST) -> Iterator[ast.Name]:
    return (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))


def _bound(statement: ast.stmt) -> Iterator[tuple[str, "str | ast.AST"]]:
    """The names that a statement binds, wherever in it, but for the insides of functions."""
    if isinstance(statement, ast.Import):
        for alias in statement.names:
            top = alias.name.partition(".")[0]
            yield (alias.asname, alias.name) if alias.asname else (top, top)
    elif isinstance(statement, ast.ImportFrom):
        for alias in statement.names:
            module = "." * statement.level + (statement.module or "")
            if alias.name == "*":
                yield "*", module
            else:
                yield alias.asname or alias.name, f"{module}.{alias.name}"
    elif isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement.name, statement
    elif isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if statement.value is not None:
            for target in targets:
                yield from _paired(target, statement.value)
    elif isinstance(statement, ast.For | ast.AsyncFor):
        yield from _paired(statement.target, statement.iter)
    for child in ast.iter_child_nodes(statement):
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            break
        if isinstance(child, ast.stmt):
            yield from _bound(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            for inner in child.body:
                yield from _bound(inner)
        elif isinstance(child, ast.withitem) and child.optional_vars is not None:
            yield from _paired(child.optional_vars, child.context_expr)
        elif isinstance(child, ast.expr):
            for part in ast.walk(child):
                if isinstance(part, ast.NamedExpr):
                    yield part.target.id, part.value
                elif isinstance(part, ast.Call):
                    yield from _set_by(part)


def _set_by(call: ast.Call) -> Iterator[tuple[str, ast.AST]]:
    """What `setattr(module, "f", …)`, `globals().update(f=…)` and their like set."""
    setter = getattr(call.func, "attr", None) or getattr(call.func, "id", None)
    if setter not in _SETTERS:
        return
    for part in call.args:
        keys = part.keys if isinstance(part, ast.Dict) else [part]
        names = (k.value for k in keys if isinstance(k, ast.Constant) and isinstance(k.value, str))
        yield from ((name, call) for name in names)
    yield from ((word.arg, word.value) for word in call.keywords if word.arg)


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are set to; `a, b = x, y` one by one."""
    parts = ast.Tuple | ast.List
    both = isinstance(target, parts) and isinstance(value, parts)
    if both and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _paired(one, other)
        return
    if isinstance(target, ast.Attribute | ast.Subscript):
        # `holder.f = …`: whoever uses holder may use that
        inner = target.value
        if isinstance(inner, ast.Call) or getattr(inner, "attr", "") == "__dict__":
            key = getattr(target, "slice", None)  # globals()["f"] = …
            named = isinstance(key, ast.Constant) and isinstance(key.value, str)
            yield from [(key.value, value)] if named else []
        while isinstance(inner, ast.Attribute | ast.Subscript):
            inner = inner.value
        if isinstance(inner, ast.Name):
            yield inner.id, value
        return
    for name in ast.walk(target):
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
            yield name.id, value


def _walk(tree: ast.AST, scope: _Scope, cell: int) -> Iterator[tuple[ast.AST, _Scope]]:
    """The nodes of some code that can run, each with its scope; no annotations."""
    todo = [(tree, scope)]
    while todo:
        node, scope = todo.pop()
        yield node, scope
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = _Scope(outer=scope)
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            every += [a for a in (arguments.vararg, arguments.kwarg) if a]
            inner.names.update({argument.arg: [] for argument in every})
            outside = [*arguments.defaults, *(d for d in arguments.kw_defaults if d)]
            body = [node.body] if isinstance(node, ast.Lambda) else node.body
            if not isinstance(node, ast.Lambda):
                _bind(node.body, inner, cell)
                outside += node.decorator_list
            todo += [(child, scope) for child in outside] + [(child, inner) for child in body]
        elif isinstance(node, ast.ClassDef):
            inner = _Scope(outer=scope)
            _bind([s for s in node.body if not isinstance(s, ast.FunctionDef)], inner, cell)
            outside = [*node.decorator_list, *node.bases, *(k.value for k in node.keywords)]
            todo += [(child, scope) for child in outside]
            todo += [
                (
                    s,
                    scope if isinstance(s, ast.FunctionDef) else inner,
                )  # methods see no names of it
                for s in node.body
            ]
        elif isinstance(node, ast.AnnAssign):
            todo += [(child, scope) for child in (node.target, node.value) if child]
        else:
            todo += [(child, scope) for child in ast.iter_child_nodes(node)]
            todo += [(child, scope) for child in _executed(node)]


def _executed(node: ast.AST) -> list[ast.stmt]:
    """The code in a constant string that is executed."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
        return []
    if node.func.id not in ("exec", "eval", "compile"):
        return []
    try:
        tree = ast.parse(_text(node.args[0]) or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for inner in ast.walk(tree):
        if hasattr(inner, "lineno"):
            inner.lineno = node.lineno
    return tree.body


def _meanings(node: ast.AST, scope: _Scope, steps: _Steps) -> Iterator[tuple[str, "str | _Node"]]:
    """What an expression stands for: dotted names, and definitions of the same file."""
    if isinstance(node, ast.ImportFrom):
        for alias in node.names:
            name = f"{node.module or ''}.{alias.name}"
            yield name, name
    elif isinstance(node, ast.Name):
        for meaning in scope.find(node.id):
            yield (meaning if isinstance(meaning, str) else node.id), meaning
    elif isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        for name in _dotted(node, scope, steps):
            yield name, name


def _dotted(node: ast.AST, scope: _Scope, steps: _Steps, depth: int = 0) -> list[str]:
    """The dotted names that an expression may stand for."""
    steps.one()
    if depth > _DEPTH:
        return []
    if isinstance(node, ast.Name):
        found = []
        for meaning in scope.find(node.id):
            if isinstance(meaning, str):
                found.append(meaning)
            elif meaning.tree is not node:
                found += _dotted(meaning.tree, meaning.scope, steps, depth + 1)
        return found
    if isinstance(node, ast.Attribute):
        base, member = node.value, node.attr
        if member == "__dict__":
            return _dotted(base, scope, steps, depth + 1)
        return [f"{name}.{member}" for name in _dotted(base, scope, steps, depth + 1)]
    if isinstance(node, ast.Subscript):
        key = _text(node.slice)
        if key is None:
            return []
        whole = _dotted(node.value, scope, steps, depth + 1)
        return [key if name == "sys.modules" else f"{name}.{key}" for name in whole]
    if isinstance(node, ast.Call) and node.args:
        called = {*_dotted(node.func, scope, steps, depth + 1)}
        text = _text(node.args[-1] if len(node.args) == 1 else node.args[1])
        if called & {"importlib.import_module", "importlib.__import__", "__import__"}:
            name = _text(node.args[0])
            if name is None:
                return []
            return [name.partition(".")[0], name] if "__import__" in called else [name]
        if called & {"getattr", "builtins.getattr"} and len(node.args) > 1 and text is not None:
            return [f"{name}.{text}" for name in _dotted(node.args[0], scope, steps, depth + 1)]
        if called & {"vars", "builtins.vars"}:
            return _dotted(node.args[0], scope, steps, depth + 1)
    if isinstance(node, ast.IfExp):
        return [
            n for part in (node.body, node.orelse) for n in _dotted(part, scope, steps, depth + 1)
        ]
    return []


def _text(node: ast.AST, depth: int = 0) -> str | None:
    """The text that an expression is bound to be: constants, and sums of them."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and depth < _DEPTH:
        parts = _text(node.left, depth + 1), _text(node.right, depth + 1)
        return None if None in parts else "".join(parts)
    if isinstance(node, ast.JoinedStr):
        texts = [_text(part, depth + 1) for part in node.values]
        return None if None in texts else "".join(texts)
    return None


# --- tampering ----------------------------------------------------------------------------------


def _tampering(tree: ast.Module, top: _Scope, cell: int, steps: _Steps) -> Iterator[Use]:
    """Where a cell reaches for the grader's parts, or for the means to find them."""
    found: list[Use] = []
    for node, scope in _walk(tree, top, cell):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            names = [module, *(f"{module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
            names = _dotted(node, scope, steps)
            names += [node.attr] if isinstance(node, ast.Attribute) else []
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = [node.value] if node.value in ATTRIBUTES else []
        for name in names:
            if name in ATTRIBUTES or any(_inside(name, whole) for whole in TAMPERING):
                found.append(Use(name, getattr(node, "lineno", 1), cell))
    yield from dict.fromkeys(sorted(found, key=lambda use: use.line))


def _inside(name: str, whole: str) -> bool:
    return name == whole or name.startswith(whole + ".")
