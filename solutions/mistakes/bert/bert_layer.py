"""Known answers to `BertLayer`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import bert as right

BANK = Bank("BertLayer", right, globals())
BANK.read()


class _Parts(right.BertLayer):
    """The layer in small parts."""

    def see(self, x, mask):
        return self.attention(x, x, x, mask=mask, need_weights=False)[0]

    def think(self, x):
        return self.linear2(F.gelu(self.linear1(x)))

    def forward(self, x, mask=None):
        x = self.norm1(self.dropout(self.see(x, mask)) + x)
        if self.chunk_size == 0:
            return self.norm2(self.dropout(self.think(x)) + x)
        h = [self.think(part) for part in torch.split(x, self.chunk_size, 1)]
        return self.norm2(self.dropout(torch.cat(h, 1)) + x)


@BANK.right
class layer_in_small_parts(_Parts):
    pass


@BANK.right
class layer_of_the_blocks(blocks.BertLayer):
    pass


@BANK.right
class with_attention_by_hand(_Parts):
    def see(self, x, mask):
        H = self.attention.num_heads
        parts = self.attention.W_q(x), self.attention.W_k(x), self.attention.W_v(x)
        q, k, v = (p.unflatten(-1, (H, -1)).transpose(-3, -2) for p in parts)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        some = None
        if mask is None:
            weights = scores.softmax(-1)
        else:
            mask = mask.expand_as(scores)
            some = mask.any(-1, keepdim=True)
            weights = scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some
        weights = F.dropout(weights, self.attention.dropout, self.training)
        out = self.attention.W_o((weights @ v).transpose(1, 2).flatten(2))
        return out if some is None else out * some.any(1)


@BANK.right
class with_gelu_written_out(_Parts):
    def think(self, x):
        h = x @ self.linear1.weight.mT + self.linear1.bias
        h = h * (1 + torch.erf(h / math.sqrt(2))) / 2
        return h @ self.linear2.weight.mT + self.linear2.bias


@BANK.right
class dropout_inside_as_well(_Parts):
    """As torch's own layer and those of chapter 7 have it."""

    def think(self, x):
        return self.linear2(self.dropout(F.gelu(self.linear1(x))))


@BANK.right
class in_other_parts(nn.Module):
    """Two dropouts and an activation as modules of their own; chunks by their first positions."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, chunk_size=0):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model, 1e-12) for _ in range(2))
        self.attention = blocks.MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.activation = nn.GELU()
        self.drop1, self.drop2 = nn.Dropout(dropout), nn.Dropout(dropout)
        self.size = chunk_size

    def forward(self, x, mask=None):
        attended, _ = self.attention(query=x, key=x, value=x, mask=mask)
        x = self.norm1(torch.add(x, self.drop1(attended)))
        n = x.shape[1]
        size = self.size if self.size > 0 else n
        h = []
        for start in range(0, n, size):
            wide = self.activation(self.linear1(x[:, start : start + size]))
            h.append(self.linear2(wide))
        return self.norm2(torch.add(x, self.drop2(torch.cat(h, dim=-2))))


@BANK.right
class wide_inside(_Parts):
    def think(self, x):
        hidden = x.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        out = F.gelu(hidden) @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(x.dtype)
