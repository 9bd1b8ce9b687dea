"""Known answers to `bug_in_scaling`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import attention_scoring as right

BANK = Bank("bug_in_scaling", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
scores_alike: > result = result[0], (torch.zeros(1, d_k), *result[1][1:])
    All scores of the second input are 0, and no divisor changes that. It hides every bug in the
    scale, and many others: let the scores differ.
values_alike: > result = result[0], (*result[1][:2], torch.ones(2, 3))
    All values of the second input are alike, so every average of them is the same. It hides every
    bug in the weights: let the values differ.
all_sizes_alike: > result = (torch.ones(d_k, d_k), torch.eye(d_k), torch.eye(d_k)), result[1]
    In the first input the values are as long as the keys: then √d_v is √d_k.
scores_too_small: torch.full((1, d_k), 3.0) → torch.full((1, d_k), 0.003)
    The scores are so small that the weights are uniform, nearly, whatever divides them.
key_too_long: > result = (*result[0][:1], torch.ones(2, d_k + 1), result[0][2]), result[1]
    The keys of the first input are not d_k long.
values_left_out: > result = result[0][:2], result[1]
    The first input has no values. An input is a tuple (query, key, value).
values_for_other_keys: > result = result[0], (*result[1][:2], torch.eye(3, d_k))
    There are not as many values as keys in the second input.
""")


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
