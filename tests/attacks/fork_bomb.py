# tries: forks without end
# by: limits (processes)
# layer: limits
# verdict: crash timeout memory
# seconds: 3

import os


def softmax(scores, axis=-1):
    while True:
        try:
            os.fork()
        except OSError:
            pass
