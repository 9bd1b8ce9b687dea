"""Whose code a frame runs: the answer's, the course's, a library's.

Code of the course is known by its identity and by its globals, which cannot be forged: the same
code with other globals is the answer's. What is not known goes by its file.

TRUST BOUNDARY. This runs in the same process as the answer, like `observe`.
"""

import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from importlib import import_module
from itertools import takewhile
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType

from autograder.student import course
from autograder.student.engine.arrays import Value
from autograder.student.engine.ready_made import CONCEPTS, computes
from autograder.student.engine.runs import BLOCKS


class Owner(Enum):
    """Whose code a frame runs."""

    ANSWER = 1
    LIBRARY = 2  # Python's, torch's, other packages', and this module's
    BLOCK = 3
    COURSE = 4  # an exercise's, of which some is passed to an answer
    PROBE = 5


@dataclass(frozen=True)
class CodeOrigin:
    """Whose some code is, and the name under which it counts, if any.

    Code of the course has the globals of its module, and `names` what its function or class names.
    The code is kept alive, so that its id is not reused.
    """

    owner: Owner
    label: str | None
    code: CodeType
    globals: dict[str, object] | None = None
    names: frozenset[str] = field(default=frozenset(), repr=False)


_KNOWN: dict[int, CodeOrigin] = {}  # by the code's id
_COLLECTED: set[str] = set()
_AGAIN: set[str] = set()  # of these, those that have been filled since
# The modules there are, listed before an answer runs: one that it makes up is not among them.
_EXERCISES = frozenset(course.modules_of_exercises())
_OURS = ("autograder.", f"{course.package()}.")
# how many modules there were at the last call, and the last one imported
_LATEST: tuple[int, str] | None = (0, "")
_LABELLED = re.compile(r"(torch/(?!autograd/).{0,200})\.py$")
# What makes a module, fills or moves it, or makes a mask for it, computes nothing.
_PLUMBING = re.compile(
    r"Module\._\w*call_impl|.*\.(?:__init__|_*reset_parameters|flatten_parameters|_apply"
    r"|_load_from_state_dict|__setstate__|generate_square_subsequent_mask)(?:\..*)?"
)


def _with_slashes(path: str) -> str:
    """A path as it is told and compared: Windows has backslashes and does not tell cases apart."""
    return path.replace("\\", "/").casefold() if "\\" in path else path


_FOLDERS = tuple(
    {
        _with_slashes(os.path.join(sysconfig.get_path(name), ""))
        for name in ("stdlib", "platstdlib", "purelib")
    }
)


def is_library(path: str) -> bool:
    """Whether a source file is one of Python's or of an installed package."""
    return _with_slashes(path).startswith(_FOLDERS)


def origin_of(frame: FrameType) -> CodeOrigin:
    """Whose code a frame runs."""
    code = frame.f_code
    found = _KNOWN.get(id(code))
    if found is None:
        found = _KNOWN[id(code)] = CodeOrigin(*_by_its_file(code), code)
    if found.globals is not None and frame.f_globals is not found.globals:
        return CodeOrigin(Owner.ANSWER, None, code)
    return found


def _by_its_file(code: CodeType) -> tuple[Owner, str | None]:
    path = code.co_filename
    if path.startswith(("<frozen", "<string_")) or is_library(path):
        found = _LABELLED.search(_with_slashes(path))
        if found is None or _PLUMBING.fullmatch(code.co_qualname) or path.startswith("<"):
            return Owner.LIBRARY, None
        label = f"{found[1].replace('/', '.')}.{code.co_qualname}"
        counts = label.startswith("torch.nn.") or any(computes(label.lower(), c) for c in CONCEPTS)
        return Owner.LIBRARY, label if counts else None
    return Owner.ANSWER, None


def is_own_doing(frame: FrameType, known: CodeOrigin, label: str) -> bool:
    """Whether what runs under a label below some code of the course is that code's own doing.

    Its function or class names what computes it; and it was not handed a function of somebody
    else's, which may be what ran.
    """
    if not known.names & _named_like(label):
        return False
    code = frame.f_code
    starred = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + starred]
    return not any(_is_foreign(frame.f_locals.get(name)) for name in given)


@lru_cache(maxsize=4096)
def _named_like(label: str) -> frozenset[str]:
    """The names, in lower case, by which code may call what runs under a label."""
    if label.startswith(f"{BLOCKS}."):
        return frozenset([label.lower().split(".")[2]])
    whole = [names for concept, names in CONCEPTS.items() if computes(label.lower(), concept)]
    parts = frozenset(label.lower().split(".")[-2:])
    return parts.union(*({name.rpartition(".")[2] for name in names} for names in whole))


def _is_foreign(value: Value) -> bool:
    """Whether a value can be called, or holds what can, and is not the course's."""
    if type(value) in (tuple, list):
        return any(map(_is_foreign, value))
    if type(value) is dict:
        return any(map(_is_foreign, value.values()))
    return callable(value) and not any(id(code) in _KNOWN for code in own_codes(value))


def own_codes(thing: Value) -> Iterator[CodeType]:
    """The code of a function, a method's function or a class, and of an object's class."""
    thing = thing.__func__ if type(thing) is MethodType else thing
    if not isinstance(thing, FunctionType | type):
        thing = type(thing)
    for code in codes_of(thing):
        known = _KNOWN.get(id(code))
        if known is not None and known.globals is not None:
            yield code


def register_course() -> None:
    """Register the code of the course's modules imported since the last call."""
    global _LATEST  # noqa: PLW0603
    try:
        latest = (len(sys.modules), next(reversed(sys.modules)))
    except RuntimeError:  # another thread is importing
        latest = None
    if latest is not None and latest == _LATEST and not _AGAIN:  # nothing new: the usual case
        return
    found = _imported_since(_LATEST) | _AGAIN
    _LATEST = latest
    _AGAIN.clear()
    for name in found:
        _COLLECTED.add(name)
        owner = _whose_module(name) if name.startswith(_OURS) else None
        module = sys.modules.get(name)
        if owner is not None and isinstance(module, ModuleType):
            _register(import_module(name), owner)  # waits while another thread imports it


def _imported_since(latest: tuple[int, str] | None) -> set[str]:
    """The modules that were not there at the last call. They come last, and only they are looked
    at, unless one of the others has gone: in a process that has been forked, to look at a name is
    to copy the page on which it lies."""
    number, last = latest or (0, "")
    with suppress(RuntimeError):  # another thread is importing
        names = [*takewhile(lambda name: name != last, reversed(sys.modules))]
        if len(names) + number == len(sys.modules):
            return {*names} - _COLLECTED
    return {*[*sys.modules]} - _COLLECTED  # copied at once, for the same reason


def register_again(name: str) -> None:
    """Have a module that has been filled, or filled anew, looked at again at the next call."""
    _AGAIN.add(name)


def _register(module: ModuleType, owner: Owner) -> None:
    ours = vars(module) if owner in (Owner.BLOCK, Owner.COURSE) else None
    own = [value for value in [*vars(module).values()] if _is_own(value, module)]
    for thing in own:
        names = frozenset(_all_names(thing, vars(module))) if ours else frozenset()
        for code in codes_of(thing):
            counts = owner is Owner.BLOCK and not _PLUMBING.fullmatch(code.co_qualname)
            label = f"{BLOCKS}.{code.co_qualname}" if counts else None
            _KNOWN[id(code)] = CodeOrigin(owner, label, code, ours, names)


def _all_names(thing: Value, others: dict[str, object]) -> set[str]:
    """What a thing of a module and what it names there name, in lower case."""
    found: set[str] = set()
    todo, done = [thing], set[int]()
    while todo:
        thing = todo.pop()
        if id(thing) in done:
            continue
        done.add(id(thing))
        names = {name for code in codes_of(thing) for name in code.co_names}
        found |= names
        used = [others[name] for name in names & others.keys()]
        todo += [one for one in used if isinstance(one, FunctionType | type)]
        todo += thing.__bases__ if isinstance(thing, type) else ()
        todo = [one for one in todo if getattr(one, "__module__", "").startswith(_OURS)]
    return {name.lower() for name in found}


def _whose_module(name: str) -> Owner:
    if name == BLOCKS or name.startswith(f"{BLOCKS}."):
        return Owner.BLOCK
    if name == "autograder.student.engine.probe":
        return Owner.PROBE
    return Owner.COURSE if name in _EXERCISES else Owner.LIBRARY


def codes_of(thing: Value) -> Iterator[CodeType]:
    """The code of a function, or of a class's own methods, with all that is nested in it."""
    todo: list[Value] = [thing]
    while todo:
        thing = todo.pop()
        if isinstance(thing, type):
            todo += list(vars(thing).values())
        elif isinstance(thing, staticmethod | classmethod):
            todo.append(thing.__func__)
        elif isinstance(thing, property):
            todo += [thing.fget, thing.fset]
        elif isinstance(thing, CodeType):
            yield thing
            todo += thing.co_consts
        elif thing is not None:  # a function, possibly decorated
            todo += [getattr(thing, "__code__", None), getattr(thing, "__wrapped__", None)]


def _is_own(thing: Value, module: ModuleType) -> bool:
    return getattr(thing, "__module__", None) == module.__name__


def line_in_answer(frame: FrameType) -> str:
    """Where in the answer's code a frame is; empty if it is not in the answer's code."""
    import linecache

    if origin_of(frame).owner is not Owner.ANSWER:
        return ""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()[:80]
    return f"line {frame.f_lineno}, in {frame.f_code.co_name}" + (f": {line}" if line else "")
