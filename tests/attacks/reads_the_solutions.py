# tries: imports the reference and the judge, and searches every readable file for them
# by: namespaces (what is not mounted)
# layer: bubblewrap
# verdict: crash
# says: found: nothing

import importlib
import os
import sys

FOUND = []
for name in (
    "solutions",
    "solutions.kernel_regression",
    "solutions.mistakes",
    "autograder.judge",
):
    try:
        importlib.import_module(name)
        FOUND.append(name)
    except ImportError:
        pass
MARK = "BEGIN " + "SOLUTION"
for root in (
    "/course",
    "/root",
    "/home",
    "/etc",
    "/tmp",
    "/srv",
    "/opt",
    "/var",
    os.path.dirname(sys.prefix),
):
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ("site-packages", "dist-packages")]
        for file in files:
            try:
                with open(os.path.join(folder, file), errors="replace") as stream:
                    FOUND += [file] if MARK in stream.read(1 << 20) else []
            except OSError:
                pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"found: {FOUND or 'nothing'}")
