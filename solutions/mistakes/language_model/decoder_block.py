"""Known answers to `DecoderBlock`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("DecoderBlock", right, globals())
BANK.read()


class _Parts(right.DecoderBlock):
    """The block in small parts."""

    def see(self, h, mask):
        return self.attn(h, h, h, mask=mask)[0]

    def think(self, h):
        return self.linear2(self.dropout(F.gelu(self.linear1(h))))

    def forward(self, x, mask=None):
        x = x + self.dropout(self.see(self.norm1(x), mask))
        return x + self.dropout(self.think(self.norm2(x)))


@BANK.right
class block_of_the_blocks(blocks.DecoderBlock):
    pass


@BANK.right
class block_with_attention_by_hand(_Parts):
    def see(self, h, mask):
        H = self.attn.num_heads
        parts = self.attn.W_q(h), self.attn.W_k(h), self.attn.W_v(h)
        q, k, v = (p.unflatten(-1, (H, -1)).transpose(-3, -2) for p in parts)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is None:
            return self.attn.W_o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        mask = mask.expand_as(scores)
        some = mask.any(-1, keepdim=True)
        weights = scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some
        out = self.attn.W_o((weights @ v).transpose(1, 2).flatten(2))
        return out * some.any(1)


@BANK.right
class block_with_gelu_written_out(_Parts):
    def think(self, h):
        h = h @ self.linear1.weight.mT + self.linear1.bias
        h = h * (1 + torch.erf(h / math.sqrt(2))) / 2
        return F.dropout(h, self.dropout.p, self.training) @ self.linear2.weight.mT + (
            self.linear2.bias
        )


@BANK.right
class block_in_other_parts(nn.Module):
    """Three dropouts and an activation as modules of their own."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = blocks.MultiHeadAttention(d_model, num_heads)
        self.activation = nn.GELU()
        self.drop1, self.drop2, self.drop3 = (nn.Dropout(dropout) for _ in range(3))

    def forward(self, x, mask=None):
        h = self.norm1(x)
        attended, _ = self.attn(query=h, key=h, value=h, mask=mask)
        x = torch.add(x, self.drop1(attended))
        h = self.drop2(self.activation(self.linear1(self.norm2(x))))
        return torch.add(x, self.drop3(self.linear2(h)))


@BANK.right
class block_wide_inside(_Parts):
    def think(self, h):
        hidden = h.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(F.gelu(hidden))
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(h.dtype)
