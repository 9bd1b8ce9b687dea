# tries: calls the backward pass as it is written in Python, for compilers
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: native_layer_norm_backward

import torch
from torch._decomp.decompositions import native_layer_norm_backward


def layer_norm_backward(grad_output, x, weight, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    rstd = (x.var(-1, correction=0, keepdim=True) + eps).rsqrt()
    given = (grad_output, x, x.shape[-1:], mean, rstd, weight, torch.zeros_like(weight))
    return native_layer_norm_backward(*given, [True, True, True])
