# tries: traces, reads and writes the warm process's memory
# by: namespaces, seccomp
# layer: namespaces
# verdict: crash
# says: reached: nothing

import ctypes
import os

LIBC = ctypes.CDLL(None, use_errno=True)


def softmax(scores, axis=-1):
    reached = []
    numbers = sorted({int(n) for n in os.listdir("/proc") if n.isdigit()} | {1, os.getppid()})
    for number in (n for n in numbers if n != os.getpid()):
        for flags in (os.O_RDONLY, os.O_RDWR):
            try:
                os.close(os.open(f"/proc/{number}/mem", flags))
                reached.append(f"mem of {number}")
            except OSError:
                pass
        if LIBC.ptrace(16, number, 0, 0) == 0:
            reached.append(f"trace of {number}")
        room = ctypes.create_string_buffer(8)
        piece = (ctypes.c_void_p * 2)(ctypes.addressof(room), 8)
        for call in (LIBC.process_vm_readv, LIBC.process_vm_writev):
            if call(number, piece, 1, (ctypes.c_void_p * 2)(0x400000, 8), 1, 0) > 0:
                reached.append(f"memory of {number}")
    raise RuntimeError(f"reached: {reached or 'nothing'}")
