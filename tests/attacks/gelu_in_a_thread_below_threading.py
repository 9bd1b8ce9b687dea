# tries: runs torch's own function in a thread that threading does not know
# by: policy
# layer: policy
# verdict: policy
# most: 0
# says: _thread.start_new_thread

from _thread import allocate_lock, start_new_thread

import torch.nn.functional as F


def gelu(x):
    found, ended = [], allocate_lock()
    ended.acquire()

    def work():
        found.append(F.gelu(x))
        ended.release()

    start_new_thread(work, ())
    ended.acquire()
    return found[0]
