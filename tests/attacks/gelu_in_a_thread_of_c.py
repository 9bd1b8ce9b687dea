# tries: runs torch's own function in a thread that it starts by a call into C
# by: policy
# layer: policy
# verdict: policy
# most: 0
# says: cffi

import cffi
import torch.nn.functional as F

ffi = cffi.FFI()
ffi.cdef("""
int pthread_create(unsigned long *, void *, void *(*)(void *), void *);
int pthread_join(unsigned long, void **);
""")
C = ffi.dlopen(None)


def gelu(x):
    found = []

    @ffi.callback("void *(void *)")
    def work(_):
        found.append(F.gelu(x))
        return ffi.NULL

    thread = ffi.new("unsigned long *")
    C.pthread_create(thread, ffi.NULL, work, ffi.NULL)
    C.pthread_join(thread[0], ffi.NULL)
    return found[0]
