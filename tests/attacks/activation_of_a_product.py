# tries: has a matrix product apply the activation to its result
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: _addmm_activation in line

import torch


def gelu(x):
    flat = x.reshape(1, -1)
    identity = torch.eye(flat.shape[-1], dtype=x.dtype)
    zero = torch.zeros(flat.shape[-1], dtype=x.dtype)
    made = torch._addmm_activation(zero, flat, identity, use_gelu=True)
    return made.reshape(x.shape)
