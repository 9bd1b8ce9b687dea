"""Observes which torch operations, and which of the course's blocks, an answer runs.

What counts is what runs, not how it is written: whatever name, string, pickle or file a call came
from, it passes through torch's own hooks. A function mode sees calls of torch's public and private
functions by name; a dispatch mode sees the operations underneath, even where compiled code or the
autograd engine calls them. The stack shows whose call it is: an operation that torch's own modules
or the course's blocks run counts as theirs, under the name that the answer called.

TRUST BOUNDARY. This runs in the same process as the answer, which can remove the hooks or hide from
them if it tries. What is seen withholds marks until a person has reviewed the answer; what is not
seen proves nothing. No mark is earned here.
"""

import os
import re
import sys
import sysconfig
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from fnmatch import translate
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import Any

MOST = 20  # names that one call of an answer may add to its record
TAKEN_OFF = "torch.overrides"  # the name noted when an answer has removed the hooks
BACKWARD = "torch.autograd.backward"  # whatever starts the autograd engine
_BLOCKS = "autograder.blocks"
_PLUMBING = re.compile(r"Module\._\w*call_impl|.*\.(?:__init__|_*reset_parameters)(?:\..*)?")


class _Whose(Enum):
    """Whose code a frame runs."""

    ANSWER = 1
    LIBRARY = 2  # Python's, torch's, other packages', and this module's
    BLOCK = 3
    COURSE = 4  # what an exercise passes to an answer
    PROBE = 5


class Observer:
    """Collects the operations that match some patterns, each with the place that first ran it.

    The patterns are dotted names with `*` as a wildcard; one that begins with `!` excludes what the
    others match: `("torch.*layer_norm*", "autograder.blocks.*", "!autograder.blocks.softmax")`.
    """

    def __init__(self, patterns: Sequence[str]):
        self.patterns = tuple(patterns)
        self.seen: dict[str, str] = {}
        below = any(pattern.startswith("torch") for pattern in self.patterns)
        there = self.patterns and "torch" in sys.modules  # without torch, nothing of it runs
        self.hooks = _hooks(below) if there else ()
        _know_the_course()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Observe what runs inside the block, in this thread and in those started from it."""
        if not self.hooks:
            yield
            return
        before, _Current.observer = _Current.observer, self
        threads = threading.getprofile()
        accompany_threads()
        heights = [hook.put_on() for hook in self.hooks]
        try:
            yield
        finally:
            for hook, height in zip(self.hooks[::-1], heights[::-1], strict=True):
                if not hook.take_off(height):
                    self.note(TAKEN_OFF, None)
            threading.setprofile(threads)
            _Current.observer = before

    def note(self, name: str, frame: FrameType | None) -> None:
        """Record a name, with the place where it was first seen."""
        if name not in self.seen and len(self.seen) < MOST:
            self.seen[name] = _place(frame) if frame is not None else ""

    def saw(self, name: str) -> None:
        """Note an operation and, from the stack, who called it."""
        frame: FrameType | None = sys._getframe(2)
        inner, theirs, block = [name], False, None
        while frame is not None:
            whose, label = _whose(frame.f_code)
            if whose is _Whose.BLOCK:
                theirs, block = True, label or block
            elif whose is _Whose.COURSE:
                return
            elif whose is not _Whose.LIBRARY:
                break
            elif label and not theirs:
                inner.append(label)
            frame = frame.f_back
        for label in [block] if theirs else inner:
            if label and wanted(label, self.patterns):
                self.note(label, frame)


class _Current:
    """The observer of the current call, for every thread."""

    observer: Observer | None = None


def forbidden(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether an operation is forbidden; removing the hooks always is."""
    return name == TAKEN_OFF or wanted(name, patterns)


@lru_cache(maxsize=4096)
def wanted(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name matches a pattern and no exception."""
    yes, no = _compiled(patterns)
    return bool(yes.fullmatch(name)) and not no.fullmatch(name)


@lru_cache(maxsize=256)
def _compiled(patterns: tuple[str, ...]) -> tuple[re.Pattern, re.Pattern]:
    yes = [translate(pattern) for pattern in patterns if pattern[0] != "!"]
    no = [translate(pattern[1:]) for pattern in patterns if pattern[0] == "!"]
    return re.compile("|".join(yes) or r"(?!)"), re.compile("|".join(no) or r"(?!)")


# --- torch's hooks ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Hook:
    """A torch mode, with the C functions for the stack that it belongs to."""

    mode: Any
    depth: Callable[[], int]
    at: Callable[[int], Any]
    push: Callable[[Any], None]
    pop: Callable[[], None]

    def put_on(self) -> int:
        self.mode.__enter__()
        return self.depth()

    def take_off(self, height: int) -> bool:
        """Remove the mode and all above it; return whether it was still where it had been put."""
        there = self.depth() == height and self.at(height - 1) is self.mode
        if there:
            self.mode.__exit__(None, None, None)
        while self.depth() >= height:
            self.pop()
        return there


@lru_cache(maxsize=2)
def _hooks(below: bool) -> tuple[_Hook, ...]:
    """The hooks, outermost first.

    Watching the operations underneath costs several times as much as watching the calls, so it is
    done only where torch's operations matter.
    """
    from torch import _C
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            name = _name(func)
            if name and _Current.observer is not None:
                _Current.observer.saw(name)
            return func(*args, **(kwargs or {}))

    class Kernels(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # skipping would import torch's compiler, which takes a second

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            observer = _Current.observer
            if observer is not None:
                name = _name(func)
                if wanted(name, observer.patterns):
                    observer.saw(name)
                if node() is not None and wanted(BACKWARD, observer.patterns):
                    observer.saw(BACKWARD)
            try:
                return func(*args, **(kwargs or {}))
            except RuntimeError:
                tensors = _with_tensors(func, args)  # as TorchScript had them
                if tensors is None:
                    raise
                return func(*tensors, **(kwargs or {}))

    node = _C._current_autograd_node
    hooks = [
        _Hook(
            Functions(),
            _C._len_torch_function_stack,
            _C._get_function_stack_at,
            _C._push_on_torch_function_stack,
            _C._pop_torch_function_stack,
        )
    ]
    if below:
        hooks.append(
            _Hook(
                Kernels(),
                _C._len_torch_dispatch_stack,
                _C._get_dispatch_stack_at,
                _C._push_on_torch_dispatch_stack,
                partial(_C._pop_torch_dispatch_stack, None),
            )
        )
    return tuple(hooks)


def _with_tensors(func: Any, args: tuple) -> tuple | None:
    """The arguments with numbers turned into the tensors that the schema expects; None if none are.

    The constants of a traced function reach a dispatch mode as numbers, which torch then rejects.
    """
    import torch

    kinds = {float: torch.float64, int: torch.int64, bool: torch.bool}
    made = tuple(
        torch.scalar_tensor(arg, dtype=kinds[type(arg)])
        if type(arg) in kinds and str(expected.type) == "Tensor"
        else arg
        for arg, expected in zip(args, func._schema.arguments, strict=False)
    )
    same = all(one is other for one, other in zip(made, args, strict=False))
    return None if same else made


def accompany_threads() -> None:
    """Install the hooks in every thread started from now on; they idle between calls."""
    threading.setprofile(_join_in)


def _join_in(frame: FrameType, event: str, arg: Any) -> None:
    """Runs first in such a thread."""
    sys.setprofile(None)
    for hook in _hooks(True) if "torch" in sys.modules else ():
        hook.push(hook.mode)


_NAMES: dict[Any, str] = {}


def _name(func: Any) -> str:
    """The dotted name of the function a hook was called for; empty for an attribute access."""
    try:
        return _NAMES[func]
    except KeyError:
        _NAMES[func] = name = _name_once(func)
        return name
    except TypeError:  # it cannot be hashed
        return _name_once(func)


def _name_once(func: Any) -> str:
    from torch._ops import OpOverload, OpOverloadPacket
    from torch.overrides import resolve_name

    if getattr(func, "__name__", "") in ("__get__", "__set__"):
        return ""
    if isinstance(func, OpOverload):
        return f"torch.ops.{func.namespace}.{func._schema.name.partition('::')[2]}"
    if isinstance(func, OpOverloadPacket):
        return f"torch.ops.{func}"
    known = resolve_name(func)
    if known:
        return known
    module = getattr(func, "__module__", None) or "torch"
    return f"{module}.{getattr(func, '__qualname__', getattr(func, '__name__', 'unnamed'))}"


# --- whose code it is ---------------------------------------------------------------------------

# By identity, which cannot be forged. The code is kept alive, so that its id is not reused.
_KNOWN: dict[int, tuple[_Whose, str | None, CodeType]] = {}
_COLLECTED: set[str] = set()
# The modules there are, listed before an answer runs: one that it makes up is not among them.
_ROOT = Path(__file__).resolve().parents[2]
_EXERCISES = frozenset(
    ".".join(path.relative_to(_ROOT).with_suffix("").parts)
    for path in (_ROOT / "autograder" / "exercises").rglob("*.py")
)
_LATEST = (0, "")  # how many modules there were at the last call, and the last one imported
_READY_MADE = re.compile(r"(torch/(?:nn|_refs|_decomp|onnx/ops)/.{0,200})\.py$")
_FOLDERS = tuple(
    {os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib", "purelib")}
)


def _whose(code: CodeType) -> tuple[_Whose, str | None]:
    """Whose code this is, and the name under which it counts, if any."""
    found = _KNOWN.get(id(code))
    if found is None:
        found = _KNOWN[id(code)] = (*_by_its_file(code), code)
    return found[0], found[1]


def _by_its_file(code: CodeType) -> tuple[_Whose, str | None]:
    path = code.co_filename
    if path.startswith(("<frozen", "<string_") if path.startswith("<") else _FOLDERS):
        found = _READY_MADE.search(path)
        if found is None or _PLUMBING.fullmatch(code.co_qualname) or path.startswith("<"):
            return _Whose.LIBRARY, None
        return _Whose.LIBRARY, f"{found[1].replace(os.sep, '.')}.{code.co_qualname}"
    return _Whose.ANSWER, None


def _know_the_course() -> None:
    """Register the code of the course's modules imported since the last call."""
    global _LATEST  # noqa: PLW0603
    try:
        latest = (len(sys.modules), next(reversed(sys.modules)))
    except RuntimeError:  # another thread is importing
        latest = None
    if latest is not None and latest == _LATEST:  # nothing was imported: the usual case
        return
    _LATEST = latest
    there = [*sys.modules]  # copied at once: other threads may be importing, here as below
    for name in {*there} - _COLLECTED:
        _COLLECTED.add(name)
        if name.startswith("autograder.") and isinstance(sys.modules.get(name), ModuleType):
            register(import_module(name))  # waits while another thread imports it


def register(module: ModuleType) -> None:
    """Know the code of a module of the course, as it is now."""
    whose = _whose_module(module.__name__)
    for code in _codes_of(module):
        counts = whose is _Whose.BLOCK and not _PLUMBING.fullmatch(code.co_qualname)
        label = f"{_BLOCKS}.{code.co_qualname}" if counts else None
        _KNOWN.setdefault(id(code), (whose, label, code))


def _whose_module(name: str) -> _Whose:
    if name == _BLOCKS or name.startswith(f"{_BLOCKS}."):
        return _Whose.BLOCK
    if name == "autograder.engine.probe":
        return _Whose.PROBE
    return _Whose.COURSE if name in _EXERCISES else _Whose.LIBRARY


def _codes_of(module: ModuleType) -> Iterator[CodeType]:
    """The code of a module's functions and methods, nested ones included."""
    todo: list[Any] = [v for v in [*vars(module).values()] if _is_own(v, module)]
    while todo:
        thing = todo.pop()
        if isinstance(thing, type):
            todo += list(vars(thing).values())
        elif isinstance(thing, (staticmethod, classmethod)):
            todo.append(thing.__func__)
        elif isinstance(thing, property):
            todo += [thing.fget, thing.fset]
        elif isinstance(thing, CodeType):
            yield thing
            todo += thing.co_consts
        elif thing is not None:  # a function, possibly decorated
            todo += [getattr(thing, "__code__", None), getattr(thing, "__wrapped__", None)]


def _is_own(thing: Any, module: ModuleType) -> bool:
    return getattr(thing, "__module__", None) == module.__name__


def _place(frame: FrameType) -> str:
    """Where in the answer's code a frame is; empty if it is not in the answer's code."""
    import linecache

    if _whose(frame.f_code)[0] is not _Whose.ANSWER:
        return ""
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()[:80]
    return f"line {frame.f_lineno}, in {frame.f_code.co_name}" + (f": {line}" if line else "")
