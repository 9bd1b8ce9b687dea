"""A copy of a function that has kept nothing: what its calls have filled is empty again.

It tells whether a wrong call is wrong by itself. A copy that lacks what is no memory, such as a
table that its author wrote out, goes wrong as well, so that the calls before are not blamed.

TRUST BOUNDARY. This runs in the same process as the answer.
"""

import dis
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from types import CellType, CodeType, FunctionType

from autograder.student import course
from autograder.student.engine.arrays import Value
from autograder.student.engine.code_origin import is_library

_CONTAINERS = dict | list | set
_MOST = 40  # functions


def fresh_copy(function: Value) -> Value:
    """The copy; anything but a function of Python is given back as it is."""
    return _Copies().copy_of(function)


class _Copies:
    def __init__(self) -> None:
        self.made: dict[int, Value] = {}
        self.shadows: dict[int, dict[str, Value]] = {}  # the copied namespaces, by the originals'

    def copy_of(self, thing: Value) -> Value:
        """What takes the place of a function, of a container, or of anything else."""
        if id(thing) in self.made:
            return self.made[id(thing)]
        if isinstance(thing, _CONTAINERS):
            self.made[id(thing)] = copy(thing)
            self.made[id(thing)].clear()
        elif hasattr(thing, "cache_clear") and hasattr(thing, "__wrapped__"):
            self.made[id(thing)] = self.copy_of(thing.__wrapped__)
        elif isinstance(thing, FunctionType) and _is_own(thing) and len(self.made) < _MOST:
            self.make(thing)
        return self.made.get(id(thing), thing)

    def make(self, function: FunctionType) -> None:
        code, cells = function.__code__, function.__closure__ or ()
        new = [CellType() for _ in cells]
        names = self.shadows.setdefault(id(function.__globals__), {**function.__globals__})
        made = FunctionType(code, names, function.__name__, None, tuple(new))
        self.made[id(function)] = made
        made.__defaults__ = function.__defaults__ and tuple(
            map(self.copy_of, function.__defaults__)
        )
        kept = function.__kwdefaults__
        made.__kwdefaults__ = kept and {name: self.copy_of(value) for name, value in kept.items()}
        made.__dict__.update({n: self.copy_of(v) for n, v in vars(function).items()})
        for old, cell in zip(cells, new, strict=True):
            with suppress(ValueError):  # it is empty
                cell.cell_contents = self.copy_of(old.cell_contents)
        for name in _names(code):
            if name in names:
                names[name] = self.copy_of(function.__globals__[name])
        names.update(dict.fromkeys(_names_kept(code)))


def _is_own(function: FunctionType) -> bool:
    file = function.__code__.co_filename
    return not (course.is_ours(file) or is_library(file))


def _names(code: CodeType) -> Iterator[str]:
    for part in _parts(code):
        yield from part.co_names


def _names_kept(code: CodeType) -> Iterator[str]:
    """The names of the module that code assigns to: what a call leaves there."""
    for part in _parts(code):
        yield from (i.argval for i in dis.get_instructions(part) if i.opname == "STORE_GLOBAL")


def _parts(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
