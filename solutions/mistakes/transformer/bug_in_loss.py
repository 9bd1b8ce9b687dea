"""Known answers to `bug_in_loss`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("bug_in_loss", right, globals())
BANK.read()


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
