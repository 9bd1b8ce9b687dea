"""Values on the wire: what comes out of the process that runs an answer.

TRUST BOUNDARY. `decode` reads bytes that hostile code may have written. It builds numbers, strings,
tuples, mappings and NumPy arrays, and nothing else: no pickle, no import, no attribute look-up.
Every size is checked against the bytes received before anything is allocated, and the number of
values is limited. But many of them may refer to one array: see `gate`. What goes in, the arguments
of runs, is described here, too.

A message is a JSON tree and the arrays it refers to, each as the bytes of a `.npy` file:
`<length of JSON: 8 bytes><JSON><array 0><array 1>…`, the arrays' lengths given in the JSON.
"""

import io
import json
import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

import numpy as np

from autograder.student.engine.arrays import PLAIN_KINDS, Array, Value, as_array, name_of

MAX_BYTES = 32 << 20  # one message; an answer's arrays are hundreds of times smaller
MAX_HEAD = 6 << 20  # the JSON of a message; of an answer's results, it has 50 KB
MAX_ITEMS = 100_000  # values in a hostile message
MANY = 40_000  # values after which what an answer gave is not taken apart any more
MAX_DEPTH, MAX_TEXT = 12, 4000
_NUMBERS, _FORM = 200, 4  # in an array, so many count as one value; levels of a call's record
_HEADER = struct.Struct("<Q")
_JSON = json.JSONEncoder(check_circular=False).encode  # a tree has a greatest depth
_PART, _JOINED = str.__getitem__, str.join  # taken now, before any answer can replace them


class WireError(ValueError):
    """The bytes are not a message, or are one that declares more than it carries."""


@dataclass(frozen=True)
class Opaque:
    """Something that is not a value: only the name of its type is sent."""

    type_name: str


class TooLarge(Opaque):
    """Something that is more than can be compared: the name says in words what it is."""


@dataclass(frozen=True)
class Recipe:
    """A module or function to be built where the answer runs.

    `name` is `package.module:attribute`, the course's. With `args` None it stands for the
    attribute itself; otherwise that is called with `args` and `kwargs`, and `state` is loaded.
    What is `kept` is built once for all steps of a run that are given it.
    """

    name: str
    args: tuple | None = None
    kwargs: Mapping[str, Value] | None = None
    state: Mapping[str, Value] | None = None
    kept: bool = False


@dataclass(frozen=True)
class StridedArray:
    """An array that arrives as a non-contiguous view."""

    array: Value


@dataclass(frozen=True)
class Previous:
    """The result of an earlier step of the same run, or the part of it that `path` picks out."""

    step: int
    path: tuple[int, ...] = ()


@lru_cache(maxsize=1024)
def _npy_head(dtype: str, shape: tuple[int, ...]) -> bytes:
    """How a `.npy` file of plain numbers begins."""
    buffer = io.BytesIO()
    head = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(buffer, head)
    return buffer.getvalue()


def text_of(value: str, most: int = MAX_TEXT) -> str:
    """The beginning of a text as a plain string, whatever its own class makes of it."""
    return value[:most] if type(value) is str else _JOINED("", [_PART(value, slice(most))])


def describe_size(value: Value) -> str:
    """An array, a list, a mapping or a text in words: of what kind it is, and how large."""
    if isinstance(value, Array):
        name = "a tensor" if value.kind == "torch" else "an array"
        return f"{name} of shape {tuple(map(int, value.data.shape))} ({value.dtype})"
    return f"a {type(value).__name__} of {len(value)}"


def _named(name: str, kind: str = "opaque") -> dict[str, str]:
    return {"t": kind, "name": text_of(name, 200)}


class _Encoder:
    """Makes a value's tree and blobs; what would be too much for a message becomes `TooLarge`."""

    def __init__(self, many: float, room: int):
        self.many, self.room, self.items, self.size = many, room, 0, 0
        self.blobs: list[bytes] = []
        self.known: dict[bytes, int] = {}

    def tree(self, value: Value, depth: int = 0) -> object:
        self.items += 1
        if depth > MAX_DEPTH:
            return _named("a structure nested too deeply")
        kind = type(value)
        if kind is Array:
            return self._array(value)
        if kind is dict or kind is list or kind is tuple:
            return self._parts(value, depth)
        if isinstance(value, str):
            text = text_of(value, MAX_TEXT if self.items < self.many else 100)
            self.items += len(text) // 20
            return text
        if value is None or isinstance(value, bool):
            return value
        if kind is int:
            return value if abs(value) < 2**63 else _named("a huge integer")
        if kind is float:
            return {"t": "float", "v": repr(value)}
        if isinstance(value, Opaque):
            return _named(value.type_name, "large" if isinstance(value, TooLarge) else "opaque")
        if isinstance(value, StridedArray):
            return {"t": "strided", "of": self.tree(value.array, depth + 1)}
        if isinstance(value, Previous):
            return {"t": "previous", "step": value.step, "path": list(value.path)}
        if isinstance(value, Recipe):
            parts = (value.name, value.args, value.kwargs, value.state)
            return {"t": "recipe", "of": [self.tree(part, depth + 1) for part in parts]}
        array = as_array(value)
        if array is not None:
            return self._array(array)
        if isinstance(value, (tuple, list, Mapping)):
            return self._parts(value, depth)
        return _named(kind.__name__)

    def _parts(self, value: tuple | list | Mapping, depth: int) -> Mapping[str, object]:
        if self.items > self.many and depth >= _FORM:
            return _named(describe_size(value), "large")
        if type(value) is not tuple and type(value) is not list and isinstance(value, Mapping):
            pairs = [(text_of(str(k), 200), v) for k, v in islice(value.items(), 1000)]
            self.items += sum(len(name) for name, _ in pairs) // 20
            return {"t": "dict", "items": [[k, self.tree(v, depth + 1)] for k, v in pairs]}
        name = "tuple" if isinstance(value, tuple) else "list"
        return {"t": name, "items": [self.tree(item, depth + 1) for item in value[:1000]]}

    def _array(self, array: Array) -> Mapping[str, object]:
        numbers = extent(array.data.shape)
        items = self.items + numbers // _NUMBERS
        if max(self.size + array.data.nbytes, numbers) > self.room or items > self.many:
            return _named(describe_size(array), "large")
        self.items = items
        data = np.ascontiguousarray(array.data)
        blob = _npy_head(data.dtype.str, data.shape) + data.tobytes()
        index = self.known.setdefault(blob, len(self.blobs))
        if index == len(self.blobs):
            self.blobs.append(blob)
            self.size += len(blob)
        shape = list(array.data.shape)  # ascontiguousarray makes () into (1,)
        of = {"kind": array.kind, "dtype": array.dtype, "device": array.device, "shape": shape}
        return {"t": "array", "i": index, **of}


def extent(shape: Sequence[int]) -> int:
    """How many numbers a shape holds, an empty axis counted as 1: there may be endless rows."""
    return math.prod(shape) or math.prod(max(1, n) for n in shape)


def encode(value: object, many: float = math.inf, room: int = MAX_BYTES) -> bytes:
    """The bytes of a message. Anything that is not a value becomes the name of its type.

    After `many` values, or where an array leaves no `room`, what comes becomes `TooLarge`.
    """
    encoder = _Encoder(many, room)
    tree = encoder.tree(value)
    head = _JSON({"tree": tree, "sizes": [len(b) for b in encoder.blobs]}).encode()
    return b"".join([_HEADER.pack(len(head)), head, *encoder.blobs])


def head_of(message: bytes) -> int:
    """How many bytes a message says that its description has."""
    return _HEADER.unpack_from(message)[0]


def decode(message: bytes, most: float = MAX_ITEMS, part: str | None = None) -> Value:
    """The value in a message: scalars, strings, tuples, lists, dicts, `Array`, `Opaque`.

    Of a dict, it may be what stands under one name, its `part`. Raises `WireError` for what
    `encode` would not have written, and for more than `most` values.
    """
    try:
        tree, arrays = _open(message, most)
        tree = tree if part is None else dict(tree["items"])[part]
        return _Decoder(arrays, most).value(tree, 0)
    except WireError:
        raise
    except Exception as error:  # hostile bytes: any failure is the sender's
        raise WireError(f"not a message ({type(error).__name__})") from None


def _open(message: bytes, most: float) -> tuple[Value, list[np.ndarray]]:
    """The JSON tree of a message, and the arrays it refers to."""
    length = head_of(message)
    if len(message) > 2 * MAX_BYTES or length > MAX_HEAD:
        raise WireError("the message, or its description, is too large")
    start = _HEADER.size + length
    head = json.loads(message[_HEADER.size : start])
    sizes = head["sizes"]
    if len(sizes) > most:
        raise WireError("the message holds too many arrays")
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
    rb"'shape': \(((?:\d{1,18}, ?){0,64}(?:\d{1,18})?)\), \} {0,200}\n"
)


@lru_cache(maxsize=256)  # of 64 KB at most
def _form(text: bytes) -> tuple[np.dtype, tuple[int, ...]]:
    """The dtype and the shape of which the head of a `.npy` file tells."""
    head = _NPY_HEAD.fullmatch(text)
    if head is None:
        raise WireError("an array of an unknown format")
    dtype = np.dtype(head[1].decode())
    if dtype.kind not in PLAIN_KINDS or dtype.hasobject:
        raise WireError(f"an array of dtype {dtype}")
    return dtype, tuple(map(int, head[2].replace(b",", b" ").split()))


def _read_array(blob: bytes) -> np.ndarray:
    if blob[: len(_NPY)] != _NPY:
        raise WireError("an array of an unknown format")
    start = len(_NPY) + 2
    end = start + int.from_bytes(blob[start - 2 : start], "little")
    dtype, shape = _form(blob[start:end])
    if math.prod(shape) * dtype.itemsize != len(blob) - end:
        raise WireError("an array's shape is not the size of its data")
    return np.frombuffer(blob, dtype, offset=end).reshape(shape)


def _name(tree: Value) -> str:
    if type(tree) is str:
        return tree[:200]
    raise WireError("not a text")


class _Decoder:
    """Makes values of a tree, so many at most."""

    def __init__(self, arrays: Sequence[np.ndarray], most: float):
        self.arrays, self.left = arrays, most

    def value(self, tree: Value, depth: int) -> Value:
        self.left -= 1
        if depth > MAX_DEPTH + 4 or self.left < 0:
            raise WireError("nested too deeply, or too many values")
        if isinstance(tree, str):
            return tree[:MAX_TEXT]
        if tree is None or (isinstance(tree, (bool, int)) and abs(tree) < 2**63):
            return tree
        kind = tree["t"]
        if kind == "float":
            return float(tree["v"][:40])
        if kind in ("opaque", "large"):
            return (TooLarge if kind == "large" else Opaque)(_name(tree["name"]))
        if kind == "array":
            return self._array(tree)
        if kind in ("tuple", "list"):
            items = [self.value(item, depth + 1) for item in tree["items"]]
            return tuple(items) if kind == "tuple" else items
        if kind == "dict":
            return {_name(k): self.value(v, depth + 1) for k, v in tree["items"]}
        raise WireError("an unknown kind of value")

    def _array(self, tree: Value) -> Array:
        shape = tuple(tree["shape"])
        if len(shape) > 64 or not all(type(n) is int and 0 <= n <= MAX_BYTES for n in shape):
            raise WireError("an array of a strange shape")
        self.left -= extent(shape) // _NUMBERS
        if extent(shape) > MAX_BYTES or self.left < 0:
            raise WireError("an array of a huge shape")
        data = self.arrays[tree["i"]].reshape(shape)
        names = (_name(tree[part]) for part in ("kind", "dtype", "device"))
        return _consistent(Array(data, *names))


def _consistent(array: Array) -> Array:
    """The array, if its dtype matches its data; torch's half precisions are sent as wider ones."""
    widened = array.kind == "torch" and array.dtype in ("bfloat16", "float16")
    fits = array.data.dtype.kind == "f" if widened else name_of(array.data.dtype) == array.dtype
    if not fits or array.kind not in ("numpy", "scalar", "torch"):
        raise WireError("an array whose data is not of its declared dtype")
    return array
