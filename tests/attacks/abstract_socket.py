# tries: connects to, and opens, an abstract unix socket, which no file system hides
# by: seccomp (no sockets), namespaces (own network), landlock
# layer: seccomp
# verdict: crash
# says: reached: nothing

import socket

REACHED = []
for do in ("connect", "bind"):
    try:
        with socket.socket(socket.AF_UNIX) as made:
            getattr(made, do)("\0autograder-attack" + ("-mine" if do == "bind" else ""))
            REACHED.append(do)
    except OSError:
        pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"reached: {REACHED or 'nothing'}")
