"""Known answers to `simple_attention`: mistakes, then right answers."""

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import attention_scoring as right

BANK = Bank("simple_attention", right, globals())


def _softmax(scores, axis=-1):
    counts = np.exp(scores - scores.max(axis, keepdims=True))
    return counts / counts.sum(axis, keepdims=True)


def _dots(query, key):
    return np.einsum("...qd,...kd->...qk", query, key)


def _attend(scores, value):
    weights = _softmax(scores)
    return weights @ value, weights


BANK.changes("""
scaled: key.swapaxes(-2, -1) → key.swapaxes(-2, -1) / math.sqrt(query.shape[-1])
    The scores are divided by √d_k. That comes later in the chapter; here the dot products go into
    the softmax as they are.
divided_by_d_k: key.swapaxes(-2, -1) → key.swapaxes(-2, -1) / query.shape[-1]
    The scores are divided by d_k: the mean of the products instead of their sum.
softmax_over_queries: axis=-1 → axis=-2 ×2
    The softmax runs over the queries: each column of the weights sums to 1 instead of each row.
    Each query spreads its weight over the keys, along the last axis.
softmax_over_everything
    ~ scores.max(axis=-1, keepdims=True) → scores.max()
    ~ counts.sum(axis=-1, keepdims=True) → counts.sum()
    The softmax runs over all scores at once: each row of the weights sums to much less than 1.
not_normalised: counts / counts.sum(axis=-1, keepdims=True) → scores
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
exp_not_divided
    ~ scores - scores.max(axis=-1, keepdims=True) → scores
    ~ counts / counts.sum(axis=-1, keepdims=True) → counts
    exp is taken of the scores, but they are not divided by their sum along each row.
divided_by_the_sum_of_scores: counts / counts.sum( → scores / scores.sum(
    The scores are divided by their sum, without exp. Scores may be negative and may sum to 0; exp
    makes them positive first.
weights_applied_to_keys: @ value → @ key
    The weights average the keys. The keys say where to look; it is the values that are averaged.
key_and_value_swapped: + key, value = value, key
    Key and value are swapped: the values are scored and the keys averaged.
scores_transposed: query @ key.swapaxes → key @ query.swapaxes
    The scores compare every key with every query, KQᵀ, one row per key. There should be one row per
    query, QKᵀ.
all_axes_transposed: key.swapaxes(-2, -1) → key.T
    `.T` reverses all axes, the batch included. Only the last two should be exchanged.
key_not_transposed: key.swapaxes(-2, -1) → key
    The query is multiplied by the key as it is. Dot products of rows with rows need the second
    matrix transposed; without that, the sizes fit by accident at most.
cosine_for_dot_product
    + query = query / np.linalg.norm(query, axis=-1, keepdims=True)
    + key = key / np.linalg.norm(key, axis=-1, keepdims=True)
    Queries and keys are divided by their lengths first, which gives the cosine. In a dot product,
    length counts.
max_not_subtracted: scores - scores.max(axis=-1, keepdims=True) → scores
    exp is taken of the raw scores: with scores of 10,000 it overflows to infinity and the weights
    are NaN.
largest_of_all_subtracted: scores.max(axis=-1, keepdims=True) → scores.max()
    The largest of all scores is subtracted from every row. A row whose own scores are far below it
    underflows to 0/0: each row needs its own largest score.
epsilon_added: counts.sum(axis=-1, keepdims=True) → (counts.sum(axis=-1, keepdims=True) + 1e-5)
    A small number is added to the sum before dividing, so rows sum to slightly less than 1. Once
    the largest score is subtracted, the sum is at least 1, and nothing needs to be added.
scores_returned: weights @ value, weights → weights @ value, scores
    The output is right, but it comes with the scores before the softmax instead of the weights.
weights_first: weights @ value, weights → weights, weights @ value
    The weights are returned first. The order is (output, weights).
weights_not_returned: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights as well: (output, weights).
weights_transposed_for_the_average: weights @ value → weights.swapaxes(-2, -1) @ value
    The weights are transposed before they meet the values: each key gets an average instead of each
    query.
hardest_key_only
    - counts / counts.sum(axis=-1, keepdims=True)
    + np.eye(scores.shape[-1])[scores.argmax(-1)]
    Each query takes the value of its best key alone, with weight 1. Attention averages: all keys
    count, better ones more.
batch_merged
    + n_k = key.shape[-2]
    + key, value = key.reshape(-1, key.shape[-1]), value.reshape(-1, value.shape[-1])
    ~ weights @ value, weights → weights @ value, weights[..., :n_k]
    The sequences of a batch are joined into one, so a query attends to the keys of all of them.
written_into_integers: weights @ value → (weights @ value).astype(value.dtype)
    The output is written into an array with the dtype of the values: if these are whole numbers,
    every average is cut down to a whole number.
always_float64: + query, key, value = (x.astype(np.float64) for x in (query, key, value))
    The result is always float64. float32 should stay float32.
key_changed_in_place: > key *= 2
    The caller's key is overwritten: an operation such as `-=` writes into the array that was passed
    in.
softmax_over_axis_1: axis=-1 → axis=1 ×2
    The softmax runs over axis 1. Without a batch that is the keys, with one it is the queries. The
    keys are always the last axis.
softmax_over_the_first_axis: axis=-1 → axis=0 ×2
    The softmax runs over the first axis: over the queries or, in a batch, over its sequences. The
    keys are always the last axis.
keepdims_forgotten: counts.sum(axis=-1, keepdims=True) → counts.sum(axis=-1)
    The sums lose their axis and lie along a row instead of down a column. With as many queries as
    keys, each weight is divided by another row's sum; otherwise the division fails.
distance_for_dot_product
    - query @ key.swapaxes(-2, -1)
    + -0.5 * np.square(query[..., :, None, :] - key[..., None, :, :]).sum(-1)
    The score is minus half the squared distance, as in chapter 1. Here it is the dot product, in
    which length counts.
np_dot_for_matmul
    ~ query @ key.swapaxes(-2, -1) → np.dot(query, key.swapaxes(-2, -1))
    ~ weights @ value → np.dot(weights, value)
    np.dot multiplies every sequence of a batch with every other one. Each should only meet its own.
mean_subtracted: scores.max(axis → scores.mean(axis
    The mean of each row is subtracted instead of its largest score: with scores of ±10,000 the
    largest is still far above it, and exp overflows.
""")


@BANK.right
def by_einsum(query, key, value):
    weights = _softmax(np.einsum("...id,...jd->...ij", query, key))
    return np.einsum("...ij,...jv->...iv", weights, value), weights


@BANK.right
def query_by_query(query, key, value):
    weights = np.zeros(query.shape[:-1] + key.shape[-2:-1], np.result_type(query, key, np.float32))
    for index in np.ndindex(*query.shape[:-1]):
        scores = key[index[:-1]] @ query[index]
        counts = np.exp(scores - scores.max())
        weights[index] = counts / counts.sum()
    return weights @ value, weights


@BANK.right
def largest_score_by_logsumexp(query, key, value):
    scores = np.matmul(query, np.moveaxis(key, -1, -2))
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.matmul(weights, value), weights


@BANK.right
def averaged_before_dividing(query, key, value):
    scores = _dots(query, key)
    counts = np.exp(scores - np.amax(scores, axis=-1)[..., None])
    total = counts.sum(axis=-1)[..., None]
    return (counts @ value) / total, counts / total


@BANK.right
def by_broadcasting(query, key, value):
    scores = np.sum(np.expand_dims(query, -2) * np.expand_dims(key, -3), axis=-1)
    weights = _softmax(scores)
    return (weights[..., None] * value[..., None, :, :]).sum(axis=-2), weights


@BANK.right
def by_torch(query, key, value):
    kind = np.result_type(query, key, value)
    kind = kind if kind == np.float32 else np.float64
    q, k, v = (torch.from_numpy(np.ascontiguousarray(x, kind)) for x in (query, key, value))
    weights = F.softmax(q @ k.mT, dim=-1)
    return (weights @ v).numpy(), weights.numpy()
