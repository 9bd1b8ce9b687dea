"""Known answers to chapter 1: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.kernel_regression`.
"""

import numpy as np
import torch
from torch import nn

from solutions import kernel_regression as right
from solutions.mistakes import Bank, Edit

SOFTMAX = Bank("softmax", right, globals())
GAUSSIAN_SCORES = Bank("gaussian_scores", right, globals())
NADARAYA_WATSON = Bank("nadaraya_watson", right, globals())
KERNEL_WEIGHTS = Bank("kernel_weights", right, globals())
ATTENTION_POOL = Bank("attention_pool", right, globals())
LEAVE_ONE_OUT = Bank("leave_one_out_mse", right, globals())
KERNEL_REGRESSION = Bank("KernelRegression", right, globals())


def _naive_softmax(scores, axis=-1):
    """exp over its sum, with nothing done about overflow."""
    weights = np.exp(scores)
    return weights / weights.sum(axis=axis, keepdims=True)


def _floating(scores):
    return scores if scores.dtype.kind == "f" else scores.astype(np.float64)


def _finite_max(scores, axis):
    largest = scores.max(axis=axis, keepdims=True)
    return np.where(np.isneginf(largest), 0, largest)


# --- softmax: mistakes --------------------------------------------------------------------------


# As students write them: with more and less care for large scores and for empty rows.
_GUARD = Edit("largest = np.where(np.isneginf(largest), 0, largest)", "")
_UNGUARDED = Edit("np.where(total == 0, 1, total)", "total")
_CARELESS = {
    "": ("", ()),
    "_and_empty_row_gives_nan": (
        " A row of nothing but −inf gives NaN, besides.",
        (_GUARD, _UNGUARDED),
    ),
    "_and_max_of_everything_subtracted": (
        " And the score subtracted from a row is the largest of all, not its own largest.",
        (Edit("max(axis=axis, keepdims=True)", "max()"), _GUARD, _UNGUARDED),
    ),
    "_and_max_not_subtracted": (
        " Nor is the largest score subtracted first, so that large scores give NaN.",
        (Edit("scores - largest", "scores"), _UNGUARDED),
    ),
}
for _name, _total, _cause in (
    (
        "normalised_over_queries",
        "sum(axis=0, keepdims=True)",
        "The sum runs down the columns, so each column sums to 1 and the rows do not. Each query "
        "(a row) has to spread a total of 1 over its keys, along `axis`, which is the last unless "
        "said.",
    ),
    (
        "normalised_over_everything",
        "sum(keepdims=True)",
        "All the weights of the array together sum to 1, instead of those along `axis`: the more "
        "rows there are, the smaller each weight gets.",
    ),
    (
        "keepdims_forgotten",
        "sum(axis=axis)",
        "The sum loses the axis it runs over, so it no longer lines up with the rows: broadcasting "
        "divides each column by a row's sum, or fails where the sizes differ.",
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
        SOFTMAX.change(_name + _suffix, _cause + _more, *_edits, _sum)

SOFTMAX.changes("""
axis_ignored: axis=axis → axis=-1 ×2
    The argument `axis` is not used: whatever it says, the sum runs over the last axis.
exp_forgotten: np.exp(scores - largest) → scores ; np.where(total == 0, 1, total) → total
    The scores themselves are divided by their sum, without exp. Scores may be negative and may sum
    to 0, so the weights come out negative or huge.
sign_flipped: + scores = -scores
    The exponent has the wrong sign: the lowest score gets the largest weight.
max_not_subtracted: scores - largest → scores ; np.where(total == 0, 1, total) → total
    exp is taken of the raw scores. exp(10000) overflows to infinity and exp(−10000) vanishes, so
    large scores give ∞/∞ or 0/0, which is NaN. Ordinary scores come out right.
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
    Right, except where a whole row is −inf: its largest score is −inf, −inf − (−inf) is NaN, and so
    is the row. Nothing to attend to has to give zeros.
empty_row_gives_uniform: + scores = np.nan_to_num(scores, neginf=-1e300)
    −inf is replaced by a very negative finite number. That works as long as one score in the row is
    larger; in a row of nothing but −inf all are equal, and each gets the same weight, not 0.
minus_inf_not_low_enough: + scores = np.maximum(scores, -1e4)
    −inf is replaced by a number such as −10,000, which other scores can reach: next to scores about
    as low, a key that must not be looked at gets weight.
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
    Everything is computed in float32, which keeps 7 digits of the 16 that float64 scores have: the
    weights are off from the 7th digit on.
two_dimensions_only
    + if axis == 0:
    +     return two_dimensions_only(scores.T).T
    + weights = softmax(scores, axis=1)
    + return weights / np.where(weights.sum(axis=1) == 0, 1, weights.sum(axis=1))[:, None]
    The scores are taken to be a table of rows and columns: one row alone, or a stack of tables,
    gives an error or the wrong axis.
""")


# --- softmax: right -----------------------------------------------------------------------------


@SOFTMAX.right
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


@SOFTMAX.right
def by_log_sum_exp(scores, axis=-1):
    scores = _floating(scores)
    log_total = np.logaddexp.reduce(scores, axis=axis, keepdims=True)
    return np.exp(scores - np.where(np.isneginf(log_total), 0, log_total))


@SOFTMAX.right
def by_torch(scores, axis=-1):
    weights = torch.softmax(torch.tensor(_floating(scores)), dim=axis)
    return weights.nan_to_num(0.0).numpy()


@SOFTMAX.right
def nan_replaced_at_the_end(scores, axis=-1):
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - np.max(scores, axis, keepdims=True))
        weights = weights / np.sum(weights, axis, keepdims=True)
    return np.nan_to_num(weights)


@SOFTMAX.right
def in_float64_and_back(scores, axis=-1):
    dtype = _floating(scores).dtype
    weights = _naive_softmax((s := scores.astype(np.float64)) - _finite_max(s, axis), axis)
    return np.nan_to_num(weights).astype(dtype)


@SOFTMAX.right
def with_a_small_number_under_the_fraction(scores, axis=-1):
    weights = np.exp(scores - _finite_max(scores, axis))
    return weights / np.maximum(weights.sum(axis, keepdims=True), 1e-30)


@SOFTMAX.right
def along_the_first_axis(scores, axis=-1):
    moved = np.swapaxes(_floating(scores), 0, axis)
    total = np.add.reduce(np.exp(moved - (top := _finite_max(moved, 0))), axis=0)
    weights = np.exp(moved - top) * (1 / np.where(total > 0, total, np.inf)).astype(moved.dtype)
    return np.ascontiguousarray(np.swapaxes(weights, 0, axis))


# --- gaussian_scores: mistakes ------------------------------------------------------------------

GAUSSIAN_SCORES.changes("""
one_key_per_query: query[:, None] - key[None, :] → query - key
    The i-th query is paired with the i-th key only: (n,) − (n,) is (n,), and queries and keys of
    different number cannot be subtracted at all. Every query has to meet every key, `(n_q, n_k)`.
keys_along_rows: > result = result.T
    The scores are transposed: keys stand along the rows and queries along the columns. The
    exercise wants one row for each query, `(n_q, n_k)`.
sign_flipped: -0.5 → 0.5
    The minus sign is missing: the score grows with the distance, so the farthest key would get the
    most weight.
w_not_squared: (distance * w) ** 2 → distance**2 * w
    w stands outside the square: only the distance is squared. The score is −½((x − x_i) w)², so
    that doubling w makes it four times as large, not twice.
distance_not_squared: (distance * w) ** 2 → distance * w
    The square is missing: −½ (x − x_i) w is positive for keys on one side of the query and negative
    for those on the other.
absolute_distance: (distance * w) ** 2 → np.abs(distance * w)
    The absolute value of the distance is taken in place of its square. That is the score of a
    pointed kernel, exp(−½|u|), and not of the Gaussian.
divided_by_w: distance * w → distance / w
    The distance is divided by w. Here w is the inverse bandwidth: a larger w makes the kernel
    narrower, so the distance is multiplied by it.
half_forgotten: -0.5 * → -1.0 *
    The factor ½ is missing: every score is twice as large as it should be.
w_ignored: distance * w → distance
    The argument w is not used: the scores are those of w = 1.
exp_taken: > result = np.exp(result)
    exp is taken already: this is the Gaussian itself, between 0 and 1. The score is what stands in
    the exponent; exp is softmax's part.
already_weights: > result = softmax(result)
    These are weights, not scores: softmax has been applied already. The score is what goes into the
    softmax.
keys_subtracted_from_mean_query: query[:, None] → np.full(query.shape, query.mean())[:, None]
    Every query gets the same scores: the distance is measured from the mean of the queries and not
    from each of them.
truncated_to_integers: > result = result.astype(query.dtype)
    The scores are stored in an array of the query's dtype. For whole-number queries that is an
    integer array, and halves are cut off.
changes_query_in_place
    > if query.dtype.kind == "f":
    >     query *= w
    The scores are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
""")


# --- gaussian_scores: right ---------------------------------------------------------------------


@GAUSSIAN_SCORES.right
def in_two_loops(query, key, w=1.0):
    scores = np.zeros((len(query), len(key)))
    for i in range(len(query)):
        for j in range(len(key)):
            scores[i, j] = -(((query[i] - key[j]) * w) ** 2) / 2
    return scores


@GAUSSIAN_SCORES.right
def outer_difference(query, key, w=1.0):
    u = np.subtract.outer(w * query, w * key)
    return -u * u / 2


@GAUSSIAN_SCORES.right
def square_expanded(query, key, w=1.0):
    squares = query[:, None] ** 2 + key[None, :] ** 2
    return (np.outer(query, key) - 0.5 * squares) * w**2


@GAUSSIAN_SCORES.right
def by_torch_cdist(query, key, w=1.0):
    points = [torch.tensor(np.array(x), dtype=torch.float64)[:, None] for x in (query, key)]
    return (-0.5 * (torch.cdist(*points) * w) ** 2).numpy()


@GAUSSIAN_SCORES.right
def on_a_grid(query, key, w=1.0):
    x, x_i = np.meshgrid(query, key, indexing="ij")
    return np.power(abs(x_i - x) * abs(w), 2) * -0.5


@GAUSSIAN_SCORES.right
def repeated_and_tiled(query, key, w=1.0):
    pairs = np.repeat(query, len(key)) - np.tile(key, len(query))
    return (-0.5 * w * w * np.square(pairs)).reshape(len(query), -1)


# --- nadaraya_watson: mistakes ------------------------------------------------------------------

NADARAYA_WATSON.changes("""
normalised_over_queries: axis=-1 → axis=0
    The softmax runs over the queries: each column of the weights sums to 1. Each query has to
    spread a total weight of 1 over the keys, so each row must.
not_normalised
    ~ softmax(gaussian_scores(query, key, w), axis=-1) → np.exp(gaussian_scores(query, key, w))
    The kernel is not divided by its sum over the keys. The more keys lie near a query, the larger
    its prediction, and far from all keys it falls to 0.
sign_flipped: softmax(gaussian_scores → softmax(-gaussian_scores
    The sign of the score is wrong: the keys farthest from the query get the most weight, and the
    closest the least.
divided_by_w: key, w → key, 1 / w
    The distance is divided by w instead of multiplied: a large w smooths more, where it should
    follow the data more closely. w is the inverse bandwidth.
w_not_squared: key, w → key, np.sqrt(w)
    w stands outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared along
    with it.
half_forgotten: key, w → key, np.sqrt(2) * w
    The factor ½ is missing in the exponent: the kernel is narrower than w says.
w_ignored: query, key, w → query, key
    The argument w does not reach the scores: the weights are those of w = 1.
query_ignored
    - softmax(gaussian_scores(query, key, w), axis=-1)
    + np.full((len(query), len(key)), 1 / len(key))
    Every key gets the same weight, so every prediction is the plain mean of the values: the weights
    do not depend on the query.
nearest_key_only
    - softmax(gaussian_scores(query, key, w), axis=-1)
    + np.eye(len(key))[gaussian_scores(query, key, w).argmax(axis=-1)]
    All the weight goes to the nearest key, so the prediction jumps from one value to the next. The
    Gaussian gives every key a share.
one_key_per_query: gaussian_scores(query, key, w) → -0.5 * ((query - key) * w) ** 2
    The i-th query is compared with the i-th key only: query − key is `(n,)`, not `(n_q, n_k)`, and
    it fails where there are more keys than queries.
keys_averaged: weights @ value → weights @ key
    The weights are applied to the keys. The keys say where to look; what is averaged are the
    values.
prediction_and_weights_swapped: weights @ value, weights → weights, weights @ value
    The two results come in the wrong order: the prediction comes first, then the weights.
prediction_alone: weights @ value, weights → weights @ value
    Only the prediction is returned. Return the weights, too: `(prediction, weights)`.
weights_alone: weights @ value, weights → weights
    The weights are returned, but never applied to the values: the prediction is missing.
scores_for_weights: weights @ value, weights → weights @ value, gaussian_scores(query, key, w)
    The second result holds the scores and not the weights: it is what goes into the softmax.
max_not_subtracted: = softmax → = _naive_softmax
    exp is taken of the raw scores. For a query far from every key all of them vanish, and the
    division 0/0 gives NaN.
far_query_gets_nothing
    - softmax(gaussian_scores(query, key, w), axis=-1)
    + _rows_of_one(np.exp(gaussian_scores(query, key, w)))
    exp is taken of the raw scores, and a sum of 0 is guarded against. No NaN, but a query far from
    every key gets no weights at all and the prediction 0; its row should still sum to 1.
small_number_under_the_fraction
    - weights = softmax(gaussian_scores(query, key, w), axis=-1)
    + weights = np.exp(gaussian_scores(query, key, w))
    + weights = weights / (weights.sum(axis=-1, keepdims=True) + 1e-6)
    A small number is added to the sum of the kernel. No NaN, but the rows of weights no longer sum
    to 1, least of all for a query far from every key.
numbers_only: weights @ value → (weights * value).sum(axis=-1)
    Values that are vectors are not taken into account: weights and values are multiplied entry by
    entry, which suits values of shape `(n_k,)` only.
columns_squeezed: weights @ value → (weights @ value).squeeze()
    Axes of length 1 are squeezed out of the prediction. Values of shape `(n_k, 1)` should give
    `(n_q, 1)`, and a single query is still an array of one.
changes_query_in_place
    > if query.dtype.kind == "f":
    >     query *= w
    The results are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
""")


# --- nadaraya_watson: right ---------------------------------------------------------------------


@NADARAYA_WATSON.right
def query_by_query(query, key, value, w=1.0):
    rows = []
    for x in query:
        scores = [-0.5 * ((x - x_i) * w) ** 2 for x_i in key]
        parts = [np.exp(score - max(scores)) for score in scores]
        rows.append([part / sum(parts) for part in parts])
    predictions = [sum(a * y for a, y in zip(row, value, strict=True)) for row in rows]
    return np.array(predictions), np.array(rows)


@NADARAYA_WATSON.right
def by_einsum(query, key, value, w=1.0):
    scores = -0.5 * np.subtract.outer(query, key) ** 2 * w**2
    weights = np.exp(scores - scores.max(1)[:, None])
    weights /= weights.sum(1)[:, None]
    return np.einsum("qk,k...->q...", weights, value), weights


@NADARAYA_WATSON.right
def by_torch(query, key, value, w=1.0):
    x, x_i, y = (torch.tensor(np.array(a), dtype=torch.float64) for a in (query, key, value))
    weights = torch.softmax(-0.5 * ((x[:, None] - x_i) * w).square(), dim=1)
    return torch.tensordot(weights, y, dims=1).numpy(), weights.numpy()


@NADARAYA_WATSON.right
def divided_after_the_sum(query, key, value, w=1.0):
    distance = np.abs(query[:, None] - key) * w
    nearest = distance.min(axis=1, keepdims=True)
    kernel = np.exp(-0.5 * (distance - nearest) * (distance + nearest))
    total = kernel.sum(axis=1)
    return ((kernel @ value).T / total).T, kernel / total[:, None]


@NADARAYA_WATSON.right
def keys_first_then_transposed(query, key, value, w=1.0):
    log_kernel = -((key.reshape(-1, 1) - query) ** 2) / (2 * (1 / w) ** 2)
    weights = np.exp(log_kernel - np.logaddexp.reduce(log_kernel, axis=0)).T
    return weights.dot(value), weights


# --- kernel_weights: mistakes -------------------------------------------------------------------

KERNEL_WEIGHTS.changes("""
normalised_over_queries: axis=-1 → axis=0 ×2
    The sum runs over the queries, so each column of the weights sums to 1. It has to run over the
    keys: each row sums to 1.
not_normalised
    - softmax(-0.5 * u**2, axis=-1)
    + np.exp(-0.5 * u**2)
    - support / np.where(total == 0, 1, total)
    + support
    The kernel is returned as it is, not divided by its sum over the keys: the rows do not sum to 1.
softmax_of_the_kernel
    - softmax(-0.5 * u**2, axis=-1)
    + softmax(np.exp(-0.5 * u**2))
    - support / np.where(total == 0, 1, total)
    + softmax(support)
    The values of the kernel are put through a softmax. Keys out of reach then get weight as well;
    only the Gaussian comes from an exponential, and the others are divided by their sum.
divided_by_w: key[None, :]) * w → key[None, :]) / w
    The distance is divided by w instead of multiplied: a larger w reaches more keys, where it
    should reach fewer. u is (x − x_i) w.
w_ignored: key[None, :]) * w → key[None, :])
    The argument w is not used: the weights are those of w = 1.
gaussian_half_forgotten: -0.5 * u**2 → -(u**2)
    The Gaussian lacks its factor ½: exp(−u²) is narrower than exp(−½u²). The other two kernels are
    right.
absolute_value_forgotten: np.abs(u) <= 1 → u <= 1
    The boxcar asks for u ≤ 1 without the absolute value: every key above the query counts as near,
    however far it is.
edge_left_out: np.abs(u) <= 1 → np.abs(u) < 1
    The boxcar leaves out its edge: a key at |u| = 1 exactly still counts.
boxcar_half_as_wide: np.abs(u) <= 1 → np.abs(u) <= 0.5
    The boxcar ends at |u| = ½, which makes it 1 wide in all; the one asked for ends at |u| = 1.
    Keys between the two get no weight.
negative_weights: np.maximum(0.0, 1 - u**2) → 1 - u**2
    The Epanechnikov kernel is not cut off at 0: beyond |u| = 1, 1 − u² is negative, and so are the
    weights of far keys.
cut_off_after_dividing: np.maximum(0.0, 1 - u**2) → 1 - u**2 ; > result = np.maximum(0.0, result)
    The Epanechnikov weights are divided by their sum first and cut off at 0 afterwards: the
    negative ones have gone into the sum, so the rows do not sum to 1.
triangle_for_epanechnikov: 1 - u**2 → 1 - np.abs(u)
    u is not squared in the Epanechnikov kernel: max(0, 1 − |u|) is a triangle, max(0, 1 − u²) a
    parabola.
empty_row_gives_nan: np.where(total == 0, 1, total) → total
    Right, except for a query that no key is in reach of: its weights and their sum are all 0, and
    0/0 is NaN. Such a row is to be all zeros.
empty_row_gives_uniform
    > result = np.where(result.any(axis=-1, keepdims=True), result, 1 / len(key))
    Right, except for a query that no key is in reach of: it gets the same weight on every key,
    where all its weights should be 0.
unknown_kernel_accepted
    - raise ValueError(f"kernel must be gaussian, boxcar or epanechnikov, not {kernel!r}")
    + support = np.maximum(0.0, 1 - u**2)
    A kernel of another name is taken for one of the three, without a word. It should raise a
    ValueError.
unknown_kernel_gives_none
    - raise ValueError(f"kernel must be gaussian, boxcar or epanechnikov, not {kernel!r}")
    + return None
    A kernel of another name falls through all the cases, and the function returns None. It should
    raise a ValueError.
unknown_kernel_raises_key_error
    - raise ValueError(f"kernel must be gaussian, boxcar or epanechnikov, not {kernel!r}")
    + raise KeyError(kernel)
    A kernel of another name raises the KeyError of a dictionary. Raise a ValueError:
    what is wrong is the caller's argument.
changes_query_in_place
    > if query.dtype.kind == "f":
    >     query *= w
    The weights are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
""")


# --- kernel_weights: right ----------------------------------------------------------------------


def _kernels(u):
    """The three kernels of u, none of them divided by its sum."""
    return {
        "gaussian": np.exp(-0.5 * u**2),
        "boxcar": (np.abs(u) <= 1).astype(np.float64),
        "epanechnikov": np.maximum(0.0, 1 - u**2),
    }


def _chosen(u, kernel, **otherwise):
    if kernel not in ("gaussian", "boxcar", "epanechnikov"):
        raise ValueError(kernel)
    return (_kernels(u) | otherwise)[kernel]


def _rows_of_one(weights, axis=-1):
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _u(query, key, w):
    return np.subtract.outer(query, key) * w


@KERNEL_WEIGHTS.right
def from_a_dictionary(query, key, kernel, w=1.0):
    if kernel not in (known := _kernels(_u(query, key, w))):
        raise ValueError("no such kernel")
    weights = known[kernel]
    return np.divide(
        weights,
        weights.sum(axis=1, keepdims=True),
        out=np.zeros_like(weights),
        where=weights.any(axis=1, keepdims=True),
    )


@KERNEL_WEIGHTS.right
def in_two_loops(query, key, kernel, w=1.0):
    weights = np.zeros((len(query), len(key)))
    for i, x in enumerate(query):
        for j, x_i in enumerate(key):
            u = abs(x - x_i) * w
            if kernel == "gaussian":
                weights[i, j] = np.exp(-0.5 * u * u)
            elif kernel == "boxcar":
                weights[i, j] = 1 if u <= 1 else 0
            elif kernel == "epanechnikov":
                weights[i, j] = 1 - u * u if u < 1 else 0
            else:
                raise ValueError(f"unknown kernel: {kernel}")
        if weights[i].sum() > 0:
            weights[i] /= weights[i].sum()
    return weights


@KERNEL_WEIGHTS.right
def densities(query, key, kernel, w=1.0):
    u = _u(query, key, w)
    if kernel == "gaussian":
        density = w * np.exp(-0.5 * u**2) / np.sqrt(2 * np.pi)
    elif kernel == "boxcar":
        density = np.where((u >= -1) & (u <= 1), w / 2, 0)
    elif kernel == "epanechnikov":
        density = 0.75 * w * np.clip(1 - u**2, 0, None)
    else:
        raise ValueError
    total = density.sum(-1, keepdims=True)
    return np.where(total > 0, density / np.where(total > 0, total, 1), 0)


@KERNEL_WEIGHTS.right
def nan_replaced_at_the_end(query, key, kernel, w=1.0):
    weights = _chosen(_u(query, key, w), kernel)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(weights / weights.sum(-1, keepdims=True))


@KERNEL_WEIGHTS.right
def by_torch(query, key, kernel, w=1.0):
    x, x_i = (torch.tensor(np.array(a), dtype=torch.float64) for a in (query, key))
    u = (x.unsqueeze(1) - x_i) * w
    match kernel:
        case "gaussian":
            return torch.softmax(-(u**2) / 2, 1).numpy()
        case "boxcar":
            weights = (u.abs() <= 1).double()
        case "epanechnikov":
            weights = torch.relu(1 - u**2)
        case _:
            raise ValueError(f"{kernel!r} is no kernel")
    return torch.nn.functional.normalize(weights, p=1, dim=1).numpy()


# --- attention_pool: mistakes -------------------------------------------------------------------

ATTENTION_POOL.changes("""
normalised_over_queries: axis=-1 → axis=0
    The softmax runs over the queries: each column of the weights sums to 1 instead of each row.
    Each query spreads its weight over the keys.
not_normalised: softmax(score(query, key), axis=-1) → score(query, key)
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
exp_not_divided: softmax(score(query, key), axis=-1) → np.exp(score(query, key))
    exp is taken of the scores, but it is not divided by its sum over the keys: the rows of weights
    do not sum to 1.
key_passed_first: score(query, key) → score(key, query)
    `score` gets the key first and the query second. It returns one row for each of its first
    argument, so the result has a row for each key, or the shapes do not fit.
key_passed_first_then_transposed: score(query, key) → score(key, query).T
    `score` gets the key first, and its result is transposed. The shape is right, but a score need
    not be the same both ways round: it has to be asked for (query, key).
score_ignored: score(query, key) → gaussian_scores(query, key)
    The scoring function is not called: these are the weights of the Gaussian, whatever `score`
    says.
score_called_for_each_pair
    ~ score(query, key) → np.array([[score(q, k) for k in key] for q in query])
    `score` is called for one query and one key at a time. It takes all queries and all keys at once
    and returns the whole table, so it fails on single vectors.
score_called_by_keyword: score(query, key) → score(query=query, key=key)
    `score` is called with `query=` and `key=`. Any function of two arguments will do for a score,
    whatever it calls them: pass them by position.
scores_scaled
    - score(query, key)
    + score(query, key) / np.sqrt(query.shape[-1] if query.ndim > 1 else 1)
    The scores are divided by √d once more. Whether to scale is the scoring function's affair: its
    result goes into the softmax as it is.
scores_negated: score(query, key) → -score(query, key)
    The sign of the scores is turned, as if they were distances: the key with the lowest score gets
    the most weight.
softmax_twice: score(query, key) → softmax(score(query, key))
    Softmax is applied twice: the rows sum to 1 but are far too even.
max_not_subtracted: = softmax → = _naive_softmax
    exp is taken of the raw scores: with scores of ±10,000 it overflows to infinity, or all of a row
    vanishes, and the weights are NaN.
largest_score_only
    - weights = softmax(score(query, key), axis=-1)
    + scores = score(query, key)
    + weights = np.eye(scores.shape[1])[scores.argmax(axis=1)]
    All the weight goes to the key with the largest score. Softmax gives every key a share, as large
    as its score says.
keys_averaged: weights @ value → weights @ key
    The weights are applied to the keys. The keys are there to be scored; what is averaged are the
    values.
output_and_weights_swapped: weights @ value, weights → weights, weights @ value
    The two results come in the wrong order: the output comes first, then the weights.
output_alone: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights, too: `(output, weights)`.
weights_alone: weights @ value, weights → weights
    The weights are returned, but never applied to the values: the output is missing.
scores_for_weights: weights @ value, weights → weights @ value, score(query, key)
    The second result holds the scores. Return the weights, which sum to 1.
columns_squeezed: weights @ value → (weights @ value).squeeze()
    Axes of length 1 are squeezed out of the output: values of shape `(n_k, 1)` should give `(n_q,
    1)`.
changes_query_in_place: > query -= query.mean()
    The results are right, but the caller's query is changed: `-=` writes into the array that was
    passed in.
""")


# --- attention_pool: right ----------------------------------------------------------------------


@ATTENTION_POOL.right
def row_by_row(query, key, value, score):
    scores = score(query, key)
    weights = np.array([np.exp(row - row.max()) for row in scores])
    weights = np.array([row / row.sum() for row in weights])
    return np.array([sum(a * v for a, v in zip(r, value, strict=True)) for r in weights]), weights


@ATTENTION_POOL.right
def by_einsum(query, key, value, score):
    scores = score(query, key)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.einsum("qk,k...->q...", weights, value), weights


@ATTENTION_POOL.right
def by_torch(query, key, value, score):
    weights = torch.softmax(torch.from_numpy(score(query, key)), dim=-1)
    output = torch.tensordot(weights, torch.from_numpy(value), dims=([1], [0]))
    return output.numpy(), weights.numpy()


@ATTENTION_POOL.right
def divided_after_the_sum(query, key, value, score):
    scores = score(query, key)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    total = weights.sum(axis=1)
    return ((weights @ value).T / total).T, (weights.T / total).T


@ATTENTION_POOL.right
def one_query_at_a_time(query, key, value, score):
    weights = np.vstack([right.softmax(score(query[i : i + 1], key)) for i in range(len(query))])
    return np.tensordot(weights, value, axes=1), weights


# --- leave_one_out_mse: mistakes ----------------------------------------------------------------

LEAVE_ONE_OUT.changes("""
own_point_kept: - np.fill_diagonal(scores, -np.inf)
    Each point helps to predict itself. The narrower the kernel, the closer the prediction gets to
    the point's own value, and the error falls to 0 without anything being learnt. (A score of 0
    does not leave it out: exp(0) is 1.)
diagonal_not_low_enough: -np.inf → -1000.0
    The diagonal is set to a number such as −1000. A narrow kernel gives the other points lower
    scores than that, and then a point's own vote counts after all.
weight_zeroed_after_softmax
    - np.fill_diagonal(scores, -np.inf)
    - prediction = softmax(scores, axis=-1) @ y
    + weights = softmax(scores, axis=-1)
    + np.fill_diagonal(weights, 0.0)
    + prediction = weights @ y
    The point's own weight is set to 0 after the softmax, and the others stay as they are: they sum
    to less than 1, and every prediction is pulled towards 0.
every_equal_x_left_out: np.fill_diagonal(scores, -np.inf) → scores[np.equal.outer(x, x)] = -np.inf
    Every point whose x is the same is left out, not only the point itself: another measurement at
    the same place is the best witness there is.
normalised_over_queries: axis=-1 → axis=0
    The softmax runs down the columns: the weights that predict one point do not sum to 1. It has to
    run along each row.
max_not_subtracted: = softmax → = _naive_softmax
    With a narrow kernel all the other points' exponentials vanish, and 0/0 gives NaN: exp was taken
    of the raw scores, or the own weight was set to 0 after the softmax and the rest divided once
    more.
sum_for_mean: np.mean → np.sum
    The squared errors are added up, not averaged: the result grows with the number of points.
divided_by_n_minus_1: np.mean((prediction - y) ** 2) → np.sum((prediction - y) ** 2) / (len(x) - 1)
    The sum of the squared errors is divided by n − 1. Each prediction uses n − 1 points, but there
    are n errors to average.
root_taken: np.mean((prediction - y) ** 2) → np.sqrt(np.mean((prediction - y) ** 2))
    The square root of the mean squared error is returned. The exercise wants the mean of the
    squares, in the unit of y squared.
absolute_errors: (prediction - y) ** 2 → np.abs(prediction - y)
    The absolute errors are averaged and not their squares.
mean_before_square: np.mean((prediction - y) ** 2) → np.mean(prediction - y) ** 2
    The errors are averaged before they are squared, so that positive and negative ones cancel.
    Square each one first.
halved: > result = result / 2
    A factor ½ stands before the mean, as in some loss functions: the result is half of what is
    asked.
divided_by_w: x, x, w → x, x, 1 / w
    The distance is divided by w instead of multiplied. w is the inverse bandwidth.
w_not_squared: x, x, w → x, x, np.sqrt(w)
    w stands outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared along
    with it.
one_error_per_point: float(np.mean((prediction - y) ** 2)) → (prediction - y) ** 2
    The squared error of every point is returned. Return their mean, one number.
array_of_no_dimension: > result = np.asarray(result)
    The number is right, but it comes as an array of shape `()`. Return a Python float.
sorts_x_in_place: > x.sort()
    The error is right, but the caller's x is changed: `x.sort()` sorts the array that was passed
    in.
""")


# --- leave_one_out_mse: right -------------------------------------------------------------------


@LEAVE_ONE_OUT.right
def each_point_deleted_in_turn(x, y, w):
    total = 0.0
    for i in range(len(x)):
        rest = np.arange(len(x)) != i
        prediction, _ = right.nadaraya_watson(x[i : i + 1], x[rest], y[rest], w)
        total += (prediction[0] - y[i]) ** 2
    return total / len(x)


@LEAVE_ONE_OUT.right
def infinity_on_the_diagonal(x, y, w):
    scores = right.gaussian_scores(x, x, w) - np.diag(np.full(len(x), np.inf))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.square(y - weights.dot(y)).mean()


@LEAVE_ONE_OUT.right
def a_table_of_the_others(x, y, w):
    n = len(x)
    others = np.array([[j for j in range(n) if j != i] for i in range(n)])  # (n, n - 1)
    weights = right.softmax(-0.5 * ((x[:, None] - x[others]) * w) ** 2)
    error = y - np.einsum("ij,ij->i", weights, y[others])
    return float(error @ error / n)


@LEAVE_ONE_OUT.right
def by_torch(x, y, w):
    x, y = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    scores = (x[:, None] - x).mul(w).square().mul(-0.5).fill_diagonal_(-torch.inf)
    return nn.functional.mse_loss(scores.softmax(dim=1) @ y, y).item()


@LEAVE_ONE_OUT.right
def in_plain_python(x, y, w):
    x, y, errors = [float(a) for a in x], [float(b) for b in y], []
    for i in range(len(x)):
        scores = {j: -0.5 * ((x[i] - x[j]) * w) ** 2 for j in range(len(x)) if j != i}
        kernel = {j: np.exp(s - max(scores.values())) for j, s in scores.items()}
        prediction = sum(kernel[j] * y[j] for j in kernel) / sum(kernel.values())
        errors.append((prediction - y[i]) ** 2)
    return float(sum(errors) / len(errors))


# --- KernelRegression: mistakes -----------------------------------------------------------------

KERNEL_REGRESSION.changes("""
normalised_over_queries: dim=-1 → dim=0 ×2
    The softmax runs over the queries (dim 0), so the weights of one prediction do not sum to 1.
    Each query spreads its weight over the keys.
not_normalised: torch.softmax(scores, dim=-1) → torch.exp(scores) ×2
    The kernel is not divided by its sum over the keys: the more keys lie near a query, the larger
    its prediction.
sign_flipped: -0.5 → 0.5
    The sign of the score is wrong: the keys farthest from the query get the most weight.
w_not_squared: (distance * self.w) ** 2 → distance**2 * self.w
    w stands outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared along
    with it.
divided_by_w: distance * self.w → distance / self.w
    The distance is divided by w instead of multiplied. w is the inverse bandwidth: learning would
    push it the wrong way.
half_forgotten: -0.5 * (distance * self.w) ** 2 → -((distance * self.w) ** 2)
    The factor ½ is missing in the score: the kernel is narrower than w says.
one_key_per_query: + exclude_self = False ; query[:, None] - key[None, :] → query - key
    The i-th query is compared with the i-th key only: query − key is `(n,)`, not `(n_q, n_k)`, and
    it fails where their numbers differ.
w_ignored: distance * self.w → distance
    `forward` does not use the parameter w: the predictions are those of w = 1, and no gradient ever
    reaches it.
w_detached: distance * self.w → distance * self.w.detach()
    The predictions are right, but w is taken out of the graph (`.item()`, `.detach()`, `.data`,
    float), so no gradient reaches it and it never learns.
w_of_the_beginning
    - super().__init__()
    + super().__init__()
    + self.beginning = float(w)
    - distance * self.w
    + distance * self.beginning
    `forward` uses the number that w began with, and not the parameter: whatever the optimiser does
    to the parameter, the predictions stay the same.
w_not_a_parameter: nn.Parameter(torch.tensor(float(w))) → torch.tensor(float(w))
    w is an ordinary tensor and not an nn.Parameter: the module has nothing to train, to load or to
    save.
w_of_shape_1: torch.tensor(float(w)) → torch.tensor([float(w)])
    The parameter w has the shape `(1,)`; a single number has the shape `()`. Predictions come out
    right, but parameters that were saved elsewhere do not fit.
inputs_detached: + query, key, value = query.detach(), key.detach(), value.detach()
    The predictions are right and w learns, but no gradient reaches query, key and value: they were
    detached, or went through NumPy or `torch.tensor`.
max_not_subtracted
    - torch.softmax(scores, dim=-1) ×2
    + ((kernel := scores.exp()) / kernel.sum(dim=-1, keepdim=True))
    exp is taken of the raw scores and divided by its sum. Where all of a row's exponentials vanish
    (a far query, a narrow kernel), 0/0 gives NaN.
keys_averaged: @ value → @ key ×2
    The weights are applied to the keys. The keys say where to look; what is averaged are the
    values.
weights_returned_too
    - return torch.softmax(scores, dim=-1) @ value
    + weights = torch.softmax(scores, dim=-1)
    + return weights @ value, weights
    - return torch.softmax(scores, dim=-1).masked_fill(same, 0.0) @ value
    + weights = torch.softmax(scores, dim=-1).masked_fill(same, 0.0)
    + return weights @ value, weights
    The prediction and the weights are returned. `forward` is to return the prediction alone.
exclude_self_ignored: + exclude_self = False
    `exclude_self` makes no difference: each point still helps to predict itself.
exclude_self_always: + exclude_self = True
    The diagonal is left out even when `exclude_self` is False: the i-th query never sees the i-th
    key.
zero_on_the_diagonal: torch.finfo(scores.dtype).min → 0.0 ; dim=-1).masked_fill(same, 0.0) → dim=-1)
    With `exclude_self` the score of pair (i, i) is set to 0. That is the largest score there is: no
    weight at all takes −inf.
diagonal_not_low_enough
    - torch.finfo(scores.dtype).min
    + -1000.0
    - dim=-1).masked_fill(same, 0.0)
    + dim=-1)
    With `exclude_self` the score of pair (i, i) is set to a number such as −1000. A narrow kernel
    gives the other keys lower scores than that, and then a point sees itself after all.
weight_zeroed_after_softmax: - scores = scores.masked_fill(same, torch.finfo(scores.dtype).min)
    With `exclude_self` the weight of pair (i, i) is set to 0 after the softmax, and the others stay
    as they are: they sum to less than 1.
weights_divided_again
    - scores = scores.masked_fill(same, torch.finfo(scores.dtype).min)
    - return torch.softmax(scores, dim=-1).masked_fill(same, 0.0) @ value
    + weights = torch.softmax(scores, dim=-1).masked_fill(same, 0.0)
    + return weights / weights.sum(dim=-1, keepdim=True) @ value
    With `exclude_self` the weight of pair (i, i) is set to 0 after the softmax, and the rest
    divided by its sum. With a narrow kernel the rest is 0 as well, and 0/0 is NaN.
every_equal_x_excluded
    - torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
    + query[:, None] == key[None, :]
    `exclude_self` leaves out every key that equals the query. It is pair (i, i) that is to be left
    out, by its position, and no other.
numbers_only
    - torch.softmax(scores, dim=-1) @ value
    + (torch.softmax(scores, dim=-1) * value).sum(dim=-1)
    - torch.softmax(scores, dim=-1).masked_fill(same, 0.0) @ value
    + (torch.softmax(scores, dim=-1).masked_fill(same, 0.0) * value).sum(dim=-1)
    Values that are vectors are not taken into account: weights and values are multiplied entry by
    entry, which suits values of shape `(n_k,)` only.
always_float32: + query, key, value = query.float(), key.float(), value.float()
    Everything is converted to float32. Of the 16 digits of float64 inputs 7 are left, whichever
    dtype the prediction is given in the end.
seeds_the_generator: + torch.manual_seed(42)
    The predictions are right, but a random seed is set on every call. That changes the random
    numbers of whoever calls it; nothing here is random.
changes_query_in_place: > query.data -= query.data.mean()
    The predictions are right, but the caller's query is changed: an operation such as `-=`, or one
    with a trailing underscore, writes into the tensor that was passed in.
""")


# --- KernelRegression: right --------------------------------------------------------------------


@KERNEL_REGRESSION.right
class infinity_added(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        u = self.w * (key.unsqueeze(0) - query.unsqueeze(1))
        scores = -u.square() / 2
        if exclude_self:
            scores = scores + torch.zeros_like(scores).fill_diagonal_(-torch.inf)
        return torch.tensordot(scores.softmax(-1), value, dims=1)


@KERNEL_REGRESSION.right
class query_by_query(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        rows = []
        for i in range(len(query)):
            keys = [j for j in range(len(key)) if not (exclude_self and i == j)]
            scores = torch.stack([-0.5 * ((query[i] - key[j]) * self.w) ** 2 for j in keys])
            weights = torch.softmax(scores, dim=0)
            rows.append(sum(weights[n] * value[j] for n, j in enumerate(keys)))
        return torch.stack(rows)


@KERNEL_REGRESSION.right
class by_log_sum_exp(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        scores = -0.5 * self.w**2 * (query[:, None] - key).pow(2)
        if exclude_self:
            scores = scores.clone().fill_diagonal_(float("-inf"))
        log_weights = scores - torch.logsumexp(scores, dim=1, keepdim=True)
        return torch.einsum("qk,k...->q...", log_weights.exp(), value)


@KERNEL_REGRESSION.right
class in_float64_and_back(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        x, x_i, y = query.double(), key.double(), value.double()
        scores = ((x[:, None] - x_i[None]) * self.w.double()) ** 2 * -0.5
        if exclude_self:
            index = torch.arange(min(scores.shape))
            scores[index, index] = -torch.inf
        return (scores.softmax(dim=1) @ y).to(value.dtype)


@KERNEL_REGRESSION.right
class where_the_indices_differ(nn.Module):
    def __init__(self, w=1.0):
        super().__init__()
        self.register_parameter("w", nn.Parameter(torch.as_tensor(w, dtype=torch.float32)))

    def forward(self, query, key, value, exclude_self=False):
        n_q, n_k = len(query), len(key)
        i, j = torch.arange(n_q, device=key.device), torch.arange(n_k, device=key.device)
        allowed = (i[:, None] != j[None, :]) | (not exclude_self)
        scores = -(((query.view(-1, 1) - key.view(1, -1)) * self.w) ** 2) / 2
        scores = torch.where(allowed, scores, -torch.inf)
        kernel = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
        return (kernel / kernel.sum(dim=1, keepdim=True)) @ value
