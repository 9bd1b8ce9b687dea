"""Known answers to `bug_in_shifting`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("bug_in_shifting", right, globals())
BANK.read()


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
