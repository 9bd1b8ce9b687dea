"""Known answers to `PackedAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import vision_transformer as right

BANK = Bank("PackedAttention", right, globals())
BANK.read()


@BANK.right
class attention_of_the_blocks(blocks.PackedAttention):
    pass


@BANK.right
class by_chunks(right.PackedAttention):
    def forward(self, x):
        B, n, d = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (p.view(B, n, self.num_heads, -1).transpose(1, 2) for p in parts)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        weights = self.attention_dropout(F.softmax(scores, dim=-1))
        out = (weights @ v).transpose(1, 2).reshape(B, n, d)
        return self.dropout(self.proj(out))


@BANK.right
class by_einsum(nn.Module):
    def __init__(self, d_model, num_heads, qkv_bias=True, attention_dropout=0.0, dropout=0.0):
        super().__init__()
        self.d_k, rest = divmod(d_model, num_heads)
        if rest != 0:
            raise ValueError(f"d_model {d_model} must be a multiple of num_heads {num_heads}")
        self.proj = nn.Linear(d_model, d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model, qkv_bias)
        self.drops = nn.ModuleList([nn.Dropout(attention_dropout), nn.Dropout(p=dropout)])

    def forward(self, x):
        packed = self.qkv(x).reshape(*x.shape[:2], 3, -1, self.d_k)
        q, k, v = packed.unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(self.d_k)
        weights = self.drops[0](scores.softmax(-1))
        out = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return self.drops[1](self.proj(out.flatten(-2)))


@BANK.right
class by_torchs_kernel(right.PackedAttention):
    def forward(self, x):
        B, n, d = x.shape
        packed = self.qkv(x).reshape(B, n, 3, self.num_heads, d // self.num_heads)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        p = self.attention_dropout.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p)
        return self.dropout(self.proj(out.transpose(1, 2).reshape(B, n, d)))


@BANK.right
class head_after_head(right.PackedAttention):
    def forward(self, x):
        d, found = x.shape[-1], []
        d_k = d // self.num_heads
        weight, bias = self.qkv.weight, self.qkv.bias
        for h in range(self.num_heads):
            rows = [slice(part * d + h * d_k, part * d + (h + 1) * d_k) for part in range(3)]
            q, k, v = (F.linear(x, weight[r], None if bias is None else bias[r]) for r in rows)
            weights = torch.softmax(torch.bmm(q, k.mT) * d_k**-0.5, dim=2)
            found.append(self.attention_dropout(weights) @ v)
        return self.dropout(self.proj(torch.cat(found, dim=-1)))
