"""Known answers to chapter 3: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.multi_head`.
"""

import copy
import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from solutions import multi_head as right
from solutions.mistakes import Bank

SPLIT_HEADS = Bank("split_heads", right, globals())
MERGE_HEADS = Bank("merge_heads", right, globals())
MULTI_HEAD_NUMPY = Bank("multi_head_numpy", right, globals())
MULTI_HEAD_ATTENTION = Bank("MultiHeadAttention", right, globals())
LOAD_TORCH_WEIGHTS = Bank("load_torch_weights", right, globals())
HEAD_IMPORTANCE = Bank("head_importance", right, globals())


def _check(d_model, num_heads):
    if d_model % num_heads:
        raise ValueError(f"{d_model} features, {num_heads} heads")


# --- split_heads: mistakes ----------------------------------------------------------------------


@SPLIT_HEADS.mistake
def split_by_view(x, num_heads):
    """The array is cut straight to (B, H, n, d_k). The shape is right and the contents are not:
    each head gets a few whole positions, chopped into pieces, instead of a slice of every position.
    Cut to (B, n, H, d_k) first, and exchange the axes then.
    """
    B, n, d = x.shape
    _check(d, num_heads)
    return x.reshape(B, num_heads, n, d // num_heads)


@SPLIT_HEADS.mistake
def split_by_view_unchecked(x, num_heads):
    """The array is cut straight to (B, H, n, d_k). The shape is right and the contents are not:
    each head gets a few whole positions, chopped into pieces, instead of a slice of every position.
    And uneven heads end in reshape's own error, where a ValueError with both numbers is asked.
    """
    B, n, d = x.shape
    return x.reshape(B, num_heads, n, d // num_heads)


@SPLIT_HEADS.mistake
def exchanged_before_cutting(x, num_heads):
    """The axes of positions and features are exchanged first and the array is cut then, so that a
    head's rows are made of one feature's numbers at several positions. Cut first.
    """
    B, n, d = x.shape
    _check(d, num_heads)
    return x.transpose(1, 2).reshape(B, num_heads, n, d // num_heads)


@SPLIT_HEADS.mistake
def axes_not_exchanged(x, num_heads):
    """The features are cut into heads, (B, n, H, d_k), but the axes of positions and heads are not
    exchanged. Heads must come before positions, so that they ride along like a batch.
    """
    B, n, d = x.shape
    _check(d, num_heads)
    return x.reshape(B, n, num_heads, d // num_heads)


@SPLIT_HEADS.mistake
def heads_interleaved(x, num_heads):
    """Head h gets every H-th feature, h, h + H, h + 2H, …, instead of d_k features in a row. The
    last axis is cut to (H, d_k), heads first.
    """
    B, n, d = x.shape
    _check(d, num_heads)
    return x.reshape(B, n, d // num_heads, num_heads).permute(0, 3, 1, 2)


@SPLIT_HEADS.mistake
def heads_and_batch_exchanged(x, num_heads):
    """The heads stand before the batch, (H, B, n, d_k). The batch comes first, always."""
    B, n, d = x.shape
    _check(d, num_heads)
    return x.reshape(B, n, num_heads, d // num_heads).permute(2, 0, 1, 3)


@SPLIT_HEADS.mistake
def heads_and_size_exchanged(x, num_heads):
    """The heads have num_heads features each; there should be num_heads heads of d_model /
    num_heads features.
    """
    B, n, d = x.shape
    _check(d, num_heads)
    return x.reshape(B, n, d // num_heads, num_heads).transpose(1, 2)


@SPLIT_HEADS.mistake
def features_before_positions(x, num_heads):
    """The result is (B, H, d_k, n): positions and features are exchanged. Each head holds one row
    per position.
    """
    B, n, d = x.shape
    _check(d, num_heads)
    return x.reshape(B, n, num_heads, d // num_heads).permute(0, 2, 3, 1)


@SPLIT_HEADS.mistake
def rest_dropped(x, num_heads):
    """Where d_model is not divisible by the number of heads, the last features are dropped without
    a word. Raise a ValueError that names both numbers.
    """
    B, n, d = x.shape
    d_k = d // num_heads
    return x[..., : d_k * num_heads].reshape(B, n, num_heads, d_k).transpose(1, 2)


@SPLIT_HEADS.mistake
def error_left_to_reshape(x, num_heads):
    """Uneven heads fail inside reshape, with a RuntimeError about sizes. Test for it yourself, and
    raise a ValueError that names d_model and the number of heads.
    """
    B, n, d = x.shape
    return x.reshape(B, n, num_heads, d // num_heads).transpose(1, 2)


@SPLIT_HEADS.mistake
def asserted(x, num_heads):
    """Uneven heads end in an AssertionError. An assert is for what cannot happen; for a caller's
    wrong number, raise a ValueError.
    """
    if x.shape[-1] % num_heads:
        raise AssertionError(f"{x.shape[-1]} features, {num_heads} heads")
    return right.split_heads(x, num_heads)


@SPLIT_HEADS.mistake
def error_without_numbers(x, num_heads):
    """The ValueError does not say which numbers were wrong. Name d_model and num_heads in it: who
    reads the message wants to know which of the two to change.
    """
    if x.shape[-1] % num_heads:
        raise ValueError("d_model must be divisible by num_heads")
    return right.split_heads(x, num_heads)


@SPLIT_HEADS.mistake
def gradient_cut(x, num_heads):
    """No gradient flows back: the heads are made from x.detach(), x.data or a NumPy array, so
    whatever produced x can never learn.
    """
    return right.split_heads(x.detach(), num_heads)


@SPLIT_HEADS.mistake
def always_float(x, num_heads):
    """The result is always float32. Splitting moves numbers; it does not change their dtype."""
    return right.split_heads(x, num_heads).float()


@SPLIT_HEADS.mistake
def strides_assumed(x, num_heads):
    """Strides are computed as if x lay contiguously in memory. x may be a view of something
    larger; reshape and transpose know its real strides.
    """
    B, n, d = x.shape
    _check(d, num_heads)
    d_k = d // num_heads
    return torch.as_strided(x, (B, num_heads, n, d_k), (n * d, d_k, d, 1))


# --- split_heads: right -------------------------------------------------------------------------


@SPLIT_HEADS.right
def split_unflattened(x, num_heads):
    _check(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, 1)


@SPLIT_HEADS.right
def split_in_chunks(x, num_heads):
    _check(x.shape[-1], num_heads)
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@SPLIT_HEADS.right
def split_in_a_loop(x, num_heads):
    _check(x.shape[-1], num_heads)
    d_k = x.shape[-1] // num_heads
    heads = [x[:, :, h * d_k : (h + 1) * d_k] for h in range(num_heads)]
    return torch.stack(heads, dim=1)


@SPLIT_HEADS.right
def split_contiguous(x, num_heads):
    B, n, d = x.size()
    _check(d, num_heads)
    return x.contiguous().view(B, -1, num_heads, d // num_heads).permute(0, 2, 1, 3).contiguous()


@SPLIT_HEADS.right
def split_by_index(x, num_heads):
    d = x.shape[-1]
    _check(d, num_heads)
    columns = torch.arange(d, device=x.device).reshape(num_heads, d // num_heads)
    return x[:, :, columns].swapaxes(1, 2)


# --- merge_heads: mistakes ----------------------------------------------------------------------


@MERGE_HEADS.mistake
def merge_without_transpose(x):
    """The heads are joined without exchanging the axes first. The shape (B, n, H·d_k) is right, but
    each row now holds several positions of one head instead of one position of all heads.
    """
    B, H, n, d_k = x.shape
    return x.reshape(B, n, H * d_k)


@MERGE_HEADS.mistake
def view_after_transpose(x):
    """`view` refuses what transpose made: the numbers no longer lie in memory in that order. Use
    reshape, which copies where it must, or .contiguous() before the view.
    """
    B, H, n, d_k = x.shape
    return x.transpose(1, 2).view(B, n, H * d_k)


@MERGE_HEADS.mistake
def features_of_heads_interleaved(x):
    """The features of the heads alternate: feature 0 of each head, then feature 1 of each head. All
    of head 0 comes first.
    """
    B, H, n, d_k = x.shape
    return x.permute(0, 2, 3, 1).reshape(B, n, H * d_k)


@MERGE_HEADS.mistake
def sizes_read_in_another_order(x):
    """The sizes are read as (B, n, H, d_k), but x is (B, H, n, d_k): the result has as many rows as
    there are heads. With as many heads as positions, the shape alone does not show it.
    """
    B, n, H, d_k = x.shape
    return x.transpose(1, 2).reshape(B, n, H * d_k)


@MERGE_HEADS.mistake
def wrong_axes_exchanged(x):
    """The last two axes, positions and features, are exchanged before joining. Exchange heads and
    positions: axes 1 and 2.
    """
    B, H, n, d_k = x.shape
    return x.transpose(2, 3).reshape(B, n, H * d_k)


@MERGE_HEADS.mistake
def heads_added(x):
    """The heads are added up, and d_k features remain. They are concatenated: H·d_k features."""
    return x.sum(dim=1)


@MERGE_HEADS.mistake
def heads_averaged(x):
    """The heads are averaged, and d_k features remain. They are concatenated: H·d_k features."""
    return x.mean(dim=1)


@MERGE_HEADS.mistake
def joined_as_positions(x):
    """The heads are put one after the other along the positions, (B, H·n, d_k), instead of along
    the features.
    """
    return torch.cat(x.unbind(1), dim=1)


@MERGE_HEADS.mistake
def last_head_first(x):
    """The heads are concatenated backwards: the last one stands first."""
    return torch.cat(x.unbind(1)[::-1], dim=-1)


@MERGE_HEADS.mistake
def gradient_cut_in_merging(x):
    """No gradient flows back: the result is made from x.detach(), x.data or a NumPy array."""
    return right.merge_heads(x.detach())


@MERGE_HEADS.mistake
def merged_as_float(x):
    """The result is always float32. Merging moves numbers; it does not change their dtype."""
    return right.merge_heads(x).float()


@MERGE_HEADS.mistake
def merge_with_strides_assumed(x):
    """Strides are computed as if x lay contiguously in memory. x may be a view of something
    larger; reshape and transpose know its real strides.
    """
    B, H, n, d_k = x.shape
    size, strides = (B, n, H, d_k), (H * n * d_k, d_k, n * d_k, 1)
    return torch.as_strided(x, size, strides).reshape(B, n, H * d_k)


# --- merge_heads: right -------------------------------------------------------------------------


@MERGE_HEADS.right
def merge_flattened(x):
    return x.movedim(1, 2).flatten(-2)


@MERGE_HEADS.right
def merge_concatenated(x):
    return torch.cat(x.unbind(1), dim=-1)


@MERGE_HEADS.right
def merge_contiguous(x):
    B, H, n, d_k = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(B, n, H * d_k)


@MERGE_HEADS.right
def merge_in_a_loop(x):
    B, H, n, d_k = x.shape
    out = x.new_zeros(B, n, H * d_k)
    for h in range(H):
        out[..., h * d_k : (h + 1) * d_k] = x[:, h]
    return out


# --- multi_head_numpy: mistakes -----------------------------------------------------------------


def _cut(x, num_heads):
    return x.reshape(len(x), num_heads, -1).swapaxes(0, 1)


def _joined(heads):
    return heads.swapaxes(0, 1).reshape(heads.shape[1], -1)


def _softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


def _numpy_heads(
    query, key, value, num_heads, scale=None, cut=_cut, joined=_joined, weigh=_softmax
):
    """Multi-head attention in NumPy with a part to be exchanged."""
    scale = scale or math.sqrt(query.shape[-1] // num_heads)
    q, k, v = (cut(x, num_heads) for x in (query, key, value))
    return joined(weigh(q @ k.swapaxes(1, 2) / scale) @ v)


@MULTI_HEAD_NUMPY.mistake
def numpy_split_by_view(query, key, value, num_heads):
    """(n, d) is cut straight to (H, n, d_k): the shape is right, but each head gets a few whole
    positions in pieces. Cut to (n, H, d_k) first, and exchange the axes then.
    """

    def cut(x, num_heads):
        return x.reshape(num_heads, len(x), -1)

    return _numpy_heads(query, key, value, num_heads, cut=cut)


@MULTI_HEAD_NUMPY.mistake
def numpy_merge_without_transpose(query, key, value, num_heads):
    """The heads (H, n_q, d_k) are reshaped to (n_q, d) without exchanging the axes first, so that a
    row holds several positions of one head.
    """
    return _numpy_heads(query, key, value, num_heads, joined=lambda h: h.reshape(query.shape))


@MULTI_HEAD_NUMPY.mistake
def numpy_split_and_merge_by_view(query, key, value, num_heads):
    """Both the split and the merge are plain reshapes. With one query per key they undo each other,
    which looks like a proof; but each head attends among pieces of positions.
    """

    def cut(x, num_heads):
        return x.reshape(num_heads, len(x), -1)

    return _numpy_heads(
        query, key, value, num_heads, cut=cut, joined=lambda h: h.reshape(query.shape)
    )


@MULTI_HEAD_NUMPY.mistake
def scaled_by_d_model(query, key, value, num_heads):
    """The scores are divided by √d. A head's dot product has d_k = d / H terms: divide by √d_k."""
    return _numpy_heads(query, key, value, num_heads, scale=math.sqrt(query.shape[-1]))


@MULTI_HEAD_NUMPY.mistake
def scaled_by_d_k_without_root(query, key, value, num_heads):
    """The scores are divided by d_k instead of its square root."""
    return _numpy_heads(query, key, value, num_heads, scale=query.shape[-1] // num_heads)


@MULTI_HEAD_NUMPY.mistake
def scaled_by_num_heads(query, key, value, num_heads):
    """The scores are divided by √H, the number of heads. It is √d_k: a dot product has as many
    terms as a head has features.
    """
    return _numpy_heads(query, key, value, num_heads, scale=math.sqrt(num_heads))


@MULTI_HEAD_NUMPY.mistake
def maps_averaged(query, key, value, num_heads):
    """The heads' weights are averaged, and the average is applied to whole values. Then there is
    one answer again. Each head's weights average its own slice of the values.
    """
    q, k = (_cut(x, num_heads) for x in (query, key))
    return _softmax(q @ k.swapaxes(1, 2) / math.sqrt(q.shape[-1])).mean(axis=0) @ value


@MULTI_HEAD_NUMPY.mistake
def not_scaled(query, key, value, num_heads):
    """The scores are not divided by √d_k."""
    return _numpy_heads(query, key, value, num_heads, scale=1.0)


@MULTI_HEAD_NUMPY.mistake
def one_wide_head(query, key, value, num_heads):
    """num_heads is not used: this is one head over all the features."""
    return _numpy_heads(query, key, value, 1)


@MULTI_HEAD_NUMPY.mistake
def softmax_over_queries(query, key, value, num_heads):
    """The weights of a key sum to 1 over the queries. Each query's weights must sum to 1 over the
    keys: the last axis of the scores.
    """
    return _numpy_heads(query, key, value, num_heads, weigh=lambda s: _softmax(s, axis=1))


@MULTI_HEAD_NUMPY.mistake
def softmax_over_heads(query, key, value, num_heads):
    """The softmax runs over the heads, axis 0, so that heads compete instead of keys. Each head has
    its own softmax over the keys.
    """
    return _numpy_heads(query, key, value, num_heads, weigh=lambda s: _softmax(s, axis=0))


@MULTI_HEAD_NUMPY.mistake
def keys_averaged(query, key, value, num_heads):
    """The weights are applied to the keys. Keys find the weights; values are what is averaged."""
    return _numpy_heads(query, key, key, num_heads)


@MULTI_HEAD_NUMPY.mistake
def interleaved(query, key, value, num_heads):
    """Head h works on every H-th feature instead of d_k features in a row."""

    def cut(x, num_heads):
        return x.reshape(len(x), -1, num_heads).transpose(2, 0, 1)

    return _numpy_heads(
        query,
        key,
        value,
        num_heads,
        cut=cut,
        joined=lambda h: h.transpose(1, 2, 0).reshape(query.shape),
    )


@MULTI_HEAD_NUMPY.mistake
def overflow(query, key, value, num_heads):
    """exp overflows where a score is large: subtract the largest score of each row first."""

    def weigh(scores):
        weights = np.exp(scores)
        return weights / weights.sum(axis=-1, keepdims=True)

    return _numpy_heads(query, key, value, num_heads, weigh=weigh)


@MULTI_HEAD_NUMPY.mistake
def one_largest_for_all(query, key, value, num_heads):
    """The largest score of the whole array is subtracted instead of each row's own: a row that lies
    far below it underflows to zeros, and 0/0 is NaN.
    """

    def weigh(scores):
        weights = np.exp(scores - scores.max())
        return weights / weights.sum(axis=-1, keepdims=True)

    return _numpy_heads(query, key, value, num_heads, weigh=weigh)


@MULTI_HEAD_NUMPY.mistake
def widened(query, key, value, num_heads):
    """float32 becomes float64: np.sqrt of an integer is a float64 number, and widens the array that
    it divides. math.sqrt(d_k) and d_k**0.5 are plain Python numbers and leave the dtype alone.
    """
    return _numpy_heads(query, key, value, num_heads, np.sqrt(query.shape[-1] // num_heads))


@MULTI_HEAD_NUMPY.mistake
def query_scaled_in_place(query, key, value, num_heads):
    """The caller's query is divided in place: `query / …` makes a new array, `query /= …` none."""
    d_k = query.shape[-1] // num_heads
    if query.dtype.kind == "f":
        query /= math.sqrt(d_k)
    else:
        query = query / math.sqrt(d_k)
    return _numpy_heads(query, key, value, num_heads, 1.0)


@MULTI_HEAD_NUMPY.mistake
def generator_seeded(query, key, value, num_heads):
    """A global setting is left changed: a seed, or how NumPy treats warnings. Nothing here is
    random and nothing needs silencing; what does belongs into `with np.errstate(…)`, which ends.
    """
    np.random.seed(0)
    return _numpy_heads(query, key, value, num_heads)


# --- multi_head_numpy: right --------------------------------------------------------------------


@MULTI_HEAD_NUMPY.right
def numpy_loop_over_heads(query, key, value, num_heads):
    slices = [np.split(x, num_heads, axis=-1) for x in (query, key, value)]
    heads = []
    for q, k, v in zip(*slices, strict=True):
        heads.append(_softmax(q @ k.T / q.shape[-1] ** 0.5) @ v)
    return np.concatenate(heads, axis=-1)


@MULTI_HEAD_NUMPY.right
def numpy_einsum(query, key, value, num_heads):
    q, k, v = (x.reshape(x.shape[0], num_heads, -1) for x in (query, key, value))
    scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("hqk,khd->qhd", _softmax(scores), v).reshape(query.shape)


@MULTI_HEAD_NUMPY.right
def numpy_wide_inside(query, key, value, num_heads):
    wide = [x.astype(np.float64) for x in (query, key, value)]
    out = _numpy_heads(wide[0] / math.sqrt(query.shape[-1] // num_heads), *wide[1:], num_heads, 1.0)
    return out.astype(query.dtype) if query.dtype.kind == "f" else out


@MULTI_HEAD_NUMPY.right
def numpy_divided_last(query, key, value, num_heads):
    q, k, v = (_cut(x, num_heads) for x in (query, key, value))
    scores = (q @ k.transpose(0, 2, 1)) * (q.shape[-1] ** -0.5)
    scores = scores - scores.max(-1)[..., None]
    weights = np.exp(scores)
    return _joined((weights @ v) / weights.sum(-1)[..., None])


@MULTI_HEAD_NUMPY.right
def numpy_filled_slices(query, key, value, num_heads):
    d_k = query.shape[1] // num_heads
    out = np.empty(query.shape, np.result_type(query, np.float32 if query.itemsize < 8 else float))
    for h in range(num_heads):
        own = slice(h * d_k, (h + 1) * d_k)
        out[:, own] = _softmax(query[:, own] @ key[:, own].T / math.sqrt(d_k)) @ value[:, own]
    return out


# --- MultiHeadAttention: mistakes ---------------------------------------------------------------


class _Attention(nn.Module):
    """Multi-head attention in small parts, each of which a mistake can replace."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        _check(d_model, num_heads)
        self.num_heads = num_heads
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.Linear(d_model, d_model, bias) for _ in "qkvo")
        self.drop = nn.Dropout(dropout)

    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def merge(self, x):
        return x.transpose(1, 2).flatten(2)

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(value)

    def scale(self, q):
        return q.shape[-1] ** 0.5

    def weigh(self, scores):
        return scores.softmax(-1)

    def apply_mask(self, weights, head_mask):
        return weights if head_mask is None else weights * head_mask.reshape(-1, 1, 1)

    def finish(self, heads):
        return self.W_o(self.merge(heads))

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        weights = self.weigh(q @ k.mT / self.scale(q))
        return self.finish(self.apply_mask(self.drop(weights), head_mask) @ v), weights


def _mha(answer):
    """Register a mistaken class."""
    return MULTI_HEAD_ATTENTION.mistake(answer)


@_mha
class mha_split_by_view(_Attention):
    """The projections are reshaped straight to (B, H, n, d_k). The shape is right, but each head
    gets a few whole positions in pieces. Reshape to (B, n, H, d_k), then transpose.
    """

    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], -1)


@_mha
class mha_merge_without_transpose(_Attention):
    """The heads (B, H, n_q, d_k) are reshaped to (B, n_q, d_model) without the transpose: a row
    holds several positions of one head.
    """

    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


@_mha
class mha_split_and_merge_by_view(_Attention):
    """Split and merge are both plain reshapes, which undo each other, so shapes fit everywhere; but
    the heads attend among pieces of positions.
    """

    def split(self, x):
        return x.reshape(x.shape[0], self.num_heads, x.shape[1], -1)

    def merge(self, x):
        return x.reshape(x.shape[0], x.shape[2], -1)


@_mha
class mha_scaled_by_d_model(_Attention):
    """The scores are divided by √d_model. A head's dot product has d_k = d_model / H terms: divide
    by √d_k.
    """

    def scale(self, q):
        return (q.shape[-1] * self.num_heads) ** 0.5


@_mha
class mha_scaled_by_d_k_without_root(_Attention):
    """The scores are divided by d_k instead of its square root."""

    def scale(self, q):
        return q.shape[-1]


@_mha
class mha_scaled_by_num_heads(_Attention):
    """The scores are divided by √H, the number of heads. It is √d_k: a dot product has as many
    terms as a head has features.
    """

    def scale(self, q):
        return self.num_heads**0.5


@_mha
class mha_not_scaled(_Attention):
    """The scores are not divided by √d_k."""

    def scale(self, q):
        return 1.0


@_mha
class W_o_forgotten(_Attention):
    """The concatenated heads are returned as they are. W_o mixes them; without it, the heads never
    meet.
    """

    def finish(self, heads):
        return self.merge(heads)


@_mha
class one_projection_shared(_Attention):
    """Queries, keys and values all go through W_q. Each has a projection of its own."""

    def project(self, query, key, value):
        return self.W_q(query), self.W_q(key), self.W_q(value)


@_mha
class query_projection_for_keys(_Attention):
    """The keys go through W_q, and W_k is never used."""

    def project(self, query, key, value):
        return self.W_q(query), self.W_q(key), self.W_v(value)


@_mha
class key_projection_for_values(_Attention):
    """The values go through W_k, and W_v is never used."""

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_k(value)


@_mha
class key_and_value_projections_swapped(_Attention):
    """W_k projects the values and W_v the keys. A fresh module learns all the same; loaded
    parameters show it.
    """

    def project(self, query, key, value):
        return self.W_q(query), self.W_v(key), self.W_k(value)


@_mha
class key_and_value_swapped(_Attention):
    """The argument `key` is used as the value and `value` as the key. In self-attention the two are
    one and nothing shows.
    """

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(value), self.W_v(key)


@_mha
class values_from_the_keys(_Attention):
    """The values are made from the argument `key`, and `value` is never used."""

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(key)


@_mha
class everything_from_the_query(_Attention):
    """Keys and values are made from the argument `query`; `key` and `value` are never used. In
    self-attention the three are one and nothing shows.
    """

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(query), self.W_v(query)


@_mha
class batch_and_heads_exchanged(_Attention):
    """Heads and batch are exchanged on the way: the result is put together as if (H, B, …) were
    (B, H, …), so that sequences of the batch get each other's heads.
    """

    def merge(self, x):
        B, H, n, d_k = x.shape
        return x.reshape(H, B, n, d_k).permute(1, 2, 0, 3).reshape(B, n, H * d_k)


@_mha
class mha_softmax_over_heads(_Attention):
    """The softmax runs over the heads (dim=1), so that heads compete instead of keys."""

    def weigh(self, scores):
        return scores.softmax(1)


@_mha
class mha_softmax_over_queries(_Attention):
    """The softmax runs over the queries (dim=-2): a row of weights does not sum to 1."""

    def weigh(self, scores):
        return scores.softmax(-2)


@_mha
class one_head_only(_Attention):
    """num_heads is not used: one head attends over all the features."""

    def forward(self, query, key, value, head_mask=None):
        q, k, v = self.project(query, key, value)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        weights = weights[:, None].expand(-1, self.num_heads, -1, -1)
        heads = self.apply_mask(self.drop(weights), head_mask) @ self.split(v)
        return self.finish(heads), weights


@_mha
class weights_averaged(_Attention):
    """The weights returned are averaged over the heads, (B, n_q, n_k), as torch's module does by
    default. Return those of every head: (B, H, n_q, n_k).
    """

    def forward(self, query, key, value, head_mask=None):
        out, weights = super().forward(query, key, value, head_mask)
        return out, weights.mean(1)


@_mha
class weights_first(_Attention):
    """The weights are returned first. The order is (output, weights)."""

    def forward(self, query, key, value, head_mask=None):
        return super().forward(query, key, value, head_mask)[::-1]


@_mha
class always_biased(_Attention):
    """With bias=False there are biases all the same. Pass `bias` to each of the four nn.Linear."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__(d_model, num_heads, dropout)


@_mha
class head_mask_ignored(_Attention):
    """head_mask is accepted and not used."""

    def apply_mask(self, weights, head_mask):
        return weights


@_mha
class head_mask_inverted(_Attention):
    """The heads are multiplied by 1 − head_mask: 0 must switch a head off, and 1 leave it alone."""

    def apply_mask(self, weights, head_mask):
        return weights if head_mask is None else weights * (1 - head_mask.reshape(-1, 1, 1))


@_mha
class head_mask_on_the_scores(_Attention):
    """head_mask multiplies the scores. Scores of 0 are no silence: their softmax is an average of
    everything. Multiply the weights, after the softmax.
    """

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        scores = q @ k.mT / self.scale(q)
        weights = self.weigh(scores)
        applied = self.weigh(self.apply_mask(scores, head_mask))
        return self.finish(self.drop(applied) @ v), weights


@_mha
class masked_weights_returned(_Attention):
    """The weights returned are those that head_mask has multiplied. Return them as they were:
    head_mask is about what a head contributes, not about where it looks.
    """

    def forward(self, query, key, value, head_mask=None):
        out, weights = super().forward(query, key, value, head_mask)
        return out, self.apply_mask(weights, head_mask)


@_mha
class heads_selected(_Attention):
    """head_mask is taken for a choice: a head counts whole unless its number is 0. It multiplies,
    so that 0.5 is half a head.
    """

    def apply_mask(self, weights, head_mask):
        return weights if head_mask is None else weights * (head_mask != 0).reshape(-1, 1, 1)


@_mha
class dropout_forgotten(_Attention):
    """`dropout` is accepted and not used: training drops no weight."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__(d_model, num_heads, 0.0, bias)


@_mha
class dropout_on_the_output(_Attention):
    """Dropout acts on the output instead of on the weights."""

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        weights = self.weigh(q @ k.mT / self.scale(q))
        return self.drop(self.finish(self.apply_mask(weights, head_mask) @ v)), weights


@_mha
class dropped_weights_returned(_Attention):
    """The weights returned are those after dropout: in training, a part of them is 0 and rows do
    not sum to 1. Return the weights before dropout.
    """

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        weights = self.drop(self.weigh(q @ k.mT / self.scale(q)))
        return self.finish(self.apply_mask(weights, head_mask) @ v), weights


@_mha
class applied_weights_returned(_Attention):
    """The weights returned are those that are applied, after dropout and head_mask. Return them as
    the softmax gave them: where a head looks, whatever became of it.
    """

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        weights = self.drop(self.weigh(q @ k.mT / self.scale(q)))
        weights = self.apply_mask(weights, head_mask)
        return self.finish(weights @ v), weights


@_mha
class dropout_in_eval(_Attention):
    """Dropout is active in eval mode too: two calls give two answers. nn.Dropout knows the mode of
    its module; F.dropout must be told, training=self.training.
    """

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        weights = self.weigh(q @ k.mT / self.scale(q))
        applied = F.dropout(weights, self.drop.p)
        return self.finish(self.apply_mask(applied, head_mask) @ v), weights


@_mha
class weights_detached(_Attention):
    """The weights are detached before they are applied: no gradient reaches W_q and W_k, and the
    module never learns where to look.
    """

    def apply_mask(self, weights, head_mask):
        return super().apply_mask(weights.detach(), head_mask)


@_mha
class returned_weights_detached(_Attention):
    """The output is right, but the weights returned are cut off from it: a loss that looks at them
    cannot teach W_q and W_k anything. Return the weights that the softmax gave.
    """

    def forward(self, query, key, value, head_mask=None):
        out, weights = super().forward(query, key, value, head_mask)
        return out, weights.detach()


@_mha
class naive_softmax(_Attention):
    """exp overflows where a score is large. torch.softmax subtracts the largest score first."""

    def weigh(self, scores):
        weights = scores.exp()
        return weights / weights.sum(-1, keepdim=True)


@_mha
class no_error(_Attention):
    """Where d_model is not divisible by num_heads, features are left over without a word. Raise a
    ValueError that names both numbers.
    """

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        nn.Module.__init__(self)
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.W_q, self.W_k, self.W_v = (nn.Linear(d_model, d_model, bias) for _ in "qkv")
        self.W_o = nn.Linear(self.d_k * num_heads, d_model, bias)
        self.drop = nn.Dropout(dropout)

    def split(self, x):
        x = x[..., : self.num_heads * self.d_k]
        return x.unflatten(-1, (self.num_heads, self.d_k)).transpose(1, 2)


class _Unchecked(_Attention):
    """Built whether or not the heads can share the features equally."""

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__(d_model, 1, dropout, bias)
        self.num_heads = num_heads

    def split(self, x):
        B, n, d = x.shape
        return x.reshape(B, n, self.num_heads, d // self.num_heads).transpose(1, 2)


@_mha
class mha_error_left_to_reshape(_Unchecked):
    """Uneven heads fail inside reshape at the first call, with a RuntimeError about sizes. Test for
    it when the module is built, and raise a ValueError that names d_model and num_heads.
    """


@_mha
class mha_asserted(_Unchecked):
    """Uneven heads end in an AssertionError. An assert is for what cannot happen; for a caller's
    wrong number, raise a ValueError.
    """

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        if d_model % num_heads:
            raise AssertionError(f"{d_model} features, {num_heads} heads")
        super().__init__(d_model, num_heads, dropout, bias)


@_mha
class mha_error_without_numbers(_Unchecked):
    """The ValueError does not say which numbers were wrong. Name d_model and num_heads in it: who
    reads the message wants to know which of the two to change.
    """

    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        if d_model % num_heads:
            raise ValueError("d_model must be divisible by num_heads")
        super().__init__(d_model, num_heads, dropout, bias)


@_mha
class default_dtype_switched(_Attention):
    """A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
    """

    def forward(self, query, key, value, head_mask=None):
        torch.set_default_dtype(torch.float64)
        return super().forward(query, key, value, head_mask)


@_mha
class mha_query_in_place(_Attention):
    """The caller's query is written over. Make a new tensor: `query - …`, not `query -= …`."""

    def forward(self, query, key, value, head_mask=None):
        result = super().forward(query, key, value, head_mask)
        with torch.no_grad():
            query.sub_(query.mean())
        return result


# --- MultiHeadAttention: right ------------------------------------------------------------------


@MULTI_HEAD_ATTENTION.right
class ByEinsum(_Attention):
    def forward(self, query, key, value, head_mask=None):
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)) for x in self.project(query, key, value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.size(-1))
        weights = F.softmax(scores, dim=3)
        applied = self.apply_mask(self.drop(weights), head_mask)
        return self.W_o(torch.einsum("bhqk,bkhd->bqhd", applied, v).flatten(2)), weights


@MULTI_HEAD_ATTENTION.right
class ByLoopOverHeads(_Attention):
    def forward(self, query, key, value, head_mask=None):
        parts = [x.chunk(self.num_heads, -1) for x in self.project(query, key, value)]
        outs, seen = [], []
        for h, (q, k, v) in enumerate(zip(*parts, strict=True)):
            weights = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
            out = self.drop(weights) @ v
            outs.append(out if head_mask is None else head_mask[h] * out)
            seen.append(weights)
        return self.W_o(torch.cat(outs, dim=-1)), torch.stack(seen, dim=1)


@MULTI_HEAD_ATTENTION.right
class HeadsInTheBatch(_Attention):
    """Batch and heads in one axis, as torch.bmm wants them; the mask on the heads' outputs."""

    def forward(self, query, key, value, head_mask=None):
        B, H = query.shape[0], self.num_heads
        q, k, v = (self.split(x).flatten(0, 1) for x in self.project(query, key, value))
        weights = torch.bmm(q * q.shape[-1] ** -0.5, k.transpose(1, 2)).softmax(-1)
        heads = torch.bmm(self.drop(weights), v).unflatten(0, (B, H))
        if head_mask is not None:
            heads = heads * head_mask[None, :, None, None]
        return self.W_o(heads.permute(0, 2, 1, 3).flatten(2)), weights.unflatten(0, (B, H))


@MULTI_HEAD_ATTENTION.right
class ByTorchsKernel(_Attention):
    """torch's fused kernel for the output, the weights beside it, the mask on the values."""

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x) for x in self.project(query, key, value))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        if head_mask is not None:
            v = v * head_mask.view(-1, 1, 1)
        p = self.drop.p if self.training else 0.0
        return self.finish(F.scaled_dot_product_attention(q, k, v, dropout_p=p)), weights


@MULTI_HEAD_ATTENTION.right
class InDoublePrecision(_Attention):
    """float64 between the projections, and W_o applied slice by slice."""

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x).double() for x in self.project(query, key, value))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        heads = F.dropout(weights, self.drop.p, self.training) @ v
        if head_mask is not None:
            heads = torch.einsum("bhqd,h->bhqd", heads, head_mask.double())
        W = self.W_o.weight.double().unflatten(1, (self.num_heads, -1))  # (d_model, H, d_k)
        out = torch.einsum("bhqd,mhd->bqm", heads, W).to(query.dtype)
        out = out if self.W_o.bias is None else out + self.W_o.bias
        return out, weights.to(query.dtype)


# --- load_torch_weights: mistakes ---------------------------------------------------------------


def _unpacked(torch_attention):
    """Weight and bias for W_q, W_k, W_v, W_o, detached views; no bias is None."""
    t = torch_attention
    weights = [*t.in_proj_weight.detach().chunk(3), t.out_proj.weight.detach()]
    if t.in_proj_bias is None:
        return [(weight, None) for weight in weights]
    biases = [*t.in_proj_bias.detach().chunk(3), t.out_proj.bias.detach()]
    return list(zip(weights, biases, strict=True))


def _layers(attention):
    return attention.W_q, attention.W_k, attention.W_v, attention.W_o


def _copy(attention, pairs, weights=True, biases=True):
    with torch.no_grad():
        for layer, (weight, bias) in zip(_layers(attention), pairs, strict=True):
            if weights and weight is not None:
                layer.weight.copy_(weight)
            if biases and bias is not None:
                layer.bias.copy_(bias)
    return attention


@LOAD_TORCH_WEIGHTS.mistake
def bias_lost(attention, torch_attention):
    """The weights are copied and the biases are not. nn.MultiheadAttention starts with zero
    biases, so a fresh one hides it.
    """
    return _copy(attention, _unpacked(torch_attention), biases=False)


@LOAD_TORCH_WEIGHTS.mistake
def nothing_copied(attention, torch_attention):
    """Nothing arrives: `attention` has the numbers that it had. Giving a variable a new value does
    not write into the tensor that it stood for.
    """
    return attention


@LOAD_TORCH_WEIGHTS.mistake
def packed_bias_lost(attention, torch_attention):
    """in_proj_bias is not copied, only the bias of out_proj."""
    *packed, out = _unpacked(torch_attention)
    return _copy(attention, [*((weight, None) for weight, _ in packed), out])


@LOAD_TORCH_WEIGHTS.mistake
def output_bias_lost(attention, torch_attention):
    """The bias of out_proj is not copied."""
    *packed, (weight, _) = _unpacked(torch_attention)
    return _copy(attention, [*packed, (weight, None)])


@LOAD_TORCH_WEIGHTS.mistake
def output_projection_lost(attention, torch_attention):
    """out_proj is not copied: W_o keeps its own numbers."""
    return _copy(attention, [*_unpacked(torch_attention)[:3], (None, None)])


@LOAD_TORCH_WEIGHTS.mistake
def packed_order_misread(attention, torch_attention):
    """The second third of in_proj_weight is taken for the values and the last for the keys. torch
    packs query, key, value.
    """
    q, k, v, o = _unpacked(torch_attention)
    return _copy(attention, [q, v, k, o])


@LOAD_TORCH_WEIGHTS.mistake
def packed_keys_first(attention, torch_attention):
    """The first third of in_proj_weight is taken for the keys and the second for the queries. torch
    packs query, key, value.
    """
    q, k, v, o = _unpacked(torch_attention)
    return _copy(attention, [k, q, v, o])


@LOAD_TORCH_WEIGHTS.mistake
def bias_order_misread(attention, torch_attention):
    """The weights are right, but the biases of keys and values are exchanged: in_proj_bias is
    packed query, key, value, as the weight is.
    """
    (q, a), (k, b), (v, c), o = _unpacked(torch_attention)
    return _copy(attention, [(q, a), (k, c), (v, b), o])


@LOAD_TORCH_WEIGHTS.mistake
def every_third_row(attention, torch_attention):
    """Every third row of in_proj_weight is taken. The three matrices are stacked, d_model rows
    each, not interleaved.
    """
    *_, out = _unpacked(torch_attention)
    weight, bias = torch_attention.in_proj_weight.detach(), torch_attention.in_proj_bias
    biases = [None] * 3 if bias is None else [bias.detach()[i::3] for i in range(3)]
    return _copy(attention, [*((weight[i::3], biases[i]) for i in range(3)), out])


@LOAD_TORCH_WEIGHTS.mistake
def weights_transposed(attention, torch_attention):
    """The weights are transposed. in_proj_weight and nn.Linear both hold (out, in): copy as is."""
    pairs = [(weight.T, bias) for weight, bias in _unpacked(torch_attention)]
    return _copy(attention, pairs)


@LOAD_TORCH_WEIGHTS.mistake
def output_transposed(attention, torch_attention):
    """The weight of out_proj is transposed. It is an nn.Linear like W_o: copy it as it is."""
    *packed, (weight, bias) = _unpacked(torch_attention)
    return _copy(attention, [*packed, (weight.T, bias)])


@LOAD_TORCH_WEIGHTS.mistake
def bias_expected(attention, torch_attention):
    """A module without biases ends in an error: its in_proj_bias is None. Ask before copying."""
    pairs = _unpacked(torch_attention)
    if torch_attention.in_proj_bias is None:
        raise AttributeError("'NoneType' object has no attribute 'chunk'")
    return _copy(attention, pairs)


@LOAD_TORCH_WEIGHTS.mistake
def views_taken(attention, torch_attention):
    """Parameters of ours are torch's own, or views of them, so that the two modules share their
    memory: training one trains the other. Copy the numbers.
    """
    for layer, (weight, bias) in zip(_layers(attention), _unpacked(torch_attention), strict=True):
        layer.weight.data = weight
        if bias is not None:
            layer.bias.data = bias
    return attention


@LOAD_TORCH_WEIGHTS.mistake
def frozen(attention, torch_attention):
    """The parameters no longer ask for a gradient: the module can never be trained on. Copy under
    torch.no_grad(), and leave requires_grad as it was.
    """
    return _copy(attention, _unpacked(torch_attention)).requires_grad_(False)


@LOAD_TORCH_WEIGHTS.mistake
def nothing_returned(attention, torch_attention):
    """The copy is right, but the function returns nothing. Return the attention."""
    _copy(attention, _unpacked(torch_attention))


@LOAD_TORCH_WEIGHTS.mistake
def torchs_module_returned(attention, torch_attention):
    """torch's module is returned. Return ours."""
    _copy(attention, _unpacked(torch_attention))
    return torch_attention


@LOAD_TORCH_WEIGHTS.mistake
def new_module_filled(attention, torch_attention):
    """A new module gets the parameters, and the one that was given stays as it was."""
    return _copy(copy.deepcopy(attention), _unpacked(torch_attention))


@LOAD_TORCH_WEIGHTS.mistake
def copied_the_wrong_way(attention, torch_attention):
    """Our parameters are copied into torch's module. It is torch's that should arrive in ours."""
    with torch.no_grad():
        for layer, (weight, bias) in zip(
            _layers(attention), _unpacked(torch_attention), strict=True
        ):
            weight.copy_(layer.weight)
            if bias is not None:
                bias.copy_(layer.bias)
    return attention


@LOAD_TORCH_WEIGHTS.mistake
def settings_left_changed(attention, torch_attention):
    """The copy is right, but something else has changed: gradients stay switched off for the whole
    program (`with torch.no_grad():` ends by itself, set_grad_enabled(False) does not), a module is
    in another mode, or random numbers were drawn, as a new nn.Linear does for its first parameters.
    """
    torch.set_grad_enabled(False)
    return _copy(attention, _unpacked(torch_attention))


# --- load_torch_weights: right ------------------------------------------------------------------


@LOAD_TORCH_WEIGHTS.right
def by_state_dict(attention, torch_attention):
    state = torch_attention.state_dict()
    found = {}
    for kind in ("weight", "bias"):
        if f"in_proj_{kind}" in state:
            parts = state[f"in_proj_{kind}"].chunk(3)
            found |= {f"W_{x}.{kind}": part for x, part in zip("qkv", parts, strict=True)}
            found[f"W_o.{kind}"] = state[f"out_proj.{kind}"]
    attention.load_state_dict(found)
    return attention


@LOAD_TORCH_WEIGHTS.right
def by_slices(attention, torch_attention):
    d = torch_attention.embed_dim
    with torch.no_grad():
        for i, layer in enumerate((attention.W_q, attention.W_k, attention.W_v)):
            layer.weight[:] = torch_attention.in_proj_weight[i * d : (i + 1) * d]
            if layer.bias is not None:
                layer.bias[:] = torch_attention.in_proj_bias[i * d : (i + 1) * d]
    attention.W_o.load_state_dict(torch_attention.out_proj.state_dict())
    return attention


@LOAD_TORCH_WEIGHTS.right
def by_new_parameters(attention, torch_attention):
    for layer, (weight, bias) in zip(_layers(attention), _unpacked(torch_attention), strict=True):
        layer.weight = nn.Parameter(weight.clone())
        if bias is not None:
            layer.bias = nn.Parameter(bias.clone())
    return attention


@LOAD_TORCH_WEIGHTS.right
def by_data(attention, torch_attention):
    q, k, v = torch_attention.in_proj_weight.data.split(torch_attention.embed_dim)
    attention.W_q.weight.data.copy_(q)
    attention.W_k.weight.data.copy_(k)
    attention.W_v.weight.data = v.clone()
    attention.W_o.weight.data = torch_attention.out_proj.weight.data.clone()
    if torch_attention.in_proj_bias is not None:
        for x, bias in zip("qkv", torch_attention.in_proj_bias.data.view(3, -1), strict=True):
            getattr(attention, f"W_{x}").bias.data = bias.clone()
        attention.W_o.bias.data.copy_(torch_attention.out_proj.bias.data)
    return attention


# --- head_importance: mistakes ------------------------------------------------------------------


def _one_hot(attention, x):
    return torch.eye(attention.num_heads, dtype=x.dtype, device=x.device)


def _difference(attention, x):
    """full − output with head h masked, for each h: (H, B, n, d_model)."""
    with torch.no_grad():
        full = attention(x, x, x)[0]
        masks = 1 - _one_hot(attention, x)
        return torch.stack([full - attention(x, x, x, head_mask=mask)[0] for mask in masks])


@HEAD_IMPORTANCE.mistake
def all_the_others_masked(attention, x):
    """The mask is the wrong way round: it keeps head h and silences all the others. 1 keeps a head,
    0 masks it.
    """
    with torch.no_grad():
        full = attention(x, x, x)[0]
        outs = [attention(x, x, x, head_mask=mask)[0] for mask in _one_hot(attention, x)]
        return torch.stack([(full - out).norm(dim=-1).mean() for out in outs])


@HEAD_IMPORTANCE.mistake
def masks_pile_up(attention, x):
    """Each round masks one head more: those masked before stay so. Begin every round with a mask of
    ones.
    """
    with torch.no_grad():
        full, mask, found = attention(x, x, x)[0], x.new_ones(attention.num_heads), []
        for h in range(attention.num_heads):
            mask[h] = 0.0
            found.append((full - attention(x, x, x, head_mask=mask)[0]).norm(dim=-1).mean())
        return torch.stack(found)


@HEAD_IMPORTANCE.mistake
def weights_compared(attention, x):
    """The weights are compared instead of the outputs. A head mask leaves them as they are, so
    every head has importance 0.
    """
    return x.new_zeros(attention.num_heads)


@HEAD_IMPORTANCE.mistake
def output_of_the_head_alone(attention, x):
    """The length of the output with head h alone is taken. The bias of W_o is still in it: take the
    difference of two outputs, in which it cancels.
    """
    with torch.no_grad():
        outs = [attention(x, x, x, head_mask=one)[0] for one in _one_hot(attention, x)]
        return torch.stack([out.norm(dim=-1).mean() for out in outs])


@HEAD_IMPORTANCE.mistake
def mean_squared_difference(attention, x):
    """The mean squared difference of the numbers is taken. The length of a vector is the root of
    the sum of its squares, position by position.
    """
    return _difference(attention, x).square().mean((1, 2, 3))


@HEAD_IMPORTANCE.mistake
def mean_under_the_root(attention, x):
    """The squares are averaged over the features under the root. A length adds them up: yours is
    too small by √d_model.
    """
    return _difference(attention, x).square().mean(-1).sqrt().mean((1, 2))


@HEAD_IMPORTANCE.mistake
def sum_of_absolute_differences(attention, x):
    """The absolute differences are added up over the features. The Euclidean length is the root of
    the sum of squares.
    """
    return _difference(attention, x).abs().sum(-1).mean((1, 2))


@HEAD_IMPORTANCE.mistake
def length_squared(attention, x):
    """The squared length of the difference is averaged. Take the root at each position first."""
    return _difference(attention, x).square().sum(-1).mean((1, 2))


@HEAD_IMPORTANCE.mistake
def root_of_the_mean(attention, x):
    """The root is taken after the mean (a root mean square). Average the lengths."""
    return _difference(attention, x).square().sum(-1).mean((1, 2)).sqrt()


@HEAD_IMPORTANCE.mistake
def summed_not_averaged(attention, x):
    """The lengths are added up over batch and positions instead of averaged: a longer text makes
    every head more important.
    """
    return _difference(attention, x).norm(dim=-1).sum((1, 2))


@HEAD_IMPORTANCE.mistake
def averaged_over_positions_only(attention, x):
    """The lengths are averaged over the positions and added up over the batch."""
    return _difference(attention, x).norm(dim=-1).mean(2).sum(1)


@HEAD_IMPORTANCE.mistake
def one_norm_of_everything(attention, x):
    """One length is taken over batch, positions and features together. The length is that of the
    feature vector at each position; batch and positions are averaged over.
    """
    return _difference(attention, x).flatten(1).norm(dim=1)


@HEAD_IMPORTANCE.mistake
def norm_over_positions(attention, x):
    """The length is taken along the positions and the mean over the features. It is the other way
    round: norm(dim=-1).
    """
    return _difference(attention, x).norm(dim=2).mean((1, 2))


@HEAD_IMPORTANCE.mistake
def mean_absolute_difference(attention, x):
    """The mean absolute difference of the numbers is taken instead of the length of the vectors."""
    return _difference(attention, x).abs().mean((1, 2, 3))


@HEAD_IMPORTANCE.mistake
def difference_of_lengths(attention, x):
    """The lengths of the two outputs are subtracted, instead of taking the length of their
    difference: an output that turns without shrinking counts as unchanged.
    """
    with torch.no_grad():
        full = attention(x, x, x)[0].norm(dim=-1)
        masks = 1 - _one_hot(attention, x)
        outs = [attention(x, x, x, head_mask=mask)[0].norm(dim=-1) for mask in masks]
        return torch.stack([(full - out).abs().mean() for out in outs])


@HEAD_IMPORTANCE.mistake
def shares_of_one(attention, x):
    """The result is divided by its sum. The importance of a head is a length, not a share."""
    found = right.head_importance(attention, x)
    return found / found.sum()


@HEAD_IMPORTANCE.mistake
def relative_to_the_output(attention, x):
    """The length of the difference is divided by that of the full output. No ratio is asked for."""
    full = attention(x, x, x)[0].detach().norm(dim=-1)
    return (_difference(attention, x).norm(dim=-1) / full).mean((1, 2))


@HEAD_IMPORTANCE.mistake
def first_sequence_only(attention, x):
    """Only the first sequence of the batch is looked at."""
    return right.head_importance(attention, x[:1])


@HEAD_IMPORTANCE.mistake
def weights_overwritten(attention, x):
    """The module's own parameters are set to 0 to silence a head, and they stay so. Use head_mask,
    which leaves the module as it was.
    """
    found = right.head_importance(attention, x)
    with torch.no_grad():
        attention.W_o.weight.zero_()
    return found


@HEAD_IMPORTANCE.mistake
def left_in_training_mode(attention, x):
    """The module's mode, or a setting of all of torch, is left changed. Whoever calls you has
    chosen both.
    """
    found = right.head_importance(attention, x)
    attention.train()
    return found


@HEAD_IMPORTANCE.mistake
def left_in_eval_mode(attention, x):
    """The module is switched to eval mode and stays there: whoever trains it after your call trains
    without dropout. Leave the mode as it is, or put it back.
    """
    attention.eval()
    return right.head_importance(attention, x)


@HEAD_IMPORTANCE.mistake
def before_the_output_projection(attention, x):
    """The length of the head's own output is taken, before W_o. A head matters by what W_o makes of
    it: compare the outputs of the whole module.
    """
    with torch.no_grad():
        weights = attention(x, x, x)[1]
        v = attention.W_v(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
        return (weights @ v).norm(dim=-1).mean((0, 2))


@HEAD_IMPORTANCE.mistake
def importance_as_float32(attention, x):
    """The result is always float32. Keep the dtype of x."""
    return right.head_importance(attention, x).float()


# --- head_importance: right ---------------------------------------------------------------------


@HEAD_IMPORTANCE.right
def importance_at_once(attention, x):
    return _difference(attention, x).norm(dim=-1).mean((1, 2))


@HEAD_IMPORTANCE.right
def importance_with_gradients(attention, x):
    full, _ = attention(x, x, x)
    found = []
    for h in range(attention.num_heads):
        mask = torch.ones(attention.num_heads)
        mask[h] = 0.0
        out, _ = attention(x, x, x, head_mask=mask)
        found.append(((full - out) ** 2).sum(-1).sqrt().mean())
    return torch.stack(found)


@HEAD_IMPORTANCE.right
def importance_from_the_heads(attention, x):
    """What a head adds to the output: its own output through its columns of W_o."""
    _, weights = attention(x, x, x)
    v = attention.W_v(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
    columns = attention.W_o.weight.unflatten(1, (attention.num_heads, -1)).permute(1, 2, 0)
    return ((weights @ v) @ columns).norm(dim=-1).mean((0, 2)).detach()


@HEAD_IMPORTANCE.right
def importance_of_the_head_alone(attention, x):
    """The same difference, from the other side: head h alone, minus no head at all."""
    with torch.no_grad():
        none = attention(x, x, x, head_mask=x.new_zeros(attention.num_heads))[0]
        alone = [attention(x, x, x, head_mask=mask)[0] - none for mask in _one_hot(attention, x)]
        return torch.stack([torch.linalg.vector_norm(a, dim=-1).mean() for a in alone])


@HEAD_IMPORTANCE.right
def importance_in_numpy(attention, x):
    lengths = np.linalg.norm(_difference(attention, x).numpy(), axis=-1)
    return torch.from_numpy(lengths.mean(axis=(1, 2)).astype(lengths.dtype))
