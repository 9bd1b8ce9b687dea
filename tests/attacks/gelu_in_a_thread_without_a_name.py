# tries: runs torch's own function in a thread that threading does not know, by no name to read
# by: observation (of the backward pass, for what has not been seen forward)
# layer: observation
# verdict: policy
# most: 0
# says: torch.ops.aten.gelu_backward

from importlib import import_module
from queue import SimpleQueue

import torch.nn.functional as F

begin = getattr(import_module("_thr" + "ead"), "start_new" + "_thread")


def gelu(x):
    made = SimpleQueue()
    begin(lambda: made.put(F.gelu(x)), ())
    return made.get()
