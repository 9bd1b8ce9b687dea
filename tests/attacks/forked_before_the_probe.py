# tries: forks; the child goes on serving the judge in its place
# by: a message that is not one costs the process
# layer: values
# verdict: wrong crash

import os
import time

if os.fork() == 0:
    time.sleep(0.3)  # comes back from this cell as if it were the worker


def softmax(scores, axis=-1):
    return scores * 0
