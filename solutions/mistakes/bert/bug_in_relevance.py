"""Known answers to `bug_in_relevance`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import bert as right

BANK = Bank("bug_in_relevance", right, globals())
BANK.read()


@BANK.right
def drawn_at_random(num_heads, n):
    """Signs of one head for all of them."""
    generator = torch.Generator().manual_seed(3)
    scores = torch.randn(2, num_heads, n, n, generator=generator)
    slopes = 20 * torch.randn(2, num_heads, n, n, generator=generator)
    slopes[:, :, 0, 0], slopes[:, :, 0, 1] = 20.0, -20.0
    for head in range(num_heads):
        slopes[:, head, 1, 0] = 20.0 + 30.0 * head
    signs = slopes[:, :1].sign()
    crossed = 20 * torch.ones(num_heads, 1, 1)
    crossed[0] = -100.0
    weights = scores.softmax(-1)
    return (weights, crossed.expand_as(weights)), (weights, slopes.abs() * signs)


@BANK.right
def one_place_each(num_heads, n):
    weights = torch.full((1, num_heads, n, n), 1.0 / n, dtype=torch.float64)
    shows, hides = torch.zeros_like(weights), torch.zeros_like(weights)
    shows[0, 0, 0, 0], shows[0, 1, 0, 0] = 100.0, -100.0
    hides[..., 0, 0], hides[..., 0, 1] = 50.0, -50.0
    hides[:, 1, 0, 0] = 500.0
    return (weights, shows), (weights, hides)


@BANK.right
def places_of_their_own(num_heads, n):
    """Only the first head gains anything at one place, and all lose at another."""
    weights = torch.eye(n).repeat(3, num_heads, 1, 1)
    gradients = -10 * torch.ones(3, num_heads, n, n)
    gradients[..., 0, 0] = torch.arange(1.0, num_heads + 1)
    gradients[..., 1, 1] = -7.0
    opposite = gradients.clone()
    opposite[:, 0] *= -1
    return [weights, opposite], [weights, gradients]


@BANK.right
def in_whole_numbers(num_heads, n):
    weights = torch.zeros(1, num_heads, n, n, dtype=torch.long)
    weights[..., 0] = 1
    rows = torch.arange(n)[None, None, :, None] * 2 - 1
    steps = torch.arange(1, num_heads + 1)[None, :, None, None]
    hides = (rows * steps).expand(1, num_heads, n, n)
    shows = hides.clone()
    shows[:, -1] = -shows[:, -1]
    return (weights, shows), (weights, hides)
