# tries: loops for ever, swallows every exception and ignores every signal
# by: limits (the wall clock), killed from outside
# layer: limits
# verdict: timeout
# seconds: 1

import signal


def softmax(scores, axis=-1):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
