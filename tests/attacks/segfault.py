# tries: reads address 0
# by: a silent end is a crash
# layer: values
# verdict: crash

import faulthandler


def softmax(scores, axis=-1):
    faulthandler._sigsegv()
