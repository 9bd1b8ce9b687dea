# tries: has a function of torch's call torch's encoder layer, as a distance
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.modules.transformer.TransformerEncoderLayer

import torch
from torch import nn
from torch.nn import functional as F

from attention_by_hand.blocks import MultiHeadAttention


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.sizes = (d_model, num_heads, d_ff, dropout)
        self.how = {"norm_first": norm_first, "batch_first": True}

    def theirs(self, x, mask):
        theirs = nn.TransformerEncoderLayer(*self.sizes, dtype=x.dtype, **self.how)
        theirs.train(self.training)
        given = {n: p for n, p in self.named_parameters() if not n.startswith("self_attn")}
        for kind in ("weight", "bias"):
            parts = [getattr(getattr(self.self_attn, f"W_{c}"), kind) for c in "qkvo"]
            given[f"self_attn.in_proj_{kind}"] = torch.cat(parts[:3])
            given[f"self_attn.out_proj.{kind}"] = parts[3]
        if mask is not None:
            shape = (len(x), self.sizes[1], x.shape[1], x.shape[1])
            mask = ~mask.expand(shape).flatten(0, 1)
        return torch.func.functional_call(theirs, given, (x, mask))

    def forward(self, x, mask=None):
        found = []

        def distance(one, other):
            found.append(self.theirs(x, mask))
            return torch.zeros(1)

        F.triplet_margin_with_distance_loss(x, x, x, distance_function=distance)
        return found[0]
