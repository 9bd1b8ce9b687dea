"""Known answers to `split_heads`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import multi_head as right

BANK = Bank("split_heads", right, globals())


def _check(d_model, num_heads):
    if d_model % num_heads:
        raise ValueError(f"{d_model} features, {num_heads} heads")


BANK.read()


@BANK.right
def split_unflattened(x, num_heads):
    _check(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, 1)


@BANK.right
def split_in_chunks(x, num_heads):
    _check(x.shape[-1], num_heads)
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@BANK.right
def split_in_a_loop(x, num_heads):
    _check(x.shape[-1], num_heads)
    d_k = x.shape[-1] // num_heads
    heads = [x[:, :, h * d_k : (h + 1) * d_k] for h in range(num_heads)]
    return torch.stack(heads, dim=1)


@BANK.right
def split_contiguous(x, num_heads):
    B, n, d = x.size()
    _check(d, num_heads)
    return x.contiguous().view(B, -1, num_heads, d // num_heads).permute(0, 2, 1, 3).contiguous()


@BANK.right
def split_by_index(x, num_heads):
    d = x.shape[-1]
    _check(d, num_heads)
    columns = torch.arange(d, device=x.device).reshape(num_heads, d // num_heads)
    return x[:, :, columns].swapaxes(1, 2)
