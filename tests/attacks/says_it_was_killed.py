# tries: ends with the status that a shell gives to a process which was killed
# by: another process (it says how the student's ended)
# layer: values
# verdict: crash
# says: exit status 137
# never: memory

import os


def softmax(scores, axis=-1):
    os._exit(137)
