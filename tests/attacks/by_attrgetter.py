# tries: gets torch's function by operator.attrgetter
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu in line

import operator

import torch

ready = operator.attrgetter("nn.functional.ge" + "lu")


def gelu(x):
    return ready(torch)(x)
