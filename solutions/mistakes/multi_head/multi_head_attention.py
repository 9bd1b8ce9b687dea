"""Known answers to `MultiHeadAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import multi_head as right
from solutions.mistakes.multi_head.split_heads import BANK as SPLIT_HEADS

BANK = Bank("MultiHeadAttention", right, globals())


def merged_without_transpose(x):
    B, H, n, d_k = x.shape
    return x.reshape(B, n, H * d_k)


BANK.read()


class _Attention(right.MultiHeadAttention):
    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(value)

    def apply_mask(self, weights, head_mask):
        return weights if head_mask is None else weights * head_mask.reshape(-1, 1, 1)


@BANK.right
class ByEinsum(_Attention):
    def forward(self, query, key, value, head_mask=None):
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)) for x in self.project(query, key, value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.size(-1))
        weights = F.softmax(scores, dim=3)
        applied = self.apply_mask(self.dropout(weights), head_mask)
        return self.W_o(torch.einsum("bhqk,bkhd->bqhd", applied, v).flatten(2)), weights


@BANK.right
class ByLoopOverHeads(_Attention):
    def forward(self, query, key, value, head_mask=None):
        parts = [x.chunk(self.num_heads, -1) for x in self.project(query, key, value)]
        outs, seen = [], []
        for h, (q, k, v) in enumerate(zip(*parts, strict=True)):
            weights = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
            out = self.dropout(weights) @ v
            outs.append(out if head_mask is None else head_mask[h] * out)
            seen.append(weights)
        return self.W_o(torch.cat(outs, dim=-1)), torch.stack(seen, dim=1)


@BANK.right
class HeadsInTheBatch(_Attention):
    """Batch and heads in one axis, as torch.bmm requires; the mask on the heads' outputs."""

    def forward(self, query, key, value, head_mask=None):
        B, H = query.shape[0], self.num_heads
        q, k, v = (self.split(x).flatten(0, 1) for x in self.project(query, key, value))
        weights = torch.bmm(q * q.shape[-1] ** -0.5, k.transpose(1, 2)).softmax(-1)
        heads = torch.bmm(self.dropout(weights), v).unflatten(0, (B, H))
        if head_mask is not None:
            heads = heads * head_mask[None, :, None, None]
        return self.W_o(heads.permute(0, 2, 1, 3).flatten(2)), weights.unflatten(0, (B, H))


@BANK.right
class ByTorchsKernel(_Attention):
    """torch's fused kernel for the output, the weights beside it, the mask on the values."""

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        if head_mask is not None:
            v = v * head_mask.view(-1, 1, 1)
        p = self.dropout.p if self.training else 0.0
        return self.W_o(
            F.scaled_dot_product_attention(q, k, v, dropout_p=p).transpose(1, 2).flatten(2)
        ), weights


@BANK.right
class InDoublePrecision(_Attention):
    """float64 between the projections, and W_o applied slice by slice."""

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x).double() for x in self.project(query, key, value))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        heads = F.dropout(weights, self.dropout.p, self.training) @ v
        if head_mask is not None:
            heads = torch.einsum("bhqd,h->bhqd", heads, head_mask.double())
        W = self.W_o.weight.double().unflatten(1, (self.num_heads, -1))  # (d_model, H, d_k)
        out = torch.einsum("bhqd,mhd->bqm", heads, W).to(query.dtype)
        out = out if self.W_o.bias is None else out + self.W_o.bias
        return out, weights.to(query.dtype)
