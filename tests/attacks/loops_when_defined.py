# tries: never gets to the end of its cell
# by: limits (the wall clock)
# layer: limits
# verdict: timeout
# seconds: 1

import time


def softmax(scores, axis=-1):
    return scores * 0


while True:
    time.sleep(0.01)
