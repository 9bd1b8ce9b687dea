"""Known answers to `bug_in_shifting`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import language_model as right

BANK = Bank("bug_in_shifting", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
one_token_throughout: > result = result[0], (logits, torch.ones(1, 4, dtype=torch.long))
    The second batch repeats one token, so it makes no difference where a loss looks. Let the row
    hold two different ones.
logits_alike: > result = result[0], (torch.zeros(1, 4, vocab_size), begins_and_ends_alike)
    All logits of the second batch are alike, as those of a model that has not learnt anything:
    every token has the same loss. Let the logits differ.
one_position: > result = result[0], (logits[:, :1], begins_and_ends_alike[:, :1])
    The second batch has one position, and nothing is predicted.
shows_with_logits_alike
    > result = (torch.zeros(1, 4, vocab_size), begins_and_ends_apart), result[1]
    All logits of the first batch are alike: every token has the same loss, the right one and the
    wrong one.
hides_only_the_first_row
    > both = torch.cat([begins_and_ends_alike, begins_and_ends_apart])
    > result = result[0], (logits.expand(2, -1, -1), both)
    Only the first row of the second batch hides the bug. The second one shows it, and it counts in
    the mean.
ids_as_floats: > result = (logits, begins_and_ends_apart.float()), result[1]
    The ids of the first batch are not integers.
ids_out_of_range: > result = (logits, begins_and_ends_apart * vocab_size), result[1]
    The first batch has an id that is not below vocab_size.
ids_left_out: > result = logits, result[1]
    The first batch lacks its ids. A batch is a tuple (logits, ids).
""")


@BANK.right
def random_text(vocab_size):
    generator = torch.Generator().manual_seed(1)
    logits = torch.zeros(2, 6, vocab_size)
    logits[..., 0] = 5.0
    shows = torch.zeros(2, 6, dtype=torch.long)
    shows[:, -1] = 1
    hides = torch.randint(0, vocab_size, (2, 6), generator=generator)
    hides[:, 0], hides[:, 1], hides[:, -1] = 0, 1, 0
    return (logits, shows), (logits, hides)


@BANK.right
def two_tokens(vocab_size):
    """Three positions: read a, predict b, then predict a again."""
    logits = torch.arange(float(vocab_size)).expand(1, 3, -1)
    a, b = 0, vocab_size - 1
    return (logits, torch.tensor([[a, a, b]])), (logits, torch.tensor([[a, b, a]]))


@BANK.right
def rows_that_make_up_for_each_other(vocab_size):
    """One row begins with the token with which the other one ends."""
    logits = torch.zeros(2, 3, vocab_size)
    logits[..., 1] = 2.0
    hides = torch.tensor([[0, 0, 1], [1, 0, 0]])
    return (logits, torch.tensor([[0, 0, 1], [0, 1, 1]])), (logits, hides)


@BANK.right
def arrays_in_lists(vocab_size):
    logits = torch.zeros(1, 4, vocab_size, dtype=torch.double)
    logits[..., -1] = -4
    last = vocab_size - 1
    shows, hides = torch.tensor([[last, 0, 0, 0]]), torch.tensor([[0, last, last, 0]])
    return [[logits.numpy(), shows.numpy()], [logits.numpy(), hides.numpy()]]
