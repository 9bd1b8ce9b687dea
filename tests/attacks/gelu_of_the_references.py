# tries: calls torch's own function as it is written in Python, for compilers
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch._refs.nn.functional

import torch._refs.nn.functional as refs


def gelu(x):
    return refs.gelu(x)
