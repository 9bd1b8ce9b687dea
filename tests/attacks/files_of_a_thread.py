# tries: starts a thread whose open files are its own, so that nobody counts them
# by: seccomp
# layer: seccomp
# verdict: crash
# says: a thread of its own: False

import ctypes
import time

C = ctypes.CDLL(None, use_errno=True)
FLAGS = 0x100 | 0x200 | 0x800 | 0x10000  # CLONE_VM, FS, SIGHAND and THREAD, without FILES
stack = ctypes.create_string_buffer(1 << 16)
top = ctypes.c_void_p((ctypes.addressof(stack) + (1 << 16)) & ~15)
pause = ctypes.cast(C.pause, ctypes.c_void_p)
started = C.clone(pause, top, FLAGS, None) > 0
time.sleep(0.1)


def softmax(scores, axis=-1):
    raise RuntimeError(f"a thread of its own: {started}")
