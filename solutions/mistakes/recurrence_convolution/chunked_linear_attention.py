"""Known answers to `chunked_linear_attention`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import recurrence_convolution as right

BANK = Bank("chunked_linear_attention", right, globals())
BANK.read()


def _phi(x):
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _checked(query, key, chunk):
    n, n_k = query.size(-2), key.size(-2)
    if chunk <= 0:
        raise ValueError(f"chunk = {chunk}")
    if n != n_k:
        raise ValueError(f"{n} queries, but {n_k} keys")
    return n


@BANK.right
def with_slices(query, key, value, chunk, state=None):
    n = _checked(query, key, chunk)
    q, k = _phi(query), _phi(key)
    S, z = (0, 0) if state is None else state
    parts = []
    for start in range(0, n, chunk):
        at = slice(start, min(start + chunk, n))
        future = torch.ones(q[..., at, :].shape[-2:-1] * 2, dtype=torch.bool, device=q.device)
        table = torch.einsum("...id,...jd->...ij", q[..., at, :], k[..., at, :])
        table = table.masked_fill(future.triu(1), 0.0)
        above, below = table @ value[..., at, :], table.sum(-1)
        if start or state is not None:
            above = above + q[..., at, :] @ S
            below = below + (q[..., at, :] * z.unsqueeze(-2)).sum(-1)
        parts.append(above / below.unsqueeze(-1))
        S = k[..., at, :].mT @ value[..., at, :] + S
        z = k[..., at, :].sum(-2) + z
    return torch.cat(parts, -2), (S, z)


@BANK.right
def a_column_of_ones(query, key, value, chunk, state=None):
    """z is one more column of S, and the divisor one more column of the output."""
    n = _checked(query, key, chunk)
    q, k = F.elu(query) + 1, F.elu(key) + 1
    wide = F.pad(value, (0, 1), value=1.0)
    if state is None:
        table = torch.zeros_like(k[..., :1, :].mT * wide[..., :1, :])
    else:
        table = torch.cat([state[0], state[1].unsqueeze(-1)], -1)
    found, start = [], 0
    while start < n:
        qc, kc, vc = (x[..., start : start + chunk, :] for x in (q, k, wide))
        found.append(qc @ table + torch.tril(qc @ kc.mT) @ vc)
        table = table + kc.mT @ vc
        start += chunk
    out = torch.cat(found, -2)
    return out[..., :-1] / out[..., -1:], (table[..., :-1], table[..., -1])


@BANK.right
def all_chunks_at_once(query, key, value, chunk, state=None):
    """The last chunk is filled up with features of 0, and all states are a running sum."""
    n = _checked(query, key, chunk)
    chunk = min(chunk, n)
    m = -(-n // chunk)
    fill = (0, 0, 0, m * chunk - n)
    q, k, v = (F.pad(x, fill).unflatten(-2, (m, chunk)) for x in (_phi(query), _phi(key), value))
    sums, vectors = (k.mT @ v), k.sum(-2)  # (..., m, d_k, d_v), (..., m, d_k)
    S, z = sums.cumsum(-3) - sums, vectors.cumsum(-2) - vectors
    total = sums.sum(-3), vectors.sum(-2)
    if state is not None:
        S, z = S + state[0].unsqueeze(-3), z + state[1].unsqueeze(-2)
        total = total[0] + state[0], total[1] + state[1]
    table = (q @ k.mT).tril()
    below = (q @ z.unsqueeze(-1)) + table.sum(-1, keepdim=True)
    out = (q @ S + table @ v).flatten(-3, -2)[..., :n, :] / below.flatten(-3, -2)[..., :n, :]
    return out, total


@BANK.right
def divisors_at_once(query, key, value, chunk, state=None):
    """The divisors come from a running sum of all keys; only what they divide goes in chunks."""
    n = _checked(query, key, chunk)
    q, k = F.elu(query) + 1, F.elu(key) + 1
    sums = k.cumsum(-2) if state is None else k.cumsum(-2) + state[1].unsqueeze(-2)
    S = None if state is None else state[0]
    above = []
    for start in range(0, n, chunk):
        qc, kc, vc = (x[..., start : start + chunk, :] for x in (q, k, value))
        here = torch.tril(qc @ kc.mT) @ vc
        above.append(here if S is None else qc @ S + here)
        S = kc.mT @ vc if S is None else S + kc.mT @ vc
    return torch.cat(above, -2) / (q * sums).sum(-1, keepdim=True), (S, sums[..., -1, :])


@BANK.mistake
def position_by_position(query, key, value, chunk, state=None):
    """The numbers are right, but there is a step for each position, as in a recurrent network. The
    positions of a chunk are to be computed at once, in a few matrix products."""
    _checked(query, key, chunk)
    q, k = _phi(query), _phi(key)
    outputs = []
    for i in range(q.shape[-2]):
        S = k[..., i, :, None] * value[..., i, None, :]
        S, z = (S, k[..., i, :]) if state is None else (state[0] + S, state[1] + k[..., i, :])
        state = S, z
        outputs.append((q[..., i, None, :] @ S).squeeze(-2) / (q[..., i, :] * z).sum(-1)[..., None])
    return torch.stack(outputs, -2), state
