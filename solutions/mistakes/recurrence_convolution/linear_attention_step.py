"""Known answers to `linear_attention_step`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import recurrence_convolution as right

BANK = Bank("linear_attention_step", right, globals())
BANK.read()


@BANK.right
def by_einsum(query, key, value, state=None):
    q, k = (torch.where(x > 0, x + 1, x.clamp(max=0).exp()) for x in (query, key))
    S, z = torch.einsum("bk,bv->bkv", k, value), k
    S, z = (S, z) if state is None else (torch.add(S, state[0]), torch.add(z, state[1]))
    below = torch.einsum("bk,bk->b", q, z)
    return torch.einsum("bk,bkv,b->bv", q, S, 1 / below), (S, z)


@BANK.right
def from_zeros(query, key, value, state=None):
    """A state of zeros to begin with, and a batched product that adds."""
    (B, d_k), d_v = key.shape, value.shape[-1]
    if state is None:
        state = torch.zeros(B, d_k, d_v).to(value), torch.zeros_like(key)
    q, k = F.elu(query) + 1, F.elu(key) + 1
    S = torch.baddbmm(state[0], k.unsqueeze(2), value.unsqueeze(1))
    z = state[1] + k
    return torch.bmm(q.unsqueeze(1), S)[:, 0] / torch.bmm(q.unsqueeze(1), z.unsqueeze(2))[:, 0], [
        S,
        z,
    ]


@BANK.right
def sequence_by_sequence(query, key, value, state=None):
    outputs, matrices, vectors = [], [], []
    for i in range(len(query)):
        q, k = F.elu(query[i]) + 1, F.elu(key[i]) + 1
        S, z = torch.outer(k, value[i]), k
        if state is not None:
            S, z = S + state[0][i], z + state[1][i]
        outputs.append(q @ S / q.dot(z))
        matrices.append(S)
        vectors.append(z)
    return torch.stack(outputs), (torch.stack(matrices), torch.stack(vectors))


@BANK.right
def one_table_for_both(query, key, value, state=None):
    """z as one more column of S, in float64."""
    q, k = (F.elu(x.double()) + 1 for x in (query, key))
    wide = torch.cat([value.double(), torch.ones_like(value[:, :1]).double()], dim=1)
    table = k.unsqueeze(2) * wide.unsqueeze(1)
    if state is not None:
        table = table + torch.cat([state[0], state[1].unsqueeze(2)], dim=2).double()
    out = (q.unsqueeze(2) * table).sum(1)
    S, z = (part.to(value.dtype) for part in (table[..., :-1], table[..., -1]))
    return (out[:, :-1] / out[:, -1:]).to(value.dtype), (S, z)
