# tries: never gets to the end of its cell
# by: limits (of the sandbox's own time); what is defined above counts
# layer: limits
# verdict: wrong
# seconds: 1

import time


def softmax(scores, axis=-1):
    return scores * 0


while True:
    time.sleep(0.01)
