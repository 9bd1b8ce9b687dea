"""Known answers to `EncoderLayer`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("EncoderLayer", right, globals())
BANK.read()


@BANK.right
class encoder_of_the_blocks(blocks.EncoderLayer):
    pass


@BANK.right
class encoder_spelled_out(right.EncoderLayer):
    def forward(self, x, mask=None):
        if self.norm_first:
            h = self.norm1(x)
            x = x + self.dropout(self.self_attn(h, h, h, mask)[0])
            h = self.norm2(x)
            return x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(h)))))
        x = self.norm1(x + self.dropout(self.self_attn(x, x, x, mask)[0]))
        return self.norm2(x + self.dropout(self.linear2(self.dropout(F.relu(self.linear1(x))))))


def _attend_by_hand(attention, query, source, mask):
    """Multi-head attention written out, with the layers of a block."""
    H = attention.num_heads
    q = attention.W_q(query).unflatten(-1, (H, -1)).transpose(-3, -2)
    k = attention.W_k(source).unflatten(-1, (H, -1)).transpose(-3, -2)
    v = attention.W_v(source).unflatten(-1, (H, -1)).transpose(-3, -2)
    scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if mask is None:
        heads = scores.softmax(-1) @ v
        return attention.W_o(heads.transpose(-3, -2).flatten(-2))
    mask = mask.expand_as(scores)
    some = mask.any(-1, keepdim=True)
    weights = scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some
    out = attention.W_o((weights @ v).transpose(-3, -2).flatten(-2))
    return out * some.any(1)


class _Parts:
    """Encoder and decoder layers in small parts; it comes before the layer's own class."""

    def see(self, attention, query, source, mask):
        return attention(query, source, source, mask=mask)[0]

    def think(self, h):
        return self.linear2(self.dropout(self.linear1(h).relu()))

    def around(self, x, sublayer, norm):
        if self.norm_first:
            return x + self.dropout(sublayer(norm(x)))
        return norm(x + self.dropout(sublayer(x)))


class _Encoder(_Parts, right.EncoderLayer):
    def forward(self, x, mask=None):
        x = self.around(x, lambda h: self.see(self.self_attn, h, h, mask), self.norm1)
        return self.around(x, self.think, self.norm2)


class _Decoder(_Parts, right.DecoderLayer):
    def forward(self, x, memory, self_mask=None, cross_mask=None):
        x = self.around(x, lambda h: self.see(self.self_attn, h, h, self_mask), self.norm1)
        x = self.around(x, lambda h: self.see(self.cross_attn, h, memory, cross_mask), self.norm2)
        return self.around(x, self.think, self.norm3)


class _WideInside:
    def think(self, h):
        hidden = h.double() @ self.linear1.weight.double().T + self.linear1.bias.double()
        hidden = self.dropout(hidden.relu())
        out = hidden @ self.linear2.weight.double().T + self.linear2.bias.double()
        return out.to(h.dtype)


@BANK.right
class encoder_with_attention_by_hand(_Encoder):
    def see(self, attention, query, source, mask):
        return _attend_by_hand(attention, query, source, mask)

    def think(self, h):
        hidden = h @ self.linear1.weight.mT + self.linear1.bias
        hidden = F.dropout(hidden.clamp(min=0), self.dropout.p, self.training)
        return hidden @ self.linear2.weight.mT + self.linear2.bias


@BANK.right
class encoder_wide_inside(_WideInside, _Encoder):
    pass


@BANK.right
class encoder_with_dropout_on_the_weights(_Encoder):
    """As in torch's own layer, the attention weights are dropped as well."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, norm_first=False):
        super().__init__(d_model, num_heads, d_ff, dropout, norm_first)
        self.self_attn = blocks.MultiHeadAttention(d_model, num_heads, dropout)
