# tries: reads the environment of the grader and of every process
# by: namespaces; a cleared environment
# layer: bubblewrap
# verdict: crash
# says: found: nothing

import glob
import os

FOUND = [name for name in os.environ if name.startswith("AUTOGRADER")]
for path in glob.glob("/proc/*/environ") + glob.glob("/proc/*/task/*/environ"):
    try:
        with open(path, "rb") as stream:
            FOUND += [path] if b"AUTOGRADER" in stream.read() else []
    except OSError:
        pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"found: {FOUND or 'nothing'}")
