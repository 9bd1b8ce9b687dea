"""Known answers to `padding_mask`: mistakes, then right answers."""

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("padding_mask", right, globals())
BANK.read()


def _checked(lengths, max_len):
    n = max(lengths.tolist()) if max_len is None else max_len
    if max(lengths.tolist()) > n:
        raise ValueError(f"lengths {lengths.tolist()} do not fit into {n}")
    return n


@BANK.right
def sequence_by_sequence(lengths, max_len=None):
    shape = len(lengths), 1, 1, _checked(lengths, max_len)
    mask = torch.zeros(shape, dtype=torch.bool, device=lengths.device)
    for row, length in zip(mask, lengths.tolist(), strict=True):
        row[..., :length] = True
    return mask


@BANK.right
def by_counting_down(lengths, max_len=None):
    n = _checked(lengths, max_len)
    left = lengths.view(-1, 1, 1, 1) - torch.arange(n).to(lengths).view(1, 1, 1, -1)
    return left.ge(1)


@BANK.right
def by_a_table_of_lists(lengths, max_len=None):
    n = _checked(lengths, max_len)
    table = [[[[j < length for j in range(n)]]] for length in lengths.tolist()]
    return torch.tensor(table, device=lengths.device)


@BANK.right
def by_numpy(lengths, max_len=None):
    n = _checked(lengths, max_len)
    mask = np.less.outer(np.arange(n), lengths.cpu().numpy()).T
    return torch.from_numpy(mask.copy()).unsqueeze(1).unsqueeze(1).to(lengths.device)


@BANK.right
def by_looking_up_a_triangle(lengths, max_len=None):
    n = _checked(lengths, max_len)
    return lengths.new_ones(n + 1, n).tril(-1).bool()[lengths][:, None, None]


@BANK.right
def by_padding_ones(lengths, max_len=None):
    n = _checked(lengths, max_len)
    ones = [lengths.new_ones(length) for length in lengths.tolist()]
    rows = [F.pad(row, (0, n - len(row))) for row in ones]
    return torch.stack(rows).to(torch.bool).reshape(-1, 1, 1, n)
