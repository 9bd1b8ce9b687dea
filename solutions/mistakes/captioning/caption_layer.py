"""Known answers to `CaptionLayer`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("CaptionLayer", right, globals())
BANK.read()


class _Parts(right.CaptionLayer):
    """The layer in small parts."""

    def add(self, x, change, norm):
        return norm(x + self.dropout(change))

    def see(self, x, mask):
        return self.self_attn(x, x, x, mask=mask)[0]

    def look(self, x, memory, mask):
        return self.cross_attn(x, memory, mask=mask)[0]

    def think(self, x):
        return self.linear2(self.dropout(F.gelu(self.linear1(x))))

    def forward(self, x, memory=None, self_mask=None, memory_mask=None):
        x = self.add(x, self.see(x, self_mask), self.norm1)
        if memory is not None:
            x = self.add(x, self.look(x, memory, memory_mask), self.norm2)
        return self.add(x, self.think(x), self.norm3)


@BANK.right
class layer_in_small_parts(_Parts):
    pass


@BANK.right
class layer_of_the_blocks(blocks.CaptionLayer):
    pass


@BANK.right
class two_ways_apart(_Parts):
    def forward(self, x, memory=None, self_mask=None, memory_mask=None):
        words = self.norm1(self.dropout(self.see(x, self_mask)) + x)
        if memory is None:
            return self.norm3(self.dropout(self.think(words)) + words)
        both = self.norm2(self.dropout(self.look(words, memory, memory_mask)) + words)
        return self.norm3(self.dropout(self.think(both)) + both)


@BANK.right
class without_weights(_Parts):
    def see(self, x, mask):
        return self.self_attn(x, x, x, mask=mask, need_weights=False)[0]


@BANK.right
class wide_inside(_Parts):
    def think(self, x):
        hidden = x.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(F.gelu(hidden))
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(x.dtype)


@BANK.right
class gelu_written_out(_Parts):
    def think(self, x):
        h = self.linear1(x)
        h = h * (1 + torch.erf(h / math.sqrt(2))) / 2
        return self.linear2(self.dropout(h))


@BANK.right
class in_other_parts(nn.Module):
    """Dropouts of their own, and attention's weights dropped as well, as BLIP's code does."""

    def __init__(self, d_model, d_encoder, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)
        self.cross_attn = blocks.CrossAttention(d_model, d_encoder, num_heads)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.drops = nn.ModuleList(nn.Dropout(dropout) for _ in range(4))
        self.activation = nn.GELU()

    def forward(self, x, memory=None, self_mask=None, memory_mask=None):
        first, second, inside, third = self.drops
        x = self.norm1(x + first(self.self_attn(x, x, x, self_mask)[0]))
        if memory is not None:
            x = self.norm2(x + second(self.cross_attn(x, memory, memory_mask)[0]))
        return self.norm3(x + third(self.linear2(inside(self.activation(self.linear1(x))))))
