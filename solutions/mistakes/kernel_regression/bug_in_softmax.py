"""Known answers to `bug_in_softmax`: mistakes, then right answers."""

import numpy as np

from autograder.bank import Bank, counterexample
from solutions import kernel_regression as right

BANK = Bank("bug_in_softmax", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
scores_alike: hides = (i[:, None] + i) % n / n → hides = np.zeros((n, n))
    All scores of the second table are alike. That hides nearly every bug, and tells nothing about
    this one: let the scores of a row differ.
symmetric_only: hides = (i[:, None] + i) % n / n → hides = np.minimum(i[:, None], i) / n
    The second table is symmetric, and the columns' sums are the rows' sums. But these sums differ
    from row to row, and right and wrong divide the same number by two of them.
rows_repeated: hides = (i[:, None] + i) % n / n → hides = np.tile(i / n, (n, 1))
    All rows of the second table are the same. Then the sums of the columns differ from each other,
    and from those of the rows.
shown_by_a_hair: shows[0, 0] = 5.0 → shows[0, 0] = 0.001
    Right and wrong do differ on the first table, but by so little that a test with a sensible
    tolerance would let it pass.
always_three: + n = 3
    The tables are 3 by 3 whatever n is.
too_large: > result = result[0] * 1000, result[1]
    The scores of the first table are so large that exp of them is infinite: that would be another
    bug.
infinity_in_it: shows[0, 0] = 5.0 → shows[0, 0] = -np.inf
    A score of the first table is infinite. Finite numbers show the bug as well.
""")


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
