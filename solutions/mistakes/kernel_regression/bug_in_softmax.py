"""Known answers to `bug_in_softmax`: mistakes, then right answers."""

import numpy as np

from autograder.bank import Bank
from solutions import kernel_regression as right

BANK = Bank("bug_in_softmax", right, globals())
BANK.read()


@BANK.right
def one_high_score_and_a_permuted_row(n):
    shows = np.zeros((n, n))
    shows[-1, 0] = 5.0
    row = np.linspace(-1, 1, n)
    return shows, np.stack([np.roll(row, k) for k in range(n)])


@BANK.right
def random_scores(n):
    row = np.random.RandomState(0).standard_normal(n) * 3
    return np.random.RandomState(1).standard_normal((n, n)), row[
        np.arange(n)[:, None] - np.arange(n)
    ]


@BANK.right
def a_row_that_is_higher(n):
    return np.repeat(np.arange(n)[:, None], n, axis=1), np.eye(n)


@BANK.right
def integers_as_a_list(n):
    return [np.tri(n, dtype=np.int64), 2 * np.eye(n, dtype=np.int32)]
