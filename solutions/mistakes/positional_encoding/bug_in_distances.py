"""Known answers to `bug_in_distances`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("bug_in_distances", right, globals())
BANK.read()


@BANK.right
def random_vectors(n_k):
    make = torch.Generator().manual_seed(0)
    query, key, value = (torch.randn(n_k, 4, generator=make) for _ in range(3))
    return (query[-1:], key, value * 9), (query, key, value)


@BANK.right
def two_queries_fewer(n_k):
    query, key = torch.ones(n_k, 2), torch.ones(n_k, 2)
    value = 10 * torch.arange(float(n_k))[:, None]
    return (query[2:], key, value), (query, key, -value)


@BANK.right
def whole_numbers(n_k):
    query, key = torch.zeros(1, 1, dtype=torch.long), torch.zeros(n_k, 1, dtype=torch.long)
    value = torch.arange(n_k)[:, None]
    return (query, key, value), (key, key, value)


@BANK.right
def arrays_in_lists(n_k):
    query, key, value = torch.zeros(n_k, 3), torch.zeros(n_k, 3), torch.zeros(n_k, 1)
    value[0] = 5.0
    inputs = (query[1:], key, value), (query, key, value)
    return [[x.numpy() for x in given] for given in inputs]
