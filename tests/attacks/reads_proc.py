# tries: lists the processes and reads the command lines and mounts of the machine
# by: namespaces (own processes, own /proc)
# layer: namespaces
# verdict: crash
# says: found: nothing

import glob
import os

FOUND = []
for path in glob.glob("/proc/[0-9]*"):
    if int(path[6:]) not in (1, os.getpid()):
        FOUND.append(path)
for name in ("kcore", "kallsyms", "keys", "sysrq-trigger", "sys/kernel/core_pattern", "timer_list"):
    if os.path.exists(f"/proc/{name}"):
        FOUND.append(name)


def softmax(scores, axis=-1):
    raise RuntimeError(f"found: {FOUND or 'nothing'}")
