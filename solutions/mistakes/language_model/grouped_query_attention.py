"""Known answers to `GroupedQueryAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("GroupedQueryAttention", right, globals())
BANK.read()


class _Parts(right.GroupedQueryAttention):
    """The attention in small parts."""

    def heads(self, x, layer):
        return layer(x).unflatten(-1, (-1, self.W_q.out_features // self.num_heads)).transpose(1, 2)

    def weigh(self, scores, mask):
        if mask is None:
            return scores.softmax(-1)
        mask = mask.expand_as(scores)
        some = mask.any(-1, keepdim=True)
        return scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some

    def merge(self, heads):
        return self.W_o(heads.transpose(1, 2).flatten(2))


@BANK.right
class with_an_axis_for_the_group(_Parts):
    """Nothing is repeated: the queries of a group have an axis of their own."""

    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        q = q.unflatten(1, (self.num_kv_heads, -1))  # (B, G, H/G, n, d_k)
        scores = (q @ k[:, :, None].mT / math.sqrt(q.shape[-1])).flatten(1, 2)
        weights = self.weigh(scores, mask)
        heads = weights.unflatten(1, (self.num_kv_heads, -1)) @ v[:, :, None]
        return self.merge(heads.flatten(1, 2)), weights


@BANK.right
class by_einsum(_Parts):
    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        q = q.unflatten(1, (self.num_kv_heads, -1))
        scores = torch.einsum("bgrqd,bgkd->bgrqk", q, k) / q.shape[-1] ** 0.5
        weights = self.weigh(scores.flatten(1, 2), mask)
        parts = weights.unflatten(1, (self.num_kv_heads, -1))
        heads = torch.einsum("bgrqk,bgkd->bgrqd", parts, v).flatten(1, 2)
        return self.merge(heads), weights


@BANK.right
class head_by_head(_Parts):
    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        size = self.num_heads // self.num_kv_heads
        scores = [q[:, h] @ k[:, h // size].mT for h in range(self.num_heads)]
        weights = self.weigh(torch.stack(scores, 1) / math.sqrt(q.shape[-1]), mask)
        heads = [weights[:, h] @ v[:, h // size] for h in range(self.num_heads)]
        return self.merge(torch.stack(heads, 1)), weights


@BANK.right
class by_expanding(_Parts):
    def forward(self, x, mask=None):
        q, *shared = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        size = self.num_heads // self.num_kv_heads
        k, v = (t[:, :, None].expand(-1, -1, size, -1, -1).flatten(1, 2) for t in shared)
        weights = self.weigh(torch.matmul(q * q.shape[-1] ** -0.5, k.mT), mask)
        return self.merge(weights.matmul(v)), weights


@BANK.right
class by_repeating_the_weights_of_the_layers(_Parts):
    """Multi-head attention whose matrices hold the shared heads several times."""

    def forward(self, x, mask=None):
        size, d_k = self.num_heads // self.num_kv_heads, self.W_q.out_features // self.num_heads
        W_k, W_v = (
            layer.weight.unflatten(0, (-1, d_k)).repeat_interleave(size, 0).flatten(0, 1)
            for layer in (self.W_k, self.W_v)
        )
        parts = (F.linear(x, W) for W in (self.W_q.weight, W_k, W_v))
        q, k, v = (p.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for p in parts)
        weights = self.weigh(q @ k.mT / math.sqrt(d_k), mask)
        return self.merge(weights @ v), weights


@BANK.right
class wide_inside(_Parts):
    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer).double() for layer in (self.W_q, self.W_k, self.W_v))
        size = self.num_heads // self.num_kv_heads
        k, v = k.repeat_interleave(size, 1), v.repeat_interleave(size, 1)
        weights = self.weigh(q @ k.mT / math.sqrt(q.shape[-1]), mask)
        return self.merge((weights @ v).to(x.dtype)), weights.to(x.dtype)
