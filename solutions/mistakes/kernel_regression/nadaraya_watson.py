"""Known answers to `nadaraya_watson`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import kernel_regression as right
from solutions.mistakes.kernel_regression.kernel_weights import _rows_of_one
from solutions.mistakes.kernel_regression.softmax import _floating, _naive_softmax

BANK = Bank("nadaraya_watson", right, globals())

BANK.changes("""
normalised_over_queries: axis=-1 → axis=0
    The softmax runs over the queries, so each column of the weights sums to 1. Each query has to
    spread a total weight of 1 over the keys: it is the rows that sum to 1.
not_normalised
    ~ softmax(gaussian_scores(query, key, w), axis=-1) → np.exp(gaussian_scores(query, key, w))
    The kernel is not divided by its sum over the keys. The more keys lie near a query, the larger
    its prediction, and far from all keys it falls to 0.
softmax_forgotten: softmax(gaussian_scores(query, key, w), axis=-1) → gaussian_scores(query, key, w)
    The scores serve as weights: they are negative and do not sum to 1. The softmax makes weights of
    them.
sign_flipped: softmax(gaussian_scores → softmax(-gaussian_scores
    The sign of the score is wrong: the keys farthest from the query get the most weight, and the
    closest the least.
divided_by_w: key, w → key, 1 / w
    The distance is divided by w instead of multiplied: a large w smooths more, where it should
    follow the data more closely. w is the inverse bandwidth.
w_not_squared: key, w → key, np.sqrt(w)
    w is outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared along with
    it.
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
    fails where there are more keys than queries.
keys_averaged: weights @ value → weights @ key
    The weights are applied to the keys. The keys say where to look; it is the values that are
    averaged.
prediction_and_weights_swapped: weights @ value, weights → weights, weights @ value
    The two results are in the wrong order: the prediction comes first, then the weights.
prediction_alone: weights @ value, weights → weights @ value
    Only the prediction is returned. Return the weights as well: `(prediction, weights)`.
weights_alone: weights @ value, weights → weights
    The weights are returned, but never applied to the values: the prediction is missing.
scores_for_weights: weights @ value, weights → weights @ value, gaussian_scores(query, key, w)
    The second result holds the scores, which go into the softmax, instead of the weights that come
    out of it.
max_not_subtracted: = softmax → = _naive_softmax
    exp is taken of the raw scores. For a query far from every key they all vanish, and the division
    0/0 gives NaN.
far_query_gets_nothing
    - softmax(gaussian_scores(query, key, w), axis=-1)
    + _rows_of_one(np.exp(gaussian_scores(query, key, w)))
    exp is taken of the raw scores, with a guard against a sum of 0. That avoids NaN, but a query
    far from every key gets no weights at all and the prediction 0; its row should still sum to 1.
small_number_under_the_fraction
    - weights = softmax(gaussian_scores(query, key, w), axis=-1)
    + weights = np.exp(gaussian_scores(query, key, w))
    + weights = weights / (weights.sum(axis=-1, keepdims=True) + 1e-6)
    A small number is added to the sum of the kernel. That avoids NaN, but the rows of weights no
    longer sum to 1, least of all for a query far from every key.
numbers_only: weights @ value → (weights * value).sum(axis=-1)
    Values that are vectors are not handled: weights and values are multiplied entry by entry, which
    only suits values of shape `(n_k,)`.
columns_squeezed: weights @ value → (weights @ value).squeeze()
    Axes of length 1 are squeezed out of the prediction. Values of shape `(n_k, 1)` should give
    `(n_q, 1)`, and a single query should still give an array with one entry.
always_float64: > result = tuple(part.astype(np.float64) for part in result)
    The results are float64 whatever the inputs are, as an array made by np.zeros is. float32 inputs
    should give a float32 prediction and float32 weights.
changes_query_in_place
    > if query.dtype.kind == "f":
    >     query *= w
    The results are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
divided_by_the_number_of_keys: weights @ value → weights @ value / len(key)
    The prediction is divided by the number of keys. The weights sum to 1 already: the weighted sum
    is the average.
""")


@BANK.right
def query_by_query(query, key, value, w=1.0):
    rows = []
    for x in query:
        scores = [-0.5 * ((x - x_i) * w) ** 2 for x_i in key]
        parts = [np.exp(score - max(scores)) for score in scores]
        rows.append([part / sum(parts) for part in parts])
    predictions = [sum(a * y for a, y in zip(row, value, strict=True)) for row in rows]
    return np.array(predictions), np.array(rows)


@BANK.right
def by_einsum(query, key, value, w=1.0):
    scores = -0.5 * np.subtract.outer(query, key) ** 2 * w**2
    weights = np.exp(scores - scores.max(1)[:, None])
    weights /= weights.sum(1)[:, None]
    return np.einsum("qk,k...->q...", weights, value), weights


@BANK.right
def by_torch(query, key, value, w=1.0):
    x, x_i, y = (torch.tensor(np.array(a), dtype=torch.float64) for a in (query, key, value))
    weights = torch.softmax(-0.5 * ((x[:, None] - x_i) * w).square(), dim=1)
    results = torch.tensordot(weights, y, dims=1).numpy(), weights.numpy()
    return tuple(part.astype(_floating(query).dtype) for part in results)


@BANK.right
def divided_after_the_sum(query, key, value, w=1.0):
    distance = np.abs(query[:, None] - key) * w
    nearest = distance.min(axis=1, keepdims=True)
    kernel = np.exp(-0.5 * (distance - nearest) * (distance + nearest))
    total = kernel.sum(axis=1)
    return ((kernel @ value).T / total).T, kernel / total[:, None]


@BANK.right
def keys_first_then_transposed(query, key, value, w=1.0):
    log_kernel = -((key.reshape(-1, 1) - query) ** 2) / (2 * (1 / w) ** 2)
    weights = np.exp(log_kernel - np.logaddexp.reduce(log_kernel, axis=0)).T
    return weights.dot(value), weights
