"""Makes a wrong answer out of a right one by changing its text."""

import ast
import itertools
import linecache
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import CodeType
from typing import Any, NamedTuple

from autograder.student.engine.locator.instrumented_copy import same_code

ENTRY = re.compile(r"(\w+)(?:\((\w+)\))?(?: of (\w+))?(?:: (.+))?")
TIMES = re.compile(r"(.*?)(?: ×(\d+))?", re.DOTALL)
COMMENT = re.compile(r"(^| ) *#.*")
MARKS = ("    ~ ", "    - ", "    + ", "    > ")


class Edit(NamedTuple):
    """Put `new` in place of `old`, which occurs `times` times.

    Lines after the first are relative to the indentation of the line in which the text begins.
    """

    old: str
    new: str
    times: int = 1


# --- the text to change -------------------------------------------------------------------------


@cache
def plain_source(answer: Callable) -> str:
    """The code of a function or class without docstrings, comments, annotations and empty lines.

    Each signature takes one line; ` #` is taken for the beginning of a comment wherever it occurs.
    Raises `ValueError` for anything not defined at the top level of a file, or without code of its
    own.
    """
    methods = vars(answer).values() if isinstance(answer, type) else [answer]
    codes = [method.__code__ for method in methods if hasattr(method, "__code__")]
    if not codes or answer.__qualname__ != answer.__name__:
        raise ValueError(f"{answer.__qualname__} is not a function or class with code to change")
    lines = linecache.getlines(codes[0].co_filename)
    start = codes[0].co_firstlineno - 1  # a decorator's line, or that of the first method
    head, step = ("class ", -1) if isinstance(answer, type) else ("def ", 1)
    while not lines[start].startswith(head):
        start += step
    rest = itertools.takewhile(lambda line: line[0] in " )]}\n", lines[start + 1 :])
    return _plain([lines[start], *rest])


def _plain(lines: Sequence[str]) -> str:
    kept = {number: line.rstrip() for number, line in enumerate(lines, 1)}
    for node in ast.walk(ast.parse("".join(lines))):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.FunctionDef):
            kept |= dict.fromkeys(range(node.lineno, node.body[0].lineno), "")
            kept[node.lineno] = " " * node.col_offset + _signature(node, lines)
        if ast.get_docstring(node, clean=False) is not None:
            first = node.body[0]
            kept |= dict.fromkeys(range(first.lineno, (first.end_lineno or first.lineno) + 1), "")
    code = (COMMENT.sub("", line) for line in kept.values())
    return "".join(f"{line}\n" for line in code if line)


def _signature(function: ast.FunctionDef, lines: Sequence[str]) -> str:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    arguments.defaults = [  # as they are written: 1e-5, and not 1e-05
        ast.Name(lines[d.lineno - 1][d.col_offset : d.end_col_offset]) for d in arguments.defaults
    ]
    return f"def {function.name}({ast.unparse(arguments)}):"


# --- the changes --------------------------------------------------------------------------------


def apply_edits(source: str, edits: Sequence[Edit], what: str) -> str:
    """The text after some edits, made one by one.

    Raises `ValueError` if a text does not occur as often as it should.
    """
    for edit in edits:
        places = [*_places(source, edit.old)]
        if len(places) != edit.times:
            raise ValueError(
                f"{what}: this text occurs {len(places)} times, not {edit.times}:\n{edit.old}\n"
                f"The text to change is\n{source}"
            )
        for start, end, indent in reversed(places):
            source = source[:start] + edit.new.replace("\n", "\n" + indent) + source[end:]
    return source


def _places(source: str, text: str) -> Iterator[tuple[int, int, str]]:
    """Where a text begins and ends, and the indentation of the line in which it begins."""
    first, *more = text.split("\n")
    start = source.find(first)
    while start >= 0 and first:
        line = source[source.rfind("\n", 0, start) + 1 :]
        indent = line[: len(line) - len(line.lstrip(" "))]
        whole = "\n".join([first, *(indent + line for line in more)])
        if source.startswith(whole, start):
            yield start, start + len(whole), indent
        start = source.find(first, start + len(first))


def with_code(source: str, before: str, after: str, what: str) -> str:
    """The text with more code at the beginning and the end of the function that it defines.

    For a class, that is its `forward`. Raises `ValueError` if there is none.
    """
    if after:
        source = _with_ending(source, after, what)
    return _with_beginning(source, before, what) if before else source


def build(
    name: str, cause: str, changed: str, source: str, names: Mapping[str, Any], what: str
) -> Callable:
    """The function or class that a changed text defines, renamed `name`, with its cause.

    Raises `ValueError` if it is not valid Python, or does the same as `source`, the original.
    """
    changed, source = (re.sub(r"^(def|class) \w+", rf"\1 {name}", s) for s in (changed, source))
    file = f"<{what}>"
    code = _compile(changed, file, what)
    if same_code(code, _compile(source, file, what)):
        raise ValueError(f"{what}: the changed code does the same as before:\n{changed}")
    linecache.cache[file] = (len(changed), None, changed.splitlines(True), file)  # for tracebacks
    scope = dict(names)
    exec(code, scope)
    scope[name].__doc__ = cause
    return scope[name]


def _with_beginning(source: str, code: str, what: str) -> str:
    lines = source.splitlines(True)
    function = _target_function(source, what)
    indent = " " * function.body[0].col_offset
    lines[function.lineno] = _indent(code, indent) + lines[function.lineno]
    return "".join(lines)


def _with_ending(source: str, code: str, what: str) -> str:
    lines = source.splitlines(True)
    for node in reversed([*_returns(_target_function(source, what))]):
        rest = _indent(f"{code}\nreturn result", " " * node.col_offset)
        lines[node.lineno - 1] = lines[node.lineno - 1].replace("return", "result =", 1)
        lines[(node.end_lineno or node.lineno) - 1] += rest
    return "".join(lines)


def _indent(code: str, indent: str) -> str:
    return "".join(f"{indent}{line}\n" for line in code.split("\n"))


def _target_function(source: str, what: str) -> ast.FunctionDef:
    """The function that a text defines, or its class's `forward`."""
    try:
        defined = ast.parse(source).body[0]
    except SyntaxError as error:
        raise _no_python(error, source, what) from None
    inside = defined.body if isinstance(defined, ast.ClassDef) else [defined]
    for node in inside:
        if isinstance(node, ast.FunctionDef) and (node is defined or node.name == "forward"):
            return node
    raise ValueError(f"{what}: there is no forward in\n{source}")


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """The return statements of a function, but not those of functions within it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef):
            yield from _returns(child)


def _compile(source: str, file: str, what: str) -> CodeType:
    try:
        return compile(source, file, "exec", dont_inherit=True)
    except SyntaxError as error:
        raise _no_python(error, source, what) from None


def _no_python(error: SyntaxError, source: str, what: str) -> ValueError:
    return ValueError(f"{what}: {error.msg}, line {error.lineno} of\n{source}")


# --- the text that declares them ----------------------------------------------------------------


class Entry(NamedTuple):
    """What a text declares about a mistake: the arguments of `Bank.change`, and where it stands.

    `argument` is what the entry writes for the argument of a shared mistake, or a shared mistake
    for its own.
    """

    name: str
    cause: str
    of: str | None
    edits: Sequence[Edit]
    before: str
    after: str
    what: str
    argument: str | None = None


def entries(text: str, place: str) -> Iterator[Entry]:
    """The mistakes that a text declares; `place` is its file's name, or the exercise's.

    Raises `ValueError` for one that cannot be read.
    """
    parts: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            if not parts or not line.startswith(" "):
                parts.append((number, []))
            parts[-1][1].append(line.rstrip())
    for number, (head, *lines) in parts:
        found = ENTRY.fullmatch(head)
        if found is None:
            raise ValueError(f"{place}:{number}: an entry begins with a name, not with {head!r}")
        name, argument, of, inline = found.groups()
        marked = inline.split(" ; ") if inline else []
        marked += [line[4:] for line in lines if line.startswith(MARKS)]
        cause = " ".join(line.strip() for line in lines if not line.startswith(MARKS))
        what = f"{place}:{number}, {name}"
        yield Entry(name, cause, of, *_changes(marked, what), what, argument)


def _changes(marked: Sequence[str], what: str) -> tuple[list[Edit], str, str]:
    """The edits, the code before and the code after that the marked lines declare."""
    hunks: list[tuple[list[str], list[str]]] = []
    before: list[str] = []
    after: list[str] = []
    for line in marked:
        mark, code = line[:2], line[2:]
        if mark == "- ":
            if not hunks or hunks[-1][1]:
                hunks.append(([], []))
            hunks[-1][0].append(code)
        elif mark == "+ ":
            (hunks[-1][1] if hunks else before).append(code)
        elif mark == "> ":
            after.append(code)
        else:
            old, arrow, new = line.removeprefix("~ ").partition(" → ")
            if not arrow:
                raise ValueError(f"{what}: {line!r} is not a change")
            new, times = _split_count(new)
            hunks.append(([f"{old} ×{times}" if times else old], [new]))
    return [_edit(*hunk) for hunk in hunks], "\n".join(before), "\n".join(after)


def _split_count(text: str) -> tuple[str, str | None]:
    found = TIMES.fullmatch(text)
    assert found is not None  # any text is one
    return found[1], found[2]


def _edit(old: Sequence[str], new: Sequence[str]) -> Edit:
    text, times = _split_count("\n".join(old))
    return Edit(text, "\n".join(new), int(times or 1))
