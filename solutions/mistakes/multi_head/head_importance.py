"""Known answers to `head_importance`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import multi_head as right

BANK = Bank("head_importance", right, globals())
BANK.read()


def _one_hot(attention, x):
    return torch.eye(attention.num_heads, dtype=x.dtype, device=x.device)


def _difference(attention, x):
    """full − output with head h masked, for each h: (H, B, n, d_model)."""
    with torch.no_grad():
        full = attention(x, x, x)[0]
        masks = 1 - _one_hot(attention, x)
        return torch.stack([full - attention(x, x, x, head_mask=mask)[0] for mask in masks])


@BANK.right
def importance_at_once(attention, x):
    return _difference(attention, x).norm(dim=-1).mean((1, 2))


@BANK.right
def importance_with_gradients(attention, x):
    full, _ = attention(x, x, x)
    found = []
    for h in range(attention.num_heads):
        mask = torch.ones(attention.num_heads)
        mask[h] = 0.0
        out, _ = attention(x, x, x, head_mask=mask)
        found.append(((full - out) ** 2).sum(-1).sqrt().mean())
    return torch.stack(found)


@BANK.right
def importance_from_the_heads(attention, x):
    """What a head adds to the output: its own output times its columns of W_o."""
    _, weights = attention(x, x, x)
    v = attention.W_v(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
    columns = attention.W_o.weight.unflatten(1, (attention.num_heads, -1)).permute(1, 2, 0)
    return ((weights @ v) @ columns).norm(dim=-1).mean((0, 2)).detach()


@BANK.right
def importance_of_the_head_alone(attention, x):
    """The same difference from the other side: head h alone minus no head at all."""
    with torch.no_grad():
        none = attention(x, x, x, head_mask=x.new_zeros(attention.num_heads))[0]
        alone = [attention(x, x, x, head_mask=mask)[0] - none for mask in _one_hot(attention, x)]
        return torch.stack([torch.linalg.vector_norm(a, dim=-1).mean() for a in alone])


@BANK.right
def importance_in_numpy(attention, x):
    lengths = np.linalg.norm(_difference(attention, x).cpu().numpy(), axis=-1)
    return torch.from_numpy(lengths.mean(axis=(1, 2)).astype(lengths.dtype)).to(x.device)
