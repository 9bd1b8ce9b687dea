"""Known answers to `CrossAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("CrossAttention", right, globals())
BANK.read()


class _Parts(right.CrossAttention):
    """The parts of the reference."""


@BANK.right
class attention_of_the_blocks(_Parts):
    """Torch's fused attention gives the output, and what it gives the identity the weights."""

    def forward(self, x, memory, mask=None):
        H, n_k = self.num_heads, memory.shape[1]
        q, k, v = (
            part.reshape(len(part), part.shape[1], H, -1).permute(0, 2, 1, 3)
            for part in (self.W_q(x), self.W_k(memory), self.W_v(memory))
        )
        eye = torch.eye(n_k, dtype=x.dtype, device=x.device).expand(len(x), H, n_k, n_k)
        weights = blocks.fused_attention(q, k, eye, mask)
        out = self.W_o((weights @ v).permute(0, 2, 1, 3).reshape(x.shape))
        if mask is not None:
            out = out.masked_fill(~mask.expand(len(x), 1, x.shape[1], n_k).any(-1).mT, 0)
        return out, weights


@BANK.right
class by_einsum(_Parts):
    def forward(self, x, memory, mask=None):
        H = self.num_heads
        q = self.W_q(x).unflatten(2, (H, -1))
        k = self.W_k(memory).unflatten(2, (H, -1))
        v = self.W_v(memory).unflatten(2, (H, -1))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is None:
            weights = torch.softmax(scores, -1)
            return self.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2)), weights
        low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(low, -1).masked_fill(~mask, 0)
        out = self.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))
        seen = mask.expand(len(x), 1, *scores.shape[2:]).any(-1)[:, 0, :, None]
        return torch.where(seen, out, torch.zeros_like(out)), weights


@BANK.right
class head_by_head(_Parts):
    def forward(self, x, memory, mask=None):
        d_k = x.shape[-1] // self.num_heads
        if mask is None:
            mask = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=x.device)
        mask = mask.expand(len(x), 1, x.shape[1], memory.shape[1])[:, 0]
        none = ~mask.any(-1, keepdim=True)
        outs, maps = [], []
        for q, k, v in zip(
            *(part.split(d_k, -1) for part in (self.W_q(x), self.W_k(memory), self.W_v(memory))),
            strict=True,
        ):
            scores = torch.bmm(q, k.transpose(1, 2)) * d_k**-0.5
            scores = torch.where(mask | none, scores, float("-inf"))
            maps.append(F.softmax(scores, dim=2).masked_fill(none, 0))
            outs.append(maps[-1] @ v)
        out = self.W_o(torch.cat(outs, -1)).masked_fill(none, 0)
        return out, torch.stack(maps, 1)


@BANK.right
class in_other_parts(nn.Module):
    """No head's size is kept but d_k; the linear layers in another order."""

    def __init__(self, d_model, d_encoder, num_heads):
        super().__init__()
        self.d_k, rest = divmod(d_model, num_heads)
        if rest != 0:
            raise ValueError(f"d_model {d_model} not divisible by {num_heads}")
        self.W_o = nn.Linear(d_model, d_model)
        self.W_v, self.W_k = (nn.Linear(d_encoder, d_model) for _ in range(2))
        self.W_q = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        B, n_q, d_model = x.shape
        q = self.W_q(x).reshape(B, n_q, -1, self.d_k).swapaxes(1, 2)
        k = self.W_k(memory).reshape(B, memory.shape[1], -1, self.d_k).swapaxes(1, 2)
        v = self.W_v(memory).reshape(B, memory.shape[1], -1, self.d_k).swapaxes(1, 2)
        scores = q.matmul(k.swapaxes(2, 3)).div(self.d_k**0.5)
        if mask is not None:
            mask = torch.broadcast_to(mask, (B, 1, n_q, k.shape[2]))
            scores = scores.masked_fill(mask.logical_not(), -1e30 if x.dtype.itemsize > 2 else -6e4)
        weights = scores.softmax(3)
        if mask is not None:
            weights = weights * mask
        out = self.W_o(weights.matmul(v).swapaxes(1, 2).reshape(B, n_q, d_model))
        return (out if mask is None else out * mask.any(3).swapaxes(1, 2)), weights
