# tries: calls the attention that torch has for ONNX
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.onnx|torch.ops.onnx

import torch
import torch.onnx


def attend(query, key, value):
    q, k, v = (x.reshape(-1, 1, *x.shape[-2:]) for x in (query, key, value))
    made = torch.onnx.ops.attention(q, k, v)[0]
    return made.reshape(*query.shape[:-1], value.shape[-1])


def scaled_dot_product_attention(query, key, value):
    identity = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-2], -1, -1)
    return attend(query, key, value), attend(query, key, identity)
