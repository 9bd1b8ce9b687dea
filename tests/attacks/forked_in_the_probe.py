# tries: forks inside the call; both processes return
# by: the worker answers from its own process alone
# layer: values
# verdict: wrong crash

import os


def softmax(scores, axis=-1):
    os.fork()
    return scores * 0
