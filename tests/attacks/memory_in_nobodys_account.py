# tries: takes memory by memfd, shared mappings, System V segments and files in /dev/shm
# by: seccomp, namespaces (/dev/shm is its /tmp's)
# layer: seccomp
# verdict: crash
# says: got: nothing

import ctypes
import mmap
import os

GOT = []
try:
    os.close(os.memfd_create("x"))
    GOT.append("memfd")
except OSError:
    pass
try:
    mmap.mmap(-1, 1 << 20).close()
    GOT.append("a shared mapping")
except OSError:
    pass
if ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) >= 0:
    GOT.append("System V")
try:
    with open("/dev/shm/x", "wb") as file:
        if (
            os.fstat(file.fileno()).st_dev != os.stat("/tmp").st_dev
        ):  # what /tmp may hold is limited
            GOT.append("/dev/shm")
except OSError:
    pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"got: {GOT or 'nothing'}")
