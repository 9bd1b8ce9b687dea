# tries: holds memory in the buffers of socket pairs, made larger, in one process
# by: seccomp (buffers keep the size that they have), limits (descriptors)
# layer: seccomp
# verdict: crash
# says: held: under 64 MB

import socket

kept, held = [], 0
for _ in range(1000):
    try:
        pair = socket.socketpair()
        for end in pair:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
            end.setblocking(False)
    except OSError:
        break
    kept.append(pair)
    for end in pair:
        try:
            while True:
                held += end.send(bytes(1 << 16))
        except OSError:
            pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"held: {'under' if 0 < held < 64 << 20 else 'over'} 64 MB, {held} bytes")
