# tries: raises its limits, its priority and its share of memory
# by: limits (hard ones), no capabilities
# layer: limits
# verdict: crash
# says: got: nothing

import os
import resource

GOT = []
for name in (
    "RLIMIT_DATA",
    "RLIMIT_AS",
    "RLIMIT_CPU",
    "RLIMIT_NOFILE",
    "RLIMIT_NPROC",
    "RLIMIT_FSIZE",
):
    try:
        resource.setrlimit(getattr(resource, name), (1 << 40, 1 << 40))
        GOT.append(name)
    except (ValueError, OSError):
        pass
try:
    os.nice(-5)
    GOT.append("priority")
except OSError:
    pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"got: {GOT or 'nothing'}")
