"""Which names a cell defines, imports, uses and may change, read from its text.

TRUST BOUNDARY. Students' code is hostile text here: it is parsed, within limits, and never run.
Code can hide any name from a reader, so callers must be safe with an answer that lacks some.

What a name in the code stands for, through imports and aliases, is another question: see `policy`.
"""

import ast
import io
import re
import symtable
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import TypeVar

MAX_SOURCE = 500_000  # characters of code: parsing takes a thousand times as much memory
_KEPT_TREES, _KEPT_NAMES = 200_000, 8_000_000  # characters whose results are kept
_STATEMENTS = 500  # that are told apart
_REACHES = frozenset(  # names by which code may find any name of the notebook
    ("globals", "locals", "vars", "dir", "exec", "eval", "compile", "get_ipython", "__import__")
)
_MODULES = frozenset(
    ("__main__", "builtins", "ctypes", "gc", "importlib", "inspect", "IPython", "pickle", "sys")
)
_ATTRIBUTES = frozenset(("__globals__", "__builtins__", "f_globals", "f_locals", "user_ns"))


Result = TypeVar("Result")


def _remember(most: int) -> Callable[[Callable[[str], Result]], Callable[[str], Result]]:
    """Keep a function's latest results, for `most` characters of texts in all. A decorator."""

    def decorate(function: Callable[[str], Result]) -> Callable[[str], Result]:
        results, lock = dict[str, Result](), Lock()
        room = most

        def cached(text: str) -> Result:
            nonlocal room
            with lock:
                if text in results:
                    results[text] = result = results.pop(text)  # the latest
                    return result
            result = function(text)
            with lock:
                if text not in results and len(text) <= most:
                    results[text] = result
                    room -= len(text)
                while room < 0:
                    oldest = next(iter(results))
                    del results[oldest]
                    room += len(oldest)
            return result

        return cached

    return decorate


# --- Parsing --------------------------------------------------------------------------------------

_HAS_MAGIC = re.compile(r"^[ \t]*[%!?]|=[ \t]*[%!]|\?[ \t]*$", re.MULTILINE)
_MAGIC = re.compile(
    r"^([ \t]*)(?:%%?(?:time|timeit|capture)[ \t]+(?=[A-Za-z_(])(.*)|[%!?].*)$", re.MULTILINE
)
_MAGIC_VALUE = re.compile(r"^([ \t]*+[\w, \t]++=[ \t]*+)[%!].*$", re.MULTILINE)


class SourceTooLong(SyntaxError):
    """It may be Python, but it is longer or more deeply nested than we parse."""


def parse(source: str) -> ast.Module:
    """The syntax tree of a cell, with IPython's lines taken as empty; not to be changed.

    Raises `SyntaxError`, also for code too deep for the parser.
    """
    return _parse(source)[0]


@_remember(_KEPT_TREES)  # most cells of a class are those of the release
def _parse(source: str) -> tuple[ast.Module, str]:
    """The tree, and the text that it was made from."""
    if len(source) > MAX_SOURCE:
        raise SourceTooLong(f"more than {MAX_SOURCE} characters of code")
    try:
        try:
            return ast.parse(source), source
        except SyntaxError:
            plain = _without_magics(source)
            return ast.parse(plain), plain
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceTooLong(f"too deeply nested or not a text ({type(error).__name__})") from None


def _without_magics(source: str) -> str:
    """A cell with the lines that only IPython understands neutralised; what `%time` runs stays."""
    plain = _MAGIC.sub(lambda line: line[1] + (line[2] or "pass"), source)
    return _MAGIC_VALUE.sub(r"\1None", plain)


def statements_of(source: str) -> list[tuple[int, str]]:
    """The statements of a code, each with the number of lines before it and the comments above it;
    the last of very many come together.

    Raises `SyntaxError`.
    """
    lines = io.StringIO(source, newline=None).readlines()  # as Python counts them
    starts, end = [0], 0
    for node in parse(source).body[:_STATEMENTS]:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
        if first > end > 0:
            starts.append(end)
        end = node.end_lineno or first
    return [(n, "".join(lines[n:stop])) for n, stop in pairwise([*starts, len(lines)])]


def in_their_lines(source: str) -> list[str]:
    """The statements of a code, each in its own lines. Raises `SyntaxError`."""
    # IPython drops empty lines:
    return ["#\n" * before + text for before, text in statements_of(source)]


# --- Names ----------------------------------------------------------------------------------------

_DEFINITION = re.compile(
    r"^(?:(?:async\s+)?def\s+|class\s+)([A-Za-z_]\w*)|^([A-Za-z_]\w*)\s*=(?!=)", re.MULTILINE
)


@dataclass(frozen=True)
class Names:
    """The notebook's names that a cell defines, imports, uses, and may change in place.

    All are empty for a cell that cannot be parsed, and so does not run (`parsed`). `reaches` means
    that it may use any name at all, in ways that cannot be read.
    """

    defines: frozenset[str] = frozenset()  # by def, class or assignment
    imports: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    reaches: bool = False
    parsed: bool = True


def defined_names(source: str) -> frozenset[str]:
    """The names that a cell defines: by def, class or assignment; not by an import.

    For a cell that cannot be parsed, and so defines nothing, the names that it meant to define.
    """
    names = names_in(source)
    if names.parsed:
        return names.defines
    return frozenset(a or b for a, b in _DEFINITION.findall(source))


@_remember(_KEPT_NAMES)  # as many as several submissions may hold
def names_in(source: str) -> Names:
    try:
        tree, text = _parse(source)
        tables = [*_all_tables(symtable.symtable(_with_generators(tree, text), "cell", "exec"))]
    except (SourceTooLong, ValueError, RecursionError, MemoryError):
        return Names(reaches=True, parsed=False)
    except SyntaxError:  # it runs only if IPython rewrites it
        return Names(reaches=bool(_HAS_MAGIC.search(source)), parsed=False)
    modules, attributes = set[str](), set[str]()
    announced, stored = dict[int, str](), set[str]()  # by `x: int` alone; by an assignment
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
            modules.add((getattr(node, "module", "") or "").partition(".")[0])
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and node.value is None:
            announced[id(node.target)] = getattr(node.target, "id", "")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            stored |= {node.id} if id(node) not in announced else set()
    uses = frozenset(_names_used(tables))
    reaches = bool(uses & _REACHES or modules & _MODULES or attributes & _ATTRIBUTES)
    return Names(
        frozenset(_names_defined(tables, {*announced.values()} - stored)),
        frozenset(s.get_name() for table in tables for s in table.get_symbols() if s.is_imported()),
        uses,
        frozenset(_names_changed(tree.body)),
        reaches or text != source,  # a magic may run anything
    )


class _Generators(ast.NodeTransformer):
    """Makes a generator of every comprehension."""

    def visit_ListComp(self, node: ast.ListComp | ast.SetComp) -> ast.GeneratorExp:
        self.generic_visit(node)
        return ast.GeneratorExp(node.elt, node.generators)

    visit_SetComp = visit_ListComp

    def visit_DictComp(self, node: ast.DictComp) -> ast.GeneratorExp:
        self.generic_visit(node)
        return ast.GeneratorExp(ast.Tuple([node.key, node.value], ast.Load()), node.generators)


def _with_generators(tree: ast.Module, text: str) -> str:
    """Code whose comprehensions keep their names to themselves: since Python 3.12 they stand in the
    table of what is around them, as if it had bound them."""
    comprehensions = ast.ListComp | ast.SetComp | ast.DictComp
    if sys.version_info < (3, 12) or not any(isinstance(n, comprehensions) for n in ast.walk(tree)):
        return text
    return ast.unparse(_Generators().visit(ast.parse(text)))  # the tree itself is kept as it is


def _all_tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    """A table of symbols and those of all functions and classes in it."""
    yield table
    for inner in table.get_children():
        yield from _all_tables(inner)


def _names_used(tables: Iterable[symtable.SymbolTable]) -> Iterator[str]:
    """The names of the notebook that a cell looks up, now or when its functions are called."""
    for table in tables:
        for symbol in table.get_symbols():
            outer = table.get_type() == "module" or symbol.is_global()
            if outer and (symbol.is_referenced() or symbol.is_declared_global()):
                yield symbol.get_name()


def _names_defined(tables: Iterable[symtable.SymbolTable], announced: set[str]) -> Iterator[str]:
    """The names of the notebook that a cell binds, now or when its functions are called."""
    for table in tables:
        for symbol in table.get_symbols():
            outer = table.get_type() == "module" or symbol.is_declared_global()
            assigned = symbol.is_assigned() and symbol.get_name() not in announced
            if outer and (assigned or symbol.is_namespace()):
                yield symbol.get_name()


def _names_changed(body: Iterable[ast.stmt]) -> Iterator[str]:
    """What a cell may change in place: `x` in `x[0] = 1`, `x.y = 1`, `x.append(1)`, `f(x)`."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, ast.Subscript | ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield from _base(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute):
                yield from _base(call.func)
            if isinstance(call.func, ast.Name) and call.func.id != "print":
                for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                    yield from _base(argument)


def _base(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
