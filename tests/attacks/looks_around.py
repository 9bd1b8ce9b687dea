# tries: lists what else is mounted beside what it needs, and opens devices that it does not need
# by: landlock
# layer: landlock
# verdict: crash
# says: seen: nothing

import os

SEEN = []
for folder in ("/", "/etc", "/dev/pts"):
    try:
        SEEN += [folder] if os.listdir(folder) else []
    except OSError:
        pass
for device in ("/dev/ptmx", "/dev/fuse", "/dev/kvm", "/dev/net/tun"):
    try:
        os.close(os.open(device, os.O_RDWR))
        SEEN.append(device)
    except OSError:
        pass


def softmax(scores, axis=-1):
    raise RuntimeError(f"seen: {SEEN or 'nothing'}")
