# tries: forges gradients under many names for one array of millions
# by: the gate: gradients that nobody asked for are left out
# layer: values
# verdict: wrong crash

import json
import os
import stat
import struct
import sys

from autograder.student.course import find_exercise

PIPES = [n for n in range(64) if os.path.exists(f"/proc/self/fd/{n}")]
PIPES = [n for n in PIPES if stat.S_ISFIFO(os.fstat(n).st_mode)]


def number():
    frame = sys._getframe()
    while "session" not in frame.f_locals or "request" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["request"]["id"]


def reply(name, record, *blobs):
    count = sum(map(len, find_exercise(name)[1].runs(b"")))
    empty = {"raised": None, "values": VALUES, "gradients": DICT, "changed": DICT}
    empty |= {"side_effects": {"t": "list", "items": []}, "operations": DICT} | record
    records = [{"t": "dict", "items": [*map(list, empty.items())]}] * count
    items = [["id", number()], ["records", {"t": "list", "items": records}]]
    head = {"tree": {"t": "dict", "items": items}, "sizes": [len(blob) for blob in blobs]}
    head = json.dumps(head).encode()
    body = struct.pack("<Q", len(head)) + head + b"".join(blobs)
    message = memoryview(struct.pack("<Q", len(body)) + body)
    for pipe in PIPES:
        rest = message
        try:
            while rest:
                rest = rest[os.write(pipe, rest) :]
        except OSError:
            pass
    os._exit(0)


def npy(dtype, shape, data):
    text = str({"descr": dtype, "fortran_order": False, "shape": shape}).replace(")}", "), }")
    head = text.encode() + b" " * (53 - len(text) % 64 + 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def array(shape, dtype="uint8", kind="torch"):
    return {"t": "array", "i": 0, "kind": kind, "dtype": dtype, "device": "cpu", "shape": shape}


DICT = {"t": "dict", "items": []}
VALUES = {"t": "tuple", "items": []}


N = 15_000_000


def masked_attention(query, key, value, mask, scale=None):
    items = [[f"parameter w{i}", array([N])] for i in range(40)]
    slopes = {"t": "dict", "items": items}
    values = {"t": "tuple", "items": [array([3, 5_000_000])]}
    record = {"gradients": slopes, "values": values}
    reply("masked_attention", record, npy("|u1", (N,), bytes(N)))
