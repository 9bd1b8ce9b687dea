"""Values on the wire: what goes into the process that runs an answer, and what comes out of it.

TRUST BOUNDARY. `decode` reads bytes that hostile code may have written. It builds numbers, strings,
tuples, mappings and NumPy arrays, and nothing else: no pickle, no import, no attribute look-up.
Every size is checked against the bytes received before anything is allocated.

A message is a JSON tree and the arrays it refers to, each as the bytes of a `.npy` file:
`<length of JSON: 8 bytes><JSON><array 0><array 1>…`, the arrays' lengths given in the JSON.
"""

import io
import json
import math
import re
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

MAX_BYTES = 64 << 20  # one message; an answer's arrays are thousands of times smaller
MAX_HEAD = 16 << 20  # the JSON of a message
MAX_DEPTH = 12
MAX_TEXT = 4000
_PLAIN_KINDS = "biuf"  # bool, integers, floats: the dtypes that an answer may have
_HEADER = struct.Struct("<Q")


class WireError(ValueError):
    """The bytes are not a message, or are one that declares more than it carries."""


@dataclass(frozen=True)
class Array:
    """An array or a tensor, as data. `kind` is numpy, scalar or torch."""

    data: np.ndarray
    kind: str = "numpy"
    dtype: str = "float64"
    device: str = "cpu"


@dataclass(frozen=True)
class Opaque:
    """Something that is not a value: only the name of its type is sent."""

    type_name: str


@dataclass(frozen=True)
class Recipe:
    """A module or function to be built where the answer runs.

    `name` is `package.module:attribute` within `autograder`. With `args` None it stands for the
    attribute itself; otherwise that is called with `args` and `kwargs`, and `state` is loaded.
    """

    name: str
    args: tuple | None = None
    kwargs: Mapping[str, Any] | None = None
    state: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Strided:
    """An array that arrives as a non-contiguous view."""

    array: Any


@dataclass(frozen=True)
class Previous:
    """The result of an earlier step of the same run, or the part of it that `path` picks out."""

    step: int
    path: tuple[int, ...] = ()


class _Torchs(NamedTuple):
    """The class of all tensors, and a reader of the numbers, the dtype and the device of one."""

    tensor: type
    read: Callable[[Any], tuple[np.ndarray, str, str] | None]


def _torchs() -> _Torchs | None:
    """What reads a tensor: torch's own C methods, which cannot be replaced; None without torch.

    They bypass the classes and modes of an answer.
    """
    torch = sys.modules.get("torch")
    try:
        core, tensor, strided = torch._C, torch.Tensor, torch.strided
        base, alone = core.TensorBase, core.DisableTorchFunction
        dtype_of, layout_of, device_of = (
            getattr(base, name).__get__ for name in ("dtype", "layout", "device")
        )
        is_meta, is_quantized = base.is_meta.__get__, base.is_quantized.__get__
        is_complex, detach, cpu, numbers = base.is_complex, base.detach, base.cpu, base.numpy
        resolve_neg, in_float32 = base.resolve_neg, base.float
    except AttributeError:  # no torch, or another thread imports it: there are no tensors yet
        return None

    def read(value: Any) -> tuple[np.ndarray, str, str] | None:
        with alone():
            dtype = str(dtype_of(value)).removeprefix("torch.")
            if layout_of(value) != strided or is_meta(value):
                return None
            if is_quantized(value) or is_complex(value):
                return None
            plain = resolve_neg(cpu(detach(value)))
            plain = in_float32(plain) if dtype in ("bfloat16", "float16") else plain
            return numbers(plain), dtype, device_of(value).type

    return _Torchs(tensor, read)


# Taken now: in the sandbox, before any answer can replace them.
_ARRAY, _BYTES, _DTYPE = np.array, np.ndarray.tobytes, np.ndarray.dtype.__get__
_TORCH = _torchs()


def _found_since() -> _Torchs | None:
    """The same, if torch was imported later; once found, they are kept."""
    global _TORCH  # noqa: PLW0603
    _TORCH = _torchs()
    return _TORCH


def as_array(value: Any) -> Array | None:
    """The plain array behind an ndarray, a NumPy scalar or a tensor; None for anything else."""
    if isinstance(value, Array):
        return value
    if isinstance(value, (np.generic, np.ndarray)):
        data = _ARRAY(value, copy=True, subok=False)
        kind = "scalar" if isinstance(value, np.generic) else "numpy"
        if data.dtype.kind not in _PLAIN_KINDS:
            return None
        return Array(data, kind, data.dtype.name)
    known = _TORCH or _found_since()
    if known is None or not isinstance(value, known.tensor):
        return None
    found = known.read(value)
    return None if found is None else Array(found[0].copy(), "torch", *found[1:])


def bytes_of(value: Any) -> bytes | None:
    """The numbers of an ndarray or a tensor as bytes, row by row; None where `as_array` gives None.

    They show whether the numbers are the same as before, without a copy in between.
    """
    if isinstance(value, np.ndarray):
        return _BYTES(value) if _DTYPE(value).kind in _PLAIN_KINDS else None
    known = _TORCH or _found_since()
    if known is None or not isinstance(value, known.tensor):
        return None
    found = known.read(value)
    return None if found is None else _BYTES(found[0])


@lru_cache(maxsize=1024)
def _npy_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    """How a `.npy` file of plain numbers begins."""
    buffer = io.BytesIO()
    head = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, head)
    return buffer.getvalue()


class _Encoder:
    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.known: dict[bytes, int] = {}
        self.size = 0

    def tree(self, value: Any, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            return {"t": "opaque", "name": "a structure nested too deeply"}
        if value is None or isinstance(value, (bool, str)):
            return value[:MAX_TEXT] if isinstance(value, str) else value
        if type(value) is int:
            return value if abs(value) < 2**63 else {"t": "opaque", "name": "a huge integer"}
        if type(value) is float:
            return {"t": "float", "v": repr(value)}
        if isinstance(value, Opaque):
            return {"t": "opaque", "name": value.type_name[:200]}
        if isinstance(value, Strided):
            return {"t": "strided", "of": self.tree(value.array, depth + 1)}
        if isinstance(value, Previous):
            return {"t": "previous", "step": value.step, "path": list(value.path)}
        if isinstance(value, Recipe):
            parts = (value.name, value.args, value.kwargs, value.state)
            return {"t": "recipe", "of": [self.tree(part, depth + 1) for part in parts]}
        array = as_array(value)
        if array is not None:
            return self._array(array)
        if isinstance(value, (tuple, list)):
            name = "tuple" if isinstance(value, tuple) else "list"
            items = [self.tree(item, depth + 1) for item in value[:1000]]
            return {"t": name, "items": items}
        if isinstance(value, Mapping):
            items = [[str(k)[:200], self.tree(v, depth + 1)] for k, v in list(value.items())[:1000]]
            return {"t": "dict", "items": items}
        return {"t": "opaque", "name": type(value).__name__[:200]}

    def _array(self, array: Array) -> Any:
        extent = math.prod(max(1, n) for n in array.data.shape)
        if max(self.size + array.data.nbytes, extent) > MAX_BYTES:
            shape = tuple(array.data.shape)
            return {"t": "opaque", "name": f"an array of shape {shape}, too large to judge"}
        data = np.ascontiguousarray(array.data)
        blob = _npy_head(data.dtype.str, data.shape) + data.tobytes()
        index = self.known.setdefault(blob, len(self.blobs))
        if index == len(self.blobs):
            self.blobs.append(blob)
            self.size += len(blob)
        shape = list(array.data.shape)  # ascontiguousarray makes () into (1,)
        of = {"kind": array.kind, "dtype": array.dtype, "device": array.device, "shape": shape}
        return {"t": "array", "i": index, **of}


def encode(value: Any) -> bytes:
    """The bytes of a message. Anything that is not a value becomes the name of its type."""
    encoder = _Encoder()
    tree = encoder.tree(value)
    head = json.dumps({"tree": tree, "sizes": [len(b) for b in encoder.blobs]}).encode()
    return b"".join([_HEADER.pack(len(head)), head, *encoder.blobs])


def decode(message: bytes) -> Any:
    """The value in a message: scalars, strings, tuples, lists, dicts, `Array`, `Opaque`, recipes.

    Raises `WireError` for anything that `encode` would not have written.
    """
    try:
        return _untree(*_opened(message), 0)
    except WireError:
        raise
    except Exception as error:  # hostile bytes: any failure is the sender's
        raise WireError(f"not a message ({type(error).__name__})") from None


def _opened(message: bytes) -> tuple[Any, list[np.ndarray]]:
    """The JSON tree of a message, and the arrays it refers to."""
    if len(message) > 2 * MAX_BYTES:
        raise WireError("the message is too large")
    (length,) = _HEADER.unpack_from(message)
    if length > MAX_HEAD:
        raise WireError("the message's description is too large")
    start = _HEADER.size + length
    head = json.loads(message[_HEADER.size : start])
    sizes = head["sizes"]
    if not all(type(n) is int and n >= 0 for n in sizes) or start + sum(sizes) != len(message):
        raise WireError("the message's length is not the declared one")
    arrays = []
    for size in sizes:
        arrays.append(_read_array(message[start : start + size]))
        start += size
    return head["tree"], arrays


# The head of a `.npy` file as NumPy writes it; NumPy itself, with Python's parser, takes thirty
# times as long. Each number ends in a comma, so there is only one way to match any input.
_NPY = b"\x93NUMPY\x01\x00"
_NPY_HEAD = re.compile(
    rb"\{'descr': '([^']{1,20})', 'fortran_order': False, "
    rb"'shape': \(((?:\d{1,18}, ?)*(?:\d{1,18})?)\), \} *\n"
)


def _read_array(blob: bytes) -> np.ndarray:
    if blob[: len(_NPY)] != _NPY:
        raise WireError("an array of an unknown format")
    start = len(_NPY) + 2
    end = start + int.from_bytes(blob[start - 2 : start], "little")
    head = _NPY_HEAD.fullmatch(blob, start, end)
    if head is None:
        raise WireError("an array of an unknown format")
    dtype = np.dtype(head[1].decode())
    if dtype.kind not in _PLAIN_KINDS or dtype.hasobject:
        raise WireError(f"an array of dtype {dtype}")
    shape = tuple(map(int, head[2].replace(b",", b" ").split()))
    if math.prod(shape) * dtype.itemsize != len(blob) - end:
        raise WireError("an array's shape is not the size of its data")
    return np.frombuffer(blob, dtype, offset=end).reshape(shape)


def _untree(tree: Any, arrays: list[np.ndarray], depth: int) -> Any:
    if depth > MAX_DEPTH + 4:
        raise WireError("nested too deeply")
    if isinstance(tree, str):
        return tree[:MAX_TEXT]
    if tree is None or (isinstance(tree, (bool, int)) and abs(tree) < 2**63):
        return tree
    kind = tree["t"]
    if kind == "float":
        return float(tree["v"])
    if kind == "opaque":
        return Opaque(str(tree["name"])[:200])
    if kind == "array":
        shape = tuple(tree["shape"])
        if math.prod(max(1, n) for n in shape) > MAX_BYTES:  # no bytes, but endless rows
            raise WireError("an array of a huge shape")
        data = arrays[tree["i"]].reshape(shape)
        array = Array(data, str(tree["kind"]), str(tree["dtype"]), str(tree["device"])[:20])
        return _consistent(array)
    if kind == "strided":
        return Strided(_untree(tree["of"], arrays, depth + 1))
    if kind == "previous":
        return Previous(int(tree["step"]), tuple(int(i) for i in tree["path"]))
    if kind == "recipe":
        return Recipe(*(_untree(part, arrays, depth + 1) for part in tree["of"]))
    if kind in ("tuple", "list"):
        items = [_untree(item, arrays, depth + 1) for item in tree["items"]]
        return tuple(items) if kind == "tuple" else items
    if kind == "dict":
        return {str(k)[:200]: _untree(v, arrays, depth + 1) for k, v in tree["items"]}
    raise WireError("an unknown kind of value")


def _consistent(array: Array) -> Array:
    """The array, if its dtype matches its data; torch's half precisions are sent as wider ones."""
    widened = array.kind == "torch" and array.dtype in ("bfloat16", "float16")
    fits = array.data.dtype.kind == "f" if widened else array.data.dtype.name == array.dtype
    if not fits or array.kind not in ("numpy", "scalar", "torch"):
        raise WireError("an array whose data is not of its declared dtype")
    return array
