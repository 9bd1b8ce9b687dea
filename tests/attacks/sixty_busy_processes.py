# tries: keeps all processors busy by sixty processes, each in a session of its own
# by: limits (a share of the processors by submission), limits (time)
# layer: limits
# verdict: timeout crash
# seconds: 3

import os

for _ in range(59):
    try:
        if os.fork() == 0:
            os.setsid()
            break
    except OSError:
        break
while True:
    pass


def softmax(scores, axis=-1):
    return scores
