"""The wire: values survive the way there and back, and hostile bytes never become anything else."""

import io
import json
import pickle
import struct
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.student.course import chapters, exercises_of
from autograder.student.engine.records import record_from, run_tree
from autograder.student.engine.runs import call, module
from autograder.student.engine.runs import tensor as declared_tensor
from autograder.student.engine.values import (
    MAX_TEXT,
    Array,
    Opaque,
    Previous,
    Recipe,
    StridedArray,
    WireError,
    decode,
    encode,
)

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]


def npy(array: np.ndarray, **options: object) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npy_header(text: str, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    head = text.encode()
    return b"\x93NUMPY" + version + struct.pack("<H", len(head)) + head + data


def packed(tree: object, *blobs: bytes, sizes: object = None) -> bytes:
    """A message as a forger would write it."""
    sizes = [len(blob) for blob in blobs] if sizes is None else sizes
    head = json.dumps({"tree": tree, "sizes": sizes}).encode()
    return struct.pack("<Q", len(head)) + head + b"".join(blobs)


def of_array(shape: object, **more: object) -> dict[str, object]:
    tree = {"t": "array", "i": 0, "kind": "numpy", "dtype": "float64", "device": "cpu"}
    return tree | {"shape": shape} | more


def assert_same(a: object, b: object) -> None:
    assert type(a) is type(b)
    if isinstance(a, Array):
        assert (a.kind, a.dtype, a.device, a.data.shape) == (
            b.kind,
            b.dtype,
            b.device,
            b.data.shape,
        )
        np.testing.assert_array_equal(a.data, b.data)
    elif isinstance(a, (tuple, list)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_same(x, y)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same(a[key], b[key])
    else:
        assert repr(a) == repr(b)  # NaN too


# --- there and back -----------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63) + 1, 2**63 - 1)
    | st.floats()
    | st.text(max_size=20)
    | st.builds(Opaque, st.text(max_size=20))
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(values)
@settings(max_examples=150, deadline=None)
def test_plain_values_come_back_as_they_were(value):
    assert_same(decode(encode(value)), value)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 3), (2, 3, 4)])
def test_arrays_come_back_as_they_were(dtype, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    assert_same(decode(encode(array)), Array(array, "numpy", dtype))


@pytest.mark.parametrize("dtype", [*DTYPES, "bfloat16"])
def test_tensors_come_back_with_their_dtype(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(getattr(torch, dtype))
    made = decode(encode(tensor))
    assert (made.kind, made.dtype, made.data.shape) == ("torch", dtype, (2, 3))
    np.testing.assert_array_equal(made.data.astype(float), tensor.double().numpy())


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(10)[::-2],
        np.asfortranarray(np.eye(3)),
        np.float32(2),
    ],
    ids=["transposed", "backwards", "fortran", "scalar"],
)
def test_layout_does_not_matter(array):
    np.testing.assert_array_equal(decode(encode(array)).data, array)


@pytest.mark.share(3)
@pytest.mark.parametrize("slug", chapters())
def test_the_runs_of_every_exercise_survive(slug):
    for exercise in exercises_of(slug):
        for run in (run for row in exercise.runs(b"seed") for run in row):
            assert_arrives(run)


@pytest.mark.parametrize(
    "run",
    [
        call(StridedArray(np.eye(3)), scale=2.0),
        module(4, bias=False, state={"w": declared_tensor(np.ones(2), "bfloat16")}).then(
            Previous(0, (1,))
        ),
        call(Recipe("attention_by_hand.blocks:Attention", (1,), {"d": 2}, {"w": np.ones(2)})),
    ],
    ids=["strided", "module", "recipe"],
)
def test_runs_survive(run):
    assert_arrives(run)


def assert_arrives(run):
    """A run comes through the pipe to the sandbox as it was."""
    assert encode(run_tree(pickle.loads(pickle.dumps(run, 5)))) == encode(run_tree(run))


@pytest.mark.parametrize("value", [StridedArray(np.eye(3)), Previous(0, (1,)), Recipe("a:b")])
def test_no_reply_holds_what_only_a_request_has(value):
    with pytest.raises(WireError, match="unknown kind"):
        decode(encode(value))


# --- what is not a value ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        object(), lambda: 0, type, np.array([{}], dtype=object), np.array(["a"]), np.array([1j]),
        np.zeros(2, dtype=[("a", "f8")]), np.array(["2020-01-01"], dtype="M8[D]"), 10**40, {1, 2},
        torch.tensor([1j]), torch.eye(2).to_sparse(), iter([]),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_what_is_not_a_value_becomes_the_name_of_its_type(value):
    assert isinstance(decode(encode(value)), Opaque)


def test_nesting_and_size_are_bounded():
    nested: list = []
    for _ in range(100):
        nested = [nested]
    assert b"nested too deeply" in encode(nested)
    assert isinstance(decode(encode(nested)), list)
    huge = np.broadcast_to(np.float64(1), (1 << 20, 1 << 10))
    assert isinstance(decode(encode(Array(huge))), Opaque)
    assert len(decode(encode("x" * 10**6))) == MAX_TEXT


# --- hostile bytes ------------------------------------------------------------------------------

HOSTILE = {
    "nothing": b"",
    "a short header": b"\x01\x00",
    "a length past the end": struct.pack("<Q", 2**62) + b"{}",
    "the largest length": b"\xff" * 8 + b"{}",
    "no JSON": struct.pack("<Q", 3) + b"abc",
    "not UTF-8": struct.pack("<Q", 4) + b"\"\xff\xfe\"",
    "a JSON list": struct.pack("<Q", 2) + b"[]",
    "no sizes": struct.pack("<Q", 11) + b'{"tree": 1}',
    "a pickle": pickle.dumps({"a": np.zeros(3)}),
    "a bare npy file": npy(np.zeros(3)),
    "an unknown kind": packed({"t": "exec", "of": "1"}),
    "no kind": packed({"x": 1}),
    "a list for a tree": packed([1, 2]),
    "a JSON float": packed(1.5),
    "a number that is none": packed({"t": "float", "v": "0x1"}),
    "a huge integer": packed(10**400),
    "an integer of a million digits": struct.pack("<Q", 1000023)
    + b'{"sizes": [], "tree": ' + b"9" * 1000000 + b"}",
    "sizes that are missing": packed(1, sizes=[8]),
    "sizes that are negative": packed(1, npy(np.zeros(1)), sizes=[-1, 137]),
    "sizes that are true": packed(1, b"x", sizes=[True]),
    "sizes that are huge": packed(1, sizes=[2**70]),
    "bytes after the end": packed(1) + b"x",
    "an array that is missing": packed(of_array([3])),
    "an array index that is text": packed(of_array([3], i="0"), npy(np.zeros(3))),
    "an object array": packed(of_array([1]), npy(np.array([{}], object), allow_pickle=True)),
    "a structured array": packed(of_array([2]), npy(np.zeros(2, [("a", "f8")]))),
    "an array of text": packed(of_array([1]), npy(np.array(["abc"]))),
    "an array of dates": packed(of_array([1]), npy(np.array(["2020"], "M8[Y]"))),
    "an array of complex numbers": packed(of_array([1], dtype="complex128"), npy(np.array([1j]))),
    "an array in Fortran's order": packed(of_array([2, 2]), npy(np.asfortranarray(np.eye(2)))),
    "a declared shape that is huge": packed(
        of_array([2**40]),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }\n"),
    ),
    "a declared shape that overflows": packed(
        of_array([1]),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
    ),
    "a negative shape": packed(
        of_array([1]),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }\n", b"12345678"),
    ),
    "a shape of booleans": packed(
        of_array([1]),
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }\n", b"12345678"),
    ),
    "a header that calls": packed(of_array([1]), npy_header("__import__('os').system('true')\n")),
    "a header nested deeply": packed(of_array([1]), npy_header("-" * 9000 + "1")),
    "a header of brackets": packed(of_array([1]), npy_header("[" * 9000)),
    "a header that is cut": packed(of_array([1]), b"\x93NUMPY\x01\x00\xff\xff{"),
    "a later npy version": packed(of_array([1]), npy_header("{}", version=b"\x03\x00")),
    "a magic that is wrong": packed(of_array([1]), b"\x93PUMPY\x01\x00"),
    "another shape than the data's": packed(of_array([4]), npy(np.zeros(3))),
    "a shape past any integer": packed(of_array([2**70]), npy(np.zeros(3))),
    "a shape of text": packed(of_array("abc"), npy(np.zeros(3))),
    "another dtype than the data's": packed(of_array([3], dtype="float32"), npy(np.zeros(3))),
    "a dtype that is none": packed(of_array([3], dtype="x" * 10**6), npy(np.zeros(3))),
    "a kind that is none": packed(of_array([3], kind="evil"), npy(np.zeros(3))),
    "a tuple of nothing": packed({"t": "tuple"}),
    "a dict that is none": packed({"t": "dict", "items": [[1, 2, 3]]}),
    "a recipe of five parts": packed({"t": "recipe", "of": ["os:system", 1, 2, 3, 4]}),
    "a step that is text": packed({"t": "previous", "step": "x", "path": []}),
}  # fmt: skip


def nested(depth: int) -> bytes:
    inner = '{"t": "list", "items": [' * depth + "]}" * depth
    head = f'{{"sizes": [], "tree": {inner}}}'.encode()
    return struct.pack("<Q", len(head)) + head


HOSTILE |= {f"lists nested {n} times": nested(n) for n in (50, 5_000, 200_000)}


@pytest.mark.parametrize("message", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_bytes_are_refused(message):
    before = set(sys.modules)
    with pytest.raises(WireError):
        decode(message)
    assert not {name for name in set(sys.modules) - before if not name.startswith("encodings")}


def test_texts_from_outside_are_cut():
    assert len(decode(packed("x" * 10**6))) == MAX_TEXT
    assert len(decode(packed({"t": "opaque", "name": "x" * 10**6})).type_name) <= MAX_TEXT


MESSAGE = encode(
    {"a": (np.arange(4.0), torch.ones(2, 2)), "b": [None, True, 1, 2.5, "text"], "c": Opaque("x")}
)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_a_damaged_message_is_refused_or_still_only_values(data):
    message = bytearray(MESSAGE)
    for _ in range(data.draw(st.integers(1, 6))):
        message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.integers(0, 255))
    message = bytes(message[: data.draw(st.integers(0, len(message)))]) or bytes(message)
    try:
        value = decode(message)
    except WireError:
        return
    assert_only_values(value)


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_noise_is_refused(noise):
    with pytest.raises(WireError):
        decode(noise)


def assert_only_values(value: object) -> None:
    plain = (type(None), bool, int, float, str, Array, Opaque, Previous, Recipe, StridedArray)
    if isinstance(value, (tuple, list)):
        for item in value:
            assert_only_values(item)
    elif isinstance(value, dict):
        assert all(type(key) is str for key in value)
        for item in value.values():
            assert_only_values(item)
    else:
        assert isinstance(value, plain)


@given(values)
@settings(max_examples=100, deadline=None)
def test_no_tree_but_a_record_is_a_record(tree):
    with pytest.raises(WireError):
        record_from(tree)
