"""Makes the calls of a run on an answer and records what comes back, as values.

TRUST BOUNDARY. This runs in the same process as the answer: in the student's notebook, or inside
the sandbox. Whatever it reports may be forged by the answer, so nothing here is worth stealing: it
knows the arguments, but not the expected values, the tolerances or the verdict.
"""

import importlib
import linecache
import random
import traceback
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

import numpy as np

from autograder.student import course
from autograder.student.engine import simulated_device
from autograder.student.engine.arrays import Array, Value, as_array, tensor_of
from autograder.student.engine.code_origin import is_library
from autograder.student.engine.fresh_copy import fresh_copy
from autograder.student.engine.loading import load
from autograder.student.engine.observe import Observer, differentiating, hand_out
from autograder.student.engine.parameter_mismatch import ParameterMismatch, describe_mismatch
from autograder.student.engine.rewriting import rewritten
from autograder.student.engine.runs import APPLY, BLOCKS, RaisedException, Record, Run, Step
from autograder.student.engine.settings import as_fresh
from autograder.student.engine.simulated_device import ELSEWHERE
from autograder.student.engine.state import GlobalState, form_of, without_hooks
from autograder.student.engine.state import torch_if_imported as _torch
from autograder.student.engine.values import Opaque, Previous, Recipe, StridedArray, text_of

_RECIPES = (BLOCKS or "-", f"{course.package()}.exercises.", "autograder.student.authoring.")
_FAR = 1_618_033_988


def probe(answer: Value, run: Run, device: str = "cpu", watch: Sequence[str] = ()) -> Record:
    """Make the run's calls on `answer` and record the results, or the exception that ended them.

    Operations that match the patterns in `watch` (see `Observer`) are recorded, too. Never raises
    what the answer raises, except `KeyboardInterrupt`, which is how students stop endless loops.
    """
    with preserve_generators():
        return probe_within(answer, run, device, watch)


def probe_within(answer: Value, run: Run, device: str = "cpu", watch: Sequence[str] = ()) -> Record:
    """Like `probe`, but leaves the global generators changed: for many runs
    `with preserve_generators()`.

    A `simulated` run is made on a simulated device, whatever `device` is: instead of each tensor,
    its record says where it is.
    """
    device = ELSEWHERE if run.simulated else device
    observer = Observer(() if run.simulated else watch)
    with _quarantine(run.seed) as state, observer.watching():  # whatever is done to what it gives
        record = make_calls(answer, run, device, state)
    return replace(record, operations=dict(observer.seen)) if observer.seen else record


def make_calls(answer: Value, run: Run, device: str, state: GlobalState) -> Record:
    """The calls alone: what `probe` puts back afterwards is not put back."""
    values: list[Value] = []
    early: list[Value] = []  # results as they were before arguments were written to
    sent: list[tuple[list, dict]] = []
    modules: dict[int, Value] = {}
    stage = "build"
    try:
        function = fresh_copy(answer) if run.fresh else answer
        target = function if run.init is None else _build(answer, run, device, state)
        stage = "call"
        state.watch(target)
        for step in run.steps:
            watched = {*map(id, modules.values())}
            args, kwargs = _arguments(step, values, device, run.gradients, modules)
            if step.into is not None:
                early += map(snapshot, values[len(early) :])
                state.note_memory()
                state.note_modules()
                args, kwargs = rewritten(sent[step.into], (args, kwargs))
            given = [thing for thing in (*args, *kwargs.values()) if id(thing) not in watched]
            state.watch(*given)
            state.watch_modules(*given)
            sent.append((args, kwargs))
            if step.method == APPLY:
                called, *args = args
            else:
                called = getattr(target, step.method) if step.method else target
            with simulated_device.simulate_device(run.most) if run.simulated else nullcontext():
                values.append(called(*args, **kwargs))
        stage = "backward"
        gradients = _gradients(target, values, sent, run.state or {}) if run.gradients else {}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001  (SystemExit counts like any other)
        fits = not isinstance(error, _LoadError)
        raised = _describe(error, stage) if fits else _describe(error.__cause__ or error, "load")
        shown = () if run.simulated else (*early, *map(snapshot, values[len(early) :]))
        return Record(shown, raised, side_effects=state.differences())
    if run.simulated:
        return Record(tuple(map(simulated_device.devices_of, values)))
    written = {step.into for step in run.steps}
    changed = {
        f"{i}.{name}": snapshot(after)
        for i, (step, (args, kwargs)) in enumerate(zip(run.steps, sent, strict=True))
        for name, before, after in _pairs(step, args, kwargs)
        if i not in written and _differs(before, after)
    }
    shown = (*early, *map(snapshot, values[len(early) :]))
    return Record(shown, None, gradients, changed, state.differences())


def snapshot(value: Value) -> Value:
    """A copy of a result in which arrays are `Array`; later changes to the result do not show."""
    array = as_array(value)
    if array is not None:
        return array
    if isinstance(value, (tuple, list)):
        items = [snapshot(item) for item in value[:1000]]
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, Mapping):
        return {str(k): snapshot(v) for k, v in list(value.items())[:1000]}
    if isinstance(value, np.ndarray):
        return Opaque(f"ndarray, of dtype {value.dtype}")
    if value is None or isinstance(value, (bool, Opaque)):
        return value
    for kind, read in _PLAIN.items():  # of a subclass, what it holds, not what it says later
        if isinstance(value, kind):
            return read(value)
    return Opaque(type(value).__name__)


_PLAIN: dict[type, Callable[[Value], Value]] = {
    int: int.__int__,
    float: float.__float__,
    str: str.__str__,
}


class _LoadError(Exception):
    """The state dict does not fit the module."""


def _build(answer: Value, run: Run, device: str, state: GlobalState) -> Value:
    first = "cpu" if run.simulated else device  # where a student would build it, too
    args, kwargs = _arguments(run.constructor, [], first, False, {})
    given = [*args, *kwargs.values()]
    state.watch_modules(*given)
    built = answer(*args, **kwargs)
    state.note_modules()  # what follows changes modules that are now its parts
    if run.state is not None:
        _load(built, run.state, first)
    if device != "cpu" and hasattr(built, "to"):
        built = _move(built, device)
    if hasattr(built, "train"):
        built.train(run.training)
    state.watch_modules(*given)
    return built


def _move(thing: Value, device: str) -> Value:
    """A tensor or a module on another device."""
    if device != ELSEWHERE:
        return thing.to(device)
    module = hasattr(thing, "named_parameters")
    return simulated_device.move_module(thing) if module else simulated_device.move_tensor(thing)


def _load(built: Value, state: Mapping[str, Value], device: str) -> None:
    tensors = {name: materialise(value, device) for name, value in state.items()}
    wide = _wide(tensors.values())
    try:
        if len(wide) == 1 and wide != _wide([*built.parameters(), *built.buffers()]):
            built.to(*wide)
        load(built, tensors)  # how an answer stores its tables is up to it
    except Exception as error:
        told = ""
        with suppress(Exception):
            told = describe_mismatch(built, tensors)
        raise _LoadError from ParameterMismatch(told) if told else error


def _wide(tensors: Iterable[Value]) -> set[Value]:
    """The floating-point dtypes among those of some tensors."""
    return {dtype for dtype, _ in map(form_of, tensors) if dtype.is_floating_point}


def _arguments(
    step: Step, values: list, device: str, gradients: bool, modules: dict[int, Value]
) -> tuple[list, dict]:
    """The arguments of a step; what other steps get again is added to the `modules`, by recipe."""

    def made(arg: Value) -> Value:
        if id(arg) in modules:
            return modules[id(arg)]
        live = materialise(arg, device, values, gradients)
        if isinstance(arg, Recipe) and arg.kept:
            modules[id(arg)] = live
        return live

    return [made(arg) for arg in step.args], {k: made(arg) for k, arg in step.kwargs.items()}


def materialise(value: Value, device: str, values: Sequence = (), gradients: bool = False) -> Value:
    """The live object that a run's argument describes: arrays, tensors, built modules."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, Array):
        if value.kind != "torch":
            data = value.data.astype(value.dtype)
            return data[()] if value.kind == "scalar" else data
        made = tensor_of(value)
        made = made if device == "cpu" else _move(made, device)
        return made.requires_grad_() if gradients and made.is_floating_point() else made
    if isinstance(value, StridedArray):
        return _as_view(materialise(value.array, device), gradients)
    if isinstance(value, Previous):
        found = values[value.step]
        for index in value.path:
            found = found[index]
        return found
    if isinstance(value, Recipe):
        return _cook(value, device)
    if isinstance(value, (tuple, list)):
        return type(value)(materialise(item, device, values, gradients) for item in value)
    if isinstance(value, Mapping):
        return {k: materialise(v, device, values, gradients) for k, v in value.items()}
    return value


def _as_view(whole: Value, gradients: bool) -> Value:
    """A view with the same numbers: every second one in memory, the first axis fastest.

    So it cannot be flattened without a copy, unless it is a vector.
    """
    backwards = [*reversed(range(whole.ndim))]
    if isinstance(whole, np.ndarray):
        room = np.zeros((*whole.shape[::-1], 2), whole.dtype)
        room[..., 0] = whole.transpose(backwards)
        return room[..., 0].transpose(backwards)
    room = whole.new_zeros((*reversed(whole.shape), 2))
    room[..., 0] = whole.permute(backwards)
    view = room[..., 0].permute(backwards)
    return view.requires_grad_() if gradients and view.is_floating_point() else view


def _cook(recipe: Recipe, device: str) -> Value:
    module_name, _, attribute = recipe.name.partition(":")
    if not module_name.startswith(_RECIPES):
        raise ValueError(f"{recipe.name} is not a recipe")
    found = getattr(importlib.import_module(module_name), attribute)
    hand_out(found)
    if recipe.args is None:
        return found
    import torch

    args = [materialise(arg, device) for arg in recipe.args]
    kwargs = {k: materialise(v, device) for k, v in (recipe.kwargs or {}).items()}
    # Outside the simulation, anything done to a tensor that is elsewhere imports half of torch.
    unseen = simulated_device.simulate_device() if device == ELSEWHERE else without_hooks()
    with torch.random.fork_rng(devices=[]), unseen:  # our draws are no side effect of the answer
        built = found(*args, **kwargs)
    hand_out(built)
    if recipe.state is not None:
        with nullcontext() if device == ELSEWHERE else without_hooks():
            _load(built, recipe.state, "cpu" if device == ELSEWHERE else device)
    if not hasattr(built, "eval"):
        return built
    return (built if device == "cpu" else _move(built, device)).eval()


def _pairs(step: Step, args: list, kwargs: dict):
    for i, (before, after) in enumerate(zip(step.args, args, strict=True)):
        yield str(i), before, after
    for name, after in kwargs.items():
        yield name, step.kwargs[name], after


def _differs(before: Value, after: Value) -> bool:
    before = before.array if isinstance(before, StridedArray) else before
    if isinstance(before, Mapping):
        same = isinstance(after, Mapping) and [*before] == [*after]
        return not same or any(_differs(old, after[key]) for key, old in before.items())
    names = type(before) is tuple and all(type(part) is str for part in before)
    if names or isinstance(before, list):
        same = isinstance(after, (list, tuple)) and len(before) == len(after)
        return not same or any(map(_differs, before, after))
    if type(before) in (str, int):
        return type(after) is not type(before) or after != before
    old, new = as_array(before), as_array(after)
    if old is None or new is None:
        return False
    one, other = old.data, new.data  # bit by bit, with methods that cannot be replaced
    return one.shape != other.shape or one.dtype != other.dtype or one.tobytes() != other.tobytes()


def _gradients(
    target: Value, values: list, sent: list[tuple[list, dict]], expected: Container[str]
) -> dict[str, Array | None]:
    import torch

    total = 0.0
    for result in _tensors(values[-1]):
        if result.requires_grad:
            places = torch.arange(result.numel(), dtype=torch.float32, device="cpu")
            weights = torch.cos(places * 0.7 + 0.3)  # whose last digits depend on the device
            total = total + (result * weights.to(result).reshape(result.shape)).sum()
    leaves: dict[str, Value] = {}
    for i, (args, kwargs) in enumerate(sent):
        prefix = f"{i}." if len(sent) > 1 else ""
        named = [*((str(j), arg) for j, arg in enumerate(args)), *kwargs.items()]
        leaves |= {
            prefix + name: arg
            for name, arg in named
            if isinstance(arg, torch.Tensor) and arg.requires_grad and arg.is_leaf
        }
    if isinstance(target, torch.nn.Module):
        names: dict[int, str] = {}  # one for each; of several, the expected one
        parameters = dict(target.named_parameters(remove_duplicate=False))
        for name, own in parameters.items():
            if id(own) not in names or (name in expected and names[id(own)] not in expected):
                names[id(own)] = name
        leaves |= {f"parameter {name}": parameters[name] for name in names.values()}
    if isinstance(total, float):
        return dict.fromkeys(leaves)
    wanted = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}
    with differentiating():
        grads = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
    found = zip(wanted, grads, strict=True)
    return dict.fromkeys(leaves) | {k: None if g is None else as_array(g) for k, g in found}


def _tensors(value: Value) -> Iterator[Value]:
    import torch

    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _tensors(item)


@contextmanager
def preserve_generators() -> Iterator[None]:
    """Restore the global random generators at the end."""
    numpys, pythons = np.random.get_state(), random.getstate()
    torch = _torch()
    torchs = torch.get_rng_state() if torch is not None else None
    try:
        yield
    finally:
        np.random.set_state(numpys)
        random.setstate(pythons)
        if torch is not None:
            torch.set_rng_state(torchs)


@contextmanager
def _quarantine(seed: int) -> Iterator[GlobalState]:
    """Seed the global generators for the calls, under the settings of a fresh process."""
    seed += _FAR  # so that an answer that itself seeds with 0 or 42 is noticed
    np.random.seed(seed)
    random.seed(seed)
    torch = _torch()
    if torch is not None:  # torch.manual_seed formats a stack trace even without a GPU
        seeded = torch if torch.cuda.is_available() else torch.default_generator
        seeded.manual_seed(seed)
    with as_fresh():
        yield GlobalState()


def _describe(error: BaseException, during: str) -> RaisedException:
    types = tuple(t.__name__ for t in type(error).__mro__ if t not in (object, BaseException))
    try:
        message = text_of(str(error), 2000)
    except Exception:  # noqa: BLE001  (an exception whose own __str__ fails)
        message = "(its message cannot be shown)"
    return RaisedException(types or (type(error).__name__,), message, own_lines(error), during)


def own_lines(error: BaseException) -> str:
    """The lines of the answer that led to the exception, innermost last."""
    try:
        frames = traceback.extract_tb(error.__traceback__)
    except Exception:  # noqa: BLE001  (hostile __traceback__)
        return ""
    shown = []
    for frame in frames:
        if course.is_ours(frame.filename) or frame.filename.startswith("<frozen"):
            continue
        if "site-packages" in frame.filename or "/lib/python" in frame.filename:
            continue
        if is_library(frame.filename):
            continue
        line = frame.line or linecache.getline(frame.filename, frame.lineno or 0).strip()
        if line:
            shown.append(f"line {frame.lineno}, in {frame.name}: {line}")
    return "\n".join(shown[-6:])
