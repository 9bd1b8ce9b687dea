# tries: gets torch's function by a name that stands in a variable
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu in line

import torch.nn.functional as F

name = "uleg"[::-1]


def gelu(x):
    return getattr(F, name)(x)
