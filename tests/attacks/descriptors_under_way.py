# tries: keeps open files where no process has them: on their way through a socket
# by: seccomp
# layer: seccomp
# verdict: crash
# says: sent: 0

import socket

one, other = socket.socketpair()
sent = 0
for _ in range(100):
    left, right = socket.socketpair()
    try:
        socket.send_fds(one, [b"x"], [left.fileno(), right.fileno()])
        sent += 1
    except OSError:
        pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"sent: {sent}")
