"""Known answers to `attend_with_cache`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("attend_with_cache", right, globals())
INF = float("inf")


def _heads(attention, x):
    """(B, t, d_model) → (B, H, t, d_k)."""
    return x.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)


def _merged(heads):
    """(B, H, t, d_k) → (B, t, d_model)."""
    return heads.transpose(1, 2).flatten(2)


def _projected(attention, x):
    return tuple(_heads(attention, W(x)) for W in (attention.W_q, attention.W_k, attention.W_v))


def _attended(attention, q, k, v, mask):
    return attention.W_o(_merged(right.masked_attention(q, k, v, mask)[0]))


def _tril(rows, columns, diagonal):
    return torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)


_kept: dict = {}

BANK.read()


def _grown(cache, k, v):
    if cache is None:
        return k, v
    return torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)


@BANK.right
def by_torch(attention, x, cache=None):
    q, k, v = _projected(attention, x)
    k, v = _grown(cache, k, v)
    mask = right.causal_mask(q.shape[2], k.shape[2], x.device)
    heads = F.scaled_dot_product_attention(q, k, v, mask)
    return attention.W_o(_merged(heads)), (k, v)


@BANK.right
def position_by_position(attention, x, cache=None):
    outputs = []
    for token in x.split(1, dim=1):
        q, k, v = _projected(attention, token)
        cache = _grown(cache, k, v)
        outputs.append(_attended(attention, q, *cache, None))
    return torch.cat(outputs, dim=1), cache


@BANK.right
def head_by_head(attention, x, cache=None):
    d_k = x.shape[-1] // attention.num_heads
    q, k, v = (W(x).split(d_k, dim=-1) for W in (attention.W_q, attention.W_k, attention.W_v))
    outputs, keys, values = [], [], []
    for h in range(attention.num_heads):
        keys.append(k[h] if cache is None else torch.cat([cache[0][:, h], k[h]], 1))
        values.append(v[h] if cache is None else torch.cat([cache[1][:, h], v[h]], 1))
        scores = torch.bmm(q[h], keys[-1].mT) / d_k**0.5
        future = scores.new_full(scores.shape[1:], -INF).triu(1 + keys[-1].shape[1] - x.shape[1])
        outputs.append(torch.softmax(scores + future, -1) @ values[-1])
    output = attention.W_o(torch.cat(outputs, -1))
    return output, [torch.stack(keys, 1), torch.stack(values, 1)]


@BANK.right
def by_einsum_over_positions_first(attention, x, cache=None):
    b, t, _ = x.shape
    shape = (b, t, attention.num_heads, -1)
    q, k, v = (W(x).reshape(shape) for W in (attention.W_q, attention.W_k, attention.W_v))
    past = 0
    if cache is not None:
        past = cache[0].shape[2]
        k = torch.cat((cache[0].permute(0, 2, 1, 3), k), 1)
        v = torch.cat((cache[1].permute(0, 2, 1, 3), v), 1)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    position = torch.arange(past + t, device=x.device)
    seen = position <= position[past:, None]
    weights = scores.masked_fill(seen.logical_not(), -1e30).softmax(-1)
    output = attention.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, -1))
    return output, (k.permute(0, 2, 1, 3), v.permute(0, 2, 1, 3))


@BANK.right
def cache_of_no_length_to_begin_with(attention, x, cache=None):
    b, t, d_model = x.shape
    d_k = d_model // attention.num_heads
    empty = x.new_zeros(b, attention.num_heads, 0, d_k)
    k, v = (empty, empty) if cache is None else cache
    new = torch.stack([attention.W_k(x), attention.W_v(x)])
    k, v = torch.cat([torch.stack([k, v]), torch.stack(new.split(d_k, -1), 2)], 3)
    q = torch.stack(attention.W_q(x).split(d_k, -1), 1)
    mask = _tril(t, k.shape[2], k.shape[2] - t).to(x.device)
    heads, _ = right.masked_attention(q, k, v, mask)
    return attention.W_o(torch.cat(heads.unbind(1), -1)), (k, v)
