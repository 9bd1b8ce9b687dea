# tries: ends with the status that once said: out of memory
# by: another process (it says how the student's ended)
# layer: values
# verdict: crash
# says: exit status 86
# never: MB of memory

import os


def softmax(scores, axis=-1):
    os._exit(86)
