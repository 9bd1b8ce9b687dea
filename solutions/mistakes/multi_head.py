"""Known answers to chapter 3: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.multi_head`.
"""

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

SPLIT_HEADS.changes("""
split_by_view: *x.shape[:-1], num_heads → len(x), num_heads, x.shape[1] ; x.transpose(-3, -2) → x
    The array is cut straight to (B, H, n, d_k). The shape is right and the contents are not: each
    head gets a few whole positions, chopped into pieces, instead of a slice of every position. Cut
    to (B, n, H, d_k) first, and exchange the axes then.
split_by_view_unchecked
    ~ d_model % num_heads != 0 → False
    ~ *x.shape[:-1], num_heads → len(x), num_heads, x.shape[1]
    ~ x.transpose(-3, -2) → x
    The array is cut straight to (B, H, n, d_k). The shape is right and the contents are not: each
    head gets a few whole positions, chopped into pieces, instead of a slice of every position. And
    uneven heads end in reshape's own error: raise a ValueError with both numbers.
exchanged_before_cutting
    ~ x.reshape(*x.shape[:-1], num_heads → x.transpose(1, 2).reshape(len(x), num_heads, x.shape[1]
    ~ x.transpose(-3, -2) → x
    The axes of positions and features are exchanged first and the array is cut then, so that a
    head's rows are made of one feature's numbers at several positions. Cut first.
axes_not_exchanged: x.transpose(-3, -2) → x
    The features are cut into heads, (B, n, H, d_k), but the axes of positions and heads are not
    exchanged. Heads must come before positions, so that they ride along like a batch.
heads_interleaved
    ~ num_heads, d_model // num_heads) → d_model // num_heads, num_heads)
    ~ x.transpose(-3, -2) → x.permute(0, 3, 1, 2)
    Head h gets every H-th feature, h, h + H, h + 2H, …, instead of d_k features in a row. The last
    axis is cut to (H, d_k), heads first.
heads_and_batch_exchanged: x.transpose(-3, -2) → x.permute(2, 0, 1, 3)
    The heads stand before the batch, (H, B, n, d_k). The batch comes first, always.
heads_and_size_exchanged: num_heads, d_model // num_heads) → d_model // num_heads, num_heads)
    The heads have num_heads features each; there should be num_heads heads of d_model / num_heads
    features.
features_before_positions: x.transpose(-3, -2) → x.permute(0, 2, 3, 1)
    The result is (B, H, d_k, n): positions and features are exchanged. Each head holds one row per
    position.
rest_dropped
    - raise ValueError(f"d_model = {d_model} cannot be split into {num_heads} equal heads")
    + x = x[..., : d_model // num_heads * num_heads]
    Where d_model is not divisible by the number of heads, the last features are dropped without a
    word. Raise a ValueError that names both numbers.
error_left_to_reshape: d_model % num_heads != 0 → False
    Uneven heads fail inside reshape, with a RuntimeError about sizes. Test for it yourself, and
    raise a ValueError that names d_model and the number of heads.
asserted: ValueError → AssertionError
    Uneven heads end in an AssertionError. An assert is for what cannot happen; for a caller's wrong
    number, raise a ValueError.
error_without_numbers
    - f"d_model = {d_model} cannot be split into {num_heads} equal heads"
    + "d_model must be divisible by num_heads"
    The ValueError does not say which numbers were wrong. Name d_model and num_heads in it: who
    reads the message wants to know which of the two to change.
gradient_cut: + x = x.detach()
    No gradient flows back: the heads are made from x.detach(), x.data or a NumPy array, so whatever
    produced x can never learn.
always_float: + x = x.float()
    The result is always float32. Splitting moves numbers; it does not change their dtype.
strides_assumed
    - x = x.reshape(*x.shape[:-1], num_heads, d_model // num_heads)
    - return x.transpose(-3, -2)
    + (B, n, d), d_k = x.shape, d_model // num_heads
    + return torch.as_strided(x, (B, num_heads, n, d_k), (n * d, d_k, d, 1))
    Strides are computed as if x lay contiguously in memory. x may be a view of something larger;
    reshape and transpose know its real strides.
""")


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

MERGE_HEADS.changes("""
merge_without_transpose: x.transpose(-3, -2).reshape → x.reshape
    The heads are joined without exchanging the axes first. The shape (B, n, H·d_k) is right, but
    each row now holds several positions of one head instead of one position of all heads.
view_after_transpose: reshape → view
    `view` refuses what transpose made: the numbers no longer lie in memory in that order. Use
    reshape, which copies where it must, or .contiguous() before the view.
features_of_heads_interleaved: x.transpose(-3, -2) → x.permute(0, 2, 3, 1)
    The features of the heads alternate: feature 0 of each head, then feature 1 of each head. All of
    head 0 comes first.
sizes_read_in_another_order: num_heads, n, d_k = → n, num_heads, d_k =
    The sizes are read as (B, n, H, d_k), but x is (B, H, n, d_k): the result has as many rows as
    there are heads. With as many heads as positions, the shape alone does not show it.
wrong_axes_exchanged: x.transpose(-3, -2) → x.transpose(2, 3)
    The last two axes, positions and features, are exchanged before joining. Exchange heads and
    positions: axes 1 and 2.
heads_added: + return x.sum(dim=1)
    The heads are added up, and d_k features remain. They are concatenated: H·d_k features.
heads_averaged: + return x.mean(dim=1)
    The heads are averaged, and d_k features remain. They are concatenated: H·d_k features.
joined_as_positions: + return torch.cat(x.unbind(1), dim=1)
    The heads are put one after the other along the positions, (B, H·n, d_k), instead of along the
    features.
last_head_first: + return torch.cat(x.unbind(1)[::-1], dim=-1)
    The heads are concatenated backwards: the last one stands first.
gradient_cut_in_merging: + x = x.detach()
    No gradient flows back: the result is made from x.detach(), x.data or a NumPy array.
merged_as_float: + x = x.float()
    The result is always float32. Merging moves numbers; it does not change their dtype.
merge_with_strides_assumed
    - return x.transpose(-3, -2).reshape(*batch, n, num_heads * d_k)
    + size, strides = (*batch, n, num_heads, d_k), (num_heads * n * d_k, d_k, n * d_k, 1)
    + return torch.as_strided(x, size, strides).reshape(*batch, n, num_heads * d_k)
    Strides are computed as if x lay contiguously in memory. x may be a view of something larger;
    reshape and transpose know its real strides.
""")


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

MULTI_HEAD_NUMPY.changes("""
numpy_split_by_view
    ~ x.reshape(-1, num_heads, d_k).swapaxes(0, 1) → x.reshape(num_heads, -1, d_k)
    (n, d) is cut straight to (H, n, d_k): the shape is right, but each head gets a few whole
    positions in pieces. Cut to (n, H, d_k) first, and exchange the axes then.
numpy_merge_without_transpose: (weights @ v).swapaxes(0, 1) → (weights @ v)
    The heads (H, n_q, d_k) are reshaped to (n_q, d) without exchanging the axes first, so that a
    row holds several positions of one head.
numpy_split_and_merge_by_view
    ~ x.reshape(-1, num_heads, d_k).swapaxes(0, 1) → x.reshape(num_heads, -1, d_k)
    ~ (weights @ v).swapaxes(0, 1) → (weights @ v)
    Both the split and the merge are plain reshapes. With one query per key they undo each other,
    which looks like a proof; but each head attends among pieces of positions.
scaled_by_d_model: math.sqrt(d_k) → math.sqrt(d_model)
    The scores are divided by √d. A head's dot product has d_k = d / H terms: divide by √d_k.
scaled_by_d_k_without_root: math.sqrt(d_k) → d_k
    The scores are divided by d_k instead of its square root.
scaled_by_num_heads: math.sqrt(d_k) → math.sqrt(num_heads)
    The scores are divided by √H, the number of heads. It is √d_k: a dot product has as many terms
    as a head has features.
maps_averaged: (weights @ v).swapaxes(0, 1).reshape(n_q, d_model) → weights.mean(axis=0) @ value
    The heads' weights are averaged, and the average is applied to whole values. Then there is one
    answer again. Each head's weights average its own slice of the values.
not_scaled: k.swapaxes(1, 2) / math.sqrt(d_k) → k.swapaxes(1, 2)
    The scores are not divided by √d_k.
one_wide_head: + num_heads = 1
    num_heads is not used: this is one head over all the features.
softmax_over_queries: axis=-1 → axis=1 ×2
    The weights of a key sum to 1 over the queries. Each query's weights must sum to 1 over the
    keys: the last axis of the scores.
softmax_over_heads: axis=-1 → axis=0 ×2
    The softmax runs over the heads, axis 0, so that heads compete instead of keys. Each head has
    its own softmax over the keys.
keys_averaged: weights @ v → weights @ k
    The weights are applied to the keys. Keys find the weights; values are what is averaged.
interleaved
    ~ (-1, num_heads, d_k).swapaxes(0, 1) → (-1, d_k, num_heads).transpose(2, 0, 1)
    ~ (weights @ v).swapaxes(0, 1) → (weights @ v).transpose(1, 2, 0)
    Head h works on every H-th feature instead of d_k features in a row.
overflow: scores - scores.max(axis=-1, keepdims=True) → scores
    exp overflows where a score is large: subtract the largest score of each row first.
one_largest_for_all: scores.max(axis=-1, keepdims=True) → scores.max()
    The largest score of the whole array is subtracted instead of each row's own: a row that lies
    far below it underflows to zeros, and 0/0 is NaN.
widened: math.sqrt → np.sqrt
    float32 becomes float64: np.sqrt of an integer is a float64 number, and widens the array that it
    divides. math.sqrt(d_k) and d_k**0.5 are plain Python numbers and leave the dtype alone.
query_scaled_in_place
    > if query.dtype.kind == "f":
    >     query /= math.sqrt(d_k)
    The caller's query is divided in place: `query / …` makes a new array, `query /= …` none.
generator_seeded: + np.random.seed(0)
    A global setting is left changed: a seed, or how NumPy treats warnings. Nothing here is random
    and nothing needs silencing; what does belongs into `with np.errstate(…)`, which ends.
""")


# --- multi_head_numpy: right --------------------------------------------------------------------


def _cut(x, num_heads):
    return x.reshape(len(x), num_heads, -1).swapaxes(0, 1)


def _joined(heads):
    return heads.swapaxes(0, 1).reshape(heads.shape[1], -1)


def _softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


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
    q, k, v = (_cut(x.astype(np.float64), num_heads) for x in (query, key, value))
    out = _joined(_softmax(q / math.sqrt(q.shape[-1]) @ k.swapaxes(1, 2)) @ v)
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

MULTI_HEAD_ATTENTION.changes("""
mha_split_by_view: split_heads( → SPLIT_HEADS.mistakes["split_by_view"]( ×3
    The projections are reshaped straight to (B, H, n, d_k). The shape is right, but each head gets
    a few whole positions in pieces. Reshape to (B, n, H, d_k), then transpose.
mha_merge_without_transpose: merge_heads( → MERGE_HEADS.mistakes["merge_without_transpose"](
    The heads (B, H, n_q, d_k) are reshaped to (B, n_q, d_model) without the transpose: a row holds
    several positions of one head.
mha_split_and_merge_by_view
    ~ split_heads( → SPLIT_HEADS.mistakes["split_by_view"]( ×3
    ~ merge_heads( → MERGE_HEADS.mistakes["merge_without_transpose"](
    Split and merge are both plain reshapes, which undo each other, so shapes fit everywhere; but
    the heads attend among pieces of positions.
mha_scaled_by_d_model: math.sqrt(q.shape[-1]) → math.sqrt(query.shape[-1])
    The scores are divided by √d_model. A head's dot product has d_k = d_model / H terms: divide by
    √d_k.
mha_scaled_by_d_k_without_root: math.sqrt(q.shape[-1]) → q.shape[-1]
    The scores are divided by d_k instead of its square root.
mha_scaled_by_num_heads: math.sqrt(q.shape[-1]) → math.sqrt(self.num_heads)
    The scores are divided by √H, the number of heads. It is √d_k: a dot product has as many terms
    as a head has features.
mha_not_scaled: k.transpose(-2, -1) / math.sqrt(q.shape[-1]) → k.transpose(-2, -1)
    The scores are not divided by √d_k.
W_o_forgotten: self.W_o(merge_heads(applied @ v)) → merge_heads(applied @ v)
    The concatenated heads are returned as they are. W_o mixes them; without it, the heads never
    meet.
one_projection_shared: W_k(key) → W_q(key) ; W_v(value) → W_q(value)
    Queries, keys and values all go through W_q. Each has a projection of its own.
query_projection_for_keys: W_k(key) → W_q(key)
    The keys go through W_q, and W_k is never used.
key_projection_for_values: W_v(value) → W_k(value)
    The values go through W_k, and W_v is never used.
key_and_value_projections_swapped: W_k(key) → W_v(key) ; W_v(value) → W_k(value)
    W_k projects the values and W_v the keys. A fresh module learns all the same; loaded parameters
    show it.
key_and_value_swapped: W_k(key) → W_k(value) ; W_v(value) → W_v(key)
    The argument `key` is used as the value and `value` as the key. In self-attention the two are
    one and nothing shows.
values_from_the_keys: W_v(value) → W_v(key)
    The values are made from the argument `key`, and `value` is never used.
everything_from_the_query: W_k(key) → W_k(query) ; W_v(value) → W_v(query)
    Keys and values are made from the argument `query`; `key` and `value` are never used. In
    self-attention the three are one and nothing shows.
batch_and_heads_exchanged
    - return self.W_o(merge_heads(applied @ v)), weights
    + B, H, n, d_k = q.shape
    + heads = (applied @ v).reshape(H, B, n, d_k).permute(1, 2, 0, 3).reshape(B, n, H * d_k)
    + return self.W_o(heads), weights
    Heads and batch are exchanged on the way: the result is put together as if (H, B, …) were (B, H,
    …), so that sequences of the batch get each other's heads.
mha_softmax_over_heads: dim=-1 → dim=1
    The softmax runs over the heads (dim=1), so that heads compete instead of keys.
mha_softmax_over_queries: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2): a row of weights does not sum to 1.
one_head_only
    ~ split_heads(self.W_q(query), self.num_heads) → self.W_q(query)[:, None]
    ~ split_heads(self.W_k(key), self.num_heads) → self.W_k(key)[:, None]
    ~ (scores, dim=-1) → (scores, dim=-1).expand(-1, self.num_heads, -1, -1)
    num_heads is not used: one head attends over all the features.
weights_averaged: )), weights → )), weights.mean(1)
    The weights returned are averaged over the heads, (B, n_q, n_k), as torch's module does by
    default. Return those of every head: (B, H, n_q, n_k).
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
always_biased: bias=bias → bias=True ×4
    With bias=False there are biases all the same. Pass `bias` to each of the four nn.Linear.
head_mask_ignored: + head_mask = None
    head_mask is accepted and not used.
head_mask_inverted: head_mask[:, None, None] → (1 - head_mask[:, None, None])
    The heads are multiplied by 1 − head_mask: 0 must switch a head off, and 1 leave it alone.
head_mask_on_the_scores
    - applied = self.dropout(weights)
    - if head_mask is not None:
    -     applied = applied * head_mask[:, None, None]
    + if head_mask is not None:
    +     scores = scores * head_mask[:, None, None]
    + applied = self.dropout(torch.softmax(scores, dim=-1))
    head_mask multiplies the scores. Scores of 0 are no silence: their softmax is an average of
    everything. Multiply the weights, after the softmax.
masked_weights_returned
    - applied = applied * head_mask[:, None, None]
    + applied = applied * head_mask[:, None, None]
    + weights = weights * head_mask[:, None, None]
    The weights returned are those that head_mask has multiplied. Return them as they were:
    head_mask is about what a head contributes, not about where it looks.
heads_selected: head_mask[:, None, None] → (head_mask != 0)[:, None, None]
    head_mask is taken for a choice: a head counts whole unless its number is 0. It multiplies, so
    that 0.5 is half a head.
dropout_forgotten: nn.Dropout(dropout) → nn.Dropout(0.0)
    `dropout` is accepted and not used: training drops no weight.
dropout_on_the_output
    ~ self.dropout(weights) → weights
    ~ self.W_o(merge_heads(applied @ v)) → self.dropout(self.W_o(merge_heads(applied @ v)))
    Dropout acts on the output instead of on the weights.
dropped_weights_returned
    ~ torch.softmax(scores, dim=-1) → self.dropout(torch.softmax(scores, dim=-1))
    ~ applied = self.dropout(weights) → applied = weights
    The weights returned are those after dropout: in training, a part of them is 0 and rows do not
    sum to 1. Return the weights before dropout.
applied_weights_returned: )), weights → )), applied
    The weights returned are those that are applied, after dropout and head_mask. Return them as the
    softmax gave them: where a head looks, whatever became of it.
dropout_in_eval: self.dropout(weights) → F.dropout(weights, self.dropout.p)
    Dropout is active in eval mode too: two calls give two answers. nn.Dropout knows the mode of its
    module; F.dropout must be told, training=self.training.
weights_detached: self.dropout(weights) → self.dropout(weights).detach()
    The weights are detached before they are applied: no gradient reaches W_q and W_k, and the
    module never learns where to look.
returned_weights_detached: )), weights → )), weights.detach()
    The output is right, but the weights returned are cut off from it: a loss that looks at them
    cannot teach W_q and W_k anything. Return the weights that the softmax gave.
naive_softmax
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large. torch.softmax subtracts the largest score first.
no_error
    ~ raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}") → pass
    ~ W_o = nn.Linear(d_model → W_o = nn.Linear(d_model // num_heads * num_heads
    ~ split_heads( → SPLIT_HEADS.mistakes["rest_dropped"]( ×3
    Where d_model is not divisible by num_heads, features are left over without a word. Raise a
    ValueError that names both numbers.
mha_error_left_to_reshape
    ~ d_model % num_heads != 0 → False
    ~ split_heads( → SPLIT_HEADS.mistakes["error_left_to_reshape"]( ×3
    Uneven heads fail inside reshape at the first call, with a RuntimeError about sizes. Test for it
    when the module is built, and raise a ValueError that names d_model and num_heads.
mha_asserted: ValueError → AssertionError
    Uneven heads end in an AssertionError. An assert is for what cannot happen; for a caller's wrong
    number, raise a ValueError.
mha_error_without_numbers
    - f"d_model = {d_model} is not divisible by num_heads = {num_heads}"
    + "d_model must be divisible by num_heads"
    The ValueError does not say which numbers were wrong. Name d_model and num_heads in it: who
    reads the message wants to know which of the two to change.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, torch's default dtype for instance. Such settings belong to
    the program, not to a module; a module has `.to(dtype)`.
mha_query_in_place
    > with torch.no_grad():
    >     query.sub_(query.mean())
    The caller's query is written over. Make a new tensor: `query - …`, not `query -= …`.
""")


# --- MultiHeadAttention: right ------------------------------------------------------------------


class _Attention(right.MultiHeadAttention):
    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(value)

    def apply_mask(self, weights, head_mask):
        return weights if head_mask is None else weights * head_mask.reshape(-1, 1, 1)


@MULTI_HEAD_ATTENTION.right
class ByEinsum(_Attention):
    def forward(self, query, key, value, head_mask=None):
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)) for x in self.project(query, key, value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.size(-1))
        weights = F.softmax(scores, dim=3)
        applied = self.apply_mask(self.dropout(weights), head_mask)
        return self.W_o(torch.einsum("bhqk,bkhd->bqhd", applied, v).flatten(2)), weights


@MULTI_HEAD_ATTENTION.right
class ByLoopOverHeads(_Attention):
    def forward(self, query, key, value, head_mask=None):
        parts = [x.chunk(self.num_heads, -1) for x in self.project(query, key, value)]
        outs, seen = [], []
        for h, (q, k, v) in enumerate(zip(*parts, strict=True)):
            weights = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
            out = self.dropout(weights) @ v
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
        heads = torch.bmm(self.dropout(weights), v).unflatten(0, (B, H))
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
        p = self.dropout.p if self.training else 0.0
        return self.W_o(
            F.scaled_dot_product_attention(q, k, v, dropout_p=p).transpose(1, 2).flatten(2)
        ), weights


@MULTI_HEAD_ATTENTION.right
class InDoublePrecision(_Attention):
    """float64 between the projections, and W_o applied slice by slice."""

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (self.split(x).double() for x in self.project(query, key, value))
        weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), -1)
        heads = F.dropout(weights, self.dropout.p, self.training) @ v
        if head_mask is not None:
            heads = torch.einsum("bhqd,h->bhqd", heads, head_mask.double())
        W = self.W_o.weight.double().unflatten(1, (self.num_heads, -1))  # (d_model, H, d_k)
        out = torch.einsum("bhqd,mhd->bqm", heads, W).to(query.dtype)
        out = out if self.W_o.bias is None else out + self.W_o.bias
        return out, weights.to(query.dtype)


# --- load_torch_weights: mistakes ---------------------------------------------------------------

LOAD_TORCH_WEIGHTS.changes("""
bias_lost: torch_attention.in_proj_bias is not None → False
    The weights are copied and the biases are not. nn.MultiheadAttention starts with zero biases, so
    a fresh one hides it.
nothing_copied: + return attention
    Nothing arrives: `attention` has the numbers that it had. Giving a variable a new value does not
    write into the tensor that it stood for.
packed_bias_lost: ours.bias.copy_(bias) → pass
    in_proj_bias is not copied, only the bias of out_proj.
output_bias_lost: - attention.W_o.bias.copy_(torch_attention.out_proj.bias)
    The bias of out_proj is not copied.
output_projection_lost
    - attention.W_o.weight.copy_(torch_attention.out_proj.weight)
    ~ attention.W_o.bias.copy_(torch_attention.out_proj.bias) → pass
    out_proj is not copied: W_o keeps its own numbers.
packed_order_misread: attention.W_k, attention.W_v → attention.W_v, attention.W_k
    The second third of in_proj_weight is taken for the values and the last for the keys. torch
    packs query, key, value.
packed_keys_first: attention.W_q, attention.W_k → attention.W_k, attention.W_q
    The first third of in_proj_weight is taken for the keys and the second for the queries. torch
    packs query, key, value.
bias_order_misread
    - zip(packed, torch_attention.in_proj_bias
    + zip([packed[i] for i in (0, 2, 1)], torch_attention.in_proj_bias
    The weights are right, but the biases of keys and values are exchanged: in_proj_bias is packed
    query, key, value, as the weight is.
every_third_row
    - torch_attention.in_proj_weight.chunk(3)
    + [torch_attention.in_proj_weight[i::3] for i in range(3)]
    - torch_attention.in_proj_bias.chunk(3)
    + [torch_attention.in_proj_bias[i::3] for i in range(3)]
    Every third row of in_proj_weight is taken. The three matrices are stacked, d_model rows each,
    not interleaved.
weights_transposed: copy_(weight) → copy_(weight.T) ; out_proj.weight → out_proj.weight.T
    The weights are transposed. in_proj_weight and nn.Linear both hold (out, in): copy as is.
output_transposed: out_proj.weight → out_proj.weight.T
    The weight of out_proj is transposed. It is an nn.Linear like W_o: copy it as it is.
bias_expected: torch_attention.in_proj_bias is not None → True
    A module without biases ends in an error: its in_proj_bias is None. Ask before copying.
views_taken
    ~ ours.weight.copy_(weight) → ours.weight.data = weight
    - W_o.weight.copy_(torch_attention.out_proj.weight)
    + W_o.weight.data = torch_attention.out_proj.weight.data
    ~ ours.bias.copy_(bias) → ours.bias.data = bias
    - W_o.bias.copy_(torch_attention.out_proj.bias)
    + W_o.bias.data = torch_attention.out_proj.bias.data
    Parameters of ours are torch's own, or views of them, so that the two modules share their
    memory: training one trains the other. Copy the numbers.
frozen: > result = result.requires_grad_(False)
    The parameters no longer ask for a gradient: the module can never be trained on. Copy under
    torch.no_grad(), and leave requires_grad as it was.
nothing_returned: - return attention
    The copy is right, but the function returns nothing. Return the attention.
torchs_module_returned: return attention → return torch_attention
    torch's module is returned. Return ours.
new_module_filled
    + from copy import deepcopy
    + attention = deepcopy(attention)
    A new module gets the parameters, and the one that was given stays as it was.
copied_the_wrong_way
    ~ ours.weight.copy_(weight) → weight.copy_(ours.weight)
    - attention.W_o.weight.copy_(torch_attention.out_proj.weight)
    + torch_attention.out_proj.weight.copy_(attention.W_o.weight)
    ~ ours.bias.copy_(bias) → bias.copy_(ours.bias)
    - attention.W_o.bias.copy_(torch_attention.out_proj.bias)
    + torch_attention.out_proj.bias.copy_(attention.W_o.bias)
    Our parameters are copied into torch's module. It is torch's that should arrive in ours.
settings_left_changed: + torch.set_grad_enabled(False)
    The copy is right, but something else has changed: gradients stay switched off for the whole
    program (`with torch.no_grad():` ends by itself, set_grad_enabled(False) does not), a module is
    in another mode, or random numbers were drawn, as a new nn.Linear does for its first parameters.
""")


# --- load_torch_weights: right ------------------------------------------------------------------


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

HEAD_IMPORTANCE.changes("""
all_the_others_masked: 1 - torch.eye → torch.eye
    The mask is the wrong way round: it keeps head h and silences all the others. 1 keeps a head, 0
    masks it.
masks_pile_up
    - 1 - torch.eye(attention.num_heads, dtype=x.dtype, device=x.device)
    + x.new_ones(attention.num_heads, attention.num_heads).triu(1)
    Each round masks one head more: those masked before stay so. Begin every round with a mask of
    ones.
weights_compared: full, _ → _, full ; head_mask=mask)[0] → head_mask=mask)[1]
    The weights are compared instead of the outputs. A head mask leaves them as they are, so every
    head has importance 0.
output_of_the_head_alone: 1 - torch.eye → torch.eye ; (full - out) → out
    The length of the output with head h alone is taken. The bias of W_o is still in it: take the
    difference of two outputs, in which it cancels.
mean_squared_difference: norm(dim=-1) → square()
    The mean squared difference of the numbers is taken. The length of a vector is the root of the
    sum of its squares, position by position.
mean_under_the_root: norm(dim=-1) → square().mean(-1).sqrt()
    The squares are averaged over the features under the root. A length adds them up: yours is too
    small by √d_model.
sum_of_absolute_differences: norm(dim=-1) → abs().sum(-1)
    The absolute differences are added up over the features. The Euclidean length is the root of the
    sum of squares.
length_squared: norm(dim=-1) → square().sum(-1)
    The squared length of the difference is averaged. Take the root at each position first.
root_of_the_mean: norm(dim=-1).mean() → square().sum(-1).mean().sqrt()
    The root is taken after the mean (a root mean square). Average the lengths.
summed_not_averaged: mean() → sum()
    The lengths are added up over batch and positions instead of averaged: a longer text makes every
    head more important.
averaged_over_positions_only: mean() → mean(1).sum()
    The lengths are averaged over the positions and added up over the batch.
one_norm_of_everything: norm(dim=-1).mean() → norm()
    One length is taken over batch, positions and features together. The length is that of the
    feature vector at each position; batch and positions are averaged over.
norm_over_positions: norm(dim=-1) → norm(dim=1)
    The length is taken along the positions and the mean over the features. It is the other way
    round: norm(dim=-1).
mean_absolute_difference: norm(dim=-1) → abs()
    The mean absolute difference of the numbers is taken instead of the length of the vectors.
difference_of_lengths: (full - out).norm(dim=-1) → (full.norm(dim=-1) - out.norm(dim=-1)).abs()
    The lengths of the two outputs are subtracted, instead of taking the length of their difference:
    an output that turns without shrinking counts as unchanged.
shares_of_one: > result = result / result.sum()
    The result is divided by its sum. The importance of a head is a length, not a share.
relative_to_the_output: norm(dim=-1).mean() → norm(dim=-1).div(full.norm(dim=-1)).mean()
    The length of the difference is divided by that of the full output. Return the length itself.
first_sequence_only: + x = x[:1]
    Only the first sequence of the batch is looked at.
weights_overwritten: > attention.W_o.weight.zero_()
    The module's own parameters are set to 0 to silence a head, and they stay so. Use head_mask,
    which leaves the module as it was.
left_in_training_mode: > attention.train()
    The module's mode, or a setting of all of torch, is left changed. Whoever calls you has chosen
    both.
left_in_eval_mode: + attention.eval()
    The module is switched to eval mode and stays there: whoever trains it after your call trains
    without dropout. Leave the mode as it is, or put it back.
before_the_output_projection
    + with torch.no_grad():
    +     v = split_heads(attention.W_v(x), attention.num_heads)
    +     return (attention(x, x, x)[1] @ v).norm(dim=-1).mean((0, 2))
    The length of the head's own output is taken, before W_o. A head matters by what W_o makes of
    it: compare the outputs of the whole module.
importance_as_float32: > result = result.float()
    The result is always float32. Keep the dtype of x.
""")


# --- head_importance: right ---------------------------------------------------------------------


def _one_hot(attention, x):
    return torch.eye(attention.num_heads, dtype=x.dtype, device=x.device)


def _difference(attention, x):
    """full − output with head h masked, for each h: (H, B, n, d_model)."""
    with torch.no_grad():
        full = attention(x, x, x)[0]
        masks = 1 - _one_hot(attention, x)
        return torch.stack([full - attention(x, x, x, head_mask=mask)[0] for mask in masks])


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
