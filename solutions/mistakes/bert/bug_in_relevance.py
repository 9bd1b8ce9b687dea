"""Known answers to `bug_in_relevance`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import bert as right

BANK = Bank("bug_in_relevance", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
all_positive: > result = result[0], (weights, agree.abs())
    No gradient of the second input is negative, so there is nothing to become 0, whenever the heads
    are averaged. Let every head have products of both signs.
all_negative: > result = result[0], (weights, -agree.abs())
    No gradient of the second input is positive: everything becomes 0. Let every head have products
    of both signs.
nothing_at_all: > result = result[0], (weights, torch.zeros_like(weights))
    All gradients of the second input are 0. Let every head have products of both signs.
heads_alike: > result = result[0], (weights, (n * sign).expand(weights.shape))
    All heads of the second input are the same, so it makes no difference when they are averaged.
    Let them differ, and agree only in the signs.
only_one_head_has_both_signs
    > some = torch.where(torch.arange(num_heads) == 0, 0.0, 1.0)[:, None, None]
    > result = result[0], (weights, agree * some)
    One head of the second input has no gradients. Every head should have products of both signs.
hides_in_one_text_only
    > both = torch.cat([agree, disagree])
    > result = result[0], (weights.expand(2, -1, -1, -1), both)
    Only the first text of the second input hides the bug. The second one shows it.
shows_too_little: > result = (weights, disagree * 1e-3 / n), result[1]
    On the first input, right and wrong differ by next to nothing. Take larger gradients.
rows_of_two: > result = (2 * weights, disagree), result[1]
    The rows of the weights of the first input sum to 2. Attention weights sum to 1.
weights_below_zero
    > crooked = weights.clone()
    > crooked[..., 0] = crooked[..., 0] - 1
    > crooked[..., 1] = crooked[..., 1] + 1
    > result = (crooked, disagree), result[1]
    Some weights of the first input are negative. Attention weights are not.
gradients_left_out: > result = weights, result[1]
    The first input lacks its gradients. An input is a tuple (weights, gradients).
without_a_batch: > result = (weights[0], disagree[0]), result[1]
    The first input has three axes. There is a batch in front: (B, num_heads, n, n).
too_large: > result = (weights, disagree * 1e6), result[1]
    The gradients of the first input are larger than 1000.
""")


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
