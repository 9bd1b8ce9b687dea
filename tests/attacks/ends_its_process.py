# tries: ends the process with status 0 in the middle of the probe
# by: a silent end is a crash
# layer: values
# verdict: crash

import os


def softmax(scores, axis=-1):
    os._exit(0)
