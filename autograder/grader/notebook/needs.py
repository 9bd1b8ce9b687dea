"""Which of the course's own cells have to run for a student's code to work.

Most cells of a chapter measure, train and print for the reader. Marks depend on such a cell only if
the student's own cells use a name that it defines, directly or through other cells.

TRUST BOUNDARY. Students' code is hostile text here: its names are read, nothing is run. Running a
cell is always safe, because it runs in the sandbox, so in doubt a cell is run: code that can reach
names in ways that cannot be read (`globals()`, magics) is taken to need all of them. Leaving a cell
out by mistake could cost marks, but never earn any.
"""

import ast
import re
import symtable
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

_MAGIC = re.compile(r"^[ \t]*[%!?]|=[ \t]*[%!]|\?[ \t]*$", re.MULTILINE)
_REACHES = frozenset(  # names by which code may find any name of the notebook
    ("globals", "locals", "vars", "dir", "exec", "eval", "compile", "get_ipython", "__import__")
)
_MODULES = frozenset(
    ("__main__", "builtins", "ctypes", "gc", "importlib", "inspect", "IPython", "pickle", "sys")
)
_ATTRIBUTES = frozenset(("__globals__", "__builtins__", "f_globals", "f_locals", "user_ns"))
_SETTING = re.compile(r"\bset_(?:default|grad|flush)|\bseterr\b|\bimport \*")


@dataclass(frozen=True)
class _Names:
    """The notebook's names that a cell defines, may change in place, uses, and imports."""

    gives: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    imports: frozenset[str] = frozenset()
    reaches: bool = False  # whether it may use any name at all


def needless(cells: Sequence[tuple[str, bool]]) -> set[int]:
    """The numbers of the course's own cells that need not run.

    `cells` holds the source of each cell and whether it is the course's own, as it was released.
    """
    needed: set[str] = set()
    settled: set[str] = set()  # names that no cell of the course changes: modules, students' own
    rest: dict[int, _Names] = {}
    for number, (source, ours) in enumerate(cells):
        names = _names(source)
        settled |= names.imports
        if not ours:
            if names.reaches:
                return set()
            needed |= names.uses
            settled |= names.gives
        elif names.reaches or _SETTING.search(source):
            needed |= names.uses
        else:
            rest[number] = names
    found = True
    while found:
        found = [n for n, c in rest.items() if (c.gives | c.changes - settled) & needed]
        for number in found:
            needed |= rest.pop(number).uses
    return set(rest)


@lru_cache(maxsize=2048)  # most cells of a class are the release's
def _names(source: str) -> _Names:
    try:
        tree = ast.parse(source)
        top = symtable.symtable(source, "cell", "exec")
        uses, gives = frozenset(_used(top)), frozenset(_given(top))
    except SyntaxError:  # it runs only if IPython rewrites it
        return _Names(reaches=bool(_MAGIC.search(source)))
    except (ValueError, RecursionError, MemoryError):
        return _Names(reaches=True)
    modules, imported, attributes = set[str](), set[str](), set[str]()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            modules |= {a.name.partition(".")[0] for a in node.names}
            modules.add((getattr(node, "module", "") or "").partition(".")[0])
            imported |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.Attribute):
            attributes.add(node.attr)
    reaches = bool(uses & _REACHES or modules & _MODULES or attributes & _ATTRIBUTES)
    changes = frozenset(_changed(tree.body))
    return _Names(gives, changes, uses, frozenset(imported), reaches)


def _used(table: symtable.SymbolTable) -> Iterator[str]:
    """The names of the notebook that a cell looks up, now or when its functions are called."""
    for symbol in table.get_symbols():
        outer = table.get_type() == "module" or symbol.is_global()
        if outer and (symbol.is_referenced() or symbol.is_declared_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _used(inner)


def _given(table: symtable.SymbolTable) -> Iterator[str]:
    """The names of the notebook that a cell binds, now or when its functions are called."""
    for symbol in table.get_symbols():
        outer = table.get_type() == "module" or symbol.is_declared_global()
        if outer and (symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _given(inner)


def _changed(body: Iterable[ast.stmt]) -> Iterator[str]:
    """What a cell may change in place: `x` in `x[0] = 1`, `x.y = 1`, `x.append(1)`, `f(x)`."""
    for node in (inner for statement in body for inner in ast.walk(statement)):
        if isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            yield from _base(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            if isinstance(call.func, ast.Attribute):
                yield from _base(call.func)
            if isinstance(call.func, ast.Name) and call.func.id != "print":
                for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
                    yield from _base(argument)


def _base(node: ast.expr) -> Iterator[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id
