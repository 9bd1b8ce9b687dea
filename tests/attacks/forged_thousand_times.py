# tries: forges records whose thousand items refer to one array of millions
# by: values; what is referred to counts as often as it is
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


N = 4_000_000


def beam_search(model, source, bos_id, eos_id, max_len, beam_size=4, length_penalty=0.6):
    pair = {"t": "tuple", "items": [array([N]), {"t": "float", "v": "0.0"}]}
    values = {"t": "tuple", "items": [{"t": "list", "items": [pair] * 30}]}
    reply("beam_search", {"values": values}, npy("|u1", (N,), bytes(N)))
