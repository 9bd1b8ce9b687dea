"""What the student's source says: how `check` is called, what an answer names, what is broken.

TRUST BOUNDARY. This runs in the student's own process, for `check`.
"""

import ast
import dis
import linecache
import re
from collections.abc import Iterator
from types import FrameType, FunctionType
from typing import TYPE_CHECKING

from autograder.student.console import notebook
from autograder.student.engine.arrays import Value
from autograder.student.engine.code_origin import codes_of

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+def|def|class)[ \t]+(\w+)", re.MULTILINE)


def call_in(frame: FrameType) -> ast.Call | None:
    """The call that a frame is making, as it is written; None where that cannot be read."""
    here = [*frame.f_code.co_positions()][frame.f_lasti // 2]
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    try:
        tree = ast.parse("".join(lines))
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            place = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if place == here:
                return node
    return None


def named_by(answer: Value) -> Iterator[tuple[str, Value]]:
    """The names of functions and classes that an answer uses, anywhere in its code, and they.

    So do the functions and classes of its author's that it uses: their names come, too.
    """
    todo, known = [answer], set[int]()
    while todo:
        thing = todo.pop(0)
        known.add(id(thing))
        for name, used in _names(thing):
            if callable(used):
                yield name, used
            own = isinstance(used, FunctionType | type) and used.__module__ == answer.__module__
            if own and id(used) not in known:
                todo.append(used)


def _names(thing: Value) -> Iterator[tuple[str, Value]]:
    if isinstance(thing, type):
        yield from ((base.__name__, base) for base in thing.__mro__[1:-1])
    scope: dict[str, Value] = {}
    for function in functions_of(thing):
        scope |= function.__globals__
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for name, cell in cells:
            try:
                yield name, cell.cell_contents
            except ValueError:  # it is empty
                continue
    looks_up = ("LOAD_GLOBAL", "LOAD_NAME")  # not `GRUCell` where it says `nn.GRUCell`
    for code in codes_of(thing):
        for step in dis.get_instructions(code):
            if step.opname in looks_up and step.argval in scope:
                yield step.argval, scope[step.argval]


def functions_of(thing: Value) -> Iterator[FunctionType]:
    """A function itself, or those that a class defines."""
    parts = vars(thing).values() if isinstance(thing, type) else [thing]
    yield from (part for part in map(_unwrap, parts) if isinstance(part, FunctionType))


def _unwrap(thing: Value) -> Value:
    """The function inside a static method, a class method, a property or what decorators made."""
    inner: Value = thing.fget if isinstance(thing, property) else thing
    while hasattr(inner, "__wrapped__") or isinstance(inner, staticmethod | classmethod):
        inner = inner.__wrapped__
    return inner


_RAISED: dict[int | None, str] = {}  # what cells of the notebook have raised, by their numbers


def remember_failure(result: "ExecutionResult") -> None:
    """Remember what a cell has raised: IPython calls this after each."""
    if result.error_in_exec is not None:
        _RAISED[result.execution_count] = type(result.error_in_exec).__name__


def definition_not_in_use(name: str, answer: Value) -> tuple[str, bool] | None:
    """What keeps the newest cell of the notebook that defines a name from having defined it, if
    the answer is of an older one; and whether that cell has failed."""
    shell = notebook()
    history = shell.history_manager.input_hist_raw if shell is not None else []
    cells = [n for n, cell in enumerate(history) if name in _DEFINED.findall(cell)]
    codes = {n: _to_python(shell, history[n]) for n in cells}
    cells = [n for n in cells if _defines(codes[n], name)]
    if not cells:
        return None
    newest = cells[-1]
    try:
        compile(codes[newest], "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except SyntaxError as error:
        told = (
            f"The newest cell that defines {name}, [{newest}], does not compile: in line "
            f"{error.lineno}, {error.msg}. Until it runs, {name} is still what an older cell made."
        )
        return told, True
    name_of = getattr(shell.compile, "get_code_name", lambda *_: "")  # older ones of IPython's
    files = {n: name_of(history[n], codes[n], n) for n in cells}
    own = [code for code in codes_of(answer) if code.co_qualname.partition(".")[0] == name]
    made = [n for n in cells if files[n] in {code.co_filename for code in own}]
    if not made or made[-1] == newest:
        return None
    told = f"{name} is still what cell [{made[-1]}] made. The newer one in [{newest}] is not in use"
    if newest not in _RAISED:
        return f"{told}.", False
    return f"{told}: that cell raised {_RAISED[newest]} before it came to it.", True


def _to_python(shell: "InteractiveShell", cell: str) -> str:
    """A cell as Python, its magics as calls; unchanged if it is no Python at all."""
    try:
        return shell.transform_cell(cell)
    except SyntaxError:
        return cell


def _defines(code: str, name: str) -> bool:
    """Whether a cell that holds `def name` defines that, and not a method, nor in a string only.

    One that does not compile, or is handed to a magic, counts as if it did.
    """
    try:
        nodes = [*ast.walk(ast.parse(code))]
    except SyntaxError:
        return True
    methods = {id(part) for node in nodes if isinstance(node, ast.ClassDef) for part in node.body}
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    named = (n for n in nodes if isinstance(n, kinds) and n.name == name and id(n) not in methods)
    return "run_cell_magic" in code or any(named)
