"""Known answers to `bug_in_loss`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import transformer as right

BANK = Bank("bug_in_loss", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
no_padding: > result = result[0], (logits, torch.ones(2, 3, dtype=torch.long))
    There is no padding in the second batch. That every row has the same length then goes without
    saying: pad all of them.
one_row: > result = result[0], (logits[:1], alike[:1])
    The second batch has one row, and nothing to average twice.
same_losses: > result = result[0], (torch.zeros(2, 3, vocab_size), alike)
    All logits of the second batch are alike, so every token has the same loss, and every average is
    the same: let the rows differ.
rows_of_the_same_length: > result = (logits, torch.ones(2, 3, dtype=torch.long)), result[1]
    The rows of the first batch have the same length, and a mean of their means is the mean of all.
logits_alike: > result = (torch.zeros(2, 3, vocab_size), short_and_long), result[1]
    All logits of the first batch are alike, so every token has the same loss, and every average is
    the same.
a_row_of_padding: > result = (logits, torch.tensor([[0, 0, 0], [1, 1, 1]])), result[1]
    A row of the first batch is padding only. Its mean would be 0/0, which is another bug.
ids_as_floats: > result = (logits, short_and_long.float()), result[1]
    The ids of the first batch are not integers.
ids_out_of_range: > result = (logits, short_and_long * vocab_size), result[1]
    The first batch has an id that is not below vocab_size.
targets_left_out: > result = logits, result[1]
    The first batch lacks its targets. A batch is a tuple (logits, target).
""")


@BANK.right
def one_bad_token(vocab_size):
    logits = torch.zeros(2, 9, vocab_size)
    logits[0, 0, 1] = -20.0
    short = torch.ones(2, 9, dtype=torch.long)
    short[0, 1:] = 0
    alike = short.clone()
    alike[1, 1:] = 0
    return (logits, short), (logits, alike)


@BANK.right
def random_logits(vocab_size):
    logits = 4 * torch.randn(3, 6, vocab_size, generator=torch.Generator().manual_seed(0))
    logits[0] += 8 * torch.eye(vocab_size)[1]
    target = torch.ones(3, 6, dtype=torch.long)
    shows, hides = target.clone(), target.clone()
    shows[0, 1:] = 0
    hides[:, 4:] = 0
    return (logits, shows), (logits, hides)


@BANK.right
def padding_in_front(vocab_size):
    logits = torch.zeros(2, 4, vocab_size)
    logits[1, :, 1] = 10.0
    shows, hides = torch.tensor([[0, 1, 1, 1], [0, 0, 0, 1]]), torch.tensor([[0, 1, 1, 1]] * 2)
    return (logits, shows), (logits, hides)


@BANK.right
def arrays_in_lists(vocab_size):
    logits = torch.zeros(2, 2, vocab_size, dtype=torch.double)
    logits[0, :, -1] = 5
    shows, hides = torch.tensor([[1, 0], [1, 1]]), torch.tensor([[1, 0], [1, 0]])
    shows[shows == 1] = hides[hides == 1] = vocab_size - 1
    return [[logits.numpy(), shows.numpy()], [logits.numpy(), hides.numpy()]]
