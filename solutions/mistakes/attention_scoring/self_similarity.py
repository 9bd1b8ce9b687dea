"""Known answers to `self_similarity`: mistakes, then right answers."""

import numpy as np

from autograder.bank import Bank
from solutions import attention_scoring as right
from solutions.mistakes.attention_scoring.simple_attention import BANK as SIMPLE_ATTENTION
from solutions.mistakes.attention_scoring.simple_attention import _attend, _dots, _softmax

BANK = Bank("self_similarity", right, globals())

BANK.changes("""
scaled: simple_attention( → SIMPLE_ATTENTION.mistakes["scaled"](
    The scores are divided by √d. That comes later in the chapter; here XXᵀ goes into the softmax as
    it is.
softmax_over_queries: simple_attention( → SIMPLE_ATTENTION.mistakes["softmax_over_queries"](
    The softmax runs down the columns. XXᵀ is symmetric, so the weights come out transposed: the
    columns sum to 1, not the rows.
similarity_of_features
    + weights = _softmax(x.swapaxes(-2, -1) @ x)
    + return x @ weights, weights
    The table is XᵀX, (d, d), which compares features with features. XXᵀ, (n, n), compares rows with
    rows.
all_axes_transposed: simple_attention( → SIMPLE_ATTENTION.mistakes["all_axes_transposed"](
    `.T` reverses all axes, the batch included. Only the last two should be exchanged.
not_normalised: simple_attention( → SIMPLE_ATTENTION.mistakes["not_normalised"](
    The output is (XXᵀ)X, without the softmax in between: similarity, normalise, average.
exp_not_divided: simple_attention( → SIMPLE_ATTENTION.mistakes["exp_not_divided"](
    exp is taken of the scores, but they are not divided by their sum along each row.
cosine_for_dot_product: simple_attention( → SIMPLE_ATTENTION.mistakes["cosine_for_dot_product"](
    The rows are divided by their lengths first, which gives the cosine. In a dot product, length
    counts.
itself_left_out
    + scores = np.where(np.eye(x.shape[-2], dtype=bool), -np.inf, _dots(x, x))
    + counts = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
    + weights = counts / np.maximum(counts.sum(-1, keepdims=True), 1e-300)
    + return weights @ x, weights
    The diagonal is left out, as in leave-one-out: no row attends to itself. Here each row may, and
    it usually is its own best match.
max_not_subtracted: simple_attention( → SIMPLE_ATTENTION.mistakes["max_not_subtracted"](
    exp is taken of the raw scores: a long row has a huge dot product with itself, and its exp
    overflows.
largest_of_all_subtracted
    ~ simple_attention( → SIMPLE_ATTENTION.mistakes["largest_of_all_subtracted"](
    The largest of all scores is subtracted from every row. A row whose own scores are far below it
    underflows to 0/0: each row needs its own largest score.
own_score_subtracted
    + scores = _dots(x, x)
    + counts = np.exp(scores - np.einsum("...nn->...n", scores)[..., None])
    + weights = counts / counts.sum(-1, keepdims=True)
    + return weights @ x, weights
    Each row's score with itself is subtracted, as if it were the largest. It need not be: a longer
    row in the same direction scores higher, and exp overflows.
added_to_x: > result = result[0] + x, result[1]
    x is added to the output. That is a residual connection, which has a chapter of its own; here
    the output is only the average.
applied_twice: > result = self_similarity(result[0])
    The output attends to itself a second time. Once is enough.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
weights_not_returned: > result = result[0]
    Only the output is returned. Return the weights as well: (output, weights).
positions_matter
    + place = np.arange(x.shape[-2])
    + return _attend(_dots(x, x) - np.abs(place[:, None] - place), x)
    The past counts more than the future, or near rows more than distant ones: positions change the
    scores. Here only the dot product counts.
always_float64: + x = x.astype(np.float64)
    The result is always float64. float32 should stay float32.
x_changed_in_place: > x *= 2
    The caller's x is overwritten: an operation such as `-=` writes into the array that was passed
    in.
softmax_over_axis_1: simple_attention( → SIMPLE_ATTENTION.mistakes["softmax_over_axis_1"](
    The softmax runs over axis 1. Without a batch that is right; with one, it runs down the columns.
    The keys are always the last axis.
softmax_over_the_first_axis
    ~ simple_attention( → SIMPLE_ATTENTION.mistakes["softmax_over_the_first_axis"](
    The softmax runs over the first axis: down the columns or, in a batch, over its sequences. Each
    row attends along the last axis.
weights_transposed_for_the_average
    ~ simple_attention( → SIMPLE_ATTENTION.mistakes["weights_transposed_for_the_average"](
    The weights are transposed before they meet x. The scores are symmetric, the weights are not: a
    row of weights belongs to the row of x that attends.
rows_centred_first
    - simple_attention(x, x, x)
    + simple_attention(x - x.mean(axis=-2, keepdims=True), x - x.mean(axis=-2, keepdims=True), x)
    The mean over the rows is subtracted first, as for a covariance. The scores are the dot products
    of the rows as they are.
scores_divided_by_the_number_of_rows
    - simple_attention(x, x, x)
    + simple_attention(x / x.shape[-2], x, x)
    The scores are divided by the number of rows, as for a covariance. They are plain dot products.
""")


@BANK.right
def by_einsum(x):
    weights = _softmax(np.einsum("...id,...jd->...ij", x, x))
    return np.einsum("...ij,...jd->...id", weights, x), weights


@BANK.right
def row_by_row(x):
    tables = [
        np.stack([_softmax(one @ row) for row in one]) for one in x.reshape(-1, *x.shape[-2:])
    ]
    weights = np.stack(tables).reshape(*x.shape[:-1], x.shape[-2])
    return weights @ x, weights


@BANK.right
def by_columns_turned_round(x):
    """XXᵀ is symmetric: a softmax down its columns, transposed, is one along its rows."""
    weights = np.swapaxes(_softmax(np.matmul(x, np.swapaxes(x, -1, -2)), axis=-2), -1, -2)
    return np.matmul(weights, x), weights


@BANK.right
def by_logsumexp(x):
    scores = _dots(x, x)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1)[..., None])
    return weights @ x, weights


@BANK.right
def averaged_before_dividing(x):
    scores = x @ np.moveaxis(x, -2, -1)
    counts = np.exp(scores - np.max(scores, -1, keepdims=True))
    total = counts.sum(-1, keepdims=True)
    return counts @ x / total, counts / total
