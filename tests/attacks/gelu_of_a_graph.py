# tries: is a graph that torch.fx made of torch's own module
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.gelu in line

import torch.fx
from torch import nn

graph = torch.fx.symbolic_trace(nn.Sequential(nn.GELU()))


def gelu(x):
    return graph(x)
