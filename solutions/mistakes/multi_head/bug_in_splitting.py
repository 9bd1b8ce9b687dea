"""Known answers to `bug_in_splitting`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import multi_head as right

BANK = Bank("bug_in_splitting", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
all_alike: > result = result[0], torch.ones(1, 2, num_heads * d_k)
    All numbers of the second x are alike. Whatever is mixed up in it looks the same: let at least
    two numbers differ.
one_position: > result = result[0], result[1][:, :1]
    The second x has one position. There is nothing to mix in it: take two or more.
positions_alike: > result = torch.ones_like(result[0]), result[1]
    All numbers of the first x are alike, so that nobody can see what has been mixed up.
rows_constant
    - hides = torch.arange(d_k).repeat(1, 2, num_heads)
    + hides = torch.arange(2.0)[None, :, None].expand(1, 2, num_heads * d_k)
    Each position of the second x holds one number. The wrong function hands a head numbers from
    other positions, and so the numbers differ.
sizes_exchanged: > result = result[0].mT, result[1]
    The axes of the first x are exchanged: features come last.
batch_forgotten: > result = result[0][0], result[1]
    The first x has no batch axis: its shape is (B, n, d_model).
shown_by_a_hair: > result = result[0] / 1e6, result[1]
    Right and wrong do differ on the first x, but by so little that a test with a sensible tolerance
    would let it pass.
""")


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
