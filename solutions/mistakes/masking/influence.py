"""Known answers to `influence`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import masking as right

BANK = Bank("influence", right, globals())

BANK.changes("""
rows_stay_replaced: changed = x.clone() → changed = x.clone() if j == 0 else changed
    Rows that were replaced stay replaced, so column j shows what rows 0 … j do together. Start
    from x again for each column.
inputs_along_rows: columns, dim=-1) → columns, dim=0)
    The table is transposed. Outputs should be its rows, and replaced inputs its columns.
added_to_the_row: changed[j] = other[j] → changed[j] = x[j] + other[j]
    The other row is added to the one that is there. It should take its place.
set_to_zero: changed[j] = other[j] → changed[j] = 0
    The row is set to zero, and `other` is not used.
features_replaced: changed[j] = other[j] → changed[:, j % x.shape[1]] = other[:, j % x.shape[1]]
    A feature of all positions is replaced in place of all features of one position.
all_rows_at_once: changed[j] = other[j] → changed[:] = other
    All rows are replaced at once, so every column is the same.
rows_from_it_on: changed[j] = other[j] → changed[j:] = other[j:]
    All rows from j on are replaced, and not row j alone.
same_row_for_all: changed[j] = other[j] → changed[j] = other[0]
    Every row is replaced by the first row of `other`.
not_subtracted: (function(changed) - before) → function(changed)
    This is the length of the output after the change. How far it *moved* is the length of a
    difference.
compared_with_other: before = function(x) → before = function(other)
    The outputs are compared with those for `other`, in place of those for x.
squared: .norm(dim=-1) → .pow(2).sum(dim=-1)
    These are squared lengths: the root is missing.
summed_with_signs: .norm(dim=-1) → .sum(dim=-1)
    The differences of the features are added with their signs, so that they cancel. The length
    is the root of the sum of their squares.
sum_of_sizes: .norm(dim=-1) → .abs().sum(dim=-1)
    The sizes of the differences are added. The length is the root of the sum of their squares.
largest_feature: .norm(dim=-1) → .abs().amax(dim=-1)
    Only the feature that moves furthest counts. The length is over all of them.
mean_of_squares: .norm(dim=-1) → .pow(2).mean(dim=-1).sqrt()
    The squares are averaged over the features, and not added.
relative: .norm(dim=-1)) → .norm(dim=-1) / before.norm(dim=-1))
    The change is divided by the length of the output. Here it is the change itself.
by_the_change_of_the_input: .norm(dim=-1)) → .norm(dim=-1) / (other[j] - x[j]).norm())
    The change of the output is divided by that of the input. Here it is the change itself.
yes_or_no: torch.stack(columns, dim=-1) → (torch.stack(columns, dim=-1) > 0).to(x.dtype)
    This says whether an output moves, and not how far.
one_number_for_all_outputs: .norm(dim=-1) → .norm().expand(len(before))
    The length is taken over all outputs together. There should be one for each.
always_float32: torch.stack(columns, dim=-1) → torch.stack(columns, dim=-1).float()
    The result is float32, whatever the dtype of x.
as_many_outputs_as_inputs: torch.stack(columns, dim=-1) → torch.stack(columns, dim=-1)[: len(x)]
    The table has no more rows than x. The function decides how many outputs there are.
x_replaced: changed = x.clone() → changed = x
    Without a copy, the rows of the caller's own x are replaced, one after the other.
""")

forgotten(BANK, "x")


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
