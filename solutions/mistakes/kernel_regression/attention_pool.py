"""Known answers to `attention_pool`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from solutions import kernel_regression as right
from solutions.mistakes.kernel_regression.softmax import _naive_softmax

BANK = Bank("attention_pool", right, globals())

BANK.changes("""
normalised_over_queries: axis=-1 → axis=0
    The softmax runs over the queries: each column of the weights sums to 1 instead of each row.
    Each query spreads its weight over the keys.
not_normalised: softmax(score(query, key), axis=-1) → score(query, key)
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
exp_not_divided: softmax(score(query, key), axis=-1) → np.exp(score(query, key))
    exp is taken of the scores, but not divided by its sum over the keys: the rows of weights do not
    sum to 1.
key_passed_first: score(query, key) → score(key, query)
    `score` gets the key first and the query second. It returns one row for each entry of its first
    argument, so the result has one row per key, or the shapes do not fit.
key_passed_first_then_transposed: score(query, key) → score(key, query).T
    `score` gets the key first, and its result is transposed. The shape is right, but a score need
    not be symmetric: the query is its first argument.
score_ignored: score(query, key) → gaussian_scores(query, key)
    The score function is not called: these are Gaussian weights, whatever `score` says.
score_called_for_each_pair
    ~ score(query, key) → np.array([[score(q, k) for k in key] for q in query])
    `score` is called with one query and one key at a time. It takes all queries and all keys at
    once and returns the whole table, so it fails on single vectors.
score_called_by_keyword: score(query, key) → score(query=query, key=key)
    `score` is called with `query=` and `key=`. Any function of two arguments can be a score,
    whatever it calls them: pass them by position.
scores_scaled
    - score(query, key)
    + score(query, key) / np.sqrt(query.shape[-1] if query.ndim > 1 else 1)
    The scores are divided by √d on top. Scaling is up to the score function: its result goes into
    the softmax as it is.
scores_negated: score(query, key) → -score(query, key)
    The sign of the scores is flipped, as if they were distances: the key with the lowest score gets
    the most weight.
softmax_twice: score(query, key) → softmax(score(query, key))
    Softmax is applied twice: the rows sum to 1 but are far too even.
max_not_subtracted: = softmax → = _naive_softmax
    exp is taken of the raw scores: with scores of ±10,000 it overflows to infinity, or a whole row
    vanishes, and the weights are NaN.
largest_score_only
    - weights = softmax(score(query, key), axis=-1)
    + scores = score(query, key)
    + weights = np.eye(scores.shape[1])[scores.argmax(axis=1)]
    All the weight goes to the key with the largest score. Softmax gives every key a share that
    depends on its score.
keys_averaged: weights @ value → weights @ key
    The weights are applied to the keys. The keys are there to be scored; it is the values that are
    averaged.
output_and_weights_swapped: weights @ value, weights → weights, weights @ value
    The two results are in the wrong order: the output comes first, then the weights.
output_alone: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights as well: `(output, weights)`.
weights_alone: weights @ value, weights → weights
    The weights are returned, but never applied to the values: the output is missing.
scores_for_weights: weights @ value, weights → weights @ value, score(query, key)
    The second result holds the scores instead of the weights, which sum to 1.
columns_squeezed: weights @ value → (weights @ value).squeeze()
    Axes of length 1 are squeezed out of the output: values of shape `(n_k, 1)` should give `(n_q,
    1)`.
always_float64: > result = tuple(part.astype(np.float64) for part in result)
    The results are float64 whatever the inputs are. float32 inputs should give float32 results.
changes_query_in_place: > query -= query.mean()
    The results are right, but the caller's query is changed: `-=` writes into the array that was
    passed in.
largest_of_all_subtracted
    - weights = softmax(score(query, key), axis=-1)
    + scores = score(query, key)
    + weights = np.exp(scores - scores.max())
    + weights = weights / weights.sum(axis=-1, keepdims=True)
    The largest score of all is subtracted, not that of each query. Where another query's scores are
    thousands higher, exp gives a row of zeros, and 0 / 0 is NaN.
""")


@BANK.right
def row_by_row(query, key, value, score):
    scores = score(query, key)
    weights = np.array([np.exp(row - row.max()) for row in scores])
    weights = np.array([row / row.sum() for row in weights])
    return np.array([sum(a * v for a, v in zip(r, value, strict=True)) for r in weights]), weights


@BANK.right
def by_einsum(query, key, value, score):
    scores = score(query, key)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.einsum("qk,k...->q...", weights, value), weights


@BANK.right
def by_torch(query, key, value, score):
    weights = torch.softmax(torch.from_numpy(score(query, key)), dim=-1)
    output = torch.tensordot(weights, torch.from_numpy(value), dims=([1], [0]))
    return output.numpy(), weights.numpy()


@BANK.right
def divided_after_the_sum(query, key, value, score):
    scores = score(query, key)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    total = weights.sum(axis=1)
    return ((weights @ value).T / total).T, (weights.T / total).T


@BANK.right
def one_query_at_a_time(query, key, value, score):
    weights = np.vstack([right.softmax(score(query[i : i + 1], key)) for i in range(len(query))])
    return np.tensordot(weights, value, axes=1), weights
