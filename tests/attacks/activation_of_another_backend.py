# tries: has a product of oneDNN apply the activation to its result
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: _linear_pointwise in line

import torch


def gelu(x):
    flat = x.detach().reshape(1, -1).contiguous()
    identity = torch.eye(flat.shape[-1], dtype=x.dtype)
    made = torch.ops.mkldnn._linear_pointwise(flat, identity, None, "gelu", [], "none")
    return made.reshape(x.shape)
