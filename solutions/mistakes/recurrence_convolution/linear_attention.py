"""Known answers to `linear_attention`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from solutions import recurrence_convolution as right

BANK = Bank("linear_attention", right, globals())
BANK.read()


@BANK.mistake
def table_made_and_uneven_accepted(query, key, value, causal=False):
    """The numbers are right, but there is a table with a number for each query and key: multiply
    keys and values first. And with `causal`, different numbers of queries and keys raise no
    ValueError."""
    weights = _phi(query) @ _phi(key).mT
    weights = weights.tril() if causal else weights
    return weights @ value / weights.sum(-1, keepdim=True)


def _phi(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _checked(query, key):
    if query.size(-2) != key.size(-2):
        raise ValueError(f"{query.size(-2)} queries, but {key.size(-2)} keys, and causal")


@BANK.right
def by_einsum(query, key, value, causal=False):
    query, key = _phi(query), _phi(key)
    if causal:
        _checked(query, key)
        S = torch.einsum("...jk,...jv->...jkv", key, value).cumsum(-3)
        above = torch.einsum("...ik,...ikv->...iv", query, S)
        below = torch.einsum("...ik,...ik->...i", query, key.cumsum(-2))
    else:
        above = torch.einsum(
            "...ik,...kv->...iv", query, torch.einsum("...jk,...jv->...kv", key, value)
        )
        below = torch.einsum("...ik,...k->...i", query, key.sum(-2))
    return above / below[..., None]


@BANK.right
def position_by_position(query, key, value, causal=False):
    """The state of a recurrent network, asked after each position or after all of them."""
    query, key = 1 + nn.ELU()(query), 1 + nn.ELU()(key)
    if causal:
        _checked(query, key)
    S = key[..., 0, :, None] * value[..., 0, None, :] * 0
    z = key[..., 0, :] * 0
    asked, rows = list(query.unbind(-2)), []
    for j in range(key.shape[-2]):
        S = S + key[..., j, :, None] * value[..., j, None, :]
        z = z + key[..., j, :]
        if causal:
            rows.append(_answer(asked[j], S, z))
    return torch.stack(rows if causal else [_answer(q, S, z) for q in asked], dim=-2)


def _answer(query, S, z):
    return (query[..., None] * S).sum(-2) / (query * z).sum(-1)[..., None]


@BANK.right
def a_column_of_ones(query, key, value, causal=False):
    """The sum of weights as one more feature of the values; a table only where it is causal."""
    query, key = F.elu(query).add(1), F.elu(key).add(1)
    value = torch.cat([value, torch.ones_like(value[..., :1])], dim=-1)
    if causal:
        _checked(query, key)
        out = (query @ key.transpose(-2, -1)).tril() @ value
    else:
        out = query @ (key.transpose(-2, -1) @ value)
    return out[..., :-1] / out[..., -1:]


@BANK.right
def in_double_precision(query, key, value, causal=False):
    q, k, v = query.double(), key.double(), value.double()
    q, k = q.clamp(min=0) + q.clamp(max=0).exp(), k.clamp(min=0) + k.clamp(max=0).exp()
    if causal:
        _checked(query, key)
        steps = [(k[..., : i + 1, :].mT @ v[..., : i + 1, :]) for i in range(k.shape[-2])]
        above = torch.stack([q[..., i, None, :] @ S for i, S in enumerate(steps)], -3).squeeze(-2)
        below = (q * k.cumsum(-2)).sum(-1, True)
    else:
        above, below = q @ (k.mT @ v), (q * k.sum(-2, True)).sum(-1, True)
    return (above / below).to(query.dtype)
