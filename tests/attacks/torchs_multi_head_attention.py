# tries: has torch's multi-head attention do the work, with weights of its own
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: multi_head_attention_forward in line

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model} features, {num_heads} heads")
        self.num_heads, self.p = num_heads, dropout
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model, bias) for _ in "qkvo")

    def forward(self, query, key, value, head_mask=None):
        layers = (self.W_q, self.W_k, self.W_v)
        bias = None if self.W_q.bias is None else torch.cat([layer.bias for layer in layers])
        out, weights = F.multi_head_attention_forward(
            *(x.transpose(0, 1) for x in (query, key, value)),
            *(query.shape[-1], self.num_heads, None, bias, None, None, False, self.p),
            *(self.W_o.weight, self.W_o.bias, self.training),
            use_separate_proj_weight=True,
            q_proj_weight=self.W_q.weight,
            k_proj_weight=self.W_k.weight,
            v_proj_weight=self.W_v.weight,
            average_attn_weights=False,
        )
        return out.transpose(0, 1), weights
