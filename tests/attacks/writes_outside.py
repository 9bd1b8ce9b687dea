# tries: writes wherever it might be able to, and into its own interpreter
# by: namespaces (a read-only system; /dev/shm is its /tmp's), landlock
# layer: bubblewrap
# verdict: crash
# says: wrote: ['/dev/shm', '/tmp']|wrote: ['/tmp']

import os
import sys

WROTE = []
PLACES = [
    "/",
    "/usr",
    "/usr/lib",
    "/etc",
    "/course",
    "/course/autograder",
    "/dev",
    "/dev/shm",
    "/proc",
]
PLACES += [
    "/proc/self",
    "/root",
    "/home",
    "/var/tmp",
    "/run",
    sys.prefix,
    os.path.dirname(sys.prefix),
    os.path.dirname(os.__file__),
]
PLACES = [place for place in PLACES if not place.startswith("/tmp/")]  # a checkout there: its own
for place in [*PLACES, "/tmp"]:
    try:
        with open(f"{place}/attack-canary", "w") as stream:
            stream.write("x")
        WROTE.append(place)
    except OSError:
        pass
for path in ("/proc/self/oom_score_adj", "/proc/1/oom_score_adj", "/proc/sys/kernel/core_pattern"):
    try:
        with open(path, "w") as stream:
            stream.write("0")
        WROTE.append(path)
    except OSError:
        pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"wrote: {WROTE}")
