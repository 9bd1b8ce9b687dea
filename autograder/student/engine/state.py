"""What a call must leave alone: global state, modules' modes, the memory of its arguments.

TRUST BOUNDARY. This runs in the same process as the answer, like `probe`, and so can be deceived.
All functions that it reads with are taken before an answer runs, and are C's own where possible,
so that rebinding a name afterwards changes nothing here.
"""

import _random
import ctypes
import importlib
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.random import mtrand

from autograder.student.engine.arrays import Value, bytes_of

if TYPE_CHECKING:
    from torch import Size, Tensor, dtype, nn

    Form = tuple[dtype, Size]

MEMORY = "the memory of an argument"
MODES = "a module's train/eval mode"
NUMBERS = "the parameters or buffers of a module"
FROZEN = "which parameters of a module are trained"
SLOPES = "the gradients that a module's parameters hold"
FORM = "the parts, buffers or hooks of a module"
STATE = (  # what `GlobalState` may find changed, besides an argument's memory
    "NumPy's random state",
    "Python's random state",
    "NumPy's error handling",
    "torch's random state",
    "torch's default dtype",
    "torch's grad mode",
    MODES,
    NUMBERS,
    FROZEN,
    SLOPES,
    FORM,
)

Reader = Callable[[], object]
_WORDS = 624  # of a Mersenne Twister, which makes as many numbers before it needs new ones


def torch_if_imported() -> ModuleType | None:
    """torch, if it has been imported; waits while another thread imports it."""
    return None if sys.modules.get("torch") is None else importlib.import_module("torch")


def _plain(part: object) -> object:
    return part.tobytes() if isinstance(part, np.ndarray) else part


def _numpys_generator() -> Reader:
    """Reads the state of NumPy's global generator, from its own memory if that is known.

    `np.random.get_state` does the same element by element and takes thirty times as long.
    """
    generator = mtrand.get_bit_generator()
    if not isinstance(generator, np.random.MT19937):
        return lambda: [_plain(part) for part in np.random.get_state()]
    address, size = generator.ctypes.state_address, 4 * _WORDS + 4  # the words, the place in them
    read, current = ctypes.string_at, mtrand.get_bit_generator
    return lambda: (current() is generator, read(address, size))


def _pythons_generator() -> Reader:
    """The same for Python's, whose words follow its place in them and the head of any object."""
    read, generator = ctypes.string_at, random._inst
    address, size = id(generator) + object.__basicsize__, 4 * _WORDS
    known = np.array(_random.Random.getstate(generator), np.uint32).tobytes()
    if read(address + 4, size) + read(address, 4) != known:  # not every Python has it there
        state = _random.Random.getstate
        return lambda: np.array(state(generator), np.uint32).tobytes()
    return lambda: read(address + 4, size) + read(address, 4)


# --- drawing from a generator leaves it where its stream goes on; seeding puts it elsewhere ------

_TURNS = 500  # how often it may have made new ones: 300,000 draws
_TWISTER, _READ = np.random.MT19937, ctypes.string_at


def _numpy_drew(before: tuple | list, now: tuple | list) -> bool:
    same = isinstance(before, tuple) and before[0] is now[0] is True
    return same and _goes_on(before[1], now[1])


def _goes_on(before: bytes, now: bytes) -> bool:
    """Whether draws alone lead from one state to the other: the words, and the place in them."""
    words = [np.frombuffer(state, np.uint32) for state in (before, now)]
    (own, place), (wanted, later) = ((w[:_WORDS], int(w[_WORDS])) for w in words)
    if (own == wanted).all():
        return later >= place
    twister, wanted = _TWISTER(0), wanted.tobytes()
    twister.state = {"bit_generator": "MT19937", "state": {"key": own, "pos": _WORDS}}
    address = twister.ctypes.state_address
    for _ in range(_TURNS):
        twister.random_raw(_WORDS, output=False)
        if _READ(address, 4 * _WORDS) == wanted:
            return True
    return False


def _torch_drew(before: bytes, now: bytes) -> bool:
    return before[:8] == now[:8]  # its seed


_DREW: dict[str, Callable[..., bool]] = {
    "NumPy's random state": _numpy_drew,
    "Python's random state": _goes_on,
    "torch's random state": _torch_drew,
}


def _left_alone(name: str, before: object, now: object) -> bool:
    """Whether a part of the global state is as before, or a generator has only been drawn from."""
    return now == before or (name in _DREW and _DREW[name](before, now))


def _numpys_errors() -> Reader:
    try:
        from numpy._core._multiarray_umath import _get_extobj_dict as read
    except ImportError:  # not every NumPy has it
        return np.geterr
    return lambda: {kind: how for kind, how in read().items() if kind != "call"}


class _Torchs(NamedTuple):
    """Readers of torch's state; the class of all modules; functions to view a tensor's memory and
    to write to it; where a module keeps its parts and hooks; what keeps others' hooks away."""

    generator: Reader
    default_dtype: Reader
    grad_mode: Reader
    module: type["nn.Module"]
    view: Callable[[Value], "Tensor | None"]
    write: Callable[["Tensor", "Tensor"], None]
    needs_gradient: Callable[["Tensor"], bool]
    slope: Callable[["Tensor"], "Tensor | None"]
    form: Callable[["Tensor"], "Form"]
    parts: tuple[str, ...]
    without_hooks: Callable[[], AbstractContextManager[None]]


def _of_torch() -> _Torchs | None:
    torch = torch_if_imported()
    if torch is None:
        return None
    core, read = torch._C, torch._C.Generator.get_state
    generator, tensor = torch.default_generator, torch.Tensor
    without_hooks = core.DisableTorchFunction

    detach, copy = core.TensorBase.detach, core.TensorBase.copy_
    pretends = core.TensorBase.is_meta.__get__  # it has no memory, and a view of it costs imports

    def numbers() -> bytes | None:
        return bytes_of(read(generator))

    def view(value: Value) -> "Tensor | None":
        if not isinstance(value, tensor):
            return None
        with without_hooks():
            return None if pretends(value) else detach(value)

    def write(value: "Tensor", numbers: "Tensor") -> None:
        with without_hooks():
            copy(detach(value), numbers)

    # C's own readers, past the hooks: no code of an answer can run in them.
    base = core.TensorBase
    is_trained, gradient = base.requires_grad.__get__, base.grad.__get__
    dtype_of, shape_of = base.dtype.__get__, base.shape.__get__

    def needs_gradient(value: "Tensor") -> bool:
        with without_hooks():
            return is_trained(value)

    def slope(value: "Tensor") -> "Tensor | None":
        with without_hooks():
            return gradient(value)

    def form(value: "Tensor") -> "Form":
        with without_hooks():
            return dtype_of(value), shape_of(value)

    return _Torchs(
        numbers,
        torch.get_default_dtype,
        core.is_grad_enabled,
        torch.nn.Module,
        view,
        write,
        needs_gradient,
        slope,
        form,
        tuple(n for n, kept in vars(torch.nn.Module()).items() if isinstance(kept, dict)),
        without_hooks,
    )


# Taken now, before an answer can replace them. For torch, the sandbox takes them by making a
# `GlobalState` as soon as torch is imported.
_READERS: dict[str, Reader] = {
    "NumPy's random state": _numpys_generator(),
    "Python's random state": _pythons_generator(),
    "NumPy's error handling": _numpys_errors(),
}
_TORCHS = _of_torch()
_ATTRIBUTES, _VIEW = object.__getattribute__, np.ndarray.view


def _torchs() -> _Torchs | None:
    """The same for torch, if it was imported later; once found, they are kept."""
    global _TORCHS  # noqa: PLW0603
    _TORCHS = _TORCHS or _of_torch()
    return _TORCHS


class GlobalState:
    """The state that calls must leave alone, as it was when this was made or told to watch."""

    def __init__(self) -> None:
        self.before = self.look()
        self.modes: list[tuple[nn.Module, Value]] = []
        self.modules: list[tuple[nn.Module, dict[str, object]]] = []
        self.memory: list[tuple[np.ndarray | Tensor | None, bytes]] = []
        self.noted: set[str] = set()

    @staticmethod
    def look() -> dict[str, object]:
        """The global state, by what a message calls it."""
        state = {name: read() for name, read in _READERS.items()}
        torch = _torchs()
        if torch is not None:
            state["torch's random state"] = torch.generator()
            state["torch's default dtype"] = torch.default_dtype()
            state["torch's grad mode"] = torch.grad_mode()
        return state

    def watch_modules(self, *objects: Value) -> None:
        """Remember what the modules among the objects, which are the caller's, hold."""
        torch = _torchs()
        if torch is not None:
            ours = [thing for thing in objects if isinstance(thing, torch.module)]
            self.modules += [(part, own_state(part)) for thing in ours for part in parts_of(thing)]

    def note_modules(self) -> None:
        """Note what has changed in the modules watched, and stop watching them."""
        self.noted |= self._changed_in_modules()
        self.modules = []

    def note_memory(self) -> None:
        """Note whether the memory watched has changed, and stop watching it."""
        if self._changed_in_memory():
            self.noted.add(MEMORY)
        self.memory = []

    def _changed_in_memory(self) -> bool:
        return any(bytes_of(view) != was for view, was in self.memory)

    def _changed_in_modules(self) -> set[str]:
        pairs = [(own_state(part), was) for part, was in self.modules]
        return {what for now, was in pairs for what in was if now[what] != was[what]}

    def watch(self, *objects: Value) -> None:
        """Remember the mode of each module among the objects, and each array's memory.

        After writing to the caller's memory, an answer can give the array other memory that holds
        the old numbers: so the caller's is read through a view of our own.
        """
        torch = _torchs()
        for thing in objects:
            if torch is not None and isinstance(thing, torch.module):
                self.modes += [(part, _training(part)) for part in parts_of(thing)]
            view = self._view(thing)
            numbers = None if view is None else bytes_of(view)
            if numbers is not None:
                self.memory.append((view, numbers))

    @staticmethod
    def _view(thing: Value) -> "np.ndarray | Tensor | None":
        """A view that keeps the current memory of an array or a tensor; None for anything else."""
        if isinstance(thing, np.ndarray):
            return _VIEW(thing, np.ndarray)
        torch = _torchs()
        return None if torch is None else torch.view(thing)

    def modes_now(self) -> list[Value]:
        """The modes of the modules that are watched."""
        return [_training(part) for part, _ in self.modes]

    def differences(self) -> tuple[str, ...]:
        """The names of what has changed."""
        now = self.look()
        changed = [n for n, was in self.before.items() if not _left_alone(n, was, now[n])]
        in_modules = self.noted | self._changed_in_modules()
        if any(_training(part) != was for part, was in self.modes):
            in_modules.add(MODES)
        changed += [what for what in STATE if what in in_modules]
        if MEMORY in self.noted or self._changed_in_memory():
            changed.append(MEMORY)
        return tuple(changed)


def _training(module: "nn.Module") -> Value:
    """A module's mode, whatever its class has done with the name."""
    return _ATTRIBUTES(module, "__dict__").get("training")


def parts_of(module: "nn.Module") -> Iterator["nn.Module"]:
    """A module and all its submodules, each once, whatever its class has done with `modules`."""
    left, seen = [module], set()
    while left:
        part = left.pop()
        if part is not None and id(part) not in seen:
            seen.add(id(part))
            left += _ATTRIBUTES(part, "__dict__").get("_modules", {}).values()
            yield part


def own_state(module: "nn.Module") -> dict[str, object]:
    """What a module itself holds, without its parts, in a form that can be compared."""
    own, torch = _ATTRIBUTES(module, "__dict__"), _torchs()
    assert torch is not None  # there is a module
    parameters = {n: p for n, p in own.get("_parameters", {}).items() if p is not None}
    buffers = {n: b for n, b in own.get("_buffers", {}).items() if b is not None}
    return {
        MODES: _training(module),
        NUMBERS: [(n, id(t), bytes_of(t)) for n, t in (parameters | buffers).items()],
        FROZEN: [(n, torch.needs_gradient(p)) for n, p in parameters.items()],
        SLOPES: [(n, bytes_of(torch.slope(p))) for n, p in parameters.items()],
        FORM: [(n, [*own[n]]) for n in torch.parts if isinstance(own.get(n), dict)],
    }


def parameters_of(module: "nn.Module", prefix: str = "") -> Iterator[tuple[str, "Tensor"]]:
    """Names and parameters of a module and all its parts, whatever their classes have done with
    `named_parameters`."""
    held = _ATTRIBUTES(module, "__dict__")
    yield from ((prefix + name, p) for name, p in held["_parameters"].items() if p is not None)
    for name, part in held["_modules"].items():
        yield from parameters_of(part, f"{prefix}{name}.")


def write(tensor: "Tensor", numbers: "Tensor") -> None:
    """Write other numbers to a tensor's memory, even if `copy_` has been replaced."""
    torch = _torchs()
    assert torch is not None
    torch.write(tensor, numbers)


def without_hooks() -> AbstractContextManager[None]:
    """While nobody's hooks see what torch does: for what is the course's own doing."""
    torch = _torchs()
    assert torch is not None
    return torch.without_hooks()


def needs_gradient(tensor: "Tensor") -> bool:
    """Whether gradients reach a tensor, even if `requires_grad` has been replaced."""
    torch = _torchs()
    assert torch is not None
    return torch.needs_gradient(tensor)


def form_of(tensor: "Tensor") -> "Form":
    """A tensor's dtype and shape, whatever has been made of these attributes."""
    torch = _torchs()
    assert torch is not None
    return torch.form(tensor)
