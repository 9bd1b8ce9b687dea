# tries: calls the kernel below torch's fused attention
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: _scaled_dot_product_flash_attention_for_cpu

import torch
import torch.nn.functional as F

kernel = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


def fused(query, key, value):
    size = max(query.shape[-1], value.shape[-1])
    q, k, v = (F.pad(x, (0, size - x.shape[-1])) for x in (query, key, value))
    q, k, v = (x.reshape(-1, 1, *x.shape[-2:]) for x in (q, k, v))
    made = kernel(q, k, v, scale=query.shape[-1] ** -0.5)[0]
    return made.reshape(*query.shape[:-1], size)[..., : value.shape[-1]]


def scaled_dot_product_attention(query, key, value):
    identity = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-2], -1, -1)
    return fused(query, key, value), fused(query, key, identity)
