"""Makes the mutants of a function or class: every standard change at every place of its text."""

import ast
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from autograder.bank.change import plain_source
from benchmarks.mutants.operators import OPERATORS
from benchmarks.mutants.places import Place


class Mutant(NamedTuple):
    """A text with one change: the operator's name, the lines before and after, the whole text.

    `number` tells apart those whose lines read the same.
    """

    operator: str
    before: str
    after: str
    source: str
    number: int = 1

    @property
    def name(self) -> str:
        """The name by which it is listed: `old line → new line`."""
        more = f" ({self.number})" if self.number > 1 else ""
        return f"{self.before or 'nothing'} → {self.after or 'nothing'}{more}"


def mutants_of(answer: Callable[..., Any]) -> list[Mutant]:
    """The mutants of a function or class, in the order of its lines, each text once."""
    source, types = plain_source(answer), str(getattr(answer, "__annotations__", ""))
    return mutants(source, "numpy" if "np." in source or "numpy" in types else "torch")


def normal(source: str) -> str:
    """A text as it is written by `ast.unparse`: each simple statement on one line."""
    return ast.unparse(ast.parse(source))


def mutants(source: str, library: str) -> list[Mutant]:
    """The mutants of the text of a function or class, which works with "torch" or "numpy"."""
    source = normal(source)
    tree = ast.parse(source)
    seen, times, found = {source}, Counter[tuple[str, str]](), []
    for place in _places(tree, library):
        for operator in OPERATORS:
            for new in operator(place):
                text = _with(tree, place, new)
                if text is None or text in seen:
                    continue
                seen.add(text)
                lines = _difference(source, text)
                times[lines] += 1
                name = operator.__name__.replace("_", " ")
                found.append(Mutant(name, *lines, text, times[lines]))
    for text in _with_defaults(tree):
        if text not in seen:
            seen.add(text)
            found.append(Mutant("argument ignored", *_difference(source, text), text))
    return found


def _places(tree: ast.AST, library: str) -> Iterator[Place]:
    """Every place of a tree, in the order of the text."""
    owned: Mapping[str, set[str]] = defaultdict(set)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owned[ast.unparse(node.value)].add(node.attr)
    fixed = {owner: frozenset(names) for owner, names in owned.items()}

    def visit(node: ast.AST, names: Sequence[Sequence[str]]) -> Iterator[Place]:
        if isinstance(node, ast.FunctionDef):
            names = [*names, *_groups(node)]
        for field, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield Place(child, node, field, names, fixed, library)
                    if not isinstance(child, ast.JoinedStr):
                        yield from visit(child, names)

    yield from visit(tree, [])


def _groups(function: ast.FunctionDef) -> Iterator[list[str]]:
    """The parameters of a function; names that it assigns together; all that it assigns at once."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    yield [argument.arg for argument in every if argument.arg != "self"]
    for node in ast.walk(function):
        if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store):
            yield [name.id for name in node.elts if isinstance(name, ast.Name)]


def _with(tree: ast.AST, place: Place, new: ast.AST | list[ast.stmt]) -> str | None:
    """The text of a tree with something else in a place; None if that makes no sense."""
    value = getattr(place.parent, place.field)
    if isinstance(new, list):
        if not isinstance(value, list):
            return None
        at = next(i for i, node in enumerate(value) if node is place.node)
        changed = value[:at] + new + value[at + 1 :]
        changed = changed or ([ast.Pass()] if place.field == "body" else [])
    elif isinstance(value, list):
        changed = [new if node is place.node else node for node in value]
    else:
        changed = new
    setattr(place.parent, place.field, changed)
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        return normal(text)
    except (SyntaxError, ValueError, AttributeError, TypeError):
        return None
    finally:
        setattr(place.parent, place.field, value)


def _with_defaults(tree: ast.AST) -> Iterator[str]:
    """The text with each optional argument set to its default."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            arguments = function.args
            given = arguments.args[len(arguments.args) - len(arguments.defaults) :]
            for argument, default in zip(given, arguments.defaults, strict=True):
                ignored = ast.Assign([ast.Name(argument.arg, ast.Store())], default)
                function.body.insert(0, ignored)
                yield ast.unparse(ast.fix_missing_locations(tree))
                del function.body[0]


def _difference(source: str, changed: str) -> tuple[str, str]:
    """The lines in which two texts differ, each without its indentation, on one line."""
    old, new = ([line.strip() for line in text.split("\n")] for text in (source, changed))

    def same(pair: tuple[str, str]) -> bool:
        return pair[0] == pair[1]

    head = len([*takewhile(same, zip(old, new, strict=False))])
    rest = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
    tail = len([*takewhile(same, rest)])
    return tuple("; ".join(lines[head : len(lines) - tail]) for lines in (old, new))
