"""Makes a copy of an answer in which every value is seen (`taps`, `trace`).

Its author's own functions and classes are copied with it: those that it names, and those that these
name. The copies live in namespaces of their own, so that the answer, its globals and its files are
left unchanged.

TRUST BOUNDARY. The source is looked up as a traceback does it, and may lie. If it does not compile
to the very code that ran, there is no copy.
"""

import ast
import inspect
import linecache
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType

from autograder.student import course
from autograder.student.engine.arrays import Value
from autograder.student.engine.locator.instrument import Instrumenter, Node, Site
from autograder.student.engine.locator.trace import MARK, Budget, TraceRecorder

MOST_COPIED = 40  # functions and classes
MOST_SOURCE = 400_000  # characters of a file
_FOLDERS = (
    *{os.path.join(sysconfig.get_path(n), "") for n in ("stdlib", "platstdlib", "purelib")},
    "<frozen",
    "<string",
)


class NoCopy(Exception):
    """This answer cannot be copied."""


def copy_answer(answer: Value, budget: Budget) -> tuple[Callable, TraceRecorder]:
    """A copy of an answer and its recorder, switched off. Raises `NoCopy`."""
    try:
        return _Copying().copy(answer, budget)
    except NoCopy:
        raise
    except Exception as error:  # whatever an unusual object or source makes fail
        raise NoCopy(type(error).__name__) from error


class _Copying:
    def __init__(self) -> None:
        self.instrumenter = Instrumenter()
        self.recorder = TraceRecorder(self.instrumenter.sites)
        self.shadows: dict[int, dict[str, Value]] = {}  # copied namespaces, by the originals'
        self.copies: dict[int, Value] = {}  # by the originals'
        self.trees: dict[str, ast.Module] = {}  # by file
        self.compiled: dict[str, dict[tuple[str, int], list[CodeType]]] = {}
        self.kept: list[Value] = []

    def copy(self, answer: Value, budget: Budget) -> tuple[Callable, TraceRecorder]:
        codes = [*codes_of(answer)]
        if not codes or not any(map(is_own, codes)):
            raise NoCopy("not written in Python, or not by its author")
        for thing in self.sources_of(answer):
            self.make(thing, thing is answer)
        self.recorder.budget = budget
        return self.copies[id(answer)], self.recorder

    def sources_of(self, answer: Value) -> list[Value]:
        """The answer and its author's things that it names, each after its base classes."""
        found: dict[int, Value] = {}
        todo = [answer]
        while todo and len(found) < MOST_COPIED:
            thing = todo.pop(0)
            if id(thing) in found or not any(map(is_own, codes_of(thing))):
                continue
            found[id(thing)] = thing
            names = namespace_of(thing)
            for name in dict.fromkeys(n for c in codes_of(thing) for n in _names(c)):
                used = names.get(name)
                own = isinstance(used, FunctionType | type) and any(map(is_own, codes_of(used)))
                if own and not course.is_exercise(name):  # an exercise has a check of its own
                    todo.append(used)
            todo += thing.__bases__ if isinstance(thing, type) else ()
        order = list(found.values())
        return sorted(order, key=lambda t: len(t.__mro__) if isinstance(t, type) else 0)

    def make(self, thing: Value, is_answer: bool) -> None:
        try:
            node, lines = self.node_of(thing)
        except NoCopy:
            if is_answer:
                raise
            return  # something that the answer calls: it runs as it is
        file = next(filter(is_own, codes_of(thing))).co_filename
        if not _wraps(thing):  # a decorator that only registers, say, has done so already
            node.decorator_list = []
        self.instrumenter.lines, self.instrumenter.owner = lines, node.name
        if is_answer:
            self.recorder.owner = node.name
            for statement in overwriting(node):
                self.recorder.overwriting.append(self.sites_of(statement))
        tree = ast.Module([self.instrumenter.visit(node)], [])
        names = self.shadow(namespace_of(thing))
        missing = object()
        before = names.get(node.name, missing)
        exec(compile(tree, f"{MARK}{file}>", "exec", dont_inherit=True), names)
        made = names[node.name]
        if before is not missing and before is not thing:
            names[node.name] = before
        self.copies[id(thing)] = made
        self.kept.append(thing)
        for shadow in self.shadows.values():
            shadow.update({n: made for n, value in shadow.items() if value is thing})

    def sites_of(self, statement: ast.stmt) -> Site:
        return self.instrumenter.sites[self.instrumenter.site(statement, "statement", [])]

    def shadow(self, names: dict[str, Value]) -> dict[str, Value]:
        """The copy of a namespace in which the copies find each other."""
        if id(names) not in self.shadows:
            copies = ((n, self.copies.get(id(v), v)) for n, v in list(names.items()))
            self.shadows[id(names)] = dict(copies) | self.recorder.names
            self.kept.append(names)
        return self.shadows[id(names)]

    def node_of(self, thing: Value) -> tuple[Node, list[str]]:
        """The definition of a function or class in its source. Raises `NoCopy`."""
        code = next(filter(is_own, codes_of(thing)))
        lines = linecache.getlines(code.co_filename)
        if code.co_freevars and not isinstance(thing, type):
            raise NoCopy("it is defined inside another function")
        if code.co_filename not in self.trees:
            text = "".join(lines)
            if not text or len(text) > MOST_SOURCE:
                raise NoCopy("its source is not there")
            tree = self.trees[code.co_filename] = ast.parse(text)
            self.compiled[code.co_filename] = _code_in(tree)
        for node in ast.walk(self.trees[code.co_filename]):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and _is_of(
                node, thing, self.compiled[code.co_filename]
            ):
                return node, lines
        raise NoCopy("its source is not the one that ran")


def overwriting(definition: ast.FunctionDef | ast.ClassDef) -> Iterator[ast.stmt]:
    """The assignments to arguments that have not been read before, in a function or in methods."""
    if isinstance(definition, ast.ClassDef):
        for part in definition.body:
            if isinstance(part, ast.FunctionDef):
                yield from overwriting(part)
        return
    arguments = definition.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    unread = {argument.arg for argument in every}
    for statement in definition.body:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        unread -= {node.id for node in names if not isinstance(node.ctx, ast.Store)}
        if isinstance(statement, ast.Assign):
            targets = {t.id for t in statement.targets if isinstance(t, ast.Name)}
            if unread & targets:
                yield statement
        unread -= {node.id for node in names}


def codes_of(thing: Value) -> Iterator[CodeType]:
    """The code of a function, or of a class's own methods, in their order."""
    if isinstance(thing, type):
        for part in map(_function, vars(thing).values()):
            if isinstance(part, FunctionType):
                yield from _code(inspect.unwrap(part))
    elif isinstance(thing, FunctionType):
        yield from _code(inspect.unwrap(thing))


def _function(part: Value) -> Value:
    """The function behind a static method, a class method or a property."""
    if isinstance(part, staticmethod | classmethod):
        return part.__func__
    return part.fget if isinstance(part, property) else part


def _code(function: Value) -> Iterator[CodeType]:
    if isinstance(function, FunctionType):  # what it wraps may be something else
        yield function.__code__


def namespace_of(thing: Value) -> dict[str, Value]:
    """The globals of a function, or of a class's methods."""
    if isinstance(thing, type):
        for part in vars(thing).values():
            if isinstance(part, FunctionType) and isinstance(inspect.unwrap(part), FunctionType):
                return inspect.unwrap(part).__globals__
        return vars(sys.modules[thing.__module__])
    return inspect.unwrap(thing).__globals__


def is_own(code: CodeType) -> bool:
    """Whether code is the author's own: not Python's, a package's or the course's."""
    return not (course.is_ours(code.co_filename) or code.co_filename.startswith(_FOLDERS))


def _wraps(thing: Value) -> bool:
    """Whether decorators have made a function or class what it is."""
    return hasattr(thing, "__wrapped__") or hasattr(thing, "__dataclass_fields__")


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _code_in(tree: ast.Module) -> dict[tuple[str, int], list[CodeType]]:
    """All code in a source, by name and first line.

    A notebook compiles the statements of a cell one by one, Python those of a file together: the
    code may depend on what has been imported above.
    """
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    modules = [tree, *(ast.Module([statement], []) for statement in tree.body)]
    todo = [compile(m, "<source>", "exec", flags, dont_inherit=True) for m in modules]
    found: dict[tuple[str, int], list[CodeType]] = {}
    while todo:
        code = todo.pop()
        found.setdefault((code.co_name, code.co_firstlineno), []).append(code)
        todo += [part for part in code.co_consts if isinstance(part, CodeType)]
    return found


def _is_of(
    node: Node,
    thing: Value,
    compiled: dict[tuple[str, int], list[CodeType]],
) -> bool:
    """Whether a definition is that of a function or class, and compiles to its very code."""
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    codes = [*filter(is_own, codes_of(thing))]
    name = thing.__name__ if isinstance(thing, type) else codes[0].co_name
    if node.name != name or isinstance(node, ast.ClassDef) != isinstance(thing, type):
        return False
    return all(
        first <= code.co_firstlineno <= node.end_lineno
        and any(same_code(code, c) for c in compiled.get((code.co_name, code.co_firstlineno), ()))
        for code in codes
    )


def same_code(one: Value, other: Value) -> bool:
    """Whether two constants are equal, or two code objects apart from their names and places."""
    if not isinstance(one, CodeType) or not isinstance(other, CodeType):
        return type(one) is type(other) and repr(one) == repr(other)
    return (
        one.co_code == other.co_code
        and one.co_names == other.co_names
        and one.co_varnames == other.co_varnames
        and one.co_freevars == other.co_freevars
        and len(one.co_consts) == len(other.co_consts)
        and all(map(same_code, one.co_consts, other.co_consts))
    )
