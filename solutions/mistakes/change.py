"""Makes a wrong answer from a right one, by replacing some of its text."""

import ast
import io
import linecache
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ENTRY = re.compile(r"(\w+)(?: of (\w+))?(?:: (.+))?")
TIMES = re.compile(r"(.*?)(?: ×(\d+))?", re.DOTALL)
MARKS = ("    ~ ", "    - ", "    + ", "    > ")


class Edit(NamedTuple):
    """`new` in the place of `old`, which occurs `count` times.

    Lines after the first are indented as far as the line in which the text begins, and further.
    """

    old: str
    new: str
    count: int = 1


# --- the text that is changed -------------------------------------------------------------------


@cache
def plain_source(answer: Callable[..., Any]) -> str:
    """The code of a function or class without docstrings, comments, annotations and empty lines.

    Each signature stands on one line. Raises `ValueError` where there is no source.
    """
    made = getattr(answer, "changed_source", None)
    if made is not None:
        return made
    if isinstance(answer, type):
        methods = [m for m in vars(answer).values() if hasattr(m, "__code__")]
    else:
        methods = [answer]
    if not methods:
        raise ValueError(f"{answer.__name__} has no code of its own to change")
    code = methods[0].__code__
    for node, source in _definitions(code.co_filename):
        first = min(d.lineno for d in [node, *node.decorator_list])
        if first <= code.co_firstlineno <= node.end_lineno:
            return source
    raise ValueError(f"{answer.__name__} is not defined at the top of {code.co_filename}")


@cache
def _definitions(path: str) -> list[tuple[ast.FunctionDef | ast.ClassDef, str]]:
    text = Path(path).read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.split("\n")
    comments = {
        token.start[0]: token.start[1]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    return [
        (node, _plain(node, lines, comments))
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]


def _plain(node: ast.AST, lines: Sequence[str], comments: Mapping[int, int]) -> str:
    kept = {
        number: lines[number - 1][: comments.get(number)].rstrip()
        for number in range(node.lineno, node.end_lineno + 1)
    }
    for inner in ast.walk(node):
        if not isinstance(inner, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(inner, ast.FunctionDef):
            header = range(inner.lineno, inner.body[0].lineno)
            kept |= dict.fromkeys(header, "")
            kept[inner.lineno] = " " * inner.col_offset + _signature(inner)
        if ast.get_docstring(inner, clean=False) is not None:
            doc = inner.body[0]
            kept |= dict.fromkeys(range(doc.lineno, doc.end_lineno + 1), "")
    return "".join(f"{line}\n" for line in kept.values() if line.strip())


def _signature(function: ast.FunctionDef) -> str:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    for argument in [*every, arguments.vararg, arguments.kwarg]:
        if argument is not None:
            argument.annotation = None
    return f"def {function.name}({ast.unparse(arguments)}):"


# --- the changes --------------------------------------------------------------------------------


def edited(source: str, edits: Sequence[Edit], before: str, after: str, what: str) -> str:
    """The changed source. Raises `ValueError` where a text does not occur as often as it should."""
    changed = source
    for edit in edits:
        changed = _replaced(changed, edit, what)
    if after:
        changed = _ending(changed, after, what)
    if before:
        changed = _beginning(changed, before, what)
    if changed == source:
        raise ValueError(f"{what}: nothing is changed")
    return changed


def _replaced(source: str, edit: Edit, what: str) -> str:
    first, *more = edit.old.split("\n")
    places = []
    for match in re.finditer(re.escape(first), source):
        indent = _indent(source, match.start())
        whole = "\n".join([first, *(indent + line for line in more)])
        if source.startswith(whole, match.start()):
            places.append((match.start(), match.start() + len(whole), indent))
    if len(places) != edit.count:
        raise ValueError(
            f"{what}: this text occurs {len(places)} times, not {edit.count}:\n{edit.old}\n"
            f"The text to change is\n{source}"
        )
    for start, end, indent in reversed(places):
        source = source[:start] + edit.new.replace("\n", "\n" + indent) + source[end:]
    return source


def _indent(source: str, place: int) -> str:
    line = source[source.rfind("\n", 0, place) + 1 :]
    return line[: len(line) - len(line.lstrip(" "))]


def _beginning(source: str, code: str, what: str) -> str:
    lines = source.splitlines(True)
    body = _called(source, what).body[0]
    indent = " " * body.col_offset
    lines.insert(body.lineno - 1, "".join(f"{indent}{line}\n" for line in code.split("\n")))
    return "".join(lines)


def _ending(source: str, code: str, what: str) -> str:
    lines = source.split("\n")
    for node in reversed([*_returns(_called(source, what))]):
        indent = " " * node.col_offset
        rest = [f"{indent}{line}" for line in (*code.split("\n"), "return result")]
        first = node.lineno - 1
        lines[first] = lines[first].replace("return", "result =", 1)
        lines[node.end_lineno : node.end_lineno] = rest
    return "\n".join(lines)


def _called(source: str, what: str) -> ast.FunctionDef:
    """The function, or the class's `forward`."""
    defined = _parsed(source, what).body[0]
    inside = defined.body if isinstance(defined, ast.ClassDef) else [defined]
    functions = [node for node in inside if isinstance(node, ast.FunctionDef)]
    for function in functions:
        if function.name == "forward" or function is defined:
            return function
    raise ValueError(f"{what}: there is no forward in\n{source}")


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """The return statements of a function, but not those of functions within it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.Lambda):
            yield from _returns(child)


def _parsed(source: str, what: str) -> ast.Module:
    try:
        return ast.parse(source)
    except SyntaxError as error:
        raise ValueError(f"{what}: {error.msg}, line {error.lineno} of\n{source}") from None


def build(
    what: str, name: str, cause: str, source: str, changed: str, scope: Sequence[Mapping[str, Any]]
) -> Callable[..., Any]:
    """The function or class that changed source defines, called `name`, with `cause` to tell.

    Raises `ValueError` for source that is no Python, or the same code as before.
    """
    changed = _renamed(changed, name)
    tree = _parsed(changed, what)
    if ast.dump(tree) == ast.dump(_parsed(_renamed(source, name), what)):
        raise ValueError(f"{what}: the changed code is the same as before")
    file = f"<{what}>"  # tracebacks and `inspect` find its lines
    linecache.cache[file] = (len(changed), None, changed.splitlines(True), file)
    names = {key: value for part in scope for key, value in part.items()}
    exec(compile(tree, file, "exec"), names)
    answer = names[name]
    answer.__doc__, answer.changed_source = cause, changed
    return answer


def _renamed(source: str, name: str) -> str:
    return re.sub(r"^(def|class) \w+", rf"\1 {name}", source, count=1, flags=re.MULTILINE)


# --- the text that declares them ----------------------------------------------------------------


class Entry(NamedTuple):
    """What a text declares of one mistake."""

    name: str
    of: str | None
    cause: str
    edits: Sequence[Edit]
    before: str
    after: str


def entries(text: str, exercise: str) -> Iterator[Entry]:
    """The mistakes that a text declares. Raises `ValueError` for one that cannot be read."""
    for part in re.split(r"^(?=\S)", text, flags=re.MULTILINE):
        if not part.strip():
            continue
        head, *lines = part.rstrip().split("\n")
        found = ENTRY.fullmatch(head.rstrip())
        if found is None:
            raise ValueError(f"{exercise}: an entry begins with a name, not with {head!r}")
        name, of, inline = found.groups()
        marked = inline.split(" ; ") if inline else []
        marked += [line[4:] for line in lines if line.startswith(MARKS)]
        cause = " ".join(line.strip() for line in lines if not line.startswith(MARKS))
        yield Entry(name, of, cause.strip(), *_changes(marked, f"{exercise}, {name}"))


def _changes(marked: Sequence[str], what: str) -> tuple[list[Edit], str, str]:
    """The edits, the code before and the code after that marked lines declare."""
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
                raise ValueError(f"{what}: {line!r} is no change")
            new, times = TIMES.fullmatch(new).groups()
            hunks.append(([f"{old} ×{times}" if times else old], [new]))
    return [_edit(*hunk) for hunk in hunks], "\n".join(before), "\n".join(after)


def _edit(old: Sequence[str], new: Sequence[str]) -> Edit:
    text, times = TIMES.fullmatch("\n".join(old)).groups()
    return Edit(text, "\n".join(new), int(times or 1))
