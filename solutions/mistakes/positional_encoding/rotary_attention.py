"""Known answers to `rotary_attention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import positional_encoding as right
from solutions.mistakes.positional_encoding import rotary_embedding as rotary

BANK = Bank("rotary_attention", right, globals())


def _rope(x, base, offset=0):
    return right.rotary_embedding(x, base, offset)


def _even(value, base):
    """Rotate the values; a last feature without a partner stays as it is."""
    d = value.shape[-1] // 2 * 2
    return torch.cat([_rope(value[..., :d], base), value[..., d:]], dim=-1)


BANK.read()


@BANK.right
def with_complex_scores(query, key, value, base=10000.0):
    d, late = query.shape[-1], key.shape[-2] - query.shape[-2]
    rate = base ** (-torch.arange(0, d, 2, device=query.device) / d)
    q, k = (torch.view_as_complex(t.unflatten(-1, (-1, 2)).contiguous()) for t in (query, key))
    i = torch.arange(late, key.shape[-2], device=query.device)
    distance = i[:, None] - torch.arange(key.shape[-2], device=query.device)
    turn = torch.polar(torch.ones_like(rate), rate * distance[..., None])  # (n_q, n_k, d/2)
    scores = torch.einsum("...ic,ijc,...jc->...ij", q, turn, k.conj()).real
    weights = torch.softmax(scores / d**0.5, dim=-1)
    return weights @ value, weights


@BANK.right
def by_torchs_fused_kernel(query, key, value, base=10000.0):
    q, k = rotary.as_complex_numbers(query, base, key.shape[-2] - query.shape[-2]), _rope(key, base)
    eye = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device).expand(*k.shape[:-1], -1)
    weights = F.scaled_dot_product_attention(q, k, eye)
    return F.scaled_dot_product_attention(q, k, value), weights


@BANK.right
def counted_from_the_last_key(query, key, value, base=10000.0):
    """Only distances count, so the last position may be 0 and all others negative."""
    n_q, n_k = query.shape[-2], key.shape[-2]
    q, k = _rope(query, base, 1 - n_q), _rope(key, base, 1 - n_k)
    weights = F.softmax(torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5, dim=-1)
    return torch.einsum("...ij,...jv->...iv", weights, value), weights


@BANK.right
def row_by_row(query, key, value, base=10000.0):
    n_q, n_k = query.shape[-2], key.shape[-2]
    k, rows = rotary.with_a_quarter_turn(key, base), []
    for row in range(n_q):
        q = rotary.with_a_quarter_turn(query[..., row : row + 1, :], base, n_k - n_q + row)
        rows.append((q * k).sum(-1) / math.sqrt(query.shape[-1]))
    weights = torch.stack(rows, dim=-2).softmax(dim=-1)
    return weights @ value, weights
