"""Known answers to `influence`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("influence", right, globals())
BANK.read()


@BANK.mistake
def x_replaced_and_restored(function, x, other):
    """x itself is changed, and put right again. The output before the change may be a view of x,
    and then it changes, too: give the function a copy."""
    before, columns = function(x), []
    for j in range(len(x)):
        kept = x[j].clone()
        x[j] = other[j]
        columns.append((function(x) - before).norm(dim=-1))
        x[j] = kept
    return torch.stack(columns, dim=-1)


@BANK.mistake
def all_others_replaced(function, x, other):
    """The wrong one of the two is the base: one row of x stands among the rows of `other`."""
    before, columns = function(x), []
    for j in range(len(x)):
        changed = other.clone()
        changed[j] = x[j]
        columns.append((function(changed) - before).norm(dim=-1))
    return torch.stack(columns, dim=-1)


@BANK.mistake
def compared_with_the_last(function, x, other):
    """Each output is compared with that for the row before. All of them should be compared with
    the output for x as it was."""
    before, columns = function(x), []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = other[j]
        after = function(changed)
        columns.append((after - before).norm(dim=-1))
        before = after
    return torch.stack(columns, dim=-1)


@BANK.mistake
def square_table(function, x, other):
    """The table is made square, n by n. A function may have more outputs than inputs, or fewer."""
    before = function(x)
    moved = x.new_zeros(len(x), len(x))
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = other[j]
        moved[:, j] = (function(changed) - before).norm(dim=-1)
    return moved


@BANK.right
def one_entry_at_a_time(function, x, other):
    before = function(x)
    moved = x.new_zeros(len(before), len(x))
    for j in range(len(x)):
        changed = torch.cat([x[:j], other[j : j + 1], x[j + 1 :]])
        after = function(changed)
        for i in range(len(before)):
            moved[i, j] = ((after[i] - before[i]) ** 2).sum() ** 0.5
    return moved


@BANK.right
def with_where(function, x, other):
    rows = torch.arange(len(x), device=x.device)[:, None]
    after = torch.stack([function(torch.where(rows == j, other, x)) for j in range(len(x))])
    return torch.linalg.vector_norm(after - function(x), dim=-1).T


@BANK.right
def a_copy_restored(function, x, other):
    before, copy, columns = function(x.clone()), x.clone(), []
    for j in range(len(x)):
        copy[j] = other[j]
        columns.append((before - function(copy)).square().sum(-1).sqrt())
        copy[j] = x[j]
    return torch.stack(columns).mT


@BANK.right
def with_einsum(function, x, other):
    columns = []
    for j, row in enumerate(other):
        keep = torch.ones(len(x), 1, dtype=x.dtype, device=x.device)
        keep[j] = 0
        far = function(keep * x + (1 - keep) * row) - function(x)
        columns.append(torch.einsum("mp,mp->m", far, far).sqrt())
    return torch.stack(columns, 1)
