# tries: makes itself root of new namespaces, mounts, enters others' namespaces
# by: seccomp
# layer: seccomp
# verdict: crash
# says: reached: nothing

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)


def softmax(scores, axis=-1):
    reached = []
    for name, kind in (
        ("user", 0x10000000),
        ("mount", 0x20000),
        ("net", 0x40000000),
        ("pid", 0x20000000),
    ):
        if LIBC.unshare(kind) == 0:
            reached.append(f"own {name}")
    for name in ("mnt", "net", "pid", "user"):
        try:
            space = os.open(f"/proc/1/ns/{name}", os.O_RDONLY)
            reached += [f"{name} of 1"] if LIBC.setns(space, 0) == 0 else []
        except OSError:
            pass
    reached += ["mount"] if LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 else []
    reached += ["chroot"] if LIBC.chroot(b"/tmp") == 0 else []
    reached += ["root"] if LIBC.setuid(0) == 0 else []
    raise RuntimeError(f"reached: {reached or 'nothing'}")
