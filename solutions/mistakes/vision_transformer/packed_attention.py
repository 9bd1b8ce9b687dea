"""Known answers to `PackedAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import vision_transformer as right

BANK = Bank("PackedAttention", right, globals())

BANK.changes("""
cut_per_head
    ~ (3, self.num_heads, -1) → (self.num_heads, 3, -1)
    ~ permute(2, 0, 3, 1, 4) → permute(3, 0, 2, 1, 4)
    qkv's output is cut into heads first, and each head into query, key and value. It should be all
    queries, then all keys, then all values, with the heads side by side in each.
interleaved
    ~ (3, self.num_heads, -1) → (self.num_heads, -1, 3)
    ~ permute(2, 0, 3, 1, 4) → permute(4, 0, 2, 1, 3)
    Queries, keys and values take turns, number by number. It should be all queries, then all keys,
    then all values.
features_before_heads
    ~ (3, self.num_heads, -1) → (3, -1, self.num_heads)
    ~ permute(2, 0, 3, 1, 4) → permute(2, 0, 4, 1, 3)
    The heads take turns, number by number. Each head should have its features side by side.
queries_and_keys_exchanged: query, key, value = → key, query, value =
    The first third of qkv is taken for the keys and the second for the queries. Queries come first.
queries_and_values_exchanged: query, key, value = → value, key, query =
    The first third of qkv is taken for the values and the last for the queries. The order is
    query, key, value.
keys_and_values_exchanged: query, key, value = → query, value, key =
    The second third of qkv is taken for the values and the last for the keys. The order is query,
    key, value.
values_of_the_keys: (weights @ value) → (weights @ key)
    The weights average the keys. They should average the values.
keys_of_the_queries: query @ key.mT → query @ query.mT
    The queries are compared with each other: the keys are not used.
divided_by_root_d_model: math.sqrt(query.shape[-1]) → math.sqrt(x.shape[-1])
    The scores are divided by √d_model. It should be √d_k, of the features of one head.
not_scaled: / math.sqrt(query.shape[-1]) → / 1
    The scores are not divided by √d_k.
multiplied_by_root_d_k: / math.sqrt(query.shape[-1]) → * math.sqrt(query.shape[-1])
    The scores are multiplied by √d_k. They should be divided by it.
divided_by_d_k: / math.sqrt(query.shape[-1]) → / query.shape[-1]
    The scores are divided by d_k. It should be its square root.
softmax_over_queries: softmax(dim=-1) → softmax(dim=-2)
    The softmax runs over the queries: the weights of a query do not sum to 1. It should run over
    the keys.
softmax_over_heads: softmax(dim=-1) → softmax(dim=1)
    The softmax runs over the heads. It should run over the keys.
softmax_forgotten: scores.softmax(dim=-1) → scores
    The scores are used as weights, without a softmax.
sigmoid_for_softmax: scores.softmax(dim=-1) → scores.sigmoid()
    The scores go through a sigmoid, so the weights do not sum to 1. It should be a softmax.
causal
    + n = x.shape[1]
    + past = torch.ones(n, n, dtype=torch.bool, device=x.device).tril()
    ~ scores.softmax(dim=-1) → scores.masked_fill(~past, -torch.inf).softmax(dim=-1)
    A causal mask hides what comes later. An image has no later: every patch sees all of them.
heads_not_put_back: .transpose(1, 2).flatten(2) → .reshape(x.shape)
    The heads are joined without moving them behind the positions first: reshape mixes positions and
    features.
one_head: self.num_heads = num_heads → self.num_heads = 1
    There is one head whatever num_heads is.
attends_over_the_batch: permute(2, 0, 3, 1, 4) → permute(2, 1, 3, 0, 4)
    ~ .transpose(1, 2).flatten(2) → .permute(2, 0, 1, 3).flatten(2)
    The images attend to each other: batch and positions are exchanged.
proj_forgotten: self.dropout(self.proj(heads)) → self.dropout(heads)
    proj is not used: the heads are joined, but never mixed.
proj_before_the_heads_meet: self.proj(heads)) → heads @ self.proj.weight + self.proj.bias)
    proj's weight is used the other way round, not transposed: nn.Linear computes x Wᵀ.
proj_never_has_a_bias
    - self.proj = nn.Linear(d_model, d_model)
    + self.proj = nn.Linear(d_model, d_model, bias=False)
    proj has no bias. It always has one.
always_a_bias: bias=qkv_bias → bias=True
    With qkv_bias=False, the biases are not those asked for: qkv should have none, and proj always
    has one.
bias_off_by_default: qkv_bias=True → qkv_bias=False
    qkv has no bias unless qkv_bias=True. By default it has one.
never_a_bias: bias=qkv_bias → bias=False
    qkv never has a bias.
residual_inside: > result = result + x
    x is added to the result. That is for the block to do.
weights_returned_as_well: > result = result, weights
    Output and weights are returned. It should be the output alone.
weights_not_dropped: self.attention_dropout(scores.softmax(dim=-1)) → scores.softmax(dim=-1)
    The weights are never dropped.
output_not_dropped: self.dropout(self.proj(heads)) → self.proj(heads)
    What proj gives is never dropped.
nothing_dropped
    ~ self.attention_dropout(scores.softmax(dim=-1)) → scores.softmax(dim=-1)
    ~ self.dropout(self.proj(heads)) → self.proj(heads)
    Nothing is ever dropped: neither weights nor what proj gives.
dropouts_exchanged
    ~ nn.Dropout(attention_dropout) → nn.Dropout(dropout_)
    ~ nn.Dropout(dropout) → nn.Dropout(attention_dropout)
    ~ nn.Dropout(dropout_) → nn.Dropout(dropout)
    The two dropouts are exchanged: attention_dropout acts behind proj, and dropout on the weights.
one_dropout_for_both: nn.Dropout(attention_dropout) → nn.Dropout(dropout)
    dropout acts on the weights as well, and attention_dropout is not used.
dropout_before_proj: self.dropout(self.proj(heads)) → self.proj(self.dropout(heads))
    dropout acts before proj. It should act on what proj gives.
scores_dropped
    - weights = self.attention_dropout(scores.softmax(dim=-1))
    + weights = self.attention_dropout(scores).softmax(dim=-1)
    The scores are dropped, before the softmax: a score of 0 is not a weight of 0.
weights_dropped_in_eval
    - self.attention_dropout(scores.softmax(dim=-1))
    + F.dropout(scores.softmax(dim=-1), self.attention_dropout.p)
    The weights are dropped in eval mode as well: F.dropout has to be told the mode.
output_dropped_in_eval: self.dropout(self.proj(heads)) → F.dropout(self.proj(heads), self.dropout.p)
    What proj gives is dropped in eval mode as well: F.dropout has to be told the mode.
whole_heads_dropped: nn.Dropout(attention_dropout) → nn.Dropout2d(attention_dropout)
    All weights of a head are dropped at a time. It should be single weights.
whole_tokens_dropped: nn.Dropout(dropout) → nn.Dropout1d(dropout)
    All of a token's features are dropped at a time. It should be single numbers.
heads_need_not_divide: if d_model % num_heads: → if False:
    num_heads that does not divide d_model is taken, and fails later or gives something else. It
    should be a ValueError when the module is built.
error_without_numbers: f"d_model = {d_model}, which {num_heads} heads do not divide" → "cannot be"
    The error names neither num_heads nor d_model.
another_kind_of_error: raise ValueError( → raise TypeError(
    The error is no ValueError.
checked_when_called
    - if d_model % num_heads:
    -     raise ValueError(f"d_model = {d_model}, which {num_heads} heads do not divide")
    + self.d_model = d_model
    + if num_heads > d_model:
    +     raise ValueError(f"{num_heads} heads and {d_model} features")
    It is only checked that there are no more heads than features. num_heads has to divide d_model.
softmax_overflows: scores.softmax(dim=-1) → (scores.exp() / scores.exp().sum(-1, keepdim=True))
    The softmax is computed without taking the largest score away first, and overflows for large
    scores.
x_detached: self.qkv(x) → self.qkv(x.detach())
    x is detached: no gradient reaches it.
weights_detached: (weights @ value) → (weights.detach() @ value)
    The weights are detached: queries and keys do not learn.
rounded_to_single: > result = result.float()
    The result is float32 whatever x is.
x_overwritten: > x.data.zero_()
    The caller's x is set to 0.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


@BANK.right
class attention_of_the_blocks(blocks.PackedAttention):
    pass


@BANK.right
class by_chunks(right.PackedAttention):
    def forward(self, x):
        B, n, d = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (p.view(B, n, self.num_heads, -1).transpose(1, 2) for p in parts)
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        weights = self.attention_dropout(F.softmax(scores, dim=-1))
        out = (weights @ v).transpose(1, 2).reshape(B, n, d)
        return self.dropout(self.proj(out))


@BANK.right
class by_einsum(nn.Module):
    def __init__(self, d_model, num_heads, qkv_bias=True, attention_dropout=0.0, dropout=0.0):
        super().__init__()
        self.d_k, rest = divmod(d_model, num_heads)
        if rest != 0:
            raise ValueError(f"d_model {d_model} must be a multiple of num_heads {num_heads}")
        self.proj = nn.Linear(d_model, d_model)
        self.qkv = nn.Linear(d_model, 3 * d_model, qkv_bias)
        self.drops = nn.ModuleList([nn.Dropout(attention_dropout), nn.Dropout(p=dropout)])

    def forward(self, x):
        packed = self.qkv(x).reshape(*x.shape[:2], 3, -1, self.d_k)
        q, k, v = packed.unbind(2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(self.d_k)
        weights = self.drops[0](scores.softmax(-1))
        out = torch.einsum("bhqk,bkhd->bqhd", weights, v)
        return self.drops[1](self.proj(out.flatten(-2)))


@BANK.right
class by_torchs_kernel(right.PackedAttention):
    def forward(self, x):
        B, n, d = x.shape
        packed = self.qkv(x).reshape(B, n, 3, self.num_heads, d // self.num_heads)
        q, k, v = packed.permute(2, 0, 3, 1, 4).unbind(0)
        p = self.attention_dropout.p if self.training else 0.0
        out = F.scaled_dot_product_attention(q, k, v, dropout_p=p)
        return self.dropout(self.proj(out.transpose(1, 2).reshape(B, n, d)))


@BANK.right
class head_after_head(right.PackedAttention):
    def forward(self, x):
        d, found = x.shape[-1], []
        d_k = d // self.num_heads
        weight, bias = self.qkv.weight, self.qkv.bias
        for h in range(self.num_heads):
            rows = [slice(part * d + h * d_k, part * d + (h + 1) * d_k) for part in range(3)]
            q, k, v = (F.linear(x, weight[r], None if bias is None else bias[r]) for r in rows)
            weights = torch.softmax(torch.bmm(q, k.mT) * d_k**-0.5, dim=2)
            found.append(self.attention_dropout(weights) @ v)
        return self.dropout(self.proj(torch.cat(found, dim=-1)))


forgotten(BANK, "x")
