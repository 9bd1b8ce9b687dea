# tries: leaves work for the end of the process: prints, forges a message, forks
# by: killed before it can
# layer: values
# verdict: wrong

import atexit
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


@atexit.register
def last_words():
    send(b"3.0" * 100)
    if os.fork() == 0:
        while True:
            pass


def softmax(scores, axis=-1):
    return scores * 0
