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

BANK.changes("""
axis_ignored: axis=axis → axis=-1 ×2
    The argument `axis` is not used: whatever it says, the sum runs over the last axis.
exp_forgotten: np.exp(scores - largest) → scores ; np.where(total == 0, 1, total) → total
    The scores themselves are divided by their sum, without exp. Scores may be negative and may sum
    to 0, so weights turn out negative or huge.
sign_flipped: + scores = -scores
    The exponent has the wrong sign: the lowest score gets the largest weight.
max_not_subtracted: scores - largest → scores ; np.where(total == 0, 1, total) → total
    exp is taken of the raw scores. exp(10000) overflows to infinity and exp(−10000) vanishes, so
    large scores give ∞/∞ or 0/0, which is NaN. Only moderate scores come out right.
scores_and_minus_infinity_clipped
    - largest = scores.max(axis=axis, keepdims=True)
    - largest = np.where(np.isneginf(largest), 0, largest)
    - weights = np.exp(scores - largest)
    + weights = np.exp(np.clip(scores, -50, 50))
    ~ np.where(total == 0, 1, total) → total
    The scores are clipped to keep exp from overflowing. Beyond the limits all scores count the
    same, however far apart they are, and −inf gets some weight.
max_found_and_not_subtracted: np.exp(scores - largest) → np.exp(scores)
    The largest score is found and never subtracted, so exp overflows for scores of 1e4 and gives
    nothing but zeros for −1e4.
min_subtracted: scores.max → scores.min
    The smallest score is subtracted, not the largest: exp overflows where a row's scores lie far
    apart.
mean_for_sum: weights.sum → weights.mean
    The weights are divided by their mean: each row sums to its length, not to 1.
max_of_everything_subtracted
    ~ scores.max(axis=axis, keepdims=True) → scores.max()
    - largest = np.where(np.isneginf(largest), 0, largest)
    ~ np.where(total == 0, 1, total) → total
    The largest score of the whole array is subtracted from every row. In a row far below it all
    exponentials vanish, and 0/0 is NaN: each row needs its own largest score.
max_along_another_axis: scores.max(axis=axis → scores.max(axis=-1
    The largest score is taken along the last axis even when `axis` is another one. Subtracting
    keeps the weights as they are only if the same number is subtracted everywhere along `axis`.
empty_row_gives_nan
    - largest = np.where(np.isneginf(largest), 0, largest)
    ~ np.where(total == 0, 1, total) → total
    Right, except where a whole row is −inf: its largest score is −inf, and −inf − (−inf) is NaN,
    which spreads to the whole row. A row with nothing to attend to should be all zeros.
empty_row_gives_uniform: + scores = np.nan_to_num(scores, neginf=-1e300)
    −inf is replaced by a very negative finite number. That works as long as some score in the row
    is larger; in a row of nothing but −inf all are equal, and every entry gets the same weight
    instead of 0.
minus_inf_not_low_enough: + scores = np.maximum(scores, -1e4)
    −inf is replaced by a number such as −10,000, which real scores can reach: next to scores about
    as low, a key that must not be attended to gets weight.
small_number_added: np.exp(scores - largest) → np.exp(scores - largest) + 1e-12
    A small number is added to every exponential. It keeps the sum from being 0, but an entry of
    −inf gets a little weight instead of exactly none, and an empty row is shared out evenly.
softmax_twice: > result = softmax(result, axis)
    Softmax is applied to its own result: the weights sum to 1 but are far too even.
changes_scores_in_place
    - weights = np.exp(scores - largest)
    + scores -= largest
    + weights = np.exp(scores)
    The weights are right, but the caller's scores are changed: `-=` writes into the array that was
    passed in.
always_float64: + scores = scores.astype(np.float64)
    Everything is converted to float64: the weights are right, but float32 scores should give
    float32 weights.
always_float32: + scores = scores.astype(np.float32)
    Everything is computed in float32, which keeps 7 of the 16 digits of float64 scores: the weights
    are off from the 7th digit on.
two_dimensions_only
    + if axis == 0:
    +     return two_dimensions_only(scores.T).T
    + weights = softmax(scores, axis=1)
    + return weights / np.where(weights.sum(axis=1) == 0, 1, weights.sum(axis=1))[:, None]
    The scores are assumed to be a table of rows and columns: a single row, or a stack of tables,
    gives an error or is normalised along the wrong axis.
two_for_e: np.exp → np.exp2
    The scores are taken as powers of 2, not of e: the weights lie closer together than they should.
mean_subtracted: scores.max(axis → np.where(np.isneginf(scores), 0, scores).mean(axis
    The mean of the scores is subtracted instead of the largest: with scores of ±10,000 the largest
    is still far above it, and exp overflows.
scores_clipped: scores - largest → np.where(np.isneginf(scores), scores, scores.clip(-80, 80))
    The scores are clipped to keep exp from overflowing. Beyond the limits all scores count the
    same, however far apart they are.
""")


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
