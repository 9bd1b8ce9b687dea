"""Known answers to `softmax`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank, Edit
from solutions import kernel_regression as right

BANK = Bank("softmax", right, globals())


def _naive_softmax(scores, axis=-1):
    """exp over its sum, without any guard against overflow."""
    weights = np.exp(scores)
    return weights / weights.sum(axis=axis, keepdims=True)


def _floating(scores):
    return scores if scores.dtype.kind == "f" else scores.astype(np.float64)


def _finite_max(scores, axis):
    largest = scores.max(axis=axis, keepdims=True)
    return np.where(np.isneginf(largest), 0, largest)


# As students write them, with varying care for large scores and empty rows.
_GUARD = Edit("largest = np.where(np.isneginf(largest), 0, largest)", "")
_UNGUARDED = Edit("np.where(total == 0, 1, total)", "total")
_CARELESS = {
    "": ("", ()),
    "_and_empty_row_gives_nan": (
        " A row of nothing but −inf also gives NaN.",
        (_GUARD, _UNGUARDED),
    ),
    "_and_max_of_everything_subtracted": (
        " And the score subtracted from each row is the largest of all, not the row's own largest.",
        (Edit("max(axis=axis, keepdims=True)", "max()"), _GUARD, _UNGUARDED),
    ),
    "_and_max_not_subtracted": (
        " Nor is the largest score subtracted first, so large scores overflow, to infinity or NaN.",
        (Edit("scores - largest", "scores"), _UNGUARDED),
    ),
}
for _name, _total, _cause in (
    (
        "normalised_over_queries",
        "sum(axis=0, keepdims=True)",
        "The sum runs down the columns, so each column sums to 1 and the rows do not. Each query "
        "(a row) has to spread a total of 1 over its keys, along `axis`, by default the last.",
    ),
    (
        "normalised_over_everything",
        "sum(keepdims=True)",
        "All the weights in the array together sum to 1, instead of those along `axis`: the more "
        "rows there are, the smaller each weight gets.",
    ),
    (
        "keepdims_forgotten",
        "sum(axis=axis)",
        "The sum loses the axis that it runs over and no longer lines up with the rows: "
        "broadcasting divides each column by a row's sum, or fails where the sizes differ.",
    ),
    (
        "not_normalised",
        "dtype.type(1)",
        "The exponentials are returned without being divided by their sum: the weights of a row do "
        "not sum to 1.",
    ),
):
    for _suffix, (_more, _edits) in _CARELESS.items():
        _sum = Edit("sum(axis=axis, keepdims=True)", _total)
        BANK.change(_name + _suffix, _cause + _more, *_edits, _sum)


BANK.read()


@BANK.right
def row_by_row(scores, axis=-1):
    scores = _floating(scores)
    rows = np.moveaxis(scores, axis, -1)
    weights = np.zeros(rows.shape, scores.dtype)
    for index in np.ndindex(rows.shape[:-1]):
        row = rows[index]
        allowed = [j for j in range(len(row)) if row[j] > -np.inf]
        if allowed:
            largest = max(row[j] for j in allowed)
            total = sum(np.exp(row[j] - largest) for j in allowed)
            for j in allowed:
                weights[(*index, j)] = np.exp(row[j] - largest) / total
    return np.moveaxis(weights, -1, axis)


@BANK.right
def by_log_sum_exp(scores, axis=-1):
    scores = _floating(scores)
    log_total = np.logaddexp.reduce(scores, axis=axis, keepdims=True)
    return np.exp(scores - np.where(np.isneginf(log_total), 0, log_total))


@BANK.right
def by_torch(scores, axis=-1):
    weights = torch.softmax(torch.tensor(_floating(scores)), dim=axis)
    return weights.nan_to_num(0.0).numpy()


@BANK.right
def nan_replaced_at_the_end(scores, axis=-1):
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - np.max(scores, axis, keepdims=True))
        weights = weights / np.sum(weights, axis, keepdims=True)
    return np.nan_to_num(weights)


@BANK.right
def in_float64_and_back(scores, axis=-1):
    dtype = _floating(scores).dtype
    weights = _naive_softmax((s := scores.astype(np.float64)) - _finite_max(s, axis), axis)
    return np.nan_to_num(weights).astype(dtype)


@BANK.right
def with_a_small_number_under_the_fraction(scores, axis=-1):
    weights = np.exp(scores - _finite_max(scores, axis))
    return weights / np.maximum(weights.sum(axis, keepdims=True), 1e-30)


@BANK.right
def along_the_first_axis(scores, axis=-1):
    moved = np.swapaxes(_floating(scores), 0, axis)
    total = np.add.reduce(np.exp(moved - (top := _finite_max(moved, 0))), axis=0)
    weights = np.exp(moved - top) * (1 / np.where(total > 0, total, np.inf)).astype(moved.dtype)
    return np.ascontiguousarray(np.swapaxes(weights, 0, axis))
