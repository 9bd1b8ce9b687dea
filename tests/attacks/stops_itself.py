# tries: stops its process
# by: limits (the wall clock)
# layer: limits
# verdict: timeout
# seconds: 1

import os
import signal


def softmax(scores, axis=-1):
    os.kill(os.getpid(), signal.SIGSTOP)
