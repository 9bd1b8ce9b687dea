# tries: walks up its callers' frames and takes whatever looks like an expected value
# by: they are not in this process
# layer: not in the process
# verdict: crash
# says: found: nothing

import sys


def softmax(scores, axis=-1):
    found, frame = set(), sys._getframe(1)
    while frame is not None:
        for scope in (frame.f_locals, frame.f_globals):
            found |= {
                name for name in scope if name in ("expected", "mistakes", "secret", "seed_for")
            }
        frame = frame.f_back
    raise RuntimeError(f"found: {sorted(found) or 'nothing'}")
