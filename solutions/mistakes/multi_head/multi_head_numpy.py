"""Known answers to `multi_head_numpy`: mistakes, then right answers."""

import math

import numpy as np

from autograder.bank import Bank
from solutions import multi_head as right

BANK = Bank("multi_head_numpy", right, globals())

BANK.changes("""
numpy_split_by_view
    ~ x.reshape(-1, num_heads, d_k).swapaxes(0, 1) → x.reshape(num_heads, -1, d_k)
    (n, d) is cut straight to (H, n, d_k): the shape is right, but each head gets a few whole
    positions, cut into pieces, instead of a slice of every position.
numpy_merge_without_transpose: (weights @ v).swapaxes(0, 1) → (weights @ v)
    The heads (H, n_q, d_k) are reshaped to (n_q, d) without exchanging the axes first, so a row
    holds several positions of one head.
numpy_split_and_merge_by_view
    ~ x.reshape(-1, num_heads, d_k).swapaxes(0, 1) → x.reshape(num_heads, -1, d_k)
    ~ (weights @ v).swapaxes(0, 1) → (weights @ v)
    Both the split and the merge are plain reshapes. With as many queries as keys they undo each
    other, which looks like a proof; but each head attends to pieces of positions.
slices_overlap
    - q, k, v = (x.reshape(-1, num_heads, d_k).swapaxes(0, 1) for x in (query, key, value))
    + slices = [slice(h, h + d_k) for h in range(num_heads)]
    + q, k, v = (np.stack([x[:, s] for s in slices]) for x in (query, key, value))
    Head h reads the features from h on, so that heads overlap. Its slice begins at h·d_k.
scaled_by_d_model: math.sqrt(d_k) → math.sqrt(d_model)
    The scores are divided by √d. A head's dot product has d_k = d / H terms, so the divisor is
    √d_k.
scaled_by_d_k_without_root: math.sqrt(d_k) → d_k
    The scores are divided by d_k instead of its square root.
scaled_by_num_heads: math.sqrt(d_k) → math.sqrt(num_heads)
    The scores are divided by √H, from the number of heads. It should be √d_k: a dot product has as
    many terms as a head has features.
maps_averaged: (weights @ v).swapaxes(0, 1).reshape(n_q, d_model) → weights.mean(axis=0) @ value
    The heads' weights are averaged, and the average is applied to whole values, so there is only
    one answer again. Each head's weights should average its own slice of the values.
not_scaled: k.swapaxes(1, 2) / math.sqrt(d_k) → k.swapaxes(1, 2)
    The scores are not divided by √d_k.
one_wide_head: + num_heads = 1
    num_heads is not used: this is one head over all features.
softmax_over_queries: axis=-1 → axis=1 ×2
    The weights of a key sum to 1 over the queries. Each query's weights must sum to 1 over the
    keys, the last axis of the scores.
softmax_over_heads: axis=-1 → axis=0 ×2
    The softmax runs over the heads, axis 0, so heads compete instead of keys. Each head has its own
    softmax over the keys.
keys_averaged: weights @ v → weights @ k
    The weights are applied to the keys. Keys determine the weights; it is the values that are
    averaged.
interleaved
    ~ (-1, num_heads, d_k).swapaxes(0, 1) → (-1, d_k, num_heads).transpose(2, 0, 1)
    ~ (weights @ v).swapaxes(0, 1) → (weights @ v).transpose(1, 2, 0)
    Head h works on every H-th feature instead of d_k features in a row.
overflow: scores - scores.max(axis=-1, keepdims=True) → scores
    exp overflows where a score is large: the largest score of each row has to be subtracted first.
one_largest_for_all: scores.max(axis=-1, keepdims=True) → scores.max()
    The largest score of the whole array is subtracted instead of each row's own: a row far below it
    underflows to zeros, and 0/0 is NaN.
widened: math.sqrt → np.sqrt
    float32 becomes float64: np.sqrt of an integer is a float64 number, which widens the array that
    it divides. Plain Python numbers leave the dtype alone.
query_scaled_in_place
    > if query.dtype.kind == "f":
    >     query /= math.sqrt(d_k)
    The caller's query is divided in place: `query /= …` writes into the array that was passed in.
generator_seeded: + np.random.seed(0)
    A global setting is left changed: a random seed, or how NumPy treats warnings. Nothing here is
    random, and nothing needs silencing outside a `with np.errstate(…)`.
not_normalised: - weights = weights / weights.sum(axis=-1, keepdims=True)
    The weights are not divided by their sum.
softmax_over_everything
    ~ scores.max(axis=-1, keepdims=True) → scores.max(axis=(-2, -1), keepdims=True)
    ~ weights.sum(axis=-1, keepdims=True) → weights.sum(axis=(-2, -1), keepdims=True)
    One softmax runs over all pairs of a head: its whole table of weights sums to 1. Each query
    should share out a total of 1 of its own.
merged_interleaved: .swapaxes(0, 1).reshape(n_q → .transpose(1, 2, 0).reshape(n_q
    The heads' outputs are interleaved: head h writes into every H-th column. It should write into
    the columns that it was given, h·d_k … (h + 1)·d_k − 1.
""")


def _cut(x, num_heads):
    return x.reshape(len(x), num_heads, -1).swapaxes(0, 1)


def _joined(heads):
    return heads.swapaxes(0, 1).reshape(heads.shape[1], -1)


def _softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


@BANK.right
def numpy_loop_over_heads(query, key, value, num_heads):
    slices = [np.split(x, num_heads, axis=-1) for x in (query, key, value)]
    heads = []
    for q, k, v in zip(*slices, strict=True):
        heads.append(_softmax(q @ k.T / q.shape[-1] ** 0.5) @ v)
    return np.concatenate(heads, axis=-1)


@BANK.right
def numpy_einsum(query, key, value, num_heads):
    q, k, v = (x.reshape(x.shape[0], num_heads, -1) for x in (query, key, value))
    scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("hqk,khd->qhd", _softmax(scores), v).reshape(query.shape)


@BANK.right
def numpy_wide_inside(query, key, value, num_heads):
    q, k, v = (_cut(x.astype(np.float64), num_heads) for x in (query, key, value))
    out = _joined(_softmax(q / math.sqrt(q.shape[-1]) @ k.swapaxes(1, 2)) @ v)
    return out.astype(query.dtype) if query.dtype.kind == "f" else out


@BANK.right
def numpy_divided_last(query, key, value, num_heads):
    q, k, v = (_cut(x, num_heads) for x in (query, key, value))
    scores = (q @ k.transpose(0, 2, 1)) * (q.shape[-1] ** -0.5)
    scores = scores - scores.max(-1)[..., None]
    weights = np.exp(scores)
    return _joined((weights @ v) / weights.sum(-1)[..., None])


@BANK.right
def numpy_filled_slices(query, key, value, num_heads):
    d_k = query.shape[1] // num_heads
    out = np.empty(query.shape, np.result_type(query, np.float32 if query.itemsize < 8 else float))
    for h in range(num_heads):
        own = slice(h * d_k, (h + 1) * d_k)
        out[:, own] = _softmax(query[:, own] @ key[:, own].T / math.sqrt(d_k)) @ value[:, own]
    return out
