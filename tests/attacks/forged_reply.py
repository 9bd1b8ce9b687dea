# tries: answers for itself on every descriptor that it finds, then falls silent
# by: values; a forged message costs the process
# layer: values
# verdict: missing crash

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


def softmax(scores, axis=-1):
    send(frame({"t": "dict", "items": [["id", 2], ["verdict", "correct"], ["score", 3]]}))
    os._exit(0)
