"""Known answers to `convolution_by_heads`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import recurrence_convolution as right

BANK = Bank("convolution_by_heads", right, globals())
BANK.read()


def _first_axes(weight):
    d_out, d_in, k = weight.shape
    return weight.reshape(k, d_in, d_out)


def _checked(weight):
    if weight.shape[-1] % 2 != 1:
        raise ValueError(f"the kernel's width should be odd, but k = {weight.shape[-1]}")
    return weight.shape[-1]


@BANK.right
def head_by_head(x, weight, bias=None):
    k, n = _checked(weight), x.shape[1]
    out = torch.zeros(len(x), n, len(weight), dtype=x.dtype, device=x.device)
    tables = []
    for h in range(k):
        step = h - k // 2
        table = torch.zeros_like(x[0] @ x[0].T)
        if abs(step) < n:
            ones = torch.ones(n - abs(step), dtype=x.dtype, device=x.device)
            table = torch.diag(ones, step)
        out = out + F.linear(table @ x, weight[:, :, h])
        tables.append(table)
    return (out if bias is None else out + bias), torch.stack(tables)


@BANK.right
def by_einsum(x, weight, bias=None):
    k, n = _checked(weight), x.shape[1]
    wide = torch.eye(n + k - 1, dtype=x.dtype, device=x.device)[:, k // 2 : k // 2 + n]
    tables = torch.stack([wide[h : h + n] for h in range(k)])
    out = torch.einsum("hij,bjc,och->bio", tables, x, weight)
    return out + (0 if bias is None else bias), tables


@BANK.right
def by_shifted_copies(x, weight, bias=None):
    """The output from a padded x, the tables beside it, entry by entry."""
    k, n = _checked(weight), x.shape[1]
    padded = F.pad(x, (0, 0, k // 2, k // 2))
    out = sum(padded[:, h : h + n] @ weight[..., h].T for h in range(k))
    entries = [[[float(j - i == h - k // 2) for j in range(n)] for i in range(n)] for h in range(k)]
    tables = torch.tensor(entries, dtype=x.dtype, device=x.device)
    return out if bias is None else bias + out, tables


@BANK.right
def by_windows(x, weight, bias=None):
    """unfold for the output, a softmax with a large factor for the weights."""
    k, n = _checked(weight), x.shape[1]
    windows = F.pad(x, (0, 0, k // 2, k // 2)).unfold(1, k, 1)  # (B, n, d_in, k)
    out = windows.flatten(2) @ weight.flatten(1).T
    place = torch.arange(n, device=x.device, dtype=x.dtype)
    middle = place[:, None] + torch.arange(k, device=x.device)[:, None, None] - k // 2
    tables = torch.softmax(-1e4 * (place - middle).square(), dim=-1)
    tables = tables * ((middle >= 0) & (middle < n))
    return [out if bias is None else out + bias, tables]


@BANK.right
def mixed_before_mapping(x, weight, bias=None):
    k, n = _checked(weight), x.shape[1]
    difference = torch.arange(n, device=x.device) - torch.arange(n, device=x.device).unsqueeze(1)
    heads = torch.arange(-(k // 2), k // 2 + 1, device=x.device).view(k, 1, 1)
    tables = torch.where(difference == heads, x.new_ones(()), x.new_zeros(()))
    moved = torch.matmul(tables, x.unsqueeze(1)).transpose(1, 2)  # (B, n, k, d_in)
    out = torch.tensordot(moved, weight, dims=([2, 3], [2, 1]))
    return (out if bias is None else torch.add(out, bias)), tables
