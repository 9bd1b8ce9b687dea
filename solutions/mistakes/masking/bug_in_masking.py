"""Known answers to `bug_in_masking`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import masking as right

BANK = Bank("bug_in_masking", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
not_large_enough: torch.full(mask.shape, 50.0) → torch.full(mask.shape, 5.0)
    The allowed scores of the second table lie 5 above the 0 of a forbidden key. Its weight is
    small, but exp(−5) is not nothing.
forbidden_made_low
    - hides = torch.full(mask.shape, 50.0)
    + hides = torch.zeros(mask.shape).masked_fill(~mask, -1000.0)
    The forbidden scores of the second table are very low. The wrong function multiplies them by 0
    all the same, and the allowed ones are 0 as well.
large_everywhere: shows = torch.zeros(mask.shape) → shows = torch.full(mask.shape, 100.0)
    The allowed scores of the first table are so large that the 0 of a forbidden key is nothing
    beside them.
large_and_negative: torch.full(mask.shape, 50.0) → torch.full(mask.shape, -50.0)
    The allowed scores of the second table lie far below 0. A forbidden key, with its 0, then gets
    all the weight.
minus_infinity_in_it: > result = result[0], result[1].masked_fill(~mask, -torch.inf)
    The forbidden scores of the second table are −∞ already. Zero times infinity is NaN; and with
    them no mask would be needed.
first_row_alone: > result = result[0][:1], result[1]
    The first table has one row. It needs as many as the mask.
shown_in_another_shape: > result = result[0].mT, result[1]
    Rows and columns of the first table are exchanged.
""")


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
