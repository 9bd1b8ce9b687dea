"""Known answers to `bug_in_splitting`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import multi_head as right

BANK = Bank("bug_in_splitting", right, globals())
BANK.read()


@BANK.right
def random_numbers(num_heads, d_k):
    x = torch.randn(3, 4, num_heads * d_k, generator=torch.Generator().manual_seed(0))
    return x, x[:, :1, :d_k].repeat(1, 4, num_heads)


@BANK.right
def a_single_one(num_heads, d_k):
    shows = torch.zeros(1, 5, num_heads * d_k)
    shows[0, 1, 0] = 1
    hides = torch.zeros(2, 3, num_heads, d_k)
    hides[..., -1] = 1
    return shows, hides.flatten(2)


@BANK.right
def integers_as_arrays(num_heads, d_k):
    x = torch.arange(2 * num_heads * d_k).reshape(1, 2, -1)
    return [x.numpy(), (x % d_k).numpy()]


@BANK.right
def a_long_sequence(num_heads, d_k):
    x = torch.arange(64.0)[None, :, None].expand(2, 64, num_heads * d_k)
    return x, torch.linspace(0, 1, d_k).expand(1, 2, num_heads, d_k).flatten(2)
