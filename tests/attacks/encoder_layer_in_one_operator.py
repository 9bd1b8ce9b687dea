# tries: calls the operator that computes a whole encoder layer
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: _transformer_encoder_layer_fwd in line

import torch
from torch import nn

from attention_by_hand.blocks import MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.sizes, self.norm_first = (d_model, num_heads), norm_first

    def forward(self, x, mask=None):
        heads = [getattr(self.self_attn, f"W_{c}") for c in "qkv"]
        parts = (self.norm1, self.norm2, self.linear1, self.linear2)
        with torch.no_grad():
            return torch._transformer_encoder_layer_fwd(
                x,
                *self.sizes,
                torch.cat([one.weight for one in heads]),
                torch.cat([one.bias for one in heads]),
                self.self_attn.W_o.weight,
                self.self_attn.W_o.bias,
                False,
                self.norm_first,
                self.norm1.eps,
                *(number for part in parts for number in (part.weight, part.bias)),
            )
