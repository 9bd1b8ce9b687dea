"""Observes which torch operations, and which of the course's blocks, an answer runs.

What counts is what runs, not how it is written: whatever name, string, pickle or file a call came
from, it passes through torch's own hooks. A function mode sees calls of torch's public and private
functions by name; a dispatch mode sees the operations underneath, even where compiled code or the
autograd engine calls them; both are on again inside what an answer implements itself, as an
operator or a class of tensors. The stack shows whose call it is: an operation that torch's own
modules or the course's blocks run counts as theirs, under the name that the answer called. In a
sandbox, blocks say themselves that they are entered: where they alone matter, torch has no hooks.

TRUST BOUNDARY. This runs in the same process as the answer, which can remove the hooks or hide from
them if it tries. What is seen withholds marks until a person has reviewed the answer; what is not
seen proves nothing. No mark is earned here.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from sys import _getframe  # taken now, before an answer can replace it
from types import CodeType, FrameType

from autograder.student.engine.arrays import Value
from autograder.student.engine.code_origin import (
    BLOCKS,
    CodeOrigin,
    Owner,
    is_own_doing,
    line_in_answer,
    origin_of,
    own_codes,
    register_course,
)
from autograder.student.engine.ready_made import TAKEN_OFF, is_backward_of, is_match

_LIBRARY, _BLOCK, _COURSE, _PROBE = Owner.LIBRARY, Owner.BLOCK, Owner.COURSE, Owner.PROBE
MOST = 20  # names that one call of an answer may add to its record
ENTERED = "_entered"  # what a block's functions call first in a sandbox: `note_block`
BACKWARD = "torch.autograd.backward"  # whatever starts the autograd engine


class Observer:
    """Collects the operations that match some patterns, each with the place that first ran it.

    A pattern is a concept of `ready_made`, or a dotted name with `*` as a wildcard; one that begins
    with `!` excludes what the others match: `("normalisation", "blocks.*", "!blocks.softmax")`.
    """

    def __init__(self, patterns: Sequence[str]):
        self.patterns = tuple(patterns)
        self.seen: dict[str, str] = {}
        self.differentiates = False  # the probe takes gradients
        self.met = False  # something of them, whoever ran it, in what the gradients are of
        self.handed: list[Value] = []
        ours = (f"{BLOCKS}.", f"!{BLOCKS}.")
        below = not all(pattern.startswith(ours) for pattern in self.patterns)
        above = bool(self.patterns) and not hasattr(sys.modules.get(BLOCKS), ENTERED)
        self.hooks = _hooks(below) if "torch" in sys.modules and (below or above) else ()
        if self.patterns:  # or else nobody asks whose code runs
            register_course()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Observe what runs inside the block, in this thread and in those started from it."""
        if not self.patterns:
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
            self.seen[name] = line_in_answer(frame) if frame is not None else ""

    def saw(self, name: str, node: Value = None) -> None:
        """Note an operation (of this node of the graph of gradients, if any), and whose it is."""
        matches = is_match(name, self.patterns)
        self.met = self.met or (matches and not self.differentiates)
        frame = _getframe(1).f_back  # none in autograd's own thread, for a GPU
        labels, block, theirs, whose = [name] * matches, None, False, None
        while frame is not None:
            known = origin_of(frame)
            whose = known.owner
            if whose is _LIBRARY:
                labels += [known.label] if known.label and not theirs else []
            elif whose is _BLOCK or whose is _COURSE:
                theirs = True
                labels = [one for one in labels if not self._is_vouched_for(one, frame, known)]
                if block and whose is _COURSE and self._is_vouched_for(block, frame, known):
                    block = None
                block = known.label or block
            else:
                break
            frame = frame.f_back
        if not labels and not block:  # the usual case
            return
        if frame is None or whose is _PROBE:
            if frame is not None and frame.f_code.co_name == "_cook":  # it makes what it hands out
                return
            ours = name == "torch.autograd.grad" or (self.met and is_backward_of(node))
            if self.differentiates and ours:
                return  # what had not been met ran where no hook was
        for label in [*labels, block]:
            if label and is_match(label, self.patterns):
                self.note(label, frame)

    def _is_vouched_for(self, label: str, frame: FrameType, known: CodeOrigin) -> bool:
        """Whether what ran below some code of the course is its own doing, or is not forbidden."""
        if not is_match(label, self.patterns):
            return True
        given = known.owner is Owner.BLOCK or any(
            known.code is code for thing in self.handed for code in own_codes(thing)
        )
        return given and is_own_doing(frame, known, label)


def note_block() -> None:
    """Note that a function of a block is entered, and whose doing it is."""
    if _Current.observer is not None:
        _Current.observer.saw("")


def hand_out(thing: Value) -> None:
    """Tell the observer what a run hands to an answer: a function, a module or another object."""
    observer = _Current.observer
    if observer is not None:
        observer.handed += thing.modules() if hasattr(type(thing), "modules") else [thing]


@contextmanager
def differentiating() -> Iterator[None]:
    """While the probe itself takes gradients, the backward pass of what has run is no answer's."""
    observer = _Current.observer
    if observer is None:
        yield
        return
    observer.differentiates = True
    try:
        yield
    finally:
        observer.differentiates = False


class _Current:
    """The observer of the current call, for every thread."""

    observer: Observer | None = None


# --- torch's hooks ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Hook:
    """A torch mode, with the C functions for the stack that it belongs to."""

    mode: AbstractContextManager
    depth: Callable[[], int]
    at: Callable[[int], object]
    push: Callable[..., None]
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
    from torch import Tensor as tensor  # noqa: N813  (the class of most, which has no other)
    from torch.library import _impls  # what has been implemented in Python, "aten/gelu/CPU"
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            name = _name(func)
            if name and _Current.observer is not None:
                _Current.observer.saw(name)
                for kind in types:
                    if kind is not tensor and _is_its_own(kind.__torch_function__):
                        return NotImplemented  # so that it runs with this hook on
            return func(*args, **kwargs) if kwargs else func(*args)

    class Kernels(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # skipping would import torch's compiler, which takes a second

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            observer = _Current.observer
            if observer is not None:
                name, within = _name(func), node()
                caller = _getframe().f_back  # none in autograd's own thread, for a GPU
                if is_match(name, observer.patterns) or _out_of_view(caller, functions):
                    observer.saw(name, within)
                differentiated = within is not None and not observer.differentiates
                if differentiated and is_match(BACKWARD, observer.patterns):
                    observer.saw(BACKWARD)
                for kind in types:
                    if kind is not tensor and _is_its_own(kind.__torch_dispatch__):
                        return NotImplemented
                if not _keys(func).isdisjoint(_impls):
                    return _run_in_view(func, args, kwargs or {})
            try:
                return func(*args, **(kwargs or {}))
            except RuntimeError:
                tensors = _with_tensors(func, args)  # as TorchScript had them
                if tensors is None:
                    raise
                return func(*tensors, **(kwargs or {}))

    _torchs_own()
    # Else torch's compiler, where an answer uses it, would compile this as well.
    frames, skip = _C._dynamo.eval_frame, _C._dynamo.eval_frame._FrameAction.SKIP
    for hook in (Functions.__torch_function__, Kernels.__torch_dispatch__):
        frames.set_code_exec_strategy(hook.__code__, frames._FrameExecStrategy(skip, skip))
    node, functions = _C._current_autograd_node, Functions.__torch_function__.__code__
    every = (
        _Hook(
            Functions(),
            _C._len_torch_function_stack,
            _C._get_function_stack_at,
            _C._push_on_torch_function_stack,
            _C._pop_torch_function_stack,
        ),
        _Hook(
            Kernels(),
            _C._len_torch_dispatch_stack,
            _C._get_dispatch_stack_at,
            _C._push_on_torch_dispatch_stack,
            partial(_C._pop_torch_dispatch_stack, None),
        ),
    )
    return every[: 1 + below]


def _out_of_view(frame: FrameType | None, functions: CodeType) -> bool:
    """Whether an operation runs in code that is called while the hook for functions is off: below
    a function that the hook was called for, such as one that calls another, or where it was taken
    off."""
    while frame is not None and frame.f_code is not functions:
        known = origin_of(frame)
        if known.label or known.owner is not Owner.LIBRARY:
            return True
        frame = frame.f_back
    return False


def _is_its_own(method: Callable) -> bool:
    """Whether a class of tensors has such a method of its own, not torch's."""
    import torch

    tensor = torch.Tensor
    usual = (tensor.__torch_function__, tensor.__torch_dispatch__)
    own = getattr(method, "__func__", method)
    return own is not torch._C._disabled_torch_function_impl and all(
        own is not getattr(one, "__func__", one) for one in usual
    )


@lru_cache(maxsize=4096)
def _keys(func: Value) -> frozenset[str]:
    """Under which keys an operator would be implemented in Python."""
    if not hasattr(func, "_schema"):  # an operator of a higher order
        return frozenset()
    whole = func._schema.name.replace("::", "/", 1)
    overload = func._schema.overload_name
    names = {whole, f"{whole}.{overload}" if overload else f"{whole}.default"}
    return frozenset(f"{name}/{kind}" for name in names for kind in _KINDS)


_KINDS = (
    *("CPU", "CUDA", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"),
    *("CompositeImplicitAutograd", "BackendSelect"),
)


def _run_in_view(func: Value, args: tuple, kwargs: dict) -> Value:
    """Run an operator that is implemented in Python with the hooks on again inside."""
    import torch
    from torch.utils._pytree import tree_leaves

    tensors = (leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))
    kinds = (tensor.device.type for tensor in tensors)
    key = getattr(torch._C.DispatchKey, next(kinds, "cpu").upper(), torch._C.DispatchKey.CPU)
    try:
        kernel = torch.library.get_kernel(func, key)
    except RuntimeError:  # it has none
        return func(*args, **kwargs)
    hooks = _hooks(True)
    heights = [hook.put_on() for hook in hooks]
    try:
        return kernel.call_boxed(torch._C.DispatchKeySet(key), *args, **kwargs)
    finally:
        for hook, height in zip(hooks[::-1], heights[::-1], strict=True):
            if not hook.take_off(height) and _Current.observer is not None:
                _Current.observer.note(TAKEN_OFF, None)


def _with_tensors(func: Value, args: tuple) -> tuple | None:
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


def _join_in(frame: FrameType, event: str, arg: object) -> None:
    """Runs first in such a thread."""
    sys.setprofile(None)
    for hook in _hooks(True) if "torch" in sys.modules else ():
        hook.push(hook.mode)


_NAMES: dict[Value, str] = {}
_IS, _HEAP = type.__dict__["__flags__"].__get__, 1 << 9  # the flag of a class made in Python


@lru_cache(maxsize=1)
def _torchs_own() -> tuple[type[Value], type[Value], Callable[[Value], str | None]]:
    """What tells operators and their names, taken with the hooks, before an answer can."""
    from torch._ops import OpOverload, OpOverloadPacket
    from torch.overrides import resolve_name

    return OpOverload, OpOverloadPacket, resolve_name


def _name(func: Value) -> str:
    """The dotted name of the function a hook was called for; empty for an attribute access, but
    that to the graph of gradients, whose nodes can be called one by one."""
    try:
        return _NAMES[func]
    except KeyError:
        name = _name_once(func)
        if not _IS(type(func)) & _HEAP or type(func) in _torchs_own()[:2]:
            _NAMES[func] = name  # else the answer may say what it is equal to
        return name
    except TypeError:  # it cannot be hashed
        return _name_once(func)


def _name_once(func: Value) -> str:
    operator, packet, resolve_name = _torchs_own()
    if getattr(func, "__name__", "") in ("__get__", "__set__"):
        of = getattr(getattr(func, "__self__", None), "__name__", "")
        return "torch.autograd.grad_fn" if of == "grad_fn" else ""
    if isinstance(func, operator):
        return f"torch.ops.{func.namespace}.{func._schema.name.partition('::')[2]}"
    if isinstance(func, packet):
        return f"torch.ops.{func}"
    known = resolve_name(func)
    if known:
        return known
    module = getattr(func, "__module__", None) or "torch"
    return f"{module}.{getattr(func, '__qualname__', getattr(func, '__name__', 'unnamed'))}"
