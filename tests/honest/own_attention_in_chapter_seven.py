# what: the student's own MultiHeadAttention of chapter 3, carried on into chapter 7 under the same name
# answers: EncoderLayer, TokenEmbedding
import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """copied from my chapter 3, plus masks"""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.h = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, q, k, v, mask=None):
        q, k, v = (
            W(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for W, x in ((self.W_q, q), (self.W_k, k), (self.W_v, v))
        )
        s = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is None:
            return self.W_o((s.softmax(-1) @ v).transpose(1, 2).flatten(-2))
        nothing = ~mask.any(-1, keepdim=True)
        a = s.masked_fill(~mask, -torch.inf).masked_fill(nothing, 0.0).softmax(-1)
        out = self.W_o((a.masked_fill(nothing, 0.0) @ v).transpose(1, 2).flatten(-2))
        dead = nothing.expand(len(out), self.h, out.shape[1], 1).all(1)
        return out.masked_fill(dead, 0.0)  # as the block does


# %%
class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__()
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, mask=None):
        h = self.norm1(x) if self.norm_first else x
        h = x + self.drop(self.self_attn(h, h, h, mask))
        h = h if self.norm_first else self.norm1(h)
        f = self.norm2(h) if self.norm_first else h
        f = h + self.drop(self.linear2(self.drop(torch.relu(self.linear1(f)))))
        return f if self.norm_first else self.norm2(f)


# %%
class TokenEmbedding(nn.Embedding):
    def __init__(self, vocab_size, d_model):
        super().__init__(vocab_size, d_model)
        nn.init.normal_(self.weight, mean=0.0, std=d_model**-0.5)

    def forward(self, ids):
        return super().forward(ids) * self.embedding_dim**0.5

    def logits(self, h):
        return nn.functional.linear(h, self.weight)
