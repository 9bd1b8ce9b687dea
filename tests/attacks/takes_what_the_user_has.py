# tries: takes all that a user has a number of, so that programs outside are left without
# by: seccomp, limits (pending signals)
# layer: seccomp
# verdict: crash
# says: got: nothing

import ctypes
import fcntl
import os
import signal
import sys

C = ctypes.CDLL(None, use_errno=True)
GOT = []


def count(most, take):
    """How many of something there are to be had."""
    for number in range(most):
        if take() < 0:
            return number
    return most


if count(1, C.inotify_init):
    GOT.append("inotify instances")
if count(1, lambda: C.inotify_init1(0)):
    GOT.append("inotify instances")
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGRTMIN])
if count(2000, lambda: C.sigqueue(os.getpid(), int(signal.SIGRTMIN), None)) == 2000:
    GOT.append("pending signals")
reader, writer = os.pipe()
with open(sys.executable, "rb") as program, open("/tmp/mine", "w") as mine:
    for what, descriptor, command, value in (
        ("a larger pipe", writer, 1031, 1 << 20),
        ("a lease that others wait for", program.fileno(), 1024, fcntl.F_RDLCK),
        ("notes of a folder", os.open("/tmp", os.O_RDONLY), 1026, 1),
    ):
        try:
            fcntl.fcntl(descriptor, command, value)
            GOT.append(what)
        except OSError:
            pass
    for number in range(1000):
        fcntl.lockf(mine, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 2 * number)
    if os.fork() == 0:
        try:
            fcntl.lockf(os.open("/tmp/mine", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB, 1)
            os._exit(0)
        except OSError:
            os._exit(1)
    if os.wait()[1] != 0:
        GOT.append("locks without number")


def softmax(scores, axis=-1):
    raise RuntimeError(f"got: {GOT or 'nothing'}")
