"""Known answers to `rotary_embedding`: mistakes, then right answers."""

import math

import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("rotary_embedding", right, globals())
BANK.read()


@BANK.right
def as_complex_numbers(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    wide = x.double().reshape(*x.shape[:-1], d // 2, 2)
    rate = base ** (-torch.arange(0, d, 2, device=x.device).double() / d)
    angle = torch.outer(torch.arange(n, device=x.device).double() + offset, rate)
    turned = torch.view_as_complex(wide) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


@BANK.right
def with_a_quarter_turn(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    rate = 1.0 / (base ** (torch.arange(0, d, 2, device=x.device).float() / d))
    angle = torch.arange(offset, offset + n, device=x.device).float()[:, None] * rate
    angle = angle.repeat_interleave(2, dim=-1)
    quarter = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * angle.cos().to(x.dtype) + quarter * angle.sin().to(x.dtype)


@BANK.right
def position_by_position(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    out = torch.empty_like(x)
    for p in range(n):
        for c in range(0, d, 2):
            theta = (p + offset) / base ** (c / d)
            u, v = x[..., p, c], x[..., p, c + 1]
            out[..., p, c] = u * math.cos(theta) - v * math.sin(theta)
            out[..., p, c + 1] = u * math.sin(theta) + v * math.cos(theta)
    return out


@BANK.right
def by_two_by_two_matrices(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    i = torch.arange(d // 2, device=x.device, dtype=torch.float64)
    angle = (torch.arange(n, device=x.device)[:, None] + offset) * float(base) ** (-2 * i / d)
    rows = [
        torch.stack([angle.cos(), -angle.sin()], -1),
        torch.stack([angle.sin(), angle.cos()], -1),
    ]
    R = torch.stack(rows, dim=-2).to(x.dtype)  # (n, d/2, 2, 2)
    pairs = x.unflatten(-1, (d // 2, 2)).unsqueeze(-1)
    return (R @ pairs).squeeze(-1).flatten(-2)


@BANK.right
def by_one_large_matrix_per_position(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    matrices = []
    for p in range(offset, offset + n):
        thetas = [p / base ** (c / d) for c in range(0, d, 2)]
        blocks = [[[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in thetas]
        matrices.append(torch.block_diag(*(torch.tensor(b, dtype=torch.float64) for b in blocks)))
    R = torch.stack(matrices) if matrices else torch.zeros(0, d, d)
    return torch.einsum("nij,...nj->...ni", R.to(x), x)
