"""Known answers to `bug_in_contrast`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("bug_in_contrast", right, globals())
BANK.read()


@BANK.right
def a_rotation_that_is_symmetric(B, d):
    """Texts are the pictures times a symmetric matrix: x_i·S x_j = x_j·S x_i."""
    torch.manual_seed(1)
    x = torch.randn(B, d, dtype=torch.float64)
    flip = torch.ones(d, dtype=torch.float64)
    flip[0] = -1.0
    around, crowd = torch.zeros(2, B, d, dtype=torch.float64)
    around[:, 0], around[:, 1] = torch.linspace(1, -1, B), 0.5
    crowd[:, 0], crowd[:, 1] = 1.0, 0.05 * torch.arange(B)
    return (around, crowd), (x, x * flip)


@BANK.right
def fans(B, d):
    turn = torch.linspace(0, 1, B)
    images, texts, narrow = torch.zeros(3, B, d)
    images[:, 0], images[:, 1] = torch.cos(turn), torch.sin(turn)
    texts[:, 0], texts[:, 1] = torch.cos(-turn), torch.sin(-turn)
    texts[:, 0] = -texts[:, 0]
    narrow[:, 0], narrow[:, 1] = torch.cos(3 * turn), torch.sin(3 * turn)
    return [images, narrow], [images, texts]


@BANK.right
def in_whole_numbers(B, d):
    i = torch.arange(B)
    images, texts, steep, one = torch.zeros(4, B, d, dtype=torch.long)
    images[:, 0], images[:, 1] = 3, 4 * i
    texts[:, 0], texts[:, 1] = 3, -4 * i
    steep[:, 0], steep[:, 1] = 1, 8 * i
    one[:, 0], one[:, 1] = 10, i
    texts[:, 0] = -3
    return (steep, one), (images, texts)


@BANK.right
def seeded_without_a_trace(B, d):
    drawn = torch.randn(B, d, generator=torch.Generator().manual_seed(0))
    drawn[:, 0] = torch.arange(B)
    drawn[:, 1] = 3.0
    signs = torch.ones(d).index_fill(0, torch.tensor([1]), -1.0)
    steep, favourite = torch.zeros(2, B, d)
    steep[:, 0], steep[:, 1] = 1.0, 8.0 * torch.arange(B)
    favourite[:, 0], favourite[:, 1] = 10.0, torch.arange(B)
    return (steep, favourite), (drawn, drawn * signs)
