# tries: connects to loopback (TCP, UDP, IPv6) and to the world, and listens
# by: seccomp (no sockets), namespaces (no network)
# layer: namespaces
# verdict: crash
# says: reached: nothing

import socket

REACHED = []
for family, address in (
    (socket.AF_INET, ("127.0.0.1", 47655)),
    (socket.AF_INET, ("192.0.2.1", 80)),
    (socket.AF_INET6, ("::1", 47655)),
):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            with socket.socket(family, kind) as made:
                made.settimeout(0.2)
                made.connect(address)
                made.send(b"x")
                REACHED.append(str(address))
        except OSError:
            pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"reached: {REACHED or 'nothing'}")
