"""A simulated device: tensors that compute on the CPU and say that they are elsewhere.

What a GPU would refuse is refused here, too, on any machine: an operation on a tensor that is
elsewhere and one that was made on the CPU, or NumPy asking for numbers that are not on the CPU.
Only these two, `OnTwoDevices` and `NotOnTheCpu`, say anything about an answer. Whatever else goes
wrong here may be the simulation's own fault, and is not held against it. Since every operation
passes through here, so does every tensor's size: one that holds more numbers than a run allows
ends the call, with `TensorTooLarge`.

How: a wrapper subclass whose device is "meta", the only one besides the CPU for which every build
of torch has autograd, holds a CPU tensor. Each operation is unwrapped, computed, and wrapped again;
a mode sends factories with `device=` the same way.

TRUST BOUNDARY. This runs in the same process as the answer, which can reach the numbers behind the
simulation (`_numbers`), remove the mode, or return what only seems to be elsewhere. All it can gain
by that are the points of the one aspect that asks where the results live. Nothing secret is here.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from autograder.student.engine.arrays import Value
from autograder.student.engine.state import parts_of

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch._ops import OpOverload
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

ELSEWHERE = "elsewhere"  # a probe's name for the device, and a record's for a tensor on it
SIMULATED = "meta"  # what torch calls it
TWO_DEVICES, NOT_ON_THE_CPU, TOO_MANY = "OnTwoDevices", "NotOnTheCpu", "TensorTooLarge"

_COPIES = ("aten::_to_copy", "aten::copy_")
_INDEXES = ("aten::index.", "aten::index_put", "aten::_index_put", "aten::_unsafe_index")
_FILLS = ("aten::fill_.", "aten::masked_fill")
_JOINS = ("aten::cat", "aten::stack")


class OnTwoDevices(RuntimeError):
    """An operation was given a tensor that is elsewhere and one that is on the CPU."""


class NotOnTheCpu(TypeError):
    """NumPy was given a tensor that is elsewhere."""


class TensorTooLarge(MemoryError):
    """An operation made a tensor that holds more numbers than the run allows."""


class NotSimulated(Exception):
    """The simulation ends here: what would happen on a GPU is not known."""


class _Limit:
    """How many numbers a tensor may hold in the current call; 0 means any number."""

    most = 0


@cache
def _simulation() -> tuple[type, "TorchFunctionMode", "TorchDispatchMode"]:
    """The class of the tensors, and the two modes for calls without a tensor argument."""
    import torch
    from torch.autograd import forward_ad
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode

    there, cpu = torch.device(SIMULATED), torch.device("cpu")
    tensor: Any = torch.Tensor  # what overrides it is another, on purpose
    wrapper = tensor._make_wrapper_subclass

    class SimulatedTensor(tensor):
        """A tensor that says it is elsewhere; `_numbers` is where its numbers are."""

        __torch_function__ = torch._C._disabled_torch_function_impl

        @staticmethod
        def __new__(cls, numbers: "Tensor") -> "SimulatedTensor":
            made = wrapper(
                cls,
                numbers.size(),
                strides=numbers.stride(),
                storage_offset=numbers.storage_offset(),
                dtype=numbers.dtype,
                layout=numbers.layout,
                device=there,
            )
            made._numbers = numbers
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return run(func, args, kwargs or {})

        @property
        def data(self) -> "Tensor":
            return self.detach()

        @data.setter
        def data(self, value: Value) -> None:
            mine: Value = self
            same = (
                isinstance(value, SimulatedTensor) and value._numbers.shape == mine._numbers.shape
            )
            if not same or value.dtype != self.dtype:
                raise NotSimulated("a tensor is given other data")
            mine._numbers = value._numbers

        @property
        def is_meta(self) -> bool:
            return False

        @property
        def is_cpu(self) -> bool:
            return False

        @property
        def is_cuda(self) -> bool:
            raise NotSimulated("the answer does something else on a GPU")

        def get_device(self) -> int:
            raise NotSimulated("the answer asks for the number of its GPU")

        def cuda(self, *_: object, **__: object) -> "SimulatedTensor":
            return self

        def tolist(self) -> object:
            return self._numbers.tolist()

        def numpy(self, *_: object, **__: object) -> NoReturn:
            raise NotOnTheCpu(
                "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )

        __array__ = numpy

        def __repr__(self, *_: object, **__: object) -> str:
            return repr(self._numbers)  # torch's own imports half of torch for a subclass

        def __format__(self, spec: str) -> str:
            return format(self.item() if self.dim() == 0 else repr(self), spec)

        def __deepcopy__(self, memo: dict) -> "SimulatedTensor":
            copied = SimulatedTensor(self._numbers.clone()).requires_grad_(self.requires_grad)
            if getattr(self, "_is_param", False):
                copied._is_param = True
            memo[id(self)] = copied
            return copied

    makers = {torch.tensor, torch.as_tensor, torch.asarray, tensor.new_tensor}

    class Makers(TorchFunctionMode):
        """Makes tensors from numbers, which torch does without asking a dispatch mode."""

        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func not in makers:
                return func(*args, **(kwargs or {}))
            kwargs = dict(kwargs or {})
            device = kwargs.get("device")
            if func is tensor.new_tensor:
                device = args[0].device if device is None else device
                kwargs, func, args = {"dtype": args[0].dtype, **kwargs}, torch.tensor, args[1:]
            elif args and isinstance(args[0], tensor):
                return func(*args, **kwargs)
            far = device is not None and torch.device(device) == there
            kwargs["device"] = cpu if far else device
            made = func(*map(numbers_in, args), **{k: numbers_in(v) for k, v in kwargs.items()})
            return move_tensor(made) if far else made

    def numbers_in(value: Value) -> Value:
        """Tensors in lists, replaced by the numbers that torch would read from them one by one."""
        if isinstance(value, SimulatedTensor):
            return value.tolist()
        return type(value)(map(numbers_in, value)) if type(value) in (list, tuple) else value

    class Factories(TorchDispatchMode):
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False  # skipping would import torch's compiler, which takes a second

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return run(func, args, kwargs or {})

    def plain(value: Value) -> Value:
        if isinstance(value, SimulatedTensor):
            return value._numbers
        return type(value)(map(plain, value)) if type(value) in (list, tuple) else value

    def wrapped(value: Value) -> Value:
        if isinstance(value, tensor):
            if torch.is_inference_mode_enabled():  # a wrapper cannot be an inference tensor
                with torch.inference_mode(False):
                    return SimulatedTensor(value)
            return SimulatedTensor(value)
        return type(value)(map(wrapped, value)) if type(value) in (list, tuple) else value

    def run(func: "OpOverload", args: tuple, kwargs: Mapping[str, Value]) -> Value:
        if forward_ad._current_level >= 0:  # `torch.func.jvp` of x * 2 would end the process
            raise NotSimulated("forward-mode differentiation does not follow the simulation")
        name, device = func._schema.name, kwargs.get("device")
        found = [*_tensors((args, tuple(kwargs.values())), tensor)]
        far = [t for t in found if isinstance(t, SimulatedTensor)]
        if far and len(far) < len(found):
            near = [t for t in found if not isinstance(t, SimulatedTensor)]
            _refuse(name + ".", args, far, near)
        if device is not None and torch.device(device) == there:
            kwargs = {**kwargs, "device": cpu}
            stays = True
        else:
            stays = device is None and bool(far)
        result = func(*map(plain, args), **{k: plain(v) for k, v in kwargs.items()})
        target = kwargs.get("out") if "out" in kwargs else args[0] if name.endswith("_") else None
        if target is not None:  # the argument itself
            if isinstance(target, SimulatedTensor) and target._numbers.shape != target.shape:
                raise NotSimulated(f"{name} changes a tensor's shape in place")
            return target
        if _Limit.most:
            _refuse_large(_tensors(result, tensor))
        return wrapped(result) if stays else result

    return SimulatedTensor, Makers(), Factories()


def _tensors(value: Value, tensor: type["Tensor"]) -> Iterator["Tensor"]:
    if isinstance(value, tensor):
        yield value
    elif type(value) in (list, tuple):
        for part in value:
            yield from _tensors(part, tensor)


def _refuse(name: str, args: tuple, far: list, near: list) -> None:
    """Raise what a GPU raises for tensors on two devices, if it does for this operation."""
    if any(t.is_meta for t in near):
        raise NotSimulated("a tensor was made in a way that the simulation cannot follow")
    if any(t.is_cuda for t in near):
        raise NotSimulated("a tensor was made on a device that is there")
    if name.startswith(_COPIES):
        return
    sized = [t for t in near if t.dim()]
    if name.startswith(_INDEXES):  # indices may come from the CPU, but not from elsewhere to it
        values: Value = args[2] if len(args) > 2 else None
        sized = [t for t in sized if t is values or t is args[0]]
    elif name.startswith(_FILLS):  # a single number is read, wherever it is
        far = [t for t in far if t.dim()]
    elif name.startswith(_JOINS):
        sized = near
    if far and sized:
        shape = tuple(sized[0].shape)
        raise OnTwoDevices(
            "Expected all tensors to be on the same device, but found at least two devices, "
            f"cuda:0 and cpu! (On the CPU is a tensor of shape {shape}.)"
        )


def _refuse_large(made: Iterator["Tensor"]) -> None:
    """Raise if a tensor holds more numbers than the run allows; a view holds those it views."""
    for tensor in made:
        held = tensor.untyped_storage().nbytes() // tensor.itemsize
        if held > _Limit.most:
            raise TensorTooLarge(
                f"makes a tensor of shape {tuple(tensor.shape)}, of {held} numbers"
            )


def move_tensor(tensor: "Tensor") -> "Tensor":
    """A CPU tensor as one that says it is elsewhere."""
    numbers = tensor.detach()
    return _simulation()[0](numbers).requires_grad_(tensor.requires_grad)


def move_module(module: "nn.Module") -> "nn.Module":
    """A module whose parameters and buffers are elsewhere from now on, as after `.to(device)`:
    whatever else it keeps stays where it is."""
    import torch

    kind, known = _simulation()[0], {}

    def new(tensor: "Tensor | None") -> "Tensor | None":
        if tensor is None or isinstance(tensor, kind):
            return tensor
        if id(tensor) not in known:
            made = move_tensor(tensor)
            made._is_param = isinstance(tensor, torch.nn.Parameter)
            known[id(tensor)] = (made, tensor)  # kept, so that its id is not used again
        return known[id(tensor)][0]

    for part in parts_of(module):
        held = part.__dict__
        for tensors in (held["_parameters"], held["_buffers"]):
            tensors.update({name: new(tensor) for name, tensor in tensors.items()})
    return module


def devices_of(value: Value) -> Value:
    """A result in which each tensor is replaced by where it is."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        return ELSEWHERE if isinstance(value, _simulation()[0]) else "cpu"
    if isinstance(value, (tuple, list)):
        items = [devices_of(item) for item in value[:1000]]
        return tuple(items) if isinstance(value, tuple) else items
    return None


@contextmanager
def simulate_device(most: int = 0) -> Iterator[None]:
    """Meanwhile, `device=` with the device of a tensor that is elsewhere makes another one there;
    and unless `most` is 0, no tensor with more than `most` numbers can be made."""
    from torch import _C

    _, makers, factories = _simulation()
    heights = _C._len_torch_function_stack(), _C._len_torch_dispatch_stack()
    _C._push_on_torch_function_stack(makers)
    _C._push_on_torch_dispatch_stack(factories)
    _Limit.most = most
    try:
        yield
    finally:  # also removes what an answer has left there
        while _C._len_torch_function_stack() > heights[0]:
            _C._pop_torch_function_stack()
        while _C._len_torch_dispatch_stack() > heights[1]:
            _C._pop_torch_dispatch_stack(None)
        _Limit.most = 0


def warm_up() -> None:
    """Pay the costs of the first use."""
    import torch

    x = move_tensor(torch.ones(2, 3))
    with simulate_device():
        mask = torch.arange(3, device=x.device) > 1
        (torch.softmax(x @ x.T, -1) @ x).masked_fill(mask, 0.0).sum().item()
