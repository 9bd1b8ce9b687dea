"""Known answers to `bug_in_masking`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("bug_in_masking", right, globals())
BANK.read()


@BANK.right
def random_scores(mask):
    scores = torch.randn(mask.shape, generator=torch.Generator().manual_seed(0))
    return scores, scores + 100


@BANK.right
def the_mask_itself(mask):
    return -mask.double(), mask * 40


@BANK.right
def only_the_allowed_are_high(mask):
    return torch.ones(mask.shape), torch.where(mask, 30.0, -7.0)


@BANK.right
def arrays_in_a_list(mask):
    return [(mask * -3).numpy(), (mask * 500).numpy()]
