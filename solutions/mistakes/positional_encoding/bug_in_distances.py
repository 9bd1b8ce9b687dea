"""Known answers to `bug_in_distances`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import positional_encoding as right

BANK = Bank("bug_in_distances", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
values_alike: > result = result[0], (*result[1][:2], torch.ones(n_k, 1))
    All values of the second input are alike, so every average of them is the same. It hides every
    bug in the weights: let the values differ.
shown_with_as_many_queries: > result = (query, key, 2 * value), result[1]
    The first input has as many queries as keys, and then the first query is at position 0 indeed:
    this is the one case in which the function counts right.
hidden_with_too_few_queries: > result = result[0], (query[1:], key, value)
    The second input has fewer queries than keys. Its first query is then not at position 0.
more_queries_than_keys: > result = (torch.zeros(n_k + 1, 1), key, value), result[1]
    The first input has more queries than keys. The first of them would be at a position below 0.
values_for_other_keys: > result = result[0], (query, key, torch.eye(n_k + 1))
    The second input has more values than keys.
scores_too_large: > result = (50 * query[:1] + 10, 100 * key, value / 100), result[1]
    The values of the first input are so small that nobody would notice the difference.
key_left_out: > result = (query[:1], value), result[1]
    The first input lacks its keys. An input is a tuple (query, key, value).
""")


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
