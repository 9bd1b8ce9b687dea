"""Known answers to `causal_mask`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("causal_mask", right, globals())
INF = float("inf")

BANK.changes("""
polarity_inverted: everything.tril → ~everything.tril
    True and False are swapped: the mask is True on the future. In this book True means may attend;
    in nn.MultiheadAttention and its generate_square_subsequent_mask it means the opposite.
diagonal_excluded: diagonal=n_k - n_q → diagonal=n_k - n_q - 1
    The diagonal is False: a position does not see itself, and the first sees nothing at all.
    Position i should see 0 … i, itself included.
one_step_into_the_future: diagonal=n_k - n_q → diagonal=n_k - n_q + 1
    Each query sees one key beyond its own position: the very token it has to predict. The training
    loss falls to almost nothing, because the model has learnt to copy.
top_left_aligned: diagonal=n_k - n_q → diagonal=0
    The triangle starts at the top left even if there are more keys than queries, as if the queries
    were the first positions. They are the last: a new token would see only the beginning of what it
    continues.
looks_into_the_future_only: tril → triu
    The triangle is the upper one: each query sees itself and what comes after it. Rows are queries,
    columns are keys; the past is below the diagonal.
keys_along_rows: > result = result.T
    The mask is transposed, (n_k, n_q). There should be one row per query.
n_k_ignored: + n_k = n_q
    The mask is always square: n_k is not used. While a text is being written, there are few queries
    and many keys.
shift_has_the_wrong_sign: diagonal=n_k - n_q → diagonal=n_q - n_k
    The triangle is shifted by n_q − n_k instead of n_k − n_q: with more keys than queries it moves
    to the left, and queries that should see a lot see nothing.
never_shifted_to_the_left: diagonal=n_k - n_q → diagonal=max(0, n_k - n_q)
    With more queries than keys, the triangle is aligned at the top left, so early queries see keys
    that come after them. There is only one rule: the last query is at the last key's position.
everybody_sees_the_first: > result[:, 0] = True
    The first key is True for all queries, perhaps to avoid empty rows. With more queries than keys,
    the first queries come before every key and have nothing to see.
numbers_for_booleans: > result = result.float()
    The mask holds 1 and 0 instead of True and False; torch's attention would add them to the
    scores.
minus_infinity_for_false
    > result = torch.zeros(result.shape, device=device).masked_fill(~result, -INF)
    The mask is an additive one, 0 and −∞. It should be boolean, True where a query may attend.
    Turning one into the other is an exercise of its own.
device_ignored: torch.bool, device=device → torch.bool
    The mask is created on the CPU whatever `device` says, and raises an error as soon as it meets
    scores on a GPU.
axes_for_heads_added: > result = result[None, None]
    The mask is (1, 1, n_q, n_k). It would broadcast, but so does (n_q, n_k), the shape to return.
nothing_masked: everything.tril(diagonal=n_k - n_q) → everything
    Every query sees every key. tril keeps the keys up to each query's own position.
""")


# Starting from torch.tril(torch.ones(…)) or triu often leads to two of these mistakes at once.
BANK.changes("""
top_left_aligned_and_polarity_inverted of top_left_aligned: everything.tril → ~everything.tril
    The triangle starts at the top left even if there are more keys than queries, as if the queries
    were the first positions. They are the last: a new token would see only the beginning of what it
    continues. And True and False are swapped.
top_left_aligned_and_numbers_for_booleans of top_left_aligned: > result = result.float()
    The triangle starts at the top left even if there are more keys than queries, as if the queries
    were the first positions. They are the last: a new token would see only the beginning of what it
    continues. And it holds 1 and 0 instead of True and False.
top_left_aligned_and_diagonal_excluded of top_left_aligned: diagonal=0 → diagonal=-1
    The triangle starts at the top left even if there are more keys than queries, as if the queries
    were the first positions. They are the last: a new token would see only the beginning of what it
    continues. And a position does not see itself.
n_k_ignored_and_polarity_inverted of n_k_ignored: everything.tril → ~everything.tril
    The mask is always square: n_k is not used. While a text is being written, there are few queries
    and many keys. And True and False are swapped.
n_k_ignored_and_numbers_for_booleans of n_k_ignored: > result = result.float()
    The mask is always square: n_k is not used. While a text is being written, there are few queries
    and many keys. And it holds 1 and 0 instead of True and False.
n_k_ignored_and_diagonal_excluded of n_k_ignored: diagonal=n_k - n_q → diagonal=-1
    The mask is always square: n_k is not used. While a text is being written, there are few queries
    and many keys. And a position does not see itself.
rows_missing_where_queries_are_more: > result = result[max(0, n_q - n_k) :]
    With more queries than keys, the mask has only n_k rows, as `square[-n_q:]` gives. The first
    n_q − n_k queries need rows, too: they see nothing.
""")


@BANK.right
def by_comparing_positions(n_q, n_k=None, device=None):
    n_k = n_k or n_q
    query = torch.arange(n_k - n_q, n_k, device=device).unsqueeze(1)
    return query >= torch.arange(n_k, device=device)


@BANK.right
def by_their_difference(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    query, key = torch.arange(n_q, device=device)[:, None], torch.arange(n_k, device=device)
    return key - query <= n_k - n_q


@BANK.right
def without_the_upper_triangle(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    return ~torch.ones((n_q, n_k), device=device).triu(1 + n_k - n_q).bool()


@BANK.right
def cell_by_cell(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    rows = [[j - n_k <= i - n_q for j in range(n_k)] for i in range(n_q)]
    return torch.tensor(rows, dtype=torch.bool, device=device)


@BANK.right
def row_by_row(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    mask = torch.zeros(n_q, n_k, dtype=torch.bool, device=device)
    for i in range(n_q):
        mask[i, : max(0, i + 1 + n_k - n_q)] = True
    return mask


@BANK.right
def by_numpy(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    return torch.from_numpy(np.tri(n_q, n_k, n_k - n_q).astype(bool)).to(device or "cpu")


@BANK.right
def the_last_rows_of_a_square(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    side = max(n_q, n_k)
    return torch.ones(side, side, device=device).tril()[side - n_q :, side - n_k :] > 0
