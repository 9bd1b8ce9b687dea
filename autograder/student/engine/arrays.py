"""Arrays and tensors as plain numbers, read and made past whatever an answer may have replaced.

TRUST BOUNDARY. This runs in the process of an answer, which can hand in classes of its own: an
array is copied out by NumPy's and torch's own functions, taken before any answer runs, and never by
a method that the value brings along.
"""

import importlib
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor

# Whatever a student's code may take, hold or return: nothing is known of its type.
Value: TypeAlias = Any
_PLAIN_NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
PLAIN_KINDS = "biuf"  # bool, integers, floats: the dtypes that an answer may have


@dataclass(frozen=True)
class Array:
    """An array or a tensor, as data. `kind` is numpy, scalar or torch."""

    data: np.ndarray
    kind: str = "numpy"
    dtype: str = "float64"
    device: str = "cpu"


class _Torchs(NamedTuple):
    """The class of all tensors; a reader of the numbers, the dtype and the device of one; what
    makes one of numbers and a dtype."""

    tensor: type
    read: Callable[[Value], tuple[np.ndarray, str, str] | None]
    make: Callable[[np.ndarray, str], "Tensor"]


def _torchs() -> _Torchs | None:
    """What reads a tensor: torch's own C methods, which cannot be replaced; None without torch.

    They bypass the classes and modes of an answer.
    """
    torch: Any = sys.modules.get("torch")
    try:
        core, tensor, strided = torch._C, torch.Tensor, torch.strided
        base, alone = core.TensorBase, core.DisableTorchFunction
        dtype_of, layout_of = base.dtype.__get__, base.layout.__get__
        device_of = base.device.__get__
        is_meta, is_quantized = base.is_meta.__get__, base.is_quantized.__get__
        is_complex, detach, cpu, numbers = base.is_complex, base.detach, base.cpu, base.numpy
        resolve_neg, in_float32 = base.resolve_neg, base.float
        make, to, named = torch.from_numpy, base.to, vars(torch)
        is_trained, usual = base.requires_grad.__get__, (tensor, torch.nn.Parameter)
        plain_names = {named[name]: name for name in _PLAIN_NAMES}
    except AttributeError:  # no torch, or another thread imports it: there are no tensors yet
        return None

    def read(value: Value) -> tuple[np.ndarray, str, str] | None:
        with alone():
            name = plain_names.get(dtype_of(value))
            if name and type(value) in usual and not is_trained(value):
                with suppress(TypeError, RuntimeError):  # elsewhere, sparse, or with turned signs
                    return numbers(value), name, "cpu"  # a third of the time
            dtype = str(dtype_of(value)).removeprefix("torch.")
            if layout_of(value) != strided or is_meta(value):
                return None
            if is_quantized(value) or is_complex(value):
                return None
            plain = resolve_neg(cpu(detach(value)))
            plain = in_float32(plain) if dtype in ("bfloat16", "float16") else plain
            return numbers(plain), dtype, device_of(value).type

    def made(data: np.ndarray, dtype: str) -> "Tensor":
        with alone():
            new = make(data)
            return new if name_of(data.dtype) == dtype else to(new, named[dtype])

    return _Torchs(tensor, read, made)


# Taken now: in the sandbox, before any answer can replace them.
_ARRAY, _BYTES, _DTYPE = np.array, np.ndarray.tobytes, np.ndarray.dtype.__get__
_TORCH = _torchs()


def _found_since() -> _Torchs | None:
    """The same, if torch was imported later; once found, they are kept."""
    global _TORCH  # noqa: PLW0603
    _TORCH = _torchs()
    return _TORCH


@lru_cache(maxsize=64)
def name_of(dtype: np.dtype) -> str:
    """A dtype's name, which NumPy makes anew each time."""
    return dtype.name


def as_array(value: Value) -> Array | None:
    """The plain array behind an ndarray, a NumPy scalar or a tensor; None for anything else."""
    if isinstance(value, Array):
        return value
    if isinstance(value, (np.generic, np.ndarray)):
        data = _ARRAY(value, copy=True, subok=False)
        kind = "scalar" if isinstance(value, np.generic) else "numpy"
        if data.dtype.kind not in PLAIN_KINDS:
            return None
        return Array(data, kind, name_of(data.dtype))
    known = _TORCH or _found_since()
    if known is None or not isinstance(value, known.tensor):
        return None
    found = known.read(value)
    return None if found is None else Array(found[0].copy(), "torch", *found[1:])


def tensor_of(array: Array) -> "Tensor":
    """A new tensor with an array's numbers, made past the hooks and whatever replaces torch's
    functions."""
    importlib.import_module("torch")
    known = _TORCH or _found_since()
    assert known is not None
    return known.make(array.data.copy(), array.dtype)


def bytes_of(value: Value) -> bytes | None:
    """The numbers of an ndarray or a tensor as bytes, row by row; None where `as_array` gives None.

    They show whether the numbers are the same as before, without a copy in between.
    """
    if isinstance(value, np.ndarray):
        return _BYTES(value) if _DTYPE(value).kind in PLAIN_KINDS else None
    known = _TORCH or _found_since()
    if known is None or not isinstance(value, known.tensor):
        return None
    found = known.read(value)
    return None if found is None else _BYTES(found[0])
