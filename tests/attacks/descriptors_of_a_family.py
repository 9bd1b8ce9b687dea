# tries: holds memory in the buffers of sockets and pipes, in many processes
# by: the watch (descriptors of all processes together)
# layer: limits
# verdict: crash
# says: 512 files, pipes and sockets

import os
import time

for _ in range(12):
    if os.fork() == 0:
        kept = []
        try:
            while True:
                kept.append(os.pipe())
        except OSError:
            time.sleep(600)
time.sleep(10)


def softmax(scores, axis=-1):
    return scores
