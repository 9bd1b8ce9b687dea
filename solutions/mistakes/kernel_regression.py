"""Known answers to chapter 1: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.kernel_regression`.
"""

import numpy as np
import torch
from torch import nn

from solutions import kernel_regression as right
from solutions.mistakes import Bank

SOFTMAX = Bank("softmax")
GAUSSIAN_SCORES = Bank("gaussian_scores")
NADARAYA_WATSON = Bank("nadaraya_watson")
KERNEL_WEIGHTS = Bank("kernel_weights")
ATTENTION_POOL = Bank("attention_pool")
LEAVE_ONE_OUT = Bank("leave_one_out_mse")
KERNEL_REGRESSION = Bank("KernelRegression")


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


def _down_the_columns(weights, axis):
    """The sum runs down the columns, so each column sums to 1 and the rows do not. Each query (a
    row) has to spread a total of 1 over its keys, along `axis`, which is the last unless said.
    """
    return weights.sum(axis=0, keepdims=True)


def _over_everything(weights, axis):
    """All the weights of the array together sum to 1, instead of those along `axis`: the more rows
    there are, the smaller each weight gets.
    """
    return weights.sum(keepdims=True)


def _without_keepdims(weights, axis):
    """The sum loses the axis it runs over, so it no longer lines up with the rows: broadcasting
    divides each column by a row's sum, or fails where the sizes differ.
    """
    return weights.sum(axis=axis)


def _of_nothing(weights, axis):
    """The exponentials are returned without being divided by their sum: the weights of a row do not
    sum to 1.
    """
    return np.ones(1, weights.dtype)


def _with_a_wrong_sum(name, total_of):
    """Register the softmaxes that have `total_of` for their sum, with more and less care for large
    scores and for empty rows: as students write them, one mistake seldom comes alone.
    """
    doc = total_of.__doc__.rstrip()

    def careful(scores, axis=-1):
        weights = np.exp(scores - _finite_max(scores, axis))
        total = total_of(weights, axis)
        return weights / np.where(total == 0, 1, total)

    def stable(scores, axis=-1):
        weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
        return weights / total_of(weights, axis)

    def stable_by_one_max(scores, axis=-1):
        weights = np.exp(scores - scores.max())
        return weights / total_of(weights, axis)

    def naive(scores, axis=-1):
        weights = np.exp(scores)
        return weights / total_of(weights, axis)

    no_guard = " A row of nothing but −inf gives NaN, besides."
    one_max = " And the score subtracted from a row is the largest of all, not its own largest."
    no_max = " Nor is the largest score subtracted first, so that large scores give NaN."
    for answer, suffix, more in (
        (careful, "", ""),
        (stable, "_and_empty_row_gives_nan", no_guard),
        (stable_by_one_max, "_and_max_of_everything_subtracted", one_max),
        (naive, "_and_max_not_subtracted", no_max),
    ):
        answer.__name__, answer.__doc__ = name + suffix, doc + more
        SOFTMAX.mistake(answer)


_with_a_wrong_sum("normalised_over_queries", _down_the_columns)
_with_a_wrong_sum("normalised_over_everything", _over_everything)
_with_a_wrong_sum("keepdims_forgotten", _without_keepdims)
_with_a_wrong_sum("not_normalised", _of_nothing)


@SOFTMAX.mistake
def axis_ignored(scores, axis=-1):
    """The argument `axis` is not used: whatever it says, the sum runs over the last axis."""
    return right.softmax(scores)


@SOFTMAX.mistake
def exp_forgotten(scores, axis=-1):
    """The scores themselves are divided by their sum, without exp. Scores may be negative and may
    sum to 0, so the weights come out negative or huge.
    """
    return scores / scores.sum(axis=axis, keepdims=True)


@SOFTMAX.mistake
def sign_flipped(scores, axis=-1):
    """The exponent has the wrong sign: the lowest score gets the largest weight."""
    largest = (-scores).max(axis=axis, keepdims=True)
    return _naive_softmax(-scores - largest, axis)


@SOFTMAX.mistake
def max_not_subtracted(scores, axis=-1):
    """exp is taken of the raw scores. exp(10000) overflows to infinity and exp(−10000) vanishes, so
    large scores give ∞/∞ or 0/0, which is NaN. Ordinary scores come out right.
    """
    return _naive_softmax(scores, axis)


@SOFTMAX.mistake
def max_of_everything_subtracted(scores, axis=-1):
    """The largest score of the whole array is subtracted from every row. In a row far below it all
    exponentials vanish, and 0/0 is NaN: each row needs its own largest score.
    """
    return _naive_softmax(scores - scores.max(), axis)


@SOFTMAX.mistake
def max_along_another_axis(scores, axis=-1):
    """The largest score is taken along the last axis even when `axis` is another one. Subtracting
    keeps the weights as they are only if the same number is subtracted everywhere along `axis`.
    """
    return right.softmax(scores - _finite_max(scores, -1), axis)


@SOFTMAX.mistake
def empty_row_gives_nan(scores, axis=-1):
    """Right, except where a whole row is −inf: its largest score is −inf, −inf − (−inf) is NaN, and
    so is the row. Nothing to attend to has to give zeros.
    """
    return _naive_softmax(scores - scores.max(axis=axis, keepdims=True), axis)


@SOFTMAX.mistake
def empty_row_gives_uniform(scores, axis=-1):
    """−inf is replaced by a very negative finite number. That works as long as one score in the row
    is larger; in a row of nothing but −inf all are equal, and each gets the same weight, not 0.
    """
    return right.softmax(np.nan_to_num(_floating(scores), neginf=-1e300), axis)


@SOFTMAX.mistake
def minus_inf_not_low_enough(scores, axis=-1):
    """−inf is replaced by a number such as −10,000, which other scores can reach: next to scores
    about as low, a key that must not be looked at gets weight.
    """
    return right.softmax(np.maximum(scores, -1e4), axis)


@SOFTMAX.mistake
def small_number_added(scores, axis=-1):
    """A small number is added to every exponential. It keeps the sum from being 0, but an entry of
    −inf gets a little weight instead of exactly none, and an empty row is shared out evenly.
    """
    weights = np.exp(scores - _finite_max(scores, axis)) + 1e-12
    return weights / weights.sum(axis=axis, keepdims=True)


@SOFTMAX.mistake
def softmax_twice(scores, axis=-1):
    """Softmax is applied to its own result: the weights sum to 1 but are far too even."""
    return right.softmax(right.softmax(scores, axis), axis)


@SOFTMAX.mistake
def changes_scores_in_place(scores, axis=-1):
    """The weights are right, but the caller's scores are changed: `-=` writes into the array that
    was passed in.
    """
    if scores.dtype.kind == "f":
        scores -= _finite_max(scores, axis)
    return right.softmax(scores, axis)


@SOFTMAX.mistake
def always_float64(scores, axis=-1):
    """Everything is converted to float64: the weights are right, but float32 scores should give
    float32 weights.
    """
    return right.softmax(scores.astype(np.float64), axis)


@SOFTMAX.mistake
def always_float32(scores, axis=-1):
    """Everything is computed in float32, which keeps 7 digits of the 16 that float64 scores have:
    the weights are off from the 7th digit on.
    """
    return right.softmax(scores.astype(np.float32), axis)


@SOFTMAX.mistake
def two_dimensions_only(scores, axis=-1):
    """The scores are taken to be a table of rows and columns: one row alone, or a stack of tables,
    gives an error or the wrong axis.
    """
    if axis == 0:
        return two_dimensions_only(scores.T).T
    total = right.softmax(scores, axis=1)
    return total / np.where(total.sum(axis=1) == 0, 1, total.sum(axis=1))[:, None]


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


@GAUSSIAN_SCORES.mistake
def one_key_per_query(query, key, w=1.0):
    """The i-th query is paired with the i-th key only: (n,) − (n,) is (n,), and queries and keys of
    different number cannot be subtracted at all. Every query has to meet every key, `(n_q, n_k)`.
    """
    return -0.5 * ((query - key) * w) ** 2


@GAUSSIAN_SCORES.mistake
def keys_along_rows(query, key, w=1.0):
    """The scores are transposed: keys stand along the rows and queries along the columns. Asked is
    one row for each query, `(n_q, n_k)`.
    """
    return right.gaussian_scores(query, key, w).T


@GAUSSIAN_SCORES.mistake
def sign_flipped(query, key, w=1.0):
    """The minus sign is missing: the score grows with the distance, so the farthest key would get
    the most weight.
    """
    return -right.gaussian_scores(query, key, w)


@GAUSSIAN_SCORES.mistake
def w_not_squared(query, key, w=1.0):
    """w stands outside the square: only the distance is squared. The score is −½((x − x_i) w)², so
    that doubling w makes it four times as large, not twice.
    """
    return -0.5 * np.subtract.outer(query, key) ** 2 * w


@GAUSSIAN_SCORES.mistake
def distance_not_squared(query, key, w=1.0):
    """The square is missing: −½ (x − x_i) w is positive for keys on one side of the query and
    negative for those on the other.
    """
    return -0.5 * np.subtract.outer(query, key) * w


@GAUSSIAN_SCORES.mistake
def absolute_distance(query, key, w=1.0):
    """The absolute value of the distance is taken in place of its square. That is the score of a
    pointed kernel, exp(−½|u|), and not of the Gaussian.
    """
    return -0.5 * np.abs(np.subtract.outer(query, key) * w)


@GAUSSIAN_SCORES.mistake
def divided_by_w(query, key, w=1.0):
    """The distance is divided by w. Here w is the inverse bandwidth: a larger w makes the kernel
    narrower, so the distance is multiplied by it.
    """
    return right.gaussian_scores(query, key, 1 / w)


@GAUSSIAN_SCORES.mistake
def half_forgotten(query, key, w=1.0):
    """The factor ½ is missing: every score is twice what is asked."""
    return 2 * right.gaussian_scores(query, key, w)


@GAUSSIAN_SCORES.mistake
def w_ignored(query, key, w=1.0):
    """The argument w is not used: the scores are those of w = 1."""
    return right.gaussian_scores(query, key)


@GAUSSIAN_SCORES.mistake
def exp_taken(query, key, w=1.0):
    """exp is taken already: this is the Gaussian itself, between 0 and 1. The score is what stands
    in the exponent; exp is softmax's part.
    """
    return np.exp(right.gaussian_scores(query, key, w))


@GAUSSIAN_SCORES.mistake
def already_weights(query, key, w=1.0):
    """These are weights, not scores: softmax has been applied already. The score is what goes into
    the softmax.
    """
    return right.softmax(right.gaussian_scores(query, key, w))


@GAUSSIAN_SCORES.mistake
def keys_subtracted_from_mean_query(query, key, w=1.0):
    """Every query gets the same scores: the distance is measured from the mean of the queries and
    not from each of them.
    """
    return right.gaussian_scores(np.full(query.shape, query.mean()), key, w)


@GAUSSIAN_SCORES.mistake
def truncated_to_integers(query, key, w=1.0):
    """The scores are stored in an array of the query's dtype. For whole-number queries that is an
    integer array, and halves are cut off.
    """
    scores = np.empty((len(query), len(key)), dtype=query.dtype)
    scores[...] = right.gaussian_scores(query, key, w)
    return scores


@GAUSSIAN_SCORES.mistake
def changes_query_in_place(query, key, w=1.0):
    """The scores are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
    """
    scores = right.gaussian_scores(query, key, w)
    if query.dtype.kind == "f":
        query *= w
    return scores


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


@NADARAYA_WATSON.mistake
def normalised_over_queries(query, key, value, w=1.0):
    """The softmax runs over the queries: each column of the weights sums to 1. Each query has to
    spread a total weight of 1 over the keys, so each row must.
    """
    weights = right.softmax(right.gaussian_scores(query, key, w), axis=0)
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def not_normalised(query, key, value, w=1.0):
    """The kernel is not divided by its sum over the keys. The more keys lie near a query, the
    larger its prediction, and far from all keys it falls to 0.
    """
    weights = np.exp(right.gaussian_scores(query, key, w))
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def sign_flipped(query, key, value, w=1.0):
    """The sign of the score is wrong: the keys farthest from the query get the most weight, and the
    closest the least.
    """
    weights = right.softmax(-right.gaussian_scores(query, key, w))
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def divided_by_w(query, key, value, w=1.0):
    """The distance is divided by w instead of multiplied: a large w smooths more, where it should
    follow the data more closely. w is the inverse bandwidth.
    """
    return right.nadaraya_watson(query, key, value, 1 / w)


@NADARAYA_WATSON.mistake
def w_not_squared(query, key, value, w=1.0):
    """w stands outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared
    along with it.
    """
    return right.nadaraya_watson(query, key, value, np.sqrt(w))


@NADARAYA_WATSON.mistake
def half_forgotten(query, key, value, w=1.0):
    """The factor ½ is missing in the exponent: the kernel is narrower than w says."""
    return right.nadaraya_watson(query, key, value, np.sqrt(2) * w)


@NADARAYA_WATSON.mistake
def w_ignored(query, key, value, w=1.0):
    """The argument w does not reach the scores: the weights are those of w = 1."""
    return right.nadaraya_watson(query, key, value)


@NADARAYA_WATSON.mistake
def query_ignored(query, key, value, w=1.0):
    """Every key gets the same weight, so every prediction is the plain mean of the values: the
    weights do not depend on the query.
    """
    weights = np.full((len(query), len(key)), 1 / len(key))
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def nearest_key_only(query, key, value, w=1.0):
    """All the weight goes to the nearest key, so the prediction jumps from one value to the next.
    The Gaussian gives every key a share.
    """
    nearest = right.gaussian_scores(query, key, w).argmax(axis=-1)
    weights = np.eye(len(key))[nearest]
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def one_key_per_query(query, key, value, w=1.0):
    """The i-th query is compared with the i-th key only: query − key is `(n,)`, not `(n_q, n_k)`,
    and it fails where there are more keys than queries.
    """
    weights = right.softmax(-0.5 * ((query - key) * w) ** 2)
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def keys_averaged(query, key, value, w=1.0):
    """The weights are applied to the keys. The keys say where to look; what is averaged are the
    values.
    """
    weights = right.nadaraya_watson(query, key, value, w)[1]
    return weights @ key, weights


@NADARAYA_WATSON.mistake
def prediction_and_weights_swapped(query, key, value, w=1.0):
    """The two results come in the wrong order: the prediction is asked first, then the weights."""
    return right.nadaraya_watson(query, key, value, w)[::-1]


@NADARAYA_WATSON.mistake
def prediction_alone(query, key, value, w=1.0):
    """Only the prediction is returned. The weights are asked, too: `(prediction, weights)`."""
    return right.nadaraya_watson(query, key, value, w)[0]


@NADARAYA_WATSON.mistake
def weights_alone(query, key, value, w=1.0):
    """The weights are returned, but never applied to the values: the prediction is missing."""
    return right.nadaraya_watson(query, key, value, w)[1]


@NADARAYA_WATSON.mistake
def scores_for_weights(query, key, value, w=1.0):
    """The second result holds the scores and not the weights: it is what goes into the softmax."""
    prediction, _ = right.nadaraya_watson(query, key, value, w)
    return prediction, right.gaussian_scores(query, key, w)


@NADARAYA_WATSON.mistake
def max_not_subtracted(query, key, value, w=1.0):
    """exp is taken of the raw scores. For a query far from every key all of them vanish, and the
    division 0/0 gives NaN.
    """
    weights = _naive_softmax(right.gaussian_scores(query, key, w))
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def far_query_gets_nothing(query, key, value, w=1.0):
    """exp is taken of the raw scores, and a sum of 0 is guarded against. No NaN, but a query far
    from every key gets no weights at all and the prediction 0; its row should still sum to 1.
    """
    weights = np.exp(right.gaussian_scores(query, key, w))
    total = weights.sum(axis=-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def small_number_under_the_fraction(query, key, value, w=1.0):
    """A small number is added to the sum of the kernel. No NaN, but the rows of weights no longer
    sum to 1, least of all for a query far from every key.
    """
    weights = np.exp(right.gaussian_scores(query, key, w))
    weights = weights / (weights.sum(axis=-1, keepdims=True) + 1e-6)
    return weights @ value, weights


@NADARAYA_WATSON.mistake
def numbers_only(query, key, value, w=1.0):
    """Values that are vectors are not taken into account: weights and values are multiplied entry
    by entry, which suits values of shape `(n_k,)` only.
    """
    weights = right.softmax(right.gaussian_scores(query, key, w))
    return (weights * value).sum(axis=-1), weights


@NADARAYA_WATSON.mistake
def columns_squeezed(query, key, value, w=1.0):
    """Axes of length 1 are squeezed out of the prediction. Values of shape `(n_k, 1)` should give
    `(n_q, 1)`, and a single query is still an array of one.
    """
    prediction, weights = right.nadaraya_watson(query, key, value, w)
    return prediction.squeeze(), weights


@NADARAYA_WATSON.mistake
def changes_query_in_place(query, key, value, w=1.0):
    """The results are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
    """
    results = right.nadaraya_watson(query, key, value, w)
    if query.dtype.kind == "f":
        query *= w
    return results


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


@KERNEL_WEIGHTS.mistake
def normalised_over_queries(query, key, kernel, w=1.0):
    """The sum runs over the queries, so each column of the weights sums to 1. It has to run over
    the keys: each row sums to 1.
    """
    return _rows_of_one(_chosen(_u(query, key, w), kernel), axis=0)


@KERNEL_WEIGHTS.mistake
def not_normalised(query, key, kernel, w=1.0):
    """The kernel is returned as it is, not divided by its sum over the keys: the rows do not sum to
    1.
    """
    return _chosen(_u(query, key, w), kernel)


@KERNEL_WEIGHTS.mistake
def softmax_of_the_kernel(query, key, kernel, w=1.0):
    """The values of the kernel are put through a softmax. Keys out of reach then get weight as
    well; only the Gaussian comes from an exponential, and the others are divided by their sum.
    """
    return right.softmax(_chosen(_u(query, key, w), kernel))


@KERNEL_WEIGHTS.mistake
def divided_by_w(query, key, kernel, w=1.0):
    """The distance is divided by w instead of multiplied: a larger w reaches more keys, where it
    should reach fewer. u is (x − x_i) w.
    """
    return right.kernel_weights(query, key, kernel, 1 / w)


@KERNEL_WEIGHTS.mistake
def w_ignored(query, key, kernel, w=1.0):
    """The argument w is not used: the weights are those of w = 1."""
    return right.kernel_weights(query, key, kernel)


@KERNEL_WEIGHTS.mistake
def gaussian_half_forgotten(query, key, kernel, w=1.0):
    """The Gaussian lacks its factor ½: exp(−u²) is narrower than exp(−½u²). The other two kernels
    are right.
    """
    u = _u(query, key, w)
    return _rows_of_one(_chosen(u, kernel, gaussian=np.exp(-(u**2))))


@KERNEL_WEIGHTS.mistake
def absolute_value_forgotten(query, key, kernel, w=1.0):
    """The boxcar asks for u ≤ 1 without the absolute value: every key above the query counts as
    near, however far it is.
    """
    u = _u(query, key, w)
    return _rows_of_one(_chosen(u, kernel, boxcar=(u <= 1) * 1.0))


@KERNEL_WEIGHTS.mistake
def edge_left_out(query, key, kernel, w=1.0):
    """The boxcar leaves out its edge: a key at |u| = 1 exactly still counts."""
    u = _u(query, key, w)
    return _rows_of_one(_chosen(u, kernel, boxcar=(np.abs(u) < 1) * 1.0))


@KERNEL_WEIGHTS.mistake
def boxcar_half_as_wide(query, key, kernel, w=1.0):
    """The boxcar ends at |u| = ½, which makes it 1 wide in all; the one asked for ends at |u| = 1.
    Keys between the two get no weight.
    """
    u = _u(query, key, w)
    return _rows_of_one(_chosen(u, kernel, boxcar=(np.abs(u) <= 0.5) * 1.0))


@KERNEL_WEIGHTS.mistake
def negative_weights(query, key, kernel, w=1.0):
    """The Epanechnikov kernel is not cut off at 0: beyond |u| = 1, 1 − u² is negative, and so are
    the weights of far keys.
    """
    u = _u(query, key, w)
    return _rows_of_one(_chosen(u, kernel, epanechnikov=1 - u**2))


@KERNEL_WEIGHTS.mistake
def cut_off_after_dividing(query, key, kernel, w=1.0):
    """The Epanechnikov weights are divided by their sum first and cut off at 0 afterwards: the
    negative ones have gone into the sum, so the rows do not sum to 1.
    """
    u = _u(query, key, w)
    if kernel == "epanechnikov":
        return np.maximum(0.0, _rows_of_one(1 - u**2))
    return right.kernel_weights(query, key, kernel, w)


@KERNEL_WEIGHTS.mistake
def triangle_for_epanechnikov(query, key, kernel, w=1.0):
    """u is not squared in the Epanechnikov kernel: max(0, 1 − |u|) is a triangle, max(0, 1 − u²) a
    parabola.
    """
    u = _u(query, key, w)
    return _rows_of_one(_chosen(u, kernel, epanechnikov=np.maximum(0.0, 1 - np.abs(u))))


@KERNEL_WEIGHTS.mistake
def empty_row_gives_nan(query, key, kernel, w=1.0):
    """Right, except for a query that no key is in reach of: its weights and their sum are all 0,
    and 0/0 is NaN. Such a row is to be all zeros.
    """
    weights = _chosen(_u(query, key, w), kernel)
    return weights / weights.sum(axis=-1, keepdims=True)


@KERNEL_WEIGHTS.mistake
def empty_row_gives_uniform(query, key, kernel, w=1.0):
    """Right, except for a query that no key is in reach of: it gets the same weight on every key,
    where all its weights should be 0.
    """
    weights = right.kernel_weights(query, key, kernel, w)
    return np.where(weights.any(axis=-1, keepdims=True), weights, 1 / len(key))


@KERNEL_WEIGHTS.mistake
def unknown_kernel_accepted(query, key, kernel, w=1.0):
    """A kernel of another name is taken for one of the three, without a word. It should raise a
    ValueError.
    """
    known = kernel in ("gaussian", "boxcar", "epanechnikov")
    return right.kernel_weights(query, key, kernel if known else "epanechnikov", w)


@KERNEL_WEIGHTS.mistake
def unknown_kernel_gives_none(query, key, kernel, w=1.0):
    """A kernel of another name falls through all the cases, and the function returns None. It
    should raise a ValueError.
    """
    known = kernel in ("gaussian", "boxcar", "epanechnikov")
    return right.kernel_weights(query, key, kernel, w) if known else None


@KERNEL_WEIGHTS.mistake
def unknown_kernel_raises_key_error(query, key, kernel, w=1.0):
    """A kernel of another name raises the KeyError of a dictionary. What is asked for is a
    ValueError: the key is the caller's argument, and it is that which is wrong.
    """
    return _rows_of_one(_kernels(_u(query, key, w))[kernel])


@KERNEL_WEIGHTS.mistake
def changes_query_in_place(query, key, kernel, w=1.0):
    """The weights are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
    """
    weights = right.kernel_weights(query, key, kernel, w)
    if query.dtype.kind == "f":
        query *= w
    return weights


# --- kernel_weights: right ----------------------------------------------------------------------


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


@ATTENTION_POOL.mistake
def normalised_over_queries(query, key, value, score):
    """The softmax runs over the queries: each column of the weights sums to 1 instead of each row.
    Each query spreads its weight over the keys.
    """
    weights = right.softmax(score(query, key), axis=0)
    return weights @ value, weights


@ATTENTION_POOL.mistake
def not_normalised(query, key, value, score):
    """The scores are applied to the values as they are, without a softmax: they may be negative and
    do not sum to 1.
    """
    scores = score(query, key)
    return scores @ value, scores


@ATTENTION_POOL.mistake
def exp_not_divided(query, key, value, score):
    """exp is taken of the scores, but it is not divided by its sum over the keys: the rows of
    weights do not sum to 1.
    """
    weights = np.exp(score(query, key))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def key_passed_first(query, key, value, score):
    """`score` gets the key first and the query second. It returns one row for each of its first
    argument, so the result has a row for each key, or the shapes do not fit.
    """
    weights = right.softmax(score(key, query))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def key_passed_first_then_transposed(query, key, value, score):
    """`score` gets the key first, and its result is transposed. The shape is right, but a score
    need not be the same both ways round: it has to be asked for (query, key).
    """
    weights = right.softmax(score(key, query).T)
    return weights @ value, weights


@ATTENTION_POOL.mistake
def score_ignored(query, key, value, score):
    """The scoring function is not called: these are the weights of the Gaussian, whatever `score`
    says.
    """
    weights = right.softmax(right.gaussian_scores(query, key))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def score_called_for_each_pair(query, key, value, score):
    """`score` is called for one query and one key at a time. It takes all queries and all keys at
    once and returns the whole table, so it fails on single vectors.
    """
    weights = right.softmax(np.array([[score(q, k) for k in key] for q in query]))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def score_called_by_keyword(query, key, value, score):
    """`score` is called with `query=` and `key=`. Any function of two arguments will do for a
    score, whatever it calls them: pass them by position.
    """
    weights = right.softmax(score(query=query, key=key))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def scores_scaled(query, key, value, score):
    """The scores are divided by √d once more. Whether to scale is the scoring function's affair:
    its result goes into the softmax as it is.
    """
    size = query.shape[-1] if query.ndim > 1 else 1
    weights = right.softmax(score(query, key) / np.sqrt(size))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def scores_negated(query, key, value, score):
    """The sign of the scores is turned, as if they were distances: the key with the lowest score
    gets the most weight.
    """
    weights = right.softmax(-score(query, key))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def softmax_twice(query, key, value, score):
    """Softmax is applied twice: the rows sum to 1 but are far too even."""
    weights = right.softmax(right.softmax(score(query, key)))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def max_not_subtracted(query, key, value, score):
    """exp is taken of the raw scores: with scores of ±10,000 it overflows to infinity, or all of a
    row vanishes, and the weights are NaN.
    """
    weights = _naive_softmax(score(query, key))
    return weights @ value, weights


@ATTENTION_POOL.mistake
def largest_score_only(query, key, value, score):
    """All the weight goes to the key with the largest score. Softmax gives every key a share, as
    large as its score says.
    """
    scores = score(query, key)
    weights = np.eye(scores.shape[1])[scores.argmax(axis=1)]
    return weights @ value, weights


@ATTENTION_POOL.mistake
def keys_averaged(query, key, value, score):
    """The weights are applied to the keys. The keys are there to be scored; what is averaged are
    the values.
    """
    weights = right.softmax(score(query, key))
    return weights @ key, weights


@ATTENTION_POOL.mistake
def output_and_weights_swapped(query, key, value, score):
    """The two results come in the wrong order: the output is asked first, then the weights."""
    return right.attention_pool(query, key, value, score)[::-1]


@ATTENTION_POOL.mistake
def output_alone(query, key, value, score):
    """Only the output is returned. The weights are asked, too: `(output, weights)`."""
    return right.attention_pool(query, key, value, score)[0]


@ATTENTION_POOL.mistake
def weights_alone(query, key, value, score):
    """The weights are returned, but never applied to the values: the output is missing."""
    return right.attention_pool(query, key, value, score)[1]


@ATTENTION_POOL.mistake
def scores_for_weights(query, key, value, score):
    """The second result holds the scores. The weights, which sum to 1, are asked."""
    return right.attention_pool(query, key, value, score)[0], score(query, key)


@ATTENTION_POOL.mistake
def columns_squeezed(query, key, value, score):
    """Axes of length 1 are squeezed out of the output: values of shape `(n_k, 1)` should give
    `(n_q, 1)`.
    """
    output, weights = right.attention_pool(query, key, value, score)
    return output.squeeze(), weights


@ATTENTION_POOL.mistake
def changes_query_in_place(query, key, value, score):
    """The results are right, but the caller's query is changed: `-=` writes into the array that was
    passed in.
    """
    results = right.attention_pool(query, key, value, score)
    query -= query.mean()
    return results


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


def _mse(scores, y):
    """The mean squared error of what `scores` predict."""
    return float(np.mean((right.softmax(scores) @ y - y) ** 2))


def _without_diagonal(x, w):
    return np.where(np.eye(len(x), dtype=bool), -np.inf, right.gaussian_scores(x, x, w))


def _errors(x, y, w):
    return right.softmax(_without_diagonal(x, w)) @ y - y


@LEAVE_ONE_OUT.mistake
def own_point_kept(x, y, w):
    """Each point helps to predict itself. The narrower the kernel, the closer the prediction gets
    to the point's own value, and the error falls to 0 without anything being learnt. (A score of 0
    does not leave it out: exp(0) is 1.)
    """
    return _mse(right.gaussian_scores(x, x, w), y)


@LEAVE_ONE_OUT.mistake
def diagonal_not_low_enough(x, y, w):
    """The diagonal is set to a number such as −1000. A narrow kernel gives the other points lower
    scores than that, and then a point's own vote counts after all.
    """
    scores = right.gaussian_scores(x, x, w)
    np.fill_diagonal(scores, -1000.0)
    return _mse(scores, y)


@LEAVE_ONE_OUT.mistake
def weight_zeroed_after_softmax(x, y, w):
    """The point's own weight is set to 0 after the softmax, and the others stay as they are: they
    sum to less than 1, and every prediction is pulled towards 0.
    """
    weights = right.softmax(right.gaussian_scores(x, x, w))
    np.fill_diagonal(weights, 0.0)
    return float(np.mean((weights @ y - y) ** 2))


@LEAVE_ONE_OUT.mistake
def every_equal_x_left_out(x, y, w):
    """Every point whose x is the same is left out, not only the point itself: another measurement
    at the same place is the best witness there is.
    """
    scores = right.gaussian_scores(x, x, w)
    return _mse(np.where(np.equal.outer(x, x), -np.inf, scores), y)


@LEAVE_ONE_OUT.mistake
def normalised_over_queries(x, y, w):
    """The softmax runs down the columns: the weights that predict one point do not sum to 1. It has
    to run along each row.
    """
    weights = right.softmax(_without_diagonal(x, w), axis=0)
    return float(np.mean((weights @ y - y) ** 2))


@LEAVE_ONE_OUT.mistake
def max_not_subtracted(x, y, w):
    """With a narrow kernel all the other points' exponentials vanish, and 0/0 gives NaN: exp was
    taken of the raw scores, or the own weight was set to 0 after the softmax and the rest divided
    once more.
    """
    scores = _without_diagonal(x, w)
    return float(np.mean((_naive_softmax(scores) @ y - y) ** 2))


@LEAVE_ONE_OUT.mistake
def sum_for_mean(x, y, w):
    """The squared errors are added up, not averaged: the result grows with the number of points."""
    return float(np.sum(_errors(x, y, w) ** 2))


@LEAVE_ONE_OUT.mistake
def divided_by_n_minus_1(x, y, w):
    """The sum of the squared errors is divided by n − 1. Each prediction uses n − 1 points, but
    there are n errors to average.
    """
    return float(np.sum(_errors(x, y, w) ** 2) / (len(x) - 1))


@LEAVE_ONE_OUT.mistake
def root_taken(x, y, w):
    """The square root of the mean squared error is returned; the mean of the squares is asked, in
    the unit of y squared.
    """
    return float(np.sqrt(np.mean(_errors(x, y, w) ** 2)))


@LEAVE_ONE_OUT.mistake
def absolute_errors(x, y, w):
    """The absolute errors are averaged and not their squares."""
    return float(np.mean(np.abs(_errors(x, y, w))))


@LEAVE_ONE_OUT.mistake
def mean_before_square(x, y, w):
    """The errors are averaged before they are squared, so that positive and negative ones cancel.
    Square each one first.
    """
    return float(np.mean(_errors(x, y, w)) ** 2)


@LEAVE_ONE_OUT.mistake
def halved(x, y, w):
    """A factor ½ stands before the mean, as in some loss functions: the result is half of what is
    asked.
    """
    return float(np.mean(_errors(x, y, w) ** 2) / 2)


@LEAVE_ONE_OUT.mistake
def divided_by_w(x, y, w):
    """The distance is divided by w instead of multiplied. w is the inverse bandwidth."""
    return right.leave_one_out_mse(x, y, 1 / w)


@LEAVE_ONE_OUT.mistake
def w_not_squared(x, y, w):
    """w stands outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared
    along with it.
    """
    return right.leave_one_out_mse(x, y, np.sqrt(w))


@LEAVE_ONE_OUT.mistake
def one_error_per_point(x, y, w):
    """The squared error of every point is returned. What is asked is their mean, one number."""
    return _errors(x, y, w) ** 2


@LEAVE_ONE_OUT.mistake
def array_of_no_dimension(x, y, w):
    """The number is right, but it comes as an array of shape `()`. A Python float is asked."""
    return np.asarray(right.leave_one_out_mse(x, y, w))


@LEAVE_ONE_OUT.mistake
def sorts_x_in_place(x, y, w):
    """The error is right, but the caller's x is changed: `x.sort()` sorts the array that was passed
    in.
    """
    error = right.leave_one_out_mse(x, y, w)
    x.sort()
    return error


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


class _Pieces(nn.Module):
    """The reference in four pieces, of which each mistake below replaces one."""

    def __init__(self, w=1.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(float(w)))

    def scores(self, query, key):
        return -0.5 * ((query[:, None] - key[None, :]) * self.w) ** 2

    def exclude(self, scores, query, key):
        return scores.masked_fill(self.same(scores), float("-inf"))

    def weights(self, scores):
        return torch.softmax(scores, dim=-1)

    def forward(self, query, key, value, exclude_self=False):
        scores = self.scores(query, key)
        if exclude_self:
            scores = self.exclude(scores, query, key)
        return self.weights(scores) @ value

    @staticmethod
    def same(scores):
        return torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)


@KERNEL_REGRESSION.mistake
class normalised_over_queries(_Pieces):
    """The softmax runs over the queries (dim 0), so the weights of one prediction do not sum to 1.
    Each query spreads its weight over the keys.
    """

    def weights(self, scores):
        return torch.softmax(scores, dim=0)


@KERNEL_REGRESSION.mistake
class not_normalised(_Pieces):
    """The kernel is not divided by its sum over the keys: the more keys lie near a query, the
    larger its prediction.
    """

    def weights(self, scores):
        return torch.exp(scores)


@KERNEL_REGRESSION.mistake
class sign_flipped(_Pieces):
    """The sign of the score is wrong: the keys farthest from the query get the most weight."""

    def scores(self, query, key):
        return -super().scores(query, key)


@KERNEL_REGRESSION.mistake
class w_not_squared(_Pieces):
    """w stands outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared
    along with it.
    """

    def scores(self, query, key):
        return -0.5 * (query[:, None] - key) ** 2 * self.w


@KERNEL_REGRESSION.mistake
class divided_by_w(_Pieces):
    """The distance is divided by w instead of multiplied. w is the inverse bandwidth: learning
    would push it the wrong way.
    """

    def scores(self, query, key):
        return -0.5 * ((query[:, None] - key) / self.w) ** 2


@KERNEL_REGRESSION.mistake
class half_forgotten(_Pieces):
    """The factor ½ is missing in the score: the kernel is narrower than w says."""

    def scores(self, query, key):
        return 2 * super().scores(query, key)


@KERNEL_REGRESSION.mistake
class one_key_per_query(_Pieces):
    """The i-th query is compared with the i-th key only: query − key is `(n,)`, not `(n_q, n_k)`,
    and it fails where their numbers differ.
    """

    def scores(self, query, key):
        return -0.5 * ((query - key) * self.w) ** 2

    def exclude(self, scores, query, key):
        return scores


@KERNEL_REGRESSION.mistake
class w_ignored(_Pieces):
    """`forward` does not use the parameter w: the predictions are those of w = 1, and no gradient
    ever reaches it.
    """

    def scores(self, query, key):
        return -0.5 * (query[:, None] - key) ** 2


@KERNEL_REGRESSION.mistake
class w_detached(_Pieces):
    """The predictions are right, but w is taken out of the graph (`.item()`, `.detach()`, `.data`,
    float), so no gradient reaches it and it never learns.
    """

    def scores(self, query, key):
        return -0.5 * ((query[:, None] - key) * self.w.detach()) ** 2


@KERNEL_REGRESSION.mistake
class w_of_the_beginning(_Pieces):
    """`forward` uses the number that w began with, and not the parameter: whatever the optimiser
    does to the parameter, the predictions stay the same.
    """

    def __init__(self, w=1.0):
        super().__init__(w)
        self.beginning = float(w)

    def scores(self, query, key):
        return -0.5 * ((query[:, None] - key) * self.beginning) ** 2


@KERNEL_REGRESSION.mistake
class w_not_a_parameter(_Pieces):
    """w is an ordinary tensor and not an nn.Parameter: the module has nothing to train, to load or
    to save.
    """

    def __init__(self, w=1.0):
        super().__init__()
        del self.w
        self.w = torch.tensor(float(w))


@KERNEL_REGRESSION.mistake
class w_of_shape_1(_Pieces):
    """The parameter w has the shape `(1,)`; a single number has the shape `()`. Predictions come
    out right, but parameters that were saved elsewhere do not fit.
    """

    def __init__(self, w=1.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([float(w)]))


@KERNEL_REGRESSION.mistake
class inputs_detached(_Pieces):
    """The predictions are right and w learns, but no gradient reaches query, key and value: they
    were detached, or went through NumPy or `torch.tensor`.
    """

    def forward(self, query, key, value, exclude_self=False):
        return super().forward(query.detach(), key.detach(), value.detach(), exclude_self)


@KERNEL_REGRESSION.mistake
class max_not_subtracted(_Pieces):
    """exp is taken of the raw scores and divided by its sum. Where all of a row's exponentials
    vanish (a far query, a narrow kernel), 0/0 gives NaN.
    """

    def weights(self, scores):
        kernel = torch.exp(scores)
        return kernel / kernel.sum(dim=-1, keepdim=True)


@KERNEL_REGRESSION.mistake
class keys_averaged(_Pieces):
    """The weights are applied to the keys. The keys say where to look; what is averaged are the
    values.
    """

    def forward(self, query, key, value, exclude_self=False):
        return super().forward(query, key, key, exclude_self)


@KERNEL_REGRESSION.mistake
class weights_returned_too(_Pieces):
    """The prediction and the weights are returned. `forward` is to return the prediction alone."""

    def forward(self, query, key, value, exclude_self=False):
        everything = torch.eye(len(key), dtype=value.dtype, device=value.device)
        weights = super().forward(query, key, everything, exclude_self)
        return weights @ value, weights


@KERNEL_REGRESSION.mistake
class exclude_self_ignored(_Pieces):
    """`exclude_self` makes no difference: each point still helps to predict itself."""

    def exclude(self, scores, query, key):
        return scores


@KERNEL_REGRESSION.mistake
class exclude_self_always(_Pieces):
    """The diagonal is left out even when `exclude_self` is False: the i-th query never sees the
    i-th key.
    """

    def forward(self, query, key, value, exclude_self=False):
        return super().forward(query, key, value, True)


@KERNEL_REGRESSION.mistake
class zero_on_the_diagonal(_Pieces):
    """With `exclude_self` the score of pair (i, i) is set to 0. That is the largest score there is:
    no weight at all takes −inf.
    """

    def exclude(self, scores, query, key):
        return scores.masked_fill(self.same(scores), 0.0)


@KERNEL_REGRESSION.mistake
class diagonal_not_low_enough(_Pieces):
    """With `exclude_self` the score of pair (i, i) is set to a number such as −1000. A narrow
    kernel gives the other keys lower scores than that, and then a point sees itself after all.
    """

    def exclude(self, scores, query, key):
        return scores.masked_fill(self.same(scores), -1000.0)


@KERNEL_REGRESSION.mistake
class weight_zeroed_after_softmax(_Pieces):
    """With `exclude_self` the weight of pair (i, i) is set to 0 after the softmax, and the others
    stay as they are: they sum to less than 1.
    """

    def forward(self, query, key, value, exclude_self=False):
        weights = self.weights(self.scores(query, key))
        if exclude_self:
            weights = weights.masked_fill(self.same(weights), 0.0)
        return weights @ value


@KERNEL_REGRESSION.mistake
class weights_divided_again(_Pieces):
    """With `exclude_self` the weight of pair (i, i) is set to 0 after the softmax, and the rest
    divided by its sum. With a narrow kernel the rest is 0 as well, and 0/0 is NaN.
    """

    def forward(self, query, key, value, exclude_self=False):
        weights = self.weights(self.scores(query, key))
        if exclude_self:
            weights = weights.masked_fill(self.same(weights), 0.0)
            weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights @ value


@KERNEL_REGRESSION.mistake
class every_equal_x_excluded(_Pieces):
    """`exclude_self` leaves out every key that equals the query. It is pair (i, i) that is to be
    left out, by its position, and no other.
    """

    def exclude(self, scores, query, key):
        same = query[:, None] == key[None, :]
        return scores.masked_fill(same, float("-inf"))


@KERNEL_REGRESSION.mistake
class numbers_only(_Pieces):
    """Values that are vectors are not taken into account: weights and values are multiplied entry
    by entry, which suits values of shape `(n_k,)` only.
    """

    def forward(self, query, key, value, exclude_self=False):
        everything = torch.eye(len(key), dtype=value.dtype, device=value.device)
        return (super().forward(query, key, everything, exclude_self) * value).sum(dim=-1)


@KERNEL_REGRESSION.mistake
class always_float32(_Pieces):
    """Everything is converted to float32. Of the 16 digits of float64 inputs 7 are left, whichever
    dtype the prediction is given in the end.
    """

    def forward(self, query, key, value, exclude_self=False):
        return super().forward(query.float(), key.float(), value.float(), exclude_self)


@KERNEL_REGRESSION.mistake
class seeds_the_generator(_Pieces):
    """The predictions are right, but a random seed is set on every call. That changes the random
    numbers of whoever calls it; nothing here is random.
    """

    def forward(self, query, key, value, exclude_self=False):
        torch.manual_seed(42)
        return super().forward(query, key, value, exclude_self)


@KERNEL_REGRESSION.mistake
class changes_query_in_place(_Pieces):
    """The predictions are right, but the caller's query is changed: an operation such as `-=`, or
    one with a trailing underscore, writes into the tensor that was passed in.
    """

    def forward(self, query, key, value, exclude_self=False):
        prediction = super().forward(query, key, value, exclude_self)
        query.data -= query.data.mean()
        return prediction


# --- KernelRegression: right --------------------------------------------------------------------


@KERNEL_REGRESSION.right
class infinity_added(_Pieces):
    def forward(self, query, key, value, exclude_self=False):
        u = self.w * (key.unsqueeze(0) - query.unsqueeze(1))
        scores = -u.square() / 2
        if exclude_self:
            scores = scores + torch.zeros_like(scores).fill_diagonal_(-torch.inf)
        return torch.tensordot(scores.softmax(-1), value, dims=1)


@KERNEL_REGRESSION.right
class query_by_query(_Pieces):
    def forward(self, query, key, value, exclude_self=False):
        rows = []
        for i in range(len(query)):
            keys = [j for j in range(len(key)) if not (exclude_self and i == j)]
            scores = torch.stack([-0.5 * ((query[i] - key[j]) * self.w) ** 2 for j in keys])
            weights = torch.softmax(scores, dim=0)
            rows.append(sum(weights[n] * value[j] for n, j in enumerate(keys)))
        return torch.stack(rows)


@KERNEL_REGRESSION.right
class by_log_sum_exp(_Pieces):
    def forward(self, query, key, value, exclude_self=False):
        scores = -0.5 * self.w**2 * (query[:, None] - key).pow(2)
        if exclude_self:
            scores = scores.clone().fill_diagonal_(float("-inf"))
        log_weights = scores - torch.logsumexp(scores, dim=1, keepdim=True)
        return torch.einsum("qk,k...->q...", log_weights.exp(), value)


@KERNEL_REGRESSION.right
class in_float64_and_back(_Pieces):
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
