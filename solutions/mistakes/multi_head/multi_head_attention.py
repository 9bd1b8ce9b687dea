"""Known answers to `MultiHeadAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import multi_head as right
from solutions.mistakes.multi_head.split_heads import BANK as SPLIT_HEADS

BANK = Bank("MultiHeadAttention", right, globals())


def merged_without_transpose(x):
    B, H, n, d_k = x.shape
    return x.reshape(B, n, H * d_k)


BANK.changes("""
mha_split_by_view: split_heads( → SPLIT_HEADS.mistakes["split_by_view"]( ×3
    The projections are reshaped straight to (B, H, n, d_k). The shape is right, but each head gets
    a few whole positions, cut into pieces, instead of a slice of every position.
mha_merge_without_transpose: merge_heads( → merged_without_transpose(
    The heads (B, H, n_q, d_k) are reshaped to (B, n_q, d_model) without the transpose: a row holds
    several positions of one head.
mha_split_and_merge_by_view
    ~ split_heads( → SPLIT_HEADS.mistakes["split_by_view"]( ×3
    ~ merge_heads( → merged_without_transpose(
    Split and merge are both plain reshapes, which undo each other, so shapes fit everywhere; but
    the heads attend to pieces of positions.
mha_scaled_by_d_model: math.sqrt(q.shape[-1]) → math.sqrt(query.shape[-1])
    The scores are divided by √d_model. A head's dot product has d_k = d_model / H terms, so the
    divisor is √d_k.
mha_scaled_by_d_k_without_root: math.sqrt(q.shape[-1]) → q.shape[-1]
    The scores are divided by d_k instead of its square root.
mha_scaled_by_num_heads: math.sqrt(q.shape[-1]) → math.sqrt(self.num_heads)
    The scores are divided by √H, from the number of heads. It should be √d_k: a dot product has as
    many terms as a head has features.
mha_not_scaled: k.transpose(-2, -1) / math.sqrt(q.shape[-1]) → k.transpose(-2, -1)
    The scores are not divided by √d_k.
W_o_forgotten: self.W_o(merge_heads(applied @ v)) → merge_heads(applied @ v)
    The concatenated heads are returned without W_o, which mixes them; without it, the heads never
    meet.
one_projection_shared: W_k(key) → W_q(key) ; W_v(value) → W_q(value)
    Queries, keys and values all go through W_q. Each has its own projection.
query_projection_for_keys: W_k(key) → W_q(key)
    The keys go through W_q, and W_k is never used.
key_projection_for_values: W_v(value) → W_k(value)
    The values go through W_k, and W_v is never used.
key_and_value_projections_swapped: W_k(key) → W_v(key) ; W_v(value) → W_k(value)
    W_k projects the values and W_v the keys. A fresh module learns just as well; loaded parameters
    reveal it.
key_and_value_swapped: W_k(key) → W_k(value) ; W_v(value) → W_v(key)
    The argument `key` is used as the value and `value` as the key. In self-attention the two are
    the same, and nothing shows.
values_from_the_keys: W_v(value) → W_v(key)
    The values are computed from the argument `key`, and `value` is never used.
everything_from_the_query: W_k(key) → W_k(query) ; W_v(value) → W_v(query)
    Keys and values are computed from the argument `query`; `key` and `value` are never used. In
    self-attention the three are the same, and nothing shows.
batch_and_heads_exchanged
    - return self.W_o(merge_heads(applied @ v)), weights
    + B, H, n, d_k = q.shape
    + heads = (applied @ v).reshape(H, B, n, d_k).permute(1, 2, 0, 3).reshape(B, n, H * d_k)
    + return self.W_o(heads), weights
    Heads and batch are exchanged on the way: the result is put together as if (H, B, …) were (B, H,
    …), so sequences in the batch get each other's heads.
mha_softmax_over_heads: dim=-1 → dim=1
    The softmax runs over the heads (dim=1), so heads compete instead of keys.
mha_softmax_over_queries: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2): a row of the weights does not sum to 1.
one_head_only
    ~ split_heads(self.W_q(query), self.num_heads) → self.W_q(query)[:, None]
    ~ split_heads(self.W_k(key), self.num_heads) → self.W_k(key)[:, None]
    ~ (scores, dim=-1) → (scores, dim=-1).expand(-1, self.num_heads, -1, -1)
    num_heads is not used: one head attends over all features.
weights_averaged: )), weights → )), weights.mean(1)
    The returned weights are averaged over the heads, (B, n_q, n_k), as torch's module does by
    default. Return those of every head: (B, H, n_q, n_k).
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
always_biased: bias=bias → bias=True ×4
    There are biases even with bias=False. All four nn.Linear should follow `bias`.
head_mask_ignored: + head_mask = None
    head_mask is accepted and not used.
head_mask_inverted: head_mask[:, None, None] → (1 - head_mask[:, None, None])
    The heads are multiplied by 1 − head_mask: 0 must switch a head off, and 1 must leave it alone.
head_mask_over_the_keys: head_mask[:, None, None] → head_mask
    head_mask meets the last axis of the weights, that of the keys. There is a factor for each head:
    two axes of length 1 have to follow it.
head_mask_on_the_scores
    - applied = self.dropout(weights)
    - if head_mask is not None:
    -     applied = applied * head_mask[:, None, None]
    + if head_mask is not None:
    +     scores = scores * head_mask[:, None, None]
    + applied = self.dropout(torch.softmax(scores, dim=-1))
    head_mask multiplies the scores. Scores of 0 do not silence a head: their softmax averages
    everything. It should multiply the weights, after the softmax.
masked_weights_returned
    - applied = applied * head_mask[:, None, None]
    + applied = applied * head_mask[:, None, None]
    + weights = weights * head_mask[:, None, None]
    The returned weights have been multiplied by head_mask. Return them as they were: head_mask
    concerns what a head contributes, not where it looks.
heads_selected: head_mask[:, None, None] → (head_mask != 0)[:, None, None]
    head_mask is treated as on or off: any number but 0 leaves the head whole. It multiplies, so 0.5
    is half a head.
dropout_forgotten: nn.Dropout(dropout) → nn.Dropout(0.0)
    `dropout` is accepted and not used: no weight is dropped in training.
dropout_on_the_output
    ~ self.dropout(weights) → weights
    ~ self.W_o(merge_heads(applied @ v)) → self.dropout(self.W_o(merge_heads(applied @ v)))
    Dropout acts on the output instead of on the weights.
dropped_weights_returned
    ~ torch.softmax(scores, dim=-1) → self.dropout(torch.softmax(scores, dim=-1))
    ~ applied = self.dropout(weights) → applied = weights
    The returned weights are those after dropout: in training, some of them are 0 and rows do not
    sum to 1. Return the weights before dropout.
applied_weights_returned: )), weights → )), applied
    The returned weights are those that are applied, after dropout and head_mask. Return the output
    of the softmax: where a head looks, whatever becomes of it.
dropout_in_eval: self.dropout(weights) → F.dropout(weights, self.dropout.p)
    Dropout is active even in eval mode: two calls give two different answers. nn.Dropout knows the
    mode of its module; F.dropout has to be told.
weights_detached: self.dropout(weights) → self.dropout(weights).detach()
    The weights are detached before they are applied: the output passes no gradient on to W_q and
    W_k, and the module never learns where to look.
returned_weights_detached: )), weights → )), weights.detach()
    The output is right, but the returned weights are detached: a loss computed from them cannot
    teach W_q and W_k anything.
naive_softmax
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large. torch's softmax guards against that.
no_error
    ~ raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}") → pass
    ~ W_o = nn.Linear(d_model → W_o = nn.Linear(d_model // num_heads * num_heads
    ~ split_heads( → SPLIT_HEADS.mistakes["rest_dropped"]( ×3
    Where d_model is not divisible by num_heads, features are silently left over. It should raise a
    ValueError that names both numbers.
mha_error_left_to_reshape
    ~ d_model % num_heads != 0 → False
    ~ split_heads( → SPLIT_HEADS.mistakes["error_left_to_reshape"]( ×3
    A d_model not divisible by num_heads fails inside reshape at the first call, with a RuntimeError
    about sizes. It should fail when the module is built, with a ValueError that names both numbers.
mha_error_when_called
    ~ raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}") → pass
    A module whose d_model is not divisible by num_heads can be built, and fails at its first call,
    in split_heads. It should fail in `__init__`: whoever builds it needs to hear of it there.
mha_asserted: ValueError → AssertionError
    A d_model not divisible by num_heads raises an AssertionError. An assert is for what cannot
    happen; a caller's wrong number deserves a ValueError.
mha_error_without_numbers
    - f"d_model = {d_model} is not divisible by num_heads = {num_heads}"
    + "d_model must be divisible by num_heads"
    The ValueError does not say which numbers are wrong. Name d_model and num_heads: whoever reads
    the message wants to know which of the two to change.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a module; a module has `.to(dtype)`.
mha_query_in_place
    > with torch.no_grad():
    >     query.sub_(query.mean())
    The caller's query is overwritten: an operation such as `-=` writes into the tensor that was
    passed in.
query_not_projected: self.W_q(query) → query
    The queries are split into heads as they come: W_q is not used.
key_not_projected: self.W_k(key) → key
    The keys are split into heads as they come: W_k is not used.
value_not_projected: self.W_v(value) → value
    The values are split into heads as they come: W_v is not used.
mha_softmax_forgotten: torch.softmax(scores, dim=-1) → scores
    The scores serve as weights, without a softmax.
head_mask_repeated
    - applied = applied * head_mask[:, None, None]
    + factors = head_mask.repeat(q.shape[-1])
    + return self.W_o(merge_heads(applied @ v) * factors), weights
    `repeat` gives m_0 m_1 … m_0 m_1 …, so every head's features get all the factors in turn. After
    merging, a head's features lie side by side: `repeat_interleave` gives m_0 m_0 … m_1 m_1 …
head_mask_after_the_output_projection
    - applied = applied * head_mask[:, None, None]
    + factors = head_mask.repeat_interleave(q.shape[-1])
    + return self.W_o(merge_heads(applied @ v)) * factors, weights
    head_mask multiplies the output of W_o. There the heads are mixed: each feature holds something
    of all of them. A head can be silenced before W_o only.
masked_heads_at_minus_infinity
    - applied = applied * head_mask[:, None, None]
    + masked = scores.masked_fill(head_mask[:, None, None] == 0, -torch.inf)
    + applied = self.dropout(torch.softmax(masked, dim=-1))
    The scores of a masked head are set to −∞. That is for single keys: where every score is −∞,
    softmax gives NaN. head_mask is a factor, which may be ½ as well as 0.
""")


class _Attention(right.MultiHeadAttention):
    def split(self, x):
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def project(self, query, key, value):
        return self.W_q(query), self.W_k(key), self.W_v(value)

    def apply_mask(self, weights, head_mask):
        return weights if head_mask is None else weights * head_mask.reshape(-1, 1, 1)


@BANK.right
class ByEinsum(_Attention):
    def forward(self, query, key, value, head_mask=None):
        q, k, v = (x.unflatten(-1, (self.num_heads, -1)) for x in self.project(query, key, value))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.size(-1))
        weights = F.softmax(scores, dim=3)
        applied = self.apply_mask(self.dropout(weights), head_mask)
        return self.W_o(torch.einsum("bhqk,bkhd->bqhd", applied, v).flatten(2)), weights


@BANK.right
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


@BANK.right
class HeadsInTheBatch(_Attention):
    """Batch and heads in one axis, as torch.bmm requires; the mask on the heads' outputs."""

    def forward(self, query, key, value, head_mask=None):
        B, H = query.shape[0], self.num_heads
        q, k, v = (self.split(x).flatten(0, 1) for x in self.project(query, key, value))
        weights = torch.bmm(q * q.shape[-1] ** -0.5, k.transpose(1, 2)).softmax(-1)
        heads = torch.bmm(self.dropout(weights), v).unflatten(0, (B, H))
        if head_mask is not None:
            heads = heads * head_mask[None, :, None, None]
        return self.W_o(heads.permute(0, 2, 1, 3).flatten(2)), weights.unflatten(0, (B, H))


@BANK.right
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


@BANK.right
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


forgotten(BANK, "query")
