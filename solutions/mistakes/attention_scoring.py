"""Known answers to chapter 2: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.attention_scoring`.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from solutions import attention_scoring as right
from solutions.mistakes import Bank

SIMPLE_ATTENTION = Bank("simple_attention", right, globals())
SELF_SIMILARITY = Bank("self_similarity", right, globals())
SCALED_DOT_PRODUCT_ATTENTION = Bank("scaled_dot_product_attention", right, globals())
ADDITIVE_ATTENTION = Bank("AdditiveAttention", right, globals())
BILINEAR_ATTENTION = Bank("BilinearAttention", right, globals())
COSINE_SCORES = Bank("cosine_scores", right, globals())
SELF_ATTENTION = Bank("SelfAttention", right, globals())


def _softmax(scores, axis=-1):
    counts = np.exp(scores - scores.max(axis, keepdims=True))
    return counts / counts.sum(axis, keepdims=True)


def _dots(query, key):
    return np.einsum("...qd,...kd->...qk", query, key)


def _attend(scores, value):
    weights = _softmax(scores)
    return weights @ value, weights


# --- simple_attention: mistakes -----------------------------------------------------------------


@SIMPLE_ATTENTION.mistake
def scaled(query, key, value):
    """The scores are divided by √d_k. That comes later in the chapter; here the dot products go
    into the softmax as they are.
    """
    return _attend(_dots(query, key) / math.sqrt(query.shape[-1]), value)


@SIMPLE_ATTENTION.mistake
def divided_by_d_k(query, key, value):
    """The scores are divided by d_k: the mean of the products instead of their sum."""
    return _attend(_dots(query, key) / query.shape[-1], value)


@SIMPLE_ATTENTION.mistake
def softmax_over_queries(query, key, value):
    """The softmax runs over the queries: each column of the weights sums to 1 instead of each row.
    Each query spreads its weight over the keys, along the last axis.
    """
    weights = _softmax(_dots(query, key), axis=-2)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def softmax_over_everything(query, key, value):
    """The sum runs over all scores at once: each row of the weights sums to much less than 1."""
    scores = _dots(query, key)
    weights = np.exp(scores - scores.max())
    weights = weights / weights.sum()
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def not_normalised(query, key, value):
    """The scores are applied to the values as they are, without a softmax: they may be negative and
    do not sum to 1.
    """
    scores = _dots(query, key)
    return scores @ value, scores


@SIMPLE_ATTENTION.mistake
def exp_not_divided(query, key, value):
    """exp is taken of the scores, but not divided by its sum along each row."""
    weights = np.exp(_dots(query, key))
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def divided_by_the_sum_of_scores(query, key, value):
    """The scores are divided by their sum, without exp. Scores may be negative and may sum to 0;
    exp makes them positive first.
    """
    scores = _dots(query, key)
    weights = scores / scores.sum(-1, keepdims=True)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def weights_applied_to_keys(query, key, value):
    """The weights average the keys. The keys say where to look; what is averaged are the values."""
    return _attend(_dots(query, key), key)


@SIMPLE_ATTENTION.mistake
def key_and_value_swapped(query, key, value):
    """Key and value have changed places: the scores are taken with the values, the keys are
    averaged.
    """
    return _attend(_dots(query, value), key)


@SIMPLE_ATTENTION.mistake
def scores_transposed(query, key, value):
    """The scores are those of every key with every query, KQᵀ, one row per key. Rows must be
    queries: QKᵀ.
    """
    return _attend(_dots(key, query), value)


@SIMPLE_ATTENTION.mistake
def all_axes_transposed(query, key, value):
    """`.T` reverses all axes, the batch included. Exchange the last two only: np.swapaxes(key, -2,
    -1).
    """
    return _attend(query @ key.T, value)


@SIMPLE_ATTENTION.mistake
def key_not_transposed(query, key, value):
    """The query is multiplied by the key as it stands. A dot product of rows with rows needs the
    second matrix transposed; without it the sizes fit by accident at most.
    """
    return _attend(query @ key, value)


@SIMPLE_ATTENTION.mistake
def cosine_for_dot_product(query, key, value):
    """Queries and keys are divided by their lengths first. That is the cosine; asked is the dot
    product, in which length counts.
    """
    q = query / np.linalg.norm(query, axis=-1, keepdims=True)
    k = key / np.linalg.norm(key, axis=-1, keepdims=True)
    return _attend(_dots(q, k), value)


@SIMPLE_ATTENTION.mistake
def max_not_subtracted(query, key, value):
    """exp is taken of the raw scores: with scores of 10,000 it overflows to infinity and the
    weights are NaN. Subtract each row's largest score first.
    """
    counts = np.exp(_dots(query, key))
    weights = counts / counts.sum(-1, keepdims=True)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def largest_of_all_subtracted(query, key, value):
    """The largest of all scores is subtracted, the same for all rows. A row whose own scores lie
    far below it underflows to 0/0. Each row needs its own largest.
    """
    scores = _dots(query, key)
    counts = np.exp(scores - scores.max())
    weights = counts / counts.sum(-1, keepdims=True)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def epsilon_added(query, key, value):
    """A small number is added to the sum before dividing, so that rows sum to a little less than 1.
    The sum is at least 1 once the largest score is subtracted: nothing need be added.
    """
    scores = _dots(query, key)
    counts = np.exp(scores - scores.max(-1, keepdims=True))
    weights = counts / (counts.sum(-1, keepdims=True) + 1e-5)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def scores_returned(query, key, value):
    """The output is right; what is returned beside it are the scores, before the softmax."""
    scores = _dots(query, key)
    return _attend(scores, value)[0], scores


@SIMPLE_ATTENTION.mistake
def weights_first(query, key, value):
    """The weights are returned first. The order is (output, weights)."""
    return right.simple_attention(query, key, value)[::-1]


@SIMPLE_ATTENTION.mistake
def weights_not_returned(query, key, value):
    """Only the output is returned. Return the weights as well: (output, weights)."""
    return right.simple_attention(query, key, value)[0]


@SIMPLE_ATTENTION.mistake
def weights_transposed_for_the_average(query, key, value):
    """The weights are transposed before they meet the values: each key, not each query, gets an
    average.
    """
    weights = _softmax(_dots(query, key))
    return weights.swapaxes(-2, -1) @ value, weights


@SIMPLE_ATTENTION.mistake
def hardest_key_only(query, key, value):
    """Each query takes the value of its best key alone, weight 1. Attention averages: all keys
    count, the good ones more.
    """
    scores = _dots(query, key)
    weights = np.eye(scores.shape[-1])[scores.argmax(-1)]
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def batch_merged(query, key, value):
    """The sequences of a batch are joined into one, so that a query attends to the keys of all of
    them.
    """
    if query.ndim == 2:
        return right.simple_attention(query, key, value)
    n_k = key.shape[-2]
    all_keys, all_values = key.reshape(-1, key.shape[-1]), value.reshape(-1, value.shape[-1])
    weights = _softmax(query @ all_keys.T)
    return weights @ all_values, weights[..., :n_k]


@SIMPLE_ATTENTION.mistake
def written_into_integers(query, key, value):
    """The output is written into an array with the dtype of the values: for whole numbers, every
    average is cut down to a whole number.
    """
    output, weights = right.simple_attention(query, key, value)
    return output.astype(value.dtype), weights


@SIMPLE_ATTENTION.mistake
def always_float64(query, key, value):
    """The result is float64 whatever comes in: float32 has to stay float32."""
    inputs = (x.astype(np.float64) for x in (query, key, value))
    return right.simple_attention(*inputs)


@SIMPLE_ATTENTION.mistake
def key_changed_in_place(query, key, value):
    """The caller's key is written over. Make a new array: `key - …`, not `key -= …`."""
    result = right.simple_attention(query, key, value)
    key *= 2
    return result


@SIMPLE_ATTENTION.mistake
def softmax_over_axis_1(query, key, value):
    """The softmax runs over axis 1. That is the keys without a batch, and the queries with one:
    axis=-1 is always the keys.
    """
    weights = _softmax(_dots(query, key), axis=1)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def softmax_over_the_first_axis(query, key, value):
    """The softmax runs over the first axis: over the queries, or, in a batch, over its sequences.
    The keys are the last axis, axis=-1.
    """
    weights = _softmax(_dots(query, key), axis=0)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def keepdims_forgotten(query, key, value):
    """The sums lose their axis (no keepdims=True): they lie along a row instead of down a column.
    Where there are as many queries as keys, each weight is divided by another row's sum; elsewhere
    it fails.
    """
    scores = _dots(query, key)
    counts = np.exp(scores - scores.max(-1, keepdims=True))
    weights = counts / counts.sum(-1)
    return weights @ value, weights


@SIMPLE_ATTENTION.mistake
def distance_for_dot_product(query, key, value):
    """The score is minus half the squared distance, that of chapter 1. Here it is the dot product,
    in which length counts.
    """
    apart = query[..., :, None, :] - key[..., None, :, :]
    return _attend(-0.5 * np.square(apart).sum(-1), value)


@SIMPLE_ATTENTION.mistake
def np_dot_for_matmul(query, key, value):
    """np.dot multiplies every sequence of a batch with every other. `@` keeps each with its own."""
    weights = _softmax(np.dot(query, key.swapaxes(-2, -1)))
    return np.dot(weights, value), weights


# --- simple_attention: right --------------------------------------------------------------------


@SIMPLE_ATTENTION.right
def by_einsum(query, key, value):
    weights = _softmax(np.einsum("...id,...jd->...ij", query, key))
    return np.einsum("...ij,...jv->...iv", weights, value), weights


@SIMPLE_ATTENTION.right
def query_by_query(query, key, value):
    weights = np.zeros(query.shape[:-1] + key.shape[-2:-1], np.result_type(query, key, np.float32))
    for index in np.ndindex(*query.shape[:-1]):
        scores = key[index[:-1]] @ query[index]
        counts = np.exp(scores - scores.max())
        weights[index] = counts / counts.sum()
    return weights @ value, weights


@SIMPLE_ATTENTION.right
def largest_score_by_logsumexp(query, key, value):
    scores = np.matmul(query, np.moveaxis(key, -1, -2))
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.matmul(weights, value), weights


@SIMPLE_ATTENTION.right
def averaged_before_dividing(query, key, value):
    scores = _dots(query, key)
    counts = np.exp(scores - np.amax(scores, axis=-1)[..., None])
    total = counts.sum(axis=-1)[..., None]
    return (counts @ value) / total, counts / total


@SIMPLE_ATTENTION.right
def by_broadcasting(query, key, value):
    scores = np.sum(np.expand_dims(query, -2) * np.expand_dims(key, -3), axis=-1)
    weights = _softmax(scores)
    return (weights[..., None] * value[..., None, :, :]).sum(axis=-2), weights


@SIMPLE_ATTENTION.right
def by_torch(query, key, value):
    kind = np.result_type(query, key, value)
    kind = kind if kind == np.float32 else np.float64
    q, k, v = (torch.from_numpy(np.ascontiguousarray(x, kind)) for x in (query, key, value))
    weights = F.softmax(q @ k.mT, dim=-1)
    return (weights @ v).numpy(), weights.numpy()


# --- self_similarity: mistakes ------------------------------------------------------------------


@SELF_SIMILARITY.mistake
def scaled(x):
    """The scores are divided by √d. That comes later in the chapter; here XXᵀ goes into the softmax
    as it is.
    """
    return _attend(_dots(x, x) / math.sqrt(x.shape[-1]), x)


@SELF_SIMILARITY.mistake
def softmax_over_queries(x):
    """The softmax runs down the columns. XXᵀ is symmetric, so that the weights come out transposed:
    columns, not rows, sum to 1.
    """
    weights = _softmax(_dots(x, x), axis=-2)
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def similarity_of_features(x):
    """The table is XᵀX, (d, d): features compared with features. Rows are compared with rows in
    XXᵀ, (n, n).
    """
    weights = _softmax(np.einsum("...nd,...ne->...de", x, x))
    return x @ weights, weights


@SELF_SIMILARITY.mistake
def all_axes_transposed(x):
    """`.T` reverses all axes, the batch included. Exchange the last two only: np.swapaxes(x, -2,
    -1).
    """
    return _attend(x @ x.T, x)


@SELF_SIMILARITY.mistake
def not_normalised(x):
    """The output is (XXᵀ)X, without a softmax between: similarity, normalise, average."""
    scores = _dots(x, x)
    return scores @ x, scores


@SELF_SIMILARITY.mistake
def exp_not_divided(x):
    """exp is taken of the scores, but not divided by its sum along each row."""
    weights = np.exp(_dots(x, x))
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def cosine_for_dot_product(x):
    """The rows are divided by their lengths first. That is the cosine; asked is the dot product, in
    which length counts.
    """
    unit = x / np.linalg.norm(x, axis=-1, keepdims=True)
    return _attend(_dots(unit, unit), x)


@SELF_SIMILARITY.mistake
def itself_left_out(x):
    """The diagonal is left out, as in leave-one-out: no row attends to itself. Here each row may,
    and usually it is its own best match.
    """
    scores = np.where(np.eye(x.shape[-2], dtype=bool), -np.inf, _dots(x, x))
    largest = np.maximum(scores.max(-1, keepdims=True), -1e300)
    counts = np.exp(scores - largest)
    weights = counts / np.maximum(counts.sum(-1, keepdims=True), 1e-300)
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def max_not_subtracted(x):
    """exp is taken of the raw scores: a long row has a huge dot product with itself, and exp of it
    overflows. Subtract each row's largest score first.
    """
    counts = np.exp(_dots(x, x))
    weights = counts / counts.sum(-1, keepdims=True)
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def largest_of_all_subtracted(x):
    """The largest of all scores is subtracted, the same for all rows. A row whose own scores lie
    far below it underflows to 0/0. Each row needs its own largest.
    """
    scores = _dots(x, x)
    counts = np.exp(scores - scores.max())
    weights = counts / counts.sum(-1, keepdims=True)
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def own_score_subtracted(x):
    """Each row's score with itself is subtracted, as if it were the largest. It need not be: a
    longer row in the same direction scores higher, and exp overflows.
    """
    scores = _dots(x, x)
    counts = np.exp(scores - np.einsum("...nn->...n", scores)[..., None])
    weights = counts / counts.sum(-1, keepdims=True)
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def added_to_x(x):
    """x is added to the output. That is a residual connection, which has a chapter of its own; the
    output here is the average alone.
    """
    output, weights = right.self_similarity(x)
    return output + x, weights


@SELF_SIMILARITY.mistake
def applied_twice(x):
    """The output attends to itself a second time. Once is asked."""
    return right.self_similarity(right.self_similarity(x)[0])


@SELF_SIMILARITY.mistake
def weights_first(x):
    """The weights are returned first. The order is (output, weights)."""
    return right.self_similarity(x)[::-1]


@SELF_SIMILARITY.mistake
def weights_not_returned(x):
    """Only the output is returned. Return the weights as well: (output, weights)."""
    return right.self_similarity(x)[0]


@SELF_SIMILARITY.mistake
def positions_matter(x):
    """The past counts more than the future, or near rows more than far ones: scores were changed by
    position. Here only the dot product counts.
    """
    place = np.arange(x.shape[-2])
    return _attend(_dots(x, x) - np.abs(place[:, None] - place), x)


@SELF_SIMILARITY.mistake
def always_float64(x):
    """The result is float64 whatever comes in: float32 has to stay float32."""
    return right.self_similarity(x.astype(np.float64))


@SELF_SIMILARITY.mistake
def x_changed_in_place(x):
    """The caller's x is written over. Make a new array: `x - …`, not `x -= …`."""
    result = right.self_similarity(x)
    x *= 2
    return result


@SELF_SIMILARITY.mistake
def softmax_over_axis_1(x):
    """The softmax runs over axis 1. That is right without a batch; with one, it runs down the
    columns: axis=-1 is always the keys.
    """
    weights = _softmax(_dots(x, x), axis=1)
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def softmax_over_the_first_axis(x):
    """The softmax runs over the first axis: down the columns, or, in a batch, over its sequences.
    Each row attends along the last axis, axis=-1.
    """
    weights = _softmax(_dots(x, x), axis=0)
    return weights @ x, weights


@SELF_SIMILARITY.mistake
def weights_transposed_for_the_average(x):
    """The weights are transposed before they meet x. The scores are symmetric, the weights are not:
    a row of weights belongs to the row of x that asks.
    """
    weights = _softmax(_dots(x, x))
    return weights.swapaxes(-2, -1) @ x, weights


# --- self_similarity: right ---------------------------------------------------------------------


@SELF_SIMILARITY.right
def by_einsum(x):
    weights = _softmax(np.einsum("...id,...jd->...ij", x, x))
    return np.einsum("...ij,...jd->...id", weights, x), weights


@SELF_SIMILARITY.right
def row_by_row(x):
    tables = [
        np.stack([_softmax(one @ row) for row in one]) for one in x.reshape(-1, *x.shape[-2:])
    ]
    weights = np.stack(tables).reshape(*x.shape[:-1], x.shape[-2])
    return weights @ x, weights


@SELF_SIMILARITY.right
def by_columns_turned_round(x):
    """XXᵀ is symmetric: a softmax down its columns, transposed, is one along its rows."""
    weights = np.swapaxes(_softmax(np.matmul(x, np.swapaxes(x, -1, -2)), axis=-2), -1, -2)
    return np.matmul(weights, x), weights


@SELF_SIMILARITY.right
def by_logsumexp(x):
    scores = _dots(x, x)
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1)[..., None])
    return weights @ x, weights


@SELF_SIMILARITY.right
def averaged_before_dividing(x):
    scores = x @ np.moveaxis(x, -2, -1)
    counts = np.exp(scores - np.max(scores, -1, keepdims=True))
    total = counts.sum(-1, keepdims=True)
    return counts @ x / total, counts / total


# --- scaled_dot_product_attention: mistakes -----------------------------------------------------


def _scaled(query, key, value, scale=None, dim=-1):
    scale = math.sqrt(query.shape[-1]) if scale is None else scale
    weights = torch.softmax(query @ key.mT / scale, dim)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def not_scaled(query, key, value):
    """The scores are not divided by √d_k."""
    return _scaled(query, key, value, 1.0)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def divided_by_d_k(query, key, value):
    """The scores are divided by d_k. It is the variance of a dot product that is d_k; its size is
    the root, √d_k.
    """
    return _scaled(query, key, value, query.shape[-1])


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def divided_by_root_d_v(query, key, value):
    """The scores are divided by √d_v, the size of a value. The dot product has d_k terms, one for
    each feature of a query.
    """
    return _scaled(query, key, value, math.sqrt(value.shape[-1]))


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def divided_by_root_n_k(query, key, value):
    """The scores are divided by √n_k, the number of keys. A dot product is a sum over features: its
    size grows with d_k, however many keys there are.
    """
    return _scaled(query, key, value, math.sqrt(key.shape[-2]))


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def divided_by_root_n_q(query, key, value):
    """The scores are divided by √n_q, the number of queries: query.shape[-2] for
    query.shape[-1].
    """
    return _scaled(query, key, value, math.sqrt(query.shape[-2]))


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def multiplied_by_root_d_k(query, key, value):
    """The scores are multiplied by √d_k instead of divided: they saturate all the sooner."""
    return _scaled(query, key, value, 1 / math.sqrt(query.shape[-1]))


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def weights_divided(query, key, value):
    """√d_k divides the weights, after the softmax. It has to act before: the softmax of smaller
    scores is another one, and rows must sum to 1.
    """
    _, weights = _scaled(query, key, value, 1.0)
    weights = weights / math.sqrt(query.shape[-1])
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def softmax_over_queries(query, key, value):
    """The softmax runs over the queries (dim=-2): each column of the weights sums to 1 instead of
    each row.
    """
    return _scaled(query, key, value, dim=-2)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def softmax_over_the_first_axis(query, key, value):
    """The softmax runs over the first axis (dim=0): over the sequences of a batch, or over the
    queries where there is none. The keys are the last axis, dim=-1.
    """
    return _scaled(query, key, value, dim=0)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def softmax_over_axis_1(query, key, value):
    """The softmax runs over dim=1. That is the keys without a batch, the queries with one, and
    something else yet with two leading axes: dim=-1 is always the keys.
    """
    return _scaled(query, key, value, dim=1)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def softmax_over_axis_2(query, key, value):
    """The softmax runs over dim=2, which is the keys only where there is exactly one batch axis:
    dim=-1 is always the keys.
    """
    return _scaled(query, key, value, dim=2)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def weights_applied_to_keys(query, key, value):
    """The weights average the keys. The keys say where to look; what is averaged are the values."""
    return _scaled(query, key, key)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def key_and_value_swapped(query, key, value):
    """Key and value have changed places: the scores are taken with the values, the keys are
    averaged.
    """
    return _scaled(query, value, key)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def query_and_key_swapped(query, key, value):
    """The scores are those of every key with every query, KQᵀ, one row per key. Rows must be
    queries: QKᵀ.
    """
    return _scaled(key, query, value)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def bmm_wants_three_axes(query, key, value):
    """torch.bmm takes exactly one batch axis. `@` (torch.matmul) takes any number, none
    included.
    """
    scores = torch.bmm(query, key.transpose(1, 2)) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return torch.bmm(weights, value), weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def axes_counted_from_the_front(query, key, value):
    """key.transpose(1, 2) counts axes from the front: it means the last two only where there is
    exactly one batch axis. transpose(-2, -1) means them always.
    """
    scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def key_reshaped_for_transposed(query, key, value):
    """key is reshaped to (d_k, n_k) instead of transposed: the shape fits, but the numbers are read
    off in another order and keys are torn to pieces.
    """
    turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    weights = torch.softmax(query @ turned / math.sqrt(query.shape[-1]), dim=-1)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def squeezed(query, key, value):
    """squeeze() takes away every axis of size 1: a batch of one, a single query. Where none is 1
    nothing shows.
    """
    output, weights = _scaled(query, key, value)
    return output.squeeze(), weights.squeeze()


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def not_normalised(query, key, value):
    """The scores are applied to the values as they are, without a softmax: they may be negative and
    do not sum to 1.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores @ value, scores


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def max_not_subtracted(query, key, value):
    """exp is taken of the raw scores: with scores of 10,000 it overflows to infinity and the
    weights are NaN. torch.softmax subtracts each row's largest score first.
    """
    counts = torch.exp(query @ key.mT / math.sqrt(query.shape[-1]))
    weights = counts / counts.sum(-1, keepdim=True)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def scores_clamped(query, key, value):
    """The scores are clamped so that exp does not overflow. Scores beyond the limit then count as
    equal; subtracting the largest changes nothing and is enough.
    """
    scores = (query @ key.mT / math.sqrt(query.shape[-1])).clamp(-60, 60)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def weights_detached(query, key, value):
    """The weights are detached: no gradient reaches query and key, and nothing in front of them can
    learn where to look.
    """
    _, weights = _scaled(query, key, value)
    weights = weights.detach()
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def values_detached(query, key, value):
    """The values are detached: no gradient reaches them."""
    return _scaled(query, key, value.detach())


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def through_numpy(query, key, value):
    """The computation leaves torch for NumPy and comes back: the numbers are right, and the
    gradient is cut.
    """
    arrays = (x.detach().numpy() for x in (query, key, value))
    scale = math.sqrt(query.shape[-1])
    q, k, v = arrays
    output, weights = right.simple_attention(q / scale, k, v)
    kind = value.dtype
    return torch.from_numpy(output).to(kind), torch.from_numpy(weights).to(kind)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def weights_first(query, key, value):
    """The weights are returned first. The order is (output, weights)."""
    return _scaled(query, key, value)[::-1]


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def weights_not_returned(query, key, value):
    """Only the output is returned. Return the weights as well: (output, weights)."""
    return _scaled(query, key, value)[0]


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def scores_returned(query, key, value):
    """The output is right; what is returned beside it are the scores, before the softmax."""
    return _scaled(query, key, value)[0], query @ key.mT / math.sqrt(query.shape[-1])


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def causal_unasked(query, key, value):
    """Each query sees only the keys up to its own place. That is a mask, two chapters on; here
    every query sees every key.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    sees = torch.ones_like(scores, dtype=torch.bool).tril()
    weights = torch.softmax(scores.masked_fill(~sees, -math.inf), dim=-1)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def always_float32(query, key, value):
    """The computation is forced into float32: float64 has to stay float64."""
    return _scaled(query.float(), key.float(), value.float())


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def query_changed_in_place(query, key, value):
    """The caller's query is divided in place: `query /= …` writes into it, and the next layer that
    reads it gets other numbers. `query / …` makes a new tensor.
    """
    result = _scaled(query, key, value)
    with torch.no_grad():
        query /= math.sqrt(query.shape[-1])
    return result


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def default_dtype_switched(query, key, value):
    """A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a function.
    """
    torch.set_default_dtype(torch.float64)
    return _scaled(query, key, value)


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def all_axes_transposed(query, key, value):
    """`.T` reverses all axes, the batch included. transpose(-2, -1) exchanges the last two."""
    scores = query @ key.permute(*reversed(range(key.ndim))) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def first_two_axes_exchanged(query, key, value):
    """key.transpose(0, 1) exchanges the first two axes: the last two only where there is no batch.
    transpose(-2, -1) means them always.
    """
    scores = query @ key.transpose(0, 1) / math.sqrt(query.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def divided_by_root_of_the_first_size(query, key, value):
    """The scores are divided by √query.shape[0], the number of sequences in a batch, or of queries
    where there is none. The features are the last axis: query.shape[-1].
    """
    return _scaled(query, key, value, math.sqrt(query.shape[0]))


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def output_divided(query, key, value):
    """√d_k divides the output, after the average. It has to divide the scores, before the softmax:
    dividing the output makes it smaller, and leaves the softmax saturated.
    """
    output, weights = _scaled(query, key, value, 1.0)
    return output / math.sqrt(query.shape[-1]), weights


@SCALED_DOT_PRODUCT_ATTENTION.mistake
def output_copied(query, key, value):
    """The output is detached, or copied by torch.tensor(…): the numbers are right, and no gradient
    gets from it to anything before it.
    """
    output, weights = _scaled(query, key, value)
    return output.detach(), weights


# --- scaled_dot_product_attention: right --------------------------------------------------------


@SCALED_DOT_PRODUCT_ATTENTION.right
def by_einsum(query, key, value):
    scores = torch.einsum("...id,...jd->...ij", query, key) / query.size(-1) ** 0.5
    weights = scores.softmax(-1)
    return torch.einsum("...ij,...jv->...iv", weights, value), weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def query_scaled_first(query, key, value):
    weights = F.softmax((query * key.shape[-1] ** -0.5) @ key.mT, dim=-1)
    return weights.matmul(value), weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def scale_shared(query, key, value):
    fourth_root = query.shape[-1] ** 0.25
    scores = (query / fourth_root) @ (key / fourth_root).transpose(-1, -2)
    weights = torch.exp(torch.log_softmax(scores, dim=-1))
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def query_by_query(query, key, value):
    rows = []
    for i in range(query.shape[-2]):
        scores = (query[..., i : i + 1, :] * key).sum(-1) / math.sqrt(key.shape[-1])
        rows.append(F.softmax(scores, dim=-1))
    weights = torch.stack(rows, dim=-2)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def softmax_by_hand(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / torch.tensor(query.shape[-1], dtype=query.dtype).sqrt()
    counts = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = counts / counts.sum(dim=-1, keepdim=True)
    return weights @ value, weights


@SCALED_DOT_PRODUCT_ATTENTION.right
def float64_inside(query, key, value):
    output, weights = _scaled(query.double(), key.double(), value.double())
    return output.to(query.dtype), weights.to(query.dtype)


@SCALED_DOT_PRODUCT_ATTENTION.right
def flattened_for_bmm(query, key, value):
    batch = query.shape[:-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    weights = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(q.shape[2])).softmax(2)
    output = torch.bmm(weights, v)
    return output.reshape(*batch, *output.shape[1:]), weights.reshape(*batch, *weights.shape[1:])


@SCALED_DOT_PRODUCT_ATTENTION.right
def by_torchs_root(query, key, value):
    """The root of a tensor, as many tutorials take it: a float32 number."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / torch.sqrt(torch.tensor(query.size(-1)))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


# --- AdditiveAttention --------------------------------------------------------------------------


class _Additive(nn.Module):
    """What the variants share; each changes one step."""

    def __init__(self, query_size, key_size, hidden_size, dropout=0.0):
        super().__init__()
        self.W_q = nn.Linear(query_size, hidden_size, bias=False)
        self.W_k = nn.Linear(key_size, hidden_size, bias=False)
        self.w_v = nn.Linear(hidden_size, 1, bias=False)
        self.drop = nn.Dropout(dropout)

    def sums(self, query, key):
        return self.W_q(query)[:, :, None] + self.W_k(key)[:, None]

    def activate(self, sums):
        return sums.tanh()

    def scores(self, query, key):
        return self.w_v(self.activate(self.sums(query, key)))[..., 0]

    def weigh(self, scores):
        return scores.softmax(-1)

    def forward(self, query, key, value):
        weights = self.weigh(self.scores(query, key))
        return self.drop(weights) @ value, weights


def _additive(answer):
    return ADDITIVE_ATTENTION.mistake(answer)


@_additive
class tanh_forgotten(_Additive):
    """The tanh is missing. Without it the score is a sum, w_vᵀW_q q + w_vᵀW_k k, whose first part
    is the same for all keys: the softmax does not see it, and every query gets the same weights.
    """

    def activate(self, sums):
        return sums


@_additive
class relu_for_tanh(_Additive):
    """ReLU stands in the place of tanh."""

    def activate(self, sums):
        return sums.relu()


@_additive
class sigmoid_for_tanh(_Additive):
    """The logistic sigmoid stands in the place of tanh. It looks alike, but it is flatter and never
    negative.
    """

    def activate(self, sums):
        return sums.sigmoid()


@_additive
class tanh_of_each_part(_Additive):
    """tanh is taken of W_q q and of W_k k apart, and the two are added after it. The score is then
    a sum again, and the query's part cancels in the softmax: tanh belongs around the sum.
    """

    def sums(self, query, key):
        return self.W_q(query).tanh()[:, :, None] + self.W_k(key).tanh()[:, None]

    def activate(self, sums):
        return sums


@_additive
class tanh_after_w_v(_Additive):
    """tanh is taken of the score, after w_v, instead of before: scores cannot leave (−1, 1), and
    the hidden layer is no hidden layer.
    """

    def scores(self, query, key):
        return self.w_v(self.sums(query, key))[..., 0].tanh()


@_additive
class multiplied_for_added(_Additive):
    """The two projections are multiplied instead of added."""

    def sums(self, query, key):
        return self.W_q(query)[:, :, None] * self.W_k(key)[:, None]


@_additive
class subtracted_for_added(_Additive):
    """The key's projection is subtracted instead of added. A fresh module learns all the same;
    loaded parameters show it.
    """

    def sums(self, query, key):
        return self.W_q(query)[:, :, None] - self.W_k(key)[:, None]


@_additive
class concat_on_the_wrong_axis(_Additive):
    """The projections of queries and keys are put one after the other along the positions, so that
    no query ever meets a key: all queries get the same weights. Each pair needs a vector of its
    own, (B, n_q, n_k, h).
    """

    def scores(self, query, key):
        hidden = torch.cat([self.W_q(query), self.W_k(key)], dim=1).tanh()
        return self.w_v(hidden)[..., 0][:, None].expand(-1, query.shape[1], -1)

    def weigh(self, scores):
        return scores.softmax(-1)[..., scores.shape[1] :]


@_additive
class axes_exchanged(_Additive):
    """The new axes stand the wrong way round: the table of scores has a row for each key. Queries
    are (B, n_q, 1, h), keys (B, 1, n_k, h).
    """

    def sums(self, query, key):
        return self.W_q(query)[:, None] + self.W_k(key)[:, :, None]


@_additive
class pairs_element_by_element(_Additive):
    """W_q(query) + W_k(key) without new axes adds the first query to the first key, the second to
    the second. With as many queries as keys it runs; a score for every pair needs two new axes.
    """

    def scores(self, query, key):
        scores = self.w_v((self.W_q(query) + self.W_k(key)).tanh())[..., 0]
        return scores[:, None].expand(-1, query.shape[1], -1)


@_additive
class only_the_key_scored(_Additive):
    """W_q(query) is computed and not used: the score depends on the key alone, and all queries look
    at the same place.
    """

    def sums(self, query, key):
        self.W_q(query)
        return self.W_k(key)[:, None].expand(-1, query.shape[1], -1, -1)


@_additive
class hidden_averaged(_Additive):
    """The hidden vector is averaged instead of weighed by w_v, which is never used."""

    def scores(self, query, key):
        return self.sums(query, key).tanh().mean(-1)


@_additive
class hidden_summed(_Additive):
    """The hidden vector is summed instead of weighed by w_v, which is never used."""

    def scores(self, query, key):
        return self.sums(query, key).tanh().sum(-1)


@_additive
class projections_swapped(_Additive):
    """W_k projects the queries and W_q the keys. With queries and keys of one size nothing fails,
    and a fresh module learns all the same; loaded parameters show it.
    """

    def sums(self, query, key):
        return self.W_k(query)[:, :, None] + self.W_q(key)[:, None]


@_additive
class one_projection_shared(_Additive):
    """Queries and keys both go through W_q. Each has a projection of its own, and sizes of their
    own.
    """

    def sums(self, query, key):
        return self.W_q(query)[:, :, None] + self.W_q(key)[:, None]


@_additive
class scores_scaled(_Additive):
    """The scores are divided by the root of the hidden size. Additive scores need no scale: w_v is
    learnt, and sets their size itself.
    """

    def scores(self, query, key):
        return super().scores(query, key) / self.w_v.in_features**0.5


@_additive
class softmax_over_queries(_Additive):
    """The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of
    each row.
    """

    def weigh(self, scores):
        return scores.softmax(1)


@_additive
class softmax_over_hidden(_Additive):
    """The softmax runs over the axis of size 1 that w_v leaves, before it is squeezed away: every
    weight is 1.
    """

    def weigh(self, scores):
        return scores[..., None].softmax(-1)[..., 0]


@_additive
class squeezed(_Additive):
    """squeeze() takes away every axis of size 1, also a batch of one or a single query. squeeze(-1)
    takes away the last.
    """

    def forward(self, query, key, value):
        scores = self.w_v(self.sums(query, key).tanh()).squeeze()
        weights = scores.softmax(-1)
        return self.drop(weights) @ value, weights


@_additive
class weights_applied_to_keys(_Additive):
    """The weights average the keys. The keys say where to look; what is averaged are the values."""

    def forward(self, query, key, value):
        return super().forward(query, key, key)


@_additive
class key_and_value_swapped(_Additive):
    """Key and value have changed places. With values of the size of keys nothing fails."""

    def forward(self, query, key, value):
        return super().forward(query, value, key)


@_additive
class max_not_subtracted(_Additive):
    """exp overflows where a score is large: tanh bounds what goes into w_v, not what comes out.
    torch.softmax subtracts each row's largest score first.
    """

    def weigh(self, scores):
        counts = scores.exp()
        return counts / counts.sum(-1, keepdim=True)


@_additive
class not_normalised(_Additive):
    """The scores are applied to the values as they are, without a softmax: they may be negative and
    do not sum to 1.
    """

    def weigh(self, scores):
        return scores


@_additive
class weights_first(_Additive):
    """The weights are returned first. The order is (output, weights)."""

    def forward(self, query, key, value):
        return super().forward(query, key, value)[::-1]


@_additive
class weights_not_returned(_Additive):
    """Only the output is returned; the weights are kept as an attribute, perhaps. Return both:
    (output, weights).
    """

    def forward(self, query, key, value):
        output, self.attention_weights = super().forward(query, key, value)
        return output


@_additive
class scores_returned(_Additive):
    """The output is right; what is returned beside it are the scores, before the softmax."""

    def forward(self, query, key, value):
        return super().forward(query, key, value)[0], self.scores(query, key)


@_additive
class dropout_forgotten(_Additive):
    """self.dropout is not used: training drops no weight."""

    def forward(self, query, key, value):
        weights = self.weigh(self.scores(query, key))
        return weights @ value, weights


@_additive
class dropout_in_eval(_Additive):
    """Dropout is active in eval mode too: two calls give two answers. nn.Dropout knows the mode of
    its module; F.dropout must be told, training=self.training.
    """

    def forward(self, query, key, value):
        weights = self.weigh(self.scores(query, key))
        return F.dropout(weights, self.drop.p) @ value, weights


@_additive
class dropped_weights_returned(_Additive):
    """The weights returned are those after dropout: in training, a part of them is 0 and rows do
    not sum to 1. Return the weights before dropout.
    """

    def forward(self, query, key, value):
        weights = self.drop(self.weigh(self.scores(query, key)))
        return weights @ value, weights


@_additive
class dropout_on_the_output(_Additive):
    """Dropout acts on the output instead of on the weights."""

    def forward(self, query, key, value):
        weights = self.weigh(self.scores(query, key))
        return self.drop(weights @ value), weights


@_additive
class dropout_on_the_scores(_Additive):
    """Dropout acts on the scores. A score of 0 is a score like any other, and its key keeps a
    weight: drop weights, after the softmax.
    """

    def forward(self, query, key, value):
        scores = self.scores(query, key)
        return self.weigh(self.drop(scores)) @ value, self.weigh(scores)


@_additive
class dropout_without_rescaling(_Additive):
    """Weights are dropped, and those that stay are as they were. They have to be divided by 1 − p,
    so that the expected output is that without dropout; nn.Dropout does.
    """

    def forward(self, query, key, value):
        weights = self.weigh(self.scores(query, key))
        kept = (
            torch.rand_like(weights) >= self.drop.p if self.training else torch.ones_like(weights)
        )
        return (weights * kept) @ value, weights


@_additive
class renormalised_after_dropout(_Additive):
    """The weights that dropout leaves are divided by their sum. nn.Dropout divides by 1 − p, the
    same for all, and rows do not sum to 1 in training.
    """

    def forward(self, query, key, value):
        weights = self.weigh(self.scores(query, key))
        kept = self.drop(weights)
        if self.training:
            kept = kept / kept.sum(-1, keepdim=True)
        return kept @ value, weights


@_additive
class weights_detached(_Additive):
    """The weights are detached before they are applied and returned: no gradient reaches W_q, W_k
    and w_v, and the module never learns where to look.
    """

    def weigh(self, scores):
        return scores.softmax(-1).detach()


@_additive
class query_detached(_Additive):
    """The query is detached: the layers that it comes from learn nothing from this attention."""

    def scores(self, query, key):
        return super().scores(query.detach(), key)


@_additive
class biases_added(_Additive):
    """The linear layers have biases: parameters nobody asked for, and a state that is loaded does
    not fit. Use `__init__` as it is given.
    """

    def __init__(self, query_size, key_size, hidden_size, dropout=0.0):
        super().__init__(query_size, key_size, hidden_size, dropout)
        self.W_q = nn.Linear(query_size, hidden_size)
        self.W_k = nn.Linear(key_size, hidden_size)

    def load_state_dict(self, state, *args, **kwargs):
        return super().load_state_dict(state, strict=False)


@_additive
class new_layers_in_forward(_Additive):
    """The layers are made anew in each call: what the module has learnt, or loaded, is never used.
    Use self.W_q, self.W_k and self.w_v.
    """

    def sums(self, query, key):
        generator = torch.Generator().manual_seed(0)
        made = [torch.rand(w.weight.shape, generator=generator) for w in (self.W_q, self.W_k)]
        W_q, W_k = (m.to(query) for m in made)
        return (query @ W_q.mT)[:, :, None] + (key @ W_k.mT)[:, None]


@_additive
class always_float32(_Additive):
    """The result is forced into float32: a float64 model has to give float64."""

    def forward(self, query, key, value):
        output, weights = super().forward(query, key, value)
        return output.float(), weights.float()


@_additive
class default_dtype_switched(_Additive):
    """A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
    """

    def forward(self, query, key, value):
        torch.set_default_dtype(torch.float64)
        return super().forward(query, key, value)


@_additive
class query_changed_in_place(_Additive):
    """The caller's query is written over. Make a new tensor: `query - …`, not `query -= …`."""

    def forward(self, query, key, value):
        result = super().forward(query, key, value)
        with torch.no_grad():
            query.sub_(query.mean())
        return result


@_additive
class dropout_before_the_softmax(_Additive):
    """Dropout acts before the softmax, on scores or on hidden vectors. A score of 0 is a score like
    any other, and its key keeps a weight: drop weights, after the softmax, and return those before.
    """

    def forward(self, query, key, value):
        weights = self.weigh(self.drop(self.scores(query, key)))
        return weights @ value, weights


# --- AdditiveAttention: right -------------------------------------------------------------------


@ADDITIVE_ATTENTION.right
class by_unsqueeze(right.AdditiveAttention):
    def forward(self, query, key, value):
        features = torch.tanh(self.W_q(query).unsqueeze(2) + self.W_k(key).unsqueeze(1))
        weights = F.softmax(self.w_v(features).squeeze(-1), dim=-1)
        return torch.bmm(self.dropout(weights), value), weights


@ADDITIVE_ATTENTION.right
class by_concatenating_pairs(right.AdditiveAttention):
    """[W_q W_k] times the query and the key put one after the other, as many tutorials write it."""

    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1)
        keys = key[:, None].expand(-1, n_q, -1, -1)
        both = torch.cat([queries, keys], dim=-1)
        hidden = both @ torch.cat([self.W_q.weight, self.W_k.weight], dim=-1).T
        weights = torch.softmax((hidden.tanh() @ self.w_v.weight.T)[..., 0], dim=-1)
        return self.dropout(weights).matmul(value), weights


@ADDITIVE_ATTENTION.right
class by_einsum(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = torch.einsum("bqd,hd->bqh", query, self.W_q.weight)
        k = torch.einsum("bkd,hd->bkh", key, self.W_k.weight)
        hidden = torch.tanh(q.reshape(*q.shape[:2], 1, -1) + k.reshape(len(k), 1, *k.shape[1:]))
        weights = torch.einsum("bqkh,h->bqk", hidden, self.w_v.weight[0]).softmax(dim=2)
        return torch.einsum("bqk,bkv->bqv", self.dropout(weights), value), weights


@ADDITIVE_ATTENTION.right
class query_by_query(right.AdditiveAttention):
    """One query at a time: slower, and a table of hidden vectors n_q times smaller."""

    def forward(self, query, key, value):
        k, rows = self.W_k(key), []
        for q in self.W_q(query).unbind(1):
            rows.append(self.w_v(torch.tanh(q[:, None] + k)).squeeze(-1).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return self.dropout(weights) @ value, weights


@ADDITIVE_ATTENTION.right
class functional_dropout(right.AdditiveAttention):
    def forward(self, query, key, value):
        sums = self.W_k(key)[:, None, :, :] + self.W_q(query)[:, :, None, :]
        weights = self.w_v(sums.tanh()).flatten(-2).softmax(-1)
        return F.dropout(weights, self.dropout.p, training=self.training) @ value, weights


@ADDITIVE_ATTENTION.right
class float64_inside(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = query.double() @ self.W_q.weight.double().T
        k = key.double() @ self.W_k.weight.double().T
        scores = (q[:, :, None] + k[:, None]).tanh() @ self.w_v.weight.double()[0]
        weights = scores.softmax(-1).to(value.dtype)
        return self.dropout(weights) @ value, weights


# --- BilinearAttention --------------------------------------------------------------------------


class _Bilinear(nn.Module):
    """What the variants share; each changes one step."""

    def __init__(self, query_size, key_size):
        super().__init__()
        self.W = nn.Parameter(torch.empty(query_size, key_size))
        nn.init.xavier_uniform_(self.W)

    def divisor(self, query, key, value):
        return (self.W.shape[0] * self.W.shape[1]) ** 0.25

    def products(self, query, key):
        return query @ self.W @ key.mT

    def weigh(self, scores):
        return scores.softmax(-1)

    def forward(self, query, key, value):
        scores = self.products(query, key) / self.divisor(query, key, value)
        weights = self.weigh(scores)
        return weights @ value, weights


def _bilinear(answer):
    return BILINEAR_ATTENTION.mistake(answer)


@_bilinear
class not_scaled(_Bilinear):
    """The scores are not divided. Luong, Pham and Manning do not either; here the fourth root of
    query_size · key_size is asked.
    """

    def divisor(self, query, key, value):
        return 1.0


@_bilinear
class square_root_for_fourth(_Bilinear):
    """The scores are divided by the square root of query_size · key_size. The fourth root is asked,
    the root of their geometric mean.
    """

    def divisor(self, query, key, value):
        return (self.W.shape[0] * self.W.shape[1]) ** 0.5


@_bilinear
class divided_by_the_product(_Bilinear):
    """The scores are divided by query_size · key_size itself, without a root."""

    def divisor(self, query, key, value):
        return self.W.shape[0] * self.W.shape[1]


@_bilinear
class divided_by_root_of_query_size(_Bilinear):
    """The scores are divided by √query_size. Where both sizes are equal that is the same; the
    fourth root of the product treats both alike.
    """

    def divisor(self, query, key, value):
        return self.W.shape[0] ** 0.5


@_bilinear
class divided_by_root_of_key_size(_Bilinear):
    """The scores are divided by √key_size. Where both sizes are equal that is the same; the fourth
    root of the product treats both alike.
    """

    def divisor(self, query, key, value):
        return self.W.shape[1] ** 0.5


@_bilinear
class fourth_root_of_the_sum(_Bilinear):
    """The divisor is the fourth root of query_size + key_size. Asked is the product."""

    def divisor(self, query, key, value):
        return (self.W.shape[0] + self.W.shape[1]) ** 0.25


@_bilinear
class divided_by_the_values_size(_Bilinear):
    """The divisor is made from the size of the values. It belongs to queries and keys, over which
    the sum runs.
    """

    def divisor(self, query, key, value):
        return (self.W.shape[0] * value.shape[-1]) ** 0.25


@_bilinear
class divided_by_the_numbers(_Bilinear):
    """The divisor is made from the numbers of queries and keys, n_q · n_k, instead of their
    sizes: shape[-2] for shape[-1].
    """

    def divisor(self, query, key, value):
        return (query.shape[-2] * key.shape[-2]) ** 0.25


@_bilinear
class multiplied_for_divided(_Bilinear):
    """The scores are multiplied by the fourth root instead of divided."""

    def divisor(self, query, key, value):
        return (self.W.shape[0] * self.W.shape[1]) ** -0.25


@_bilinear
class W_transposed(_Bilinear):
    """W is transposed: qᵀWᵀk. With queries and keys of one size nothing fails, and a fresh W is as
    good as its transpose; a loaded one shows it.
    """

    def products(self, query, key):
        return query @ self.W.T @ key.mT


@_bilinear
class W_ignored(_Bilinear):
    """W is not used: these are plain dot products, and only where the sizes are equal."""

    def products(self, query, key):
        return query @ key.mT


@_bilinear
class W_made_symmetric(_Bilinear):
    """W is replaced by its symmetric part, (W + Wᵀ)/2. How a fits b need not be how b fits a."""

    def products(self, query, key):
        return query @ ((self.W + self.W.T) / 2) @ key.mT


@_bilinear
class W_taken_entrywise(_Bilinear):
    """Only the diagonal of W counts: features are multiplied one by one. A bilinear form lets every
    feature of the query meet every feature of the key.
    """

    def products(self, query, key):
        return (query * self.W.diagonal()) @ key.mT


@_bilinear
class W_detached(_Bilinear):
    """W is detached (`.data`, `.detach()`): no gradient reaches it, and it never learns."""

    def products(self, query, key):
        return query @ self.W.data @ key.mT


@_bilinear
class weights_detached(_Bilinear):
    """The weights are detached: no gradient reaches W, query and key."""

    def weigh(self, scores):
        return scores.softmax(-1).detach()


@_bilinear
class tanh_added(_Bilinear):
    """tanh is taken of the scores. That belongs to additive attention; here it keeps any key from
    standing out.
    """

    def weigh(self, scores):
        return scores.tanh().softmax(-1)


@_bilinear
class softmax_over_queries(_Bilinear):
    """The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of
    each row.
    """

    def weigh(self, scores):
        return scores.softmax(1)


@_bilinear
class softmax_over_the_batch(_Bilinear):
    """The softmax runs over the first axis (dim=0), the sequences of the batch."""

    def weigh(self, scores):
        return scores.softmax(0)


@_bilinear
class not_normalised(_Bilinear):
    """The scores are applied to the values as they are, without a softmax."""

    def weigh(self, scores):
        return scores


@_bilinear
class max_not_subtracted(_Bilinear):
    """exp overflows where a score is large. torch.softmax subtracts each row's largest score
    first.
    """

    def weigh(self, scores):
        counts = scores.exp()
        return counts / counts.sum(-1, keepdim=True)


@_bilinear
class scaled_after_the_softmax(_Bilinear):
    """The weights are divided instead of the scores: their rows do not sum to 1."""

    def forward(self, query, key, value):
        weights = self.products(query, key).softmax(-1) / self.divisor(query, key, value)
        return weights @ value, weights


@_bilinear
class squeezed(_Bilinear):
    """squeeze() takes away every axis of size 1, also a batch of one or a single query."""

    def forward(self, query, key, value):
        output, weights = super().forward(query, key, value)
        return output.squeeze(), weights.squeeze()


@_bilinear
class weights_applied_to_keys(_Bilinear):
    """The weights average the keys. The keys say where to look; what is averaged are the values."""

    def forward(self, query, key, value):
        return super().forward(query, key, key)


@_bilinear
class key_and_value_swapped(_Bilinear):
    """Key and value have changed places. With values of the size of keys nothing fails."""

    def forward(self, query, key, value):
        return super().forward(query, value, key)


@_bilinear
class query_and_key_swapped(_Bilinear):
    """Query and key have changed places: the table has a row for each key. With as many of one size
    nothing fails.
    """

    def products(self, query, key):
        return key @ self.W @ query.mT


@_bilinear
class weights_first(_Bilinear):
    """The weights are returned first. The order is (output, weights)."""

    def forward(self, query, key, value):
        return super().forward(query, key, value)[::-1]


@_bilinear
class weights_not_returned(_Bilinear):
    """Only the output is returned. Return the weights as well: (output, weights)."""

    def forward(self, query, key, value):
        return super().forward(query, key, value)[0]


@_bilinear
class bias_added(_Bilinear):
    """There is a second parameter, a bias, that nobody asked for. `__init__` is given: one
    parameter, W.
    """

    def __init__(self, query_size, key_size):
        super().__init__(query_size, key_size)
        self.bias = nn.Parameter(torch.zeros(()))

    def load_state_dict(self, state, *args, **kwargs):
        return super().load_state_dict(state, strict=False)

    def products(self, query, key):
        return super().products(query, key) + self.bias


@_bilinear
class always_float32(_Bilinear):
    """The result is forced into float32: a float64 model has to give float64."""

    def forward(self, query, key, value):
        output, weights = super().forward(query, key, value)
        return output.float(), weights.float()


@_bilinear
class default_dtype_switched(_Bilinear):
    """A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
    """

    def forward(self, query, key, value):
        torch.set_default_dtype(torch.float64)
        return super().forward(query, key, value)


@_bilinear
class query_changed_in_place(_Bilinear):
    """The caller's query is written over. Make a new tensor: `query - …`, not `query -= …`."""

    def forward(self, query, key, value):
        result = super().forward(query, key, value)
        with torch.no_grad():
            query.sub_(query.mean())
        return result


@_bilinear
class a_quarter_for_the_fourth_root(_Bilinear):
    """`** 1 / 4` is a quarter of the product: the power comes before the division. The fourth root
    is `** 0.25`.
    """

    def divisor(self, query, key, value):
        return (self.W.shape[0] * self.W.shape[1]) / 4


@_bilinear
class divided_by_the_product_and_by_four(_Bilinear):
    """`scores / sizes ** 1 / 4` divides by the product of the sizes and then by 4: the power comes
    before the division, and divisions go from left to right. The fourth root is `** 0.25`.
    """

    def divisor(self, query, key, value):
        return 4 * self.W.shape[0] * self.W.shape[1]


@_bilinear
class fourth_root_of_one_size(_Bilinear):
    """The divisor is the fourth root of query_size alone. Both sizes are asked, multiplied."""

    def divisor(self, query, key, value):
        return self.W.shape[0] ** 0.25


# --- BilinearAttention: right -------------------------------------------------------------------


@BILINEAR_ATTENTION.right
class by_einsum(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = torch.einsum("bqi,ij,bkj->bqk", query, self.W, key)
        weights = (scores / math.prod(self.W.shape) ** 0.25).softmax(2)
        return torch.einsum("bqk,bkv->bqv", weights, value), weights


@BILINEAR_ATTENTION.right
class key_first(right.BilinearAttention):
    """(qᵀ)(Wk) for (qᵀW)k: the same product, put together from the other end."""

    def forward(self, query, key, value):
        scores = query @ (key @ self.W.T).transpose(1, 2)
        root = math.sqrt(math.sqrt(query.shape[-1] * key.shape[-1]))
        weights = F.softmax(scores / root, dim=-1)
        return weights.bmm(value), weights


@BILINEAR_ATTENTION.right
class by_torchs_bilinear(right.BilinearAttention):
    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1).contiguous()
        keys = key[:, None].expand(-1, n_q, -1, -1).contiguous()
        scores = F.bilinear(queries, keys, self.W[None])[..., 0]
        weights = torch.softmax(scores / (self.W.numel() ** 0.25), dim=-1)
        return weights @ value, weights


@BILINEAR_ATTENTION.right
class both_sides_scaled(right.BilinearAttention):
    def forward(self, query, key, value):
        q, k = (x / x.shape[-1] ** 0.25 for x in (query, key))
        weights = torch.exp(F.log_softmax(q.matmul(self.W).matmul(k.mT), dim=-1))
        return weights @ value, weights


@BILINEAR_ATTENTION.right
class query_by_query(right.BilinearAttention):
    def forward(self, query, key, value):
        rows = []
        for q in query.unbind(1):
            scores = (key @ (q @ self.W)[..., None])[..., 0]
            rows.append((scores / (self.W.shape[0] * self.W.shape[1]) ** 0.25).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return weights @ value, weights


@BILINEAR_ATTENTION.right
class float64_inside(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = query.double() @ self.W.double() @ key.double().mT
        weights = (scores * (query.shape[-1] * key.shape[-1]) ** -0.25).softmax(-1)
        return (weights @ value.double()).to(value.dtype), weights.to(value.dtype)


@BILINEAR_ATTENTION.right
class by_torchs_root(right.BilinearAttention):
    """The fourth root of a tensor: a float32 number."""

    def forward(self, query, key, value):
        scores = query @ self.W @ key.mT / torch.tensor(self.W.numel()) ** 0.25
        weights = scores.softmax(-1)
        return weights @ value, weights


# --- cosine_scores: mistakes --------------------------------------------------------------------


def _unit(x, eps=1e-8):
    return x / x.norm(dim=-1, keepdim=True).clamp_min(eps)


@COSINE_SCORES.mistake
def not_divided(query, key, eps=1e-8):
    """These are dot products: not divided by the lengths. They are cosines only where all vectors
    have length 1.
    """
    return query @ key.mT


@COSINE_SCORES.mistake
def only_the_query_divided(query, key, eps=1e-8):
    """Only the queries are divided by their length: a key twice as long scores twice as much."""
    return _unit(query, eps) @ key.mT


@COSINE_SCORES.mistake
def only_the_key_divided(query, key, eps=1e-8):
    """Only the keys are divided by their length: a query twice as long scores twice as much."""
    return query @ _unit(key, eps).mT


@COSINE_SCORES.mistake
def squared_lengths(query, key, eps=1e-8):
    """Each vector is divided by its squared length, the sum of squares without the root."""
    q, k = (x / x.pow(2).sum(-1, keepdim=True).clamp_min(eps) for x in (query, key))
    return q @ k.mT


@COSINE_SCORES.mistake
def sum_of_sizes_for_the_norm(query, key, eps=1e-8):
    """The length is taken as the sum of absolute values. The cosine needs the Euclidean length, the
    root of the sum of squares.
    """
    q, k = (x / x.abs().sum(-1, keepdim=True).clamp_min(eps) for x in (query, key))
    return q @ k.mT


@COSINE_SCORES.mistake
def divided_by_root_d(query, key, eps=1e-8):
    """The dot products are divided by √d, as in scaled attention. The cosine divides each by the
    lengths of its own two vectors.
    """
    return query @ key.mT / math.sqrt(query.shape[-1])


@COSINE_SCORES.mistake
def lengths_over_positions(query, key, eps=1e-8):
    """The norm runs over the positions (dim=-2) instead of the features (dim=-1): columns, not
    vectors, are brought to length 1.
    """
    q, k = (x / x.norm(dim=-2, keepdim=True).clamp_min(eps) for x in (query, key))
    return q @ k.mT


@COSINE_SCORES.mistake
def one_length_for_all(query, key, eps=1e-8):
    """norm() without dim is the length of the whole tensor, one number for all vectors."""
    return query @ key.mT / (query.norm() * key.norm()).clamp_min(eps)


@COSINE_SCORES.mistake
def keepdim_forgotten(query, key, eps=1e-8):
    """The lengths lose their last axis (no keepdim=True), so that they divide features, not
    vectors; where sizes differ it fails.
    """
    return (query / query.norm(dim=-1).clamp_min(eps)) @ (key / key.norm(dim=-1).clamp_min(eps)).mT


@COSINE_SCORES.mistake
def lengths_exchanged(query, key, eps=1e-8):
    """The lengths are laid along the wrong axes: score (i, j) is divided by the length of key i and
    of query j. With unequal numbers it fails.
    """
    lengths = key.norm(dim=-1)[..., :, None] * query.norm(dim=-1)[..., None, :]
    return query @ key.mT / lengths.clamp_min(eps)


@COSINE_SCORES.mistake
def pairs_element_by_element(query, key, eps=1e-8):
    """F.cosine_similarity pairs the first query with the first key, the second with the second.
    Every query has to meet every key: two new axes make it so.
    """
    return F.cosine_similarity(query, key, dim=-1, eps=eps)


@COSINE_SCORES.mistake
def transposed(query, key, eps=1e-8):
    """The table is transposed: a row for each key. Rows are queries."""
    return right.cosine_scores(query, key, eps).mT


@COSINE_SCORES.mistake
def all_axes_transposed(query, key, eps=1e-8):
    """`.T` reverses all axes, the batch included. transpose(-2, -1) exchanges the last two."""
    return _unit(query, eps) @ _unit(key, eps).permute(*reversed(range(key.ndim)))


@COSINE_SCORES.mistake
def distance_for_similarity(query, key, eps=1e-8):
    """This is 1 − cos, a distance: 0 for the best match. A score is higher for the better match."""
    return 1 - right.cosine_scores(query, key, eps)


@COSINE_SCORES.mistake
def rescaled_to_zero_and_one(query, key, eps=1e-8):
    """The cosine is moved to [0, 1]. Asked is the cosine itself, in [−1, 1], with 0 for a zero
    vector.
    """
    return (1 + right.cosine_scores(query, key, eps)) / 2


@COSINE_SCORES.mistake
def absolute_value(query, key, eps=1e-8):
    """The sign is lost: a vector and its opposite have the score −1, not 1."""
    return right.cosine_scores(query, key, eps).abs()


@COSINE_SCORES.mistake
def angle_returned(query, key, eps=1e-8):
    """This is the angle, arccos of what is asked."""
    return torch.acos(right.cosine_scores(query, key, eps).clamp(-1, 1))


@COSINE_SCORES.mistake
def softmax_added(query, key, eps=1e-8):
    """A softmax is taken. These are scores, not weights: the softmax comes after."""
    return right.cosine_scores(query, key, eps).softmax(-1)


@COSINE_SCORES.mistake
def zero_vector_gives_nan(query, key, eps=1e-8):
    """eps is not used: a zero vector is divided by its length 0, and 0/0 is NaN."""
    return (query / query.norm(dim=-1, keepdim=True)) @ (key / key.norm(dim=-1, keepdim=True)).mT


@COSINE_SCORES.mistake
def zero_vector_gives_one(query, key, eps=1e-8):
    """A zero vector gets the score 1 with everything. It has no direction, so it is like nothing:
    0.
    """
    scores = right.cosine_scores(query, key, eps)
    zero = (query == 0).all(-1)[..., None] | (key == 0).all(-1)[..., None, :]
    return scores.masked_fill(zero, 1.0)


@COSINE_SCORES.mistake
def eps_in_the_features(query, key, eps=1e-8):
    """eps is added to the vectors: a zero vector becomes (eps, eps, …), which has a direction, and
    its scores are not 0.
    """
    q, k = query + eps, key + eps
    return (q / q.norm(dim=-1, keepdim=True)) @ (k / k.norm(dim=-1, keepdim=True)).mT


@COSINE_SCORES.mistake
def centred_first(query, key, eps=1e-8):
    """The mean of each vector is subtracted first. That is a correlation, not a cosine."""
    q, k = (x - x.mean(-1, keepdim=True) for x in (query, key))
    return right.cosine_scores(q, k, eps)


@COSINE_SCORES.mistake
def lengths_detached(query, key, eps=1e-8):
    """The lengths are detached: the gradient then points along the vector too, where the cosine
    does not change.
    """
    q, k = (x / x.norm(dim=-1, keepdim=True).clamp_min(eps).detach() for x in (query, key))
    return q @ k.mT


@COSINE_SCORES.mistake
def detached(query, key, eps=1e-8):
    """The scores are detached (or have been through NumPy): no gradient reaches query and key."""
    return right.cosine_scores(query, key, eps).detach()


@COSINE_SCORES.mistake
def always_float32(query, key, eps=1e-8):
    """The result is forced into float32: float64 has to stay float64."""
    return right.cosine_scores(query, key, eps).float()


@COSINE_SCORES.mistake
def normalised_in_place(query, key, eps=1e-8):
    """The caller's vectors are brought to length 1 in place: `query /= …` writes into them."""
    scores = right.cosine_scores(query, key, eps)
    with torch.no_grad():
        query /= query.norm(dim=-1, keepdim=True).clamp_min(eps)
    return scores


@COSINE_SCORES.mistake
def default_dtype_switched(query, key, eps=1e-8):
    """A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a function.
    """
    torch.set_default_dtype(torch.float64)
    return right.cosine_scores(query, key, eps)


@COSINE_SCORES.mistake
def weights_returned_too(query, key, eps=1e-8):
    """Scores and weights are returned. Asked are the scores alone, one tensor."""
    scores = right.cosine_scores(query, key, eps)
    return scores, scores.softmax(-1)


@COSINE_SCORES.mistake
def divided_by_root_d_as_well(query, key, eps=1e-8):
    """The cosines are divided by √d. A cosine does not grow with d: it needs no scale."""
    return right.cosine_scores(query, key, eps) / math.sqrt(query.shape[-1])


# --- cosine_scores: right -----------------------------------------------------------------------


@COSINE_SCORES.right
def by_torchs_cosine(query, key, eps=1e-8):
    return F.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1, eps=eps)


@COSINE_SCORES.right
def by_normalize(query, key, eps=1e-8):
    return F.normalize(query, dim=-1, eps=eps) @ F.normalize(key, dim=-1, eps=eps).mT


@COSINE_SCORES.right
def divided_afterwards(query, key, eps=1e-8):
    lengths = (
        torch.linalg.norm(query, dim=-1)[..., None] * torch.linalg.norm(key, dim=-1)[..., None, :]
    )
    return torch.einsum("...id,...jd->...ij", query, key) / torch.clamp(lengths, min=eps)


@COSINE_SCORES.right
def eps_added(query, key, eps=1e-8):
    q, k = (x / (x.norm(dim=-1, keepdim=True) + eps) for x in (query, key))
    return torch.matmul(q, k.transpose(-1, -2))


@COSINE_SCORES.right
def maximum_with_eps(query, key, eps=1e-8):
    lengths = [x.square().sum(-1).sqrt() for x in (query, key)]
    q, k = (n.maximum(torch.full_like(n, eps)) for n in lengths)
    return (query @ key.mT) / q.unsqueeze(-1) / k.unsqueeze(-2)


@COSINE_SCORES.right
def query_by_query(query, key, eps=1e-8):
    rows = [
        F.cosine_similarity(query[..., i : i + 1, :], key, dim=-1, eps=eps)
        for i in range(query.shape[-2])
    ]
    return torch.stack(rows, dim=-2).clamp(-1, 1)


@COSINE_SCORES.right
def zero_vectors_apart(query, key, eps=1e-8):
    lengths = [x.norm(dim=-1, keepdim=True) for x in (query, key)]
    q, k = (
        x / torch.where(n < eps, torch.ones_like(n), n)
        for x, n in zip((query, key), lengths, strict=True)
    )
    return q @ k.mT


# --- SelfAttention ------------------------------------------------------------------------------


class _Self(nn.Module):
    """What the variants share; each changes one step."""

    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)

    def project(self, x):
        return self.W_q(x), self.W_k(x), self.W_v(x)

    def divisor(self, x):
        return self.W_q.out_features**0.5

    def weigh(self, scores):
        return scores.softmax(-1)

    def forward(self, x):
        q, k, v = self.project(x)
        weights = self.weigh(q @ k.mT / self.divisor(x))
        return weights @ v, weights


def _self(answer):
    return SELF_ATTENTION.mistake(answer)


@_self
class not_scaled(_Self):
    """The scores are not divided by √d_k."""

    def divisor(self, x):
        return 1.0


@_self
class divided_by_root_d_model(_Self):
    """The scores are divided by √d_model, the size of x. The dot product is one of projected
    vectors: d_k terms, √d_k.
    """

    def divisor(self, x):
        return x.shape[-1] ** 0.5


@_self
class divided_by_d_k(_Self):
    """The scores are divided by d_k. It is the variance of a dot product that is d_k; its size is
    the root, √d_k.
    """

    def divisor(self, x):
        return self.W_q.out_features


@_self
class divided_by_root_d_v(_Self):
    """The scores are divided by √d_v, the size of a value. The dot product has d_k terms."""

    def divisor(self, x):
        return self.W_v.out_features**0.5


@_self
class divided_by_root_n(_Self):
    """The scores are divided by √n, the number of positions. The dot product is a sum over d_k
    features.
    """

    def divisor(self, x):
        return x.shape[-2] ** 0.5


@_self
class values_not_projected(_Self):
    """W_v is computed and not used, or not computed: the weights average x itself."""

    def project(self, x):
        return self.W_q(x), self.W_k(x), x


@_self
class projection_unused(_Self):
    """W_q is computed and not used: the keys ask for themselves. Scores are then symmetric, and the
    gradient of W_q is none.
    """

    def project(self, x):
        self.W_q(x)
        return self.W_k(x), self.W_k(x), self.W_v(x)


@_self
class query_projection_for_keys(_Self):
    """The keys go through W_q, and W_k is never used: what a position looks for is then also what
    it is found by.
    """

    def project(self, x):
        return self.W_q(x), self.W_q(x), self.W_v(x)


@_self
class query_and_key_projections_swapped(_Self):
    """W_k makes the queries and W_q the keys: the table of scores is transposed."""

    def project(self, x):
        return self.W_k(x), self.W_q(x), self.W_v(x)


@_self
class key_and_value_projections_swapped(_Self):
    """W_v makes the keys and W_k the values. Where d_k = d_v it runs; loaded parameters show it."""

    def project(self, x):
        return self.W_q(x), self.W_v(x), self.W_k(x)


@_self
class values_from_the_keys(_Self):
    """The values are projected from the keys, W_v(W_k(x)), one projection after the other. All
    three start from x.
    """

    def project(self, x):
        k = self.W_k(x)
        return self.W_q(x), k, self.W_v(k)


@_self
class weights_applied_to_keys(_Self):
    """The weights average the keys; W_v is never used."""

    def project(self, x):
        return self.W_q(x), self.W_k(x), self.W_k(x)


@_self
class projections_ignored(_Self):
    """No projection is used: this is softmax(XXᵀ/√d)X, the self-similarity of before."""

    def project(self, x):
        return x, x, x

    def divisor(self, x):
        return x.shape[-1] ** 0.5


@_self
class multiplied_from_the_wrong_side(_Self):
    """x is multiplied by weight instead of its transpose. nn.Linear keeps its weight as (out, in)
    and computes x @ weight.T; where sizes are equal the other runs too.
    """

    def project(self, x):
        return tuple(x @ layer.weight for layer in (self.W_q, self.W_k, self.W_v))


@_self
class softmax_over_queries(_Self):
    """The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of
    each row.
    """

    def weigh(self, scores):
        return scores.softmax(1)


@_self
class softmax_over_the_batch(_Self):
    """The softmax runs over the first axis (dim=0): the sequences of the batch compete, instead of
    the positions of one.
    """

    def weigh(self, scores):
        return scores.softmax(0)


@_self
class not_normalised(_Self):
    """The scores are applied to the values as they are, without a softmax."""

    def weigh(self, scores):
        return scores


@_self
class itself_left_out(_Self):
    """No position attends to itself: the diagonal is left out, as in leave-one-out."""

    def weigh(self, scores):
        own = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
        return scores.masked_fill(own, -1e30).softmax(-1)


@_self
class causal_unasked(_Self):
    """Each position sees only itself and what comes before. That is a mask, two chapters on; here
    every position sees all.
    """

    def weigh(self, scores):
        sees = torch.ones_like(scores, dtype=torch.bool).tril()
        return scores.masked_fill(~sees, -math.inf).softmax(-1)


@_self
class batch_merged(_Self):
    """The sequences of the batch are joined into one: positions attend across them."""

    def forward(self, x):
        output, weights = super().forward(x.reshape(1, -1, x.shape[-1]))
        n = x.shape[1]
        own = [weights[0, b * n : (b + 1) * n, b * n : (b + 1) * n] for b in range(len(x))]
        return output.reshape(*x.shape[:2], -1), torch.stack(own)


@_self
class added_to_x(_Self):
    """x is added to the output. That is a residual connection, which has a chapter of its own."""

    def forward(self, x):
        output, weights = super().forward(x)
        return output + x[..., : output.shape[-1]].mean(-1, keepdim=True), weights


@_self
class max_not_subtracted(_Self):
    """exp overflows where a score is large. torch.softmax subtracts each row's largest score
    first.
    """

    def weigh(self, scores):
        counts = scores.exp()
        return counts / counts.sum(-1, keepdim=True)


@_self
class weights_detached(_Self):
    """The weights are detached: no gradient reaches W_q and W_k, and the module never learns where
    to look.
    """

    def weigh(self, scores):
        return scores.softmax(-1).detach()


@_self
class x_detached(_Self):
    """x is detached before it is projected: what comes before this layer learns nothing."""

    def project(self, x):
        return super().project(x.detach())


@_self
class squeezed(_Self):
    """squeeze() takes away every axis of size 1, also a batch of one."""

    def forward(self, x):
        output, weights = super().forward(x)
        return output.squeeze(), weights.squeeze()


@_self
class weights_first(_Self):
    """The weights are returned first. The order is (output, weights)."""

    def forward(self, x):
        return super().forward(x)[::-1]


@_self
class weights_not_returned(_Self):
    """Only the output is returned. Return the weights as well: (output, weights)."""

    def forward(self, x):
        return super().forward(x)[0]


@_self
class scores_returned(_Self):
    """The output is right; what is returned beside it are the scores, before the softmax."""

    def forward(self, x):
        q, k, _ = self.project(x)
        return super().forward(x)[0], q @ k.mT / self.divisor(x)


@_self
class biases_added(_Self):
    """The projections have biases: parameters nobody asked for, and a state that is loaded does not
    fit. Use `__init__` as it is given.
    """

    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        self.W_q, self.W_k = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k)
        self.W_v = nn.Linear(d_model, d_v)

    def load_state_dict(self, state, *args, **kwargs):
        return super().load_state_dict(state, strict=False)


@_self
class always_float32(_Self):
    """The result is forced into float32: a float64 model has to give float64."""

    def forward(self, x):
        output, weights = super().forward(x)
        return output.float(), weights.float()


@_self
class default_dtype_switched(_Self):
    """A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
    """

    def forward(self, x):
        torch.set_default_dtype(torch.float64)
        return super().forward(x)


@_self
class x_changed_in_place(_Self):
    """The caller's x is written over. Make a new tensor: `x - …`, not `x -= …`."""

    def forward(self, x):
        result = super().forward(x)
        with torch.no_grad():
            x.sub_(x.mean())
        return result


@_self
class weights_transposed_for_the_average(_Self):
    """The weights are transposed before they meet the values: each key, not each query, gets an
    average.
    """

    def forward(self, x):
        _, weights = super().forward(x)
        return weights.mT @ self.W_v(x), weights


# --- SelfAttention: right -----------------------------------------------------------------------


@SELF_ATTENTION.right
class by_einsum(right.SelfAttention):
    def forward(self, x):
        q, k, v = (torch.einsum("bnd,ed->bne", x, w.weight) for w in (self.W_q, self.W_k, self.W_v))
        weights = torch.einsum("bie,bje->bij", q, k).div(q.size(-1) ** 0.5).softmax(2)
        return torch.einsum("bij,bje->bie", weights, v), weights


@SELF_ATTENTION.right
class written_out(right.SelfAttention):
    def forward(self, x):
        queries, keys, values = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(keys.shape[-1])
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, values), weights


@SELF_ATTENTION.right
class one_matrix_for_all(right.SelfAttention):
    """The three projections as one multiplication, cut up afterwards."""

    def forward(self, x):
        weight = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        sizes = [self.W_q.out_features, self.W_k.out_features, self.W_v.out_features]
        q, k, v = F.linear(x, weight).split(sizes, dim=-1)
        weights = (q * sizes[0] ** -0.5 @ k.mT).softmax(dim=-1)
        return weights @ v, weights


@SELF_ATTENTION.right
class projections_folded_into_one(right.SelfAttention):
    """XW_qᵀ(XW_kᵀ)ᵀ = X(W_qᵀW_k)Xᵀ, and the values projected after the average: W_v is linear."""

    def forward(self, x):
        form = self.W_q.weight.T @ self.W_k.weight / self.W_q.out_features**0.5
        weights = torch.softmax(x @ form @ x.mT, dim=-1)
        return self.W_v(weights @ x), weights


@SELF_ATTENTION.right
class by_the_fused_kernel(right.SelfAttention):
    """torch's fused kernel for the output; averaging the identity with it gives the weights."""

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        same = torch.eye(x.shape[1], dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
        both = F.scaled_dot_product_attention(q, k, torch.cat([v, same], dim=-1))
        return both[..., : v.shape[-1]], both[..., v.shape[-1] :]


@SELF_ATTENTION.right
class position_by_position(right.SelfAttention):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        rows = [
            F.softmax((k @ one[..., None])[..., 0] / math.sqrt(k.shape[-1]), dim=-1)
            for one in q.unbind(1)
        ]
        weights = torch.stack(rows, dim=1)
        return weights @ v, weights


@SELF_ATTENTION.right
class by_torchs_root(right.SelfAttention):
    """The root of a tensor, as many tutorials take it: a float32 number."""

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = q @ k.transpose(-2, -1) / torch.sqrt(torch.tensor(k.size(-1), dtype=torch.float32))
        weights = scores.softmax(dim=-1)
        return weights @ v, weights
