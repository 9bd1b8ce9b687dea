"""Known answers to `GroupedQueryAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right

BANK = Bank("GroupedQueryAttention", right, globals())

BANK.changes("""
heads_by_remainder
    ~ k.repeat_interleave(shared_by, dim=1) → k.repeat(1, shared_by, 1, 1)
    ~ v.repeat_interleave(shared_by, dim=1) → v.repeat(1, shared_by, 1, 1)
    The key/value heads are repeated as a whole, so that query head h uses h % num_kv_heads.
    Neighbours should share: h // (num_heads / num_kv_heads).
keys_and_values_of_different_groups
    ~ v.repeat_interleave(shared_by, dim=1) → v.repeat(1, shared_by, 1, 1)
    The keys are shared by neighbours, the values are repeated as a whole: a query head finds its
    keys in one group and takes the values of another.
groups_from_the_end
    ~ k.repeat_interleave(shared_by, dim=1) → k.flip(1).repeat_interleave(shared_by, dim=1)
    ~ v.repeat_interleave(shared_by, dim=1) → v.flip(1).repeat_interleave(shared_by, dim=1)
    The groups are counted from the end: the first query heads use the last key/value head.
always_the_first_head
    ~ k.repeat_interleave(shared_by, dim=1) → k[:, :1].expand(-1, self.num_heads, -1, -1)
    ~ v.repeat_interleave(shared_by, dim=1) → v[:, :1].expand(-1, self.num_heads, -1, -1)
    All query heads use the first key/value head, however many there are.
group_size_of_the_kv_heads
    - shared_by = self.num_heads // self.num_kv_heads
    + h = torch.arange(self.num_heads, device=x.device)
    + which = (h // self.num_kv_heads).clamp(max=self.num_kv_heads - 1)
    ~ k.repeat_interleave(shared_by, dim=1) → k[:, which]
    ~ v.repeat_interleave(shared_by, dim=1) → v[:, which]
    Query head h uses h // num_kv_heads. The size of a group is num_heads / num_kv_heads.
heads_across_the_features
    - self.W_k(x).unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
    + self.W_k(x).unflatten(-1, (-1, self.num_kv_heads)).movedim(-1, 1)
    - self.W_v(x).unflatten(-1, (self.num_kv_heads, -1)).transpose(1, 2)
    + self.W_v(x).unflatten(-1, (-1, self.num_kv_heads)).movedim(-1, 1)
    A key/value head takes every num_kv_heads-th feature. It should take d_k features next to each
    other.
heads_split_without_transposing
    - self.W_q(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
    + self.W_q(x).reshape(len(x), self.num_heads, x.shape[1], -1)
    The queries are reshaped to (B, H, n, d_k) without a transpose, which mixes positions and
    features.
merged_without_transposing
    ~ (weights @ v).transpose(1, 2).flatten(2) → (weights @ v).reshape(x.shape)
    The heads' outputs are merged without the transpose: features of several positions are mixed.
not_scaled: / math.sqrt(q.shape[-1]) → / 1
    The scores are not divided by √d_k.
divided_by_root_d_model: math.sqrt(q.shape[-1]) → math.sqrt(x.shape[-1])
    The scores are divided by √d_model. The vectors of a head have d_k features.
divided_by_d_k: math.sqrt(q.shape[-1]) → q.shape[-1]
    The scores are divided by d_k instead of its root.
divided_by_root_d_kv: math.sqrt(q.shape[-1]) → math.sqrt(self.W_k.out_features)
    The scores are divided by the root of all key features. Those of one head are d_k.
softmax_over_queries: scores.softmax(dim=-1) → scores.softmax(dim=-2)
    The weights are normalised over the queries: the columns sum to 1, not the rows.
mask_ignored: + mask = None
    The mask is not used: every position sees all.
mask_kept_by_its_shape
    + if mask is not None:
    +     mask = vars(self).setdefault("masks", {}).setdefault(mask.shape, mask)
    The first mask of each shape is kept and used again. The next one of that shape forbids other
    keys.
mask_inverted: + mask = None if mask is None else ~mask
    The mask is inverted. True means may attend.
mask_multiplied
    - scores = scores.masked_fill(~mask, -torch.finfo(scores.dtype).max)
    + scores = scores * mask
    - weights = weights.masked_fill(~mask, 0.0)
    + weights = weights * mask.any(dim=-1, keepdim=True)
    The scores are multiplied by the mask: a forbidden key gets the score 0, which is not small.
not_renormalised: scores.masked_fill(~mask, -torch.finfo(scores.dtype).max) → scores
    The mask is applied after the softmax: the weights that are left sum to less than 1.
nothing_to_see_gives_nan
    ~ -torch.finfo(scores.dtype).max → -torch.inf
    ~ weights.masked_fill(~mask, 0.0) → weights.clone()
    A query that may attend to nothing has scores of −∞ only; their softmax is 0/0, and so are the
    gradients.
nothing_to_see_sees_all: weights.masked_fill(~mask, 0.0) → weights.clone()
    A query that may attend to nothing attends to everything alike: the softmax of equal scores. Its
    weights should be 0.
weights_after_averaging
    - self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights
    + self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights.mean(1)
    The weights are averaged over the heads. They should be (B, num_heads, n, n).
scores_returned: flatten(2)), weights → flatten(2)), scores
    The scores are returned in the place of the weights.
weights_not_returned
    - self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights
    + self.W_o((weights @ v).transpose(1, 2).flatten(2))
    The output is returned alone. Return (output, weights).
weights_first
    - return self.W_o((weights @ v).transpose(1, 2).flatten(2)), weights
    + return weights, self.W_o((weights @ v).transpose(1, 2).flatten(2))
    The weights are returned first. Return (output, weights).
last_projection_forgotten
    - self.W_o((weights @ v).transpose(1, 2).flatten(2))
    + (weights @ v).transpose(1, 2).flatten(2)
    W_o is not applied: the heads' outputs stand side by side and are never mixed.
values_from_the_keys: v = self.W_v(x) → v = self.W_k(x)
    The values are projected with W_k. They should be projected with W_v.
all_keys_kept: nn.Linear(d_model, d_kv, bias=False) → nn.Linear(d_model, d_model, bias=False) ×2
    W_k and W_v map to d_model features, as in multi-head attention. They should map to
    num_kv_heads·d_k: that is what is saved.
only_d_model_checked: num_heads % num_kv_heads != 0 → False
    A num_heads that num_kv_heads does not divide is not refused when the module is built.
only_the_heads_checked: d_model % num_heads != 0 → False
    A d_model that num_heads does not divide is not refused when the module is built.
error_without_numbers
    - f"{num_heads} heads cannot share {num_kv_heads} key/value heads"
    + "the heads cannot share"
    The error does not name num_heads and num_kv_heads.
assertion_for_value_error
    - if num_heads % num_kv_heads != 0:
    -     raise ValueError(f"{num_heads} heads cannot share {num_kv_heads} key/value heads")
    + assert num_heads % num_kv_heads == 0, f"{num_heads}, {num_kv_heads}"
    Sizes that do not divide end in an AssertionError. It should be a ValueError.
gradient_cut: k = k.repeat_interleave → k = k.detach().repeat_interleave
    The keys are detached: W_k does not learn.
overflows: scores.softmax(dim=-1) → (scores.exp() / scores.exp().sum(dim=-1, keepdim=True))
    The exponential is taken without subtracting the largest score: large ones overflow.
rounded_to_single: > result = tuple(part.float() for part in result)
    The results are float32 whatever the input is.
x_scaled_in_place
    + given, x = x, x.clone()
    > given.mul_(2)
    The caller's x is changed.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


class _Parts(right.GroupedQueryAttention):
    """The attention in small parts."""

    def heads(self, x, layer):
        return layer(x).unflatten(-1, (-1, self.W_q.out_features // self.num_heads)).transpose(1, 2)

    def weigh(self, scores, mask):
        if mask is None:
            return scores.softmax(-1)
        mask = mask.expand_as(scores)
        some = mask.any(-1, keepdim=True)
        return scores.masked_fill(~mask & some, -math.inf).softmax(-1) * some

    def merge(self, heads):
        return self.W_o(heads.transpose(1, 2).flatten(2))


@BANK.right
class with_an_axis_for_the_group(_Parts):
    """Nothing is repeated: the queries of a group have an axis of their own."""

    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        q = q.unflatten(1, (self.num_kv_heads, -1))  # (B, G, H/G, n, d_k)
        scores = (q @ k[:, :, None].mT / math.sqrt(q.shape[-1])).flatten(1, 2)
        weights = self.weigh(scores, mask)
        heads = weights.unflatten(1, (self.num_kv_heads, -1)) @ v[:, :, None]
        return self.merge(heads.flatten(1, 2)), weights


@BANK.right
class by_einsum(_Parts):
    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        q = q.unflatten(1, (self.num_kv_heads, -1))
        scores = torch.einsum("bgrqd,bgkd->bgrqk", q, k) / q.shape[-1] ** 0.5
        weights = self.weigh(scores.flatten(1, 2), mask)
        parts = weights.unflatten(1, (self.num_kv_heads, -1))
        heads = torch.einsum("bgrqk,bgkd->bgrqd", parts, v).flatten(1, 2)
        return self.merge(heads), weights


@BANK.right
class head_by_head(_Parts):
    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        size = self.num_heads // self.num_kv_heads
        scores = [q[:, h] @ k[:, h // size].mT for h in range(self.num_heads)]
        weights = self.weigh(torch.stack(scores, 1) / math.sqrt(q.shape[-1]), mask)
        heads = [weights[:, h] @ v[:, h // size] for h in range(self.num_heads)]
        return self.merge(torch.stack(heads, 1)), weights


@BANK.right
class by_expanding(_Parts):
    def forward(self, x, mask=None):
        q, *shared = (self.heads(x, layer) for layer in (self.W_q, self.W_k, self.W_v))
        size = self.num_heads // self.num_kv_heads
        k, v = (t[:, :, None].expand(-1, -1, size, -1, -1).flatten(1, 2) for t in shared)
        weights = self.weigh(torch.matmul(q * q.shape[-1] ** -0.5, k.mT), mask)
        return self.merge(weights.matmul(v)), weights


@BANK.right
class by_repeating_the_weights_of_the_layers(_Parts):
    """Multi-head attention whose matrices hold the shared heads several times."""

    def forward(self, x, mask=None):
        size, d_k = self.num_heads // self.num_kv_heads, self.W_q.out_features // self.num_heads
        W_k, W_v = (
            layer.weight.unflatten(0, (-1, d_k)).repeat_interleave(size, 0).flatten(0, 1)
            for layer in (self.W_k, self.W_v)
        )
        parts = (F.linear(x, W) for W in (self.W_q.weight, W_k, W_v))
        q, k, v = (p.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for p in parts)
        weights = self.weigh(q @ k.mT / math.sqrt(d_k), mask)
        return self.merge(weights @ v), weights


@BANK.right
class wide_inside(_Parts):
    def forward(self, x, mask=None):
        q, k, v = (self.heads(x, layer).double() for layer in (self.W_q, self.W_k, self.W_v))
        size = self.num_heads // self.num_kv_heads
        k, v = k.repeat_interleave(size, 1), v.repeat_interleave(size, 1)
        weights = self.weigh(q @ k.mT / math.sqrt(q.shape[-1]), mask)
        return self.merge((weights @ v).to(x.dtype)), weights.to(x.dtype)


forgotten(BANK, "x")
