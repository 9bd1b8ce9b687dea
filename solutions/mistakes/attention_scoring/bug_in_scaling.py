"""Known answers to `bug_in_scaling`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import attention_scoring as right

BANK = Bank("bug_in_scaling", right, globals())
BANK.read()


@BANK.right
def random_vectors(d_k):
    make = torch.Generator().manual_seed(0)
    query, key = (5 * torch.randn(9, d_k, generator=make) for _ in range(2))
    value = torch.randn(9, d_k + 20, generator=make)
    return (query, key, value), (query, key, value[:, :d_k])


@BANK.right
def two_keys_and_two_values(d_k):
    query, key = torch.ones(1, d_k), torch.zeros(2, d_k)
    key[0] = 1.0
    value = torch.zeros(2, d_k)
    value[0] = 1.0
    return (query, key, torch.tensor([[0.0], [9.0]])), (query, key, value)


@BANK.right
def arrays_in_lists(d_k):
    query, key, value = torch.full((3, d_k), 2.0), torch.eye(4, d_k), torch.eye(4, 60)
    key[1:] *= -1
    inputs = [query, key, value * 2], [query, key, torch.eye(4, d_k)]
    return [[x.numpy() for x in given] for given in inputs]


@BANK.right
def integers(d_k):
    query, key = torch.ones(1, d_k, dtype=torch.long), torch.zeros(2, d_k, dtype=torch.long)
    key[1] = 1
    return (query, key, torch.tensor([[0], [9]])), (query, key, key + 1)
