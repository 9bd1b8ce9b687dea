"""Known answers to `CrossAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("CrossAttention", right, globals())

BANK.changes("""
keys_from_x
    ~ self.W_k = nn.Linear(d_encoder, d_model) → self.W_k = nn.Linear(d_model, d_model)
    ~ split(self.W_k(memory)) → split(self.W_k(x))
    The keys are made of x. They should be made of the memory, like the values: a query is to be
    compared with what there is to look at.
values_from_x
    ~ self.W_v = nn.Linear(d_encoder, d_model) → self.W_v = nn.Linear(d_model, d_model)
    ~ split(self.W_v(memory)) → split(self.W_v(x))
    The values are made of x. They should be made of the memory, like the keys.
both_from_x
    ~ self.W_k = nn.Linear(d_encoder, d_model) → self.W_k = nn.Linear(d_model, d_model)
    ~ self.W_v = nn.Linear(d_encoder, d_model) → self.W_v = nn.Linear(d_model, d_model)
    ~ self.W_k(memory) → self.W_k(x)
    ~ self.W_v(memory) → self.W_v(x)
    Keys and values are made of x: this is self-attention, and the memory is never read.
width_of_the_model
    ~ self.W_k = nn.Linear(d_encoder, d_model) → self.W_k = nn.Linear(d_model, d_model)
    ~ self.W_v = nn.Linear(d_encoder, d_model) → self.W_v = nn.Linear(d_model, d_model)
    W_k and W_v take vectors of width d_model. What they get is the memory, of width d_encoder.
keys_and_values_exchanged
    - query, key, value = split(self.W_q(x)), split(self.W_k(memory)), split(self.W_v(memory))
    + query, key, value = split(self.W_q(x)), split(self.W_v(memory)), split(self.W_k(memory))
    W_k and W_v have changed places.
values_are_keys: split(self.W_v(memory)) → split(self.W_k(memory))
    The values are the keys once more, and W_v learns nothing.
queries_not_projected: split(self.W_q(x)) → split(x)
    The queries are x itself: W_q is never applied.
without_w_o: self.W_o(heads) → heads
    The heads are returned side by side: W_o is never applied.
not_scaled
    - scores = query @ key.mT / query.shape[-1] ** 0.5
    + scores = query @ key.mT
    The scores are not divided by √d_k.
scaled_by_d_k: / query.shape[-1] ** 0.5 → / query.shape[-1]
    The scores are divided by d_k instead of √d_k.
scaled_by_d_model: query.shape[-1] ** 0.5 → x.shape[-1] ** 0.5
    The scores are divided by √d_model. A head has d_model / num_heads features only.
scaled_by_d_encoder: query.shape[-1] ** 0.5 → memory.shape[-1] ** 0.5
    The scores are divided by the root of the memory's width. What counts is the width of a query
    within a head.
scaled_by_keys: query.shape[-1] ** 0.5 → key.shape[-2] ** 0.5
    The scores are divided by the root of the number of keys.
scale_multiplied: / query.shape[-1] ** 0.5 → * query.shape[-1] ** 0.5
    The scores are multiplied by √d_k. They should be divided by it.
softmax_over_queries: .softmax(dim=-1) → .softmax(dim=-2)
    The softmax runs over the queries. Each query's weights over the keys should sum to 1.
softmax_over_heads: .softmax(dim=-1) → .softmax(dim=1)
    The softmax runs over the heads. Each head has weights of its own over the keys.
heads_interleaved
    - return h.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
    + return h.unflatten(-1, (-1, self.num_heads)).permute(0, 3, 1, 2)
    ~ .transpose(1, 2).flatten(2) → .permute(0, 2, 3, 1).flatten(2)
    Head h takes every num_heads-th feature. It should take d_k features in a row.
split_by_reshape
    - return h.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
    + return h.reshape(h.shape[0], self.num_heads, h.shape[1], -1)
    The heads are split by a reshape alone: positions and features get mixed. Split the features,
    then move the axis of the heads to the front.
merged_by_reshape
    - heads = (weights @ value).transpose(1, 2).flatten(2)
    + heads = (weights @ value).reshape(x.shape)
    The heads are merged by a reshape alone: positions and features get mixed. Move the axis of the
    heads back first.
one_head: self.num_heads = num_heads → self.num_heads = 1
    There is one head, whatever num_heads is.
mask_ignored: + mask = None
    The mask is ignored.
mask_inverted: + mask = None if mask is None else ~mask
    The mask is inverted: True means may attend.
mask_after_softmax
    - weights = scores.masked_fill(~mask & some, -torch.inf).softmax(dim=-1) * some
    + weights = scores.softmax(dim=-1) * mask
    The mask is applied after the softmax, so the weights that are left no longer sum to 1.
mask_on_queries
    - mask = mask.expand(len(x), 1, *scores.shape[2:])
    - some = mask.any(dim=-1, keepdim=True)
    - weights = scores.masked_fill(~mask & some, -torch.inf).softmax(dim=-1) * some
    + mask = mask.expand(len(x), 1, *scores.shape[2:])
    + some = mask.any(dim=-1, keepdim=True)
    + weights = scores.softmax(dim=-1) * some
    The mask switches whole queries on and off. It should say for each query which keys it may
    attend to.
mask_by_zero: masked_fill(~mask & some, -torch.inf) → masked_fill(~mask & some, 0.0)
    Hidden scores become 0, which is a score like any other. They should become −∞.
nan_for_nothing
    ~ masked_fill(~mask & some, -torch.inf) → masked_fill(~mask, -torch.inf)
    A query that may attend to nothing gets NaN: a softmax over nothing but −∞.
average_for_nothing
    ~ .softmax(dim=-1) * some → .softmax(dim=-1)
    ~ self.W_o(heads) * some[:, 0] → self.W_o(heads)
    A query that may attend to nothing attends to everything alike. It should have weights of 0 and
    an output of 0.
weights_of_nothing_left: .softmax(dim=-1) * some → .softmax(dim=-1)
    A query that may attend to nothing has an output of 0, as it should, but weights that are not 0.
bias_for_nothing: self.W_o(heads) * some[:, 0] → self.W_o(heads)
    A query that may attend to nothing has weights of 0, and the bias of W_o as its output. Its
    output should be 0.
weights_averaged: > result = result[0], result[1].mean(dim=1)
    The weights are averaged over the heads. Return those of each head: (B, num_heads, n_q, n_k).
weights_transposed: > result = result[0], result[1].mT
    The returned weights have keys as rows. They should have a row for each query.
scores_for_weights: > result = result[0], scores
    The second result is the scores. It should be the weights, from after the softmax.
only_the_output: > result = result[0]
    Only the output is returned. Return (output, weights).
exchanged: > result = result[::-1]
    The results have changed places: the output comes first, then the weights.
weights_detached: (weights @ value) → (weights.detach() @ value)
    The weights are detached: queries and keys never learn.
memory_detached
    + memory = memory.detach()
    The memory is detached, so no gradient reaches the encoder.
no_error
    - if d_model % num_heads:
    -     raise ValueError(f"{num_heads} heads do not divide {d_model} features evenly")
    No error is raised where num_heads does not divide d_model.
error_without_numbers
    - f"{num_heads} heads do not divide {d_model} features evenly"
    + "the heads do not divide the features evenly"
    The error does not name the two numbers.
assertion_for_error
    - if d_model % num_heads:
    -     raise ValueError(f"{num_heads} heads do not divide {d_model} features evenly")
    + assert d_model % num_heads == 0, f"{d_model} features, {num_heads} heads"
    An AssertionError is raised instead of a ValueError. `python -O` leaves assertions out.
memory_must_divide
    + if memory.shape[-1] % self.num_heads:
    +     raise ValueError("the memory cannot be split")
    A memory whose width num_heads does not divide is refused. It is projected to d_model first, and
    only that is split.
rounded_to_single: > result = result[0].float(), result[1].float()
    The results are float32 whatever the inputs are.
x_changed: > x.mul_(2)
    The caller's x is changed.
memory_changed: > memory.zero_()
    The results are right, but the caller's memory is changed.
switches_the_default: > torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


class _Parts(right.CrossAttention):
    """The parts of the reference."""


@BANK.right
class attention_of_the_blocks(_Parts):
    """Torch's fused attention gives the output, and what it gives the identity the weights."""

    def forward(self, x, memory, mask=None):
        H, n_k = self.num_heads, memory.shape[1]
        q, k, v = (
            part.reshape(len(part), part.shape[1], H, -1).permute(0, 2, 1, 3)
            for part in (self.W_q(x), self.W_k(memory), self.W_v(memory))
        )
        eye = torch.eye(n_k, dtype=x.dtype, device=x.device).expand(len(x), H, n_k, n_k)
        weights = blocks.fused_attention(q, k, eye, mask)
        out = self.W_o((weights @ v).permute(0, 2, 1, 3).reshape(x.shape))
        if mask is not None:
            out = out.masked_fill(~mask.expand(len(x), 1, x.shape[1], n_k).any(-1).mT, 0)
        return out, weights


@BANK.right
class by_einsum(_Parts):
    def forward(self, x, memory, mask=None):
        H = self.num_heads
        q = self.W_q(x).unflatten(2, (H, -1))
        k = self.W_k(memory).unflatten(2, (H, -1))
        v = self.W_v(memory).unflatten(2, (H, -1))
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
        if mask is None:
            weights = torch.softmax(scores, -1)
            return self.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2)), weights
        low = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = torch.softmax(low, -1).masked_fill(~mask, 0)
        out = self.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))
        seen = mask.expand(len(x), 1, *scores.shape[2:]).any(-1)[:, 0, :, None]
        return torch.where(seen, out, torch.zeros_like(out)), weights


@BANK.right
class head_by_head(_Parts):
    def forward(self, x, memory, mask=None):
        d_k = x.shape[-1] // self.num_heads
        if mask is None:
            mask = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=x.device)
        mask = mask.expand(len(x), 1, x.shape[1], memory.shape[1])[:, 0]
        none = ~mask.any(-1, keepdim=True)
        outs, maps = [], []
        for q, k, v in zip(
            *(part.split(d_k, -1) for part in (self.W_q(x), self.W_k(memory), self.W_v(memory))),
            strict=True,
        ):
            scores = torch.bmm(q, k.transpose(1, 2)) * d_k**-0.5
            scores = torch.where(mask | none, scores, float("-inf"))
            maps.append(F.softmax(scores, dim=2).masked_fill(none, 0))
            outs.append(maps[-1] @ v)
        out = self.W_o(torch.cat(outs, -1)).masked_fill(none, 0)
        return out, torch.stack(maps, 1)


@BANK.right
class in_other_parts(nn.Module):
    """No head's size is kept but d_k; the linear layers in another order."""

    def __init__(self, d_model, d_encoder, num_heads):
        super().__init__()
        self.d_k, rest = divmod(d_model, num_heads)
        if rest != 0:
            raise ValueError(f"d_model {d_model} not divisible by {num_heads}")
        self.W_o = nn.Linear(d_model, d_model)
        self.W_v, self.W_k = (nn.Linear(d_encoder, d_model) for _ in range(2))
        self.W_q = nn.Linear(d_model, d_model)

    def forward(self, x, memory, mask=None):
        B, n_q, d_model = x.shape
        q = self.W_q(x).reshape(B, n_q, -1, self.d_k).swapaxes(1, 2)
        k = self.W_k(memory).reshape(B, memory.shape[1], -1, self.d_k).swapaxes(1, 2)
        v = self.W_v(memory).reshape(B, memory.shape[1], -1, self.d_k).swapaxes(1, 2)
        scores = q.matmul(k.swapaxes(2, 3)).div(self.d_k**0.5)
        if mask is not None:
            mask = torch.broadcast_to(mask, (B, 1, n_q, k.shape[2]))
            scores = scores.masked_fill(mask.logical_not(), -1e30 if x.dtype.itemsize > 2 else -6e4)
        weights = scores.softmax(3)
        if mask is not None:
            weights = weights * mask
        out = self.W_o(weights.matmul(v).swapaxes(1, 2).reshape(B, n_q, d_model))
        return (out if mask is None else out * mask.any(3).swapaxes(1, 2)), weights


forgotten(BANK, "x")
