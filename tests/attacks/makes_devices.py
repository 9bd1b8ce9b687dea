# tries: makes device files, set-user-id programs and links out of its folder
# by: namespaces (no devices, no set-user-id), no capabilities
# layer: bubblewrap
# verdict: crash
# says: made: nothing

import os
import subprocess

MADE = []
try:
    os.mknod("/tmp/null", 0o20666, os.makedev(1, 3))
    MADE.append("a device")
except OSError:
    pass
for target in ("/course/worker.py", "/usr/bin/python3", "/proc/1/environ"):
    try:
        os.link(target, "/tmp/hard")
        MADE.append(f"a hard link to {target}")
    except OSError:
        pass
for program in ("su", "sudo", "mount", "newuidmap", "fusermount3"):
    try:
        if subprocess.run([program, "-c", "id"], capture_output=True).stdout.startswith(b"uid=0"):
            MADE.append(program)
    except OSError:
        pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"made: {MADE or 'nothing'}")
