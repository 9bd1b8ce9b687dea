# tries: sends records with malformed .npy headers, an object dtype and a huge declared shape
# by: values: sizes are checked before anything is made
# layer: values
# verdict: crash

import json
import os
import stat
import struct

PIPES = [n for n in range(64) if os.path.exists(f"/proc/self/fd/{n}")]
PIPES = [n for n in PIPES if stat.S_ISFIFO(os.fstat(n).st_mode)]


def frame(tree, blobs=()):
    head = json.dumps({"tree": tree, "sizes": [len(blob) for blob in blobs]}).encode()
    body = struct.pack("<Q", len(head)) + head + b"".join(blobs)
    return struct.pack("<Q", len(body)) + body


def send(message):
    for pipe in PIPES:
        try:
            os.write(pipe, message)
        except OSError:
            pass


def npy(description):
    header = description.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


BLOBS = [
    npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }") + b"cos\nsystem\n",
    npy("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }"),
    npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"),
    npy("__import__('os').system('true')"),
]


def softmax(scores, axis=-1):
    for number, blob in enumerate(BLOBS):
        array = {"t": "array", "i": 0, "kind": "numpy", "dtype": "float64", "device": "cpu"}
        tree = {"t": "dict", "items": [["id", 2], ["records", array | {"shape": [10**12]}]]}
        send(frame(tree, [blob]))
    os._exit(0)
