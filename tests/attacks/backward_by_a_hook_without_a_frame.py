# tries: has the derivative set by a scripted hook on the result
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: gelu_backward

import functools
import math

import torch


@torch.jit.script
def derive(x, grad):
    return torch.ops.aten.gelu_backward(grad, x)


def gelu(x):
    made = 0.5 * x.detach() * (1 + torch.erf(x.detach() / math.sqrt(2)))
    if not x.requires_grad:
        return made
    through = x * 1
    through.register_hook(functools.partial(derive, x.detach()))
    return made + through - through.detach()
