"""Known answers to `causal_mask`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("causal_mask", right, globals())
INF = float("inf")

BANK.read()


@BANK.right
def by_comparing_positions(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
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
def by_counting_cells(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    cell = torch.arange(n_q * n_k, device=device)
    i, j = cell // max(n_k, 1), cell % max(n_k, 1)
    return (j - i <= n_k - n_q).reshape(n_q, n_k)


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
