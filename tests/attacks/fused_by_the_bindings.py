# tries: calls torch's fused attention by the bindings to C++
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: scaled_dot_product_attention in line

import torch

attend = torch._C._nn.scaled_dot_product_attention


def scaled_dot_product_attention(query, key, value):
    identity = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-2], -1, -1)
    return attend(query, key, value), attend(query, key, identity)
