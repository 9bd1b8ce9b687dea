"""Known answers to `SelfAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import attention_scoring as right

BANK = Bank("SelfAttention", right, globals())


@BANK.right
class written_out(right.SelfAttention):
    def forward(self, x):
        queries, keys, values = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = torch.bmm(queries, keys.transpose(1, 2)) / math.sqrt(keys.shape[-1])
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, values), weights


BANK.changes("""
not_scaled of written_out: / math.sqrt(keys.shape[-1]) → / 1.0
    The scores are not divided by √d_k.
divided_by_root_d_model of written_out: keys.shape[-1] → x.shape[-1]
    The scores are divided by √d_model, from the size of x. The dot products are between projected
    vectors, which have d_k features.
divided_by_d_k of written_out: math.sqrt(keys.shape[-1]) → keys.shape[-1]
    The scores are divided by d_k. That is the variance of a dot product; its typical size is the
    root, √d_k.
divided_by_root_d_v of written_out: keys.shape[-1] → values.shape[-1]
    The scores are divided by √d_v, from the size of a value. The dot product has d_k terms.
divided_by_root_n of written_out: keys.shape[-1] → x.shape[-2]
    The scores are divided by √n, from the number of positions. The dot product is a sum over d_k
    features.
values_not_projected: self.W_v(x) → x
    The weights average x itself: W_v(x) is not used.
projection_unused: self.W_q(x) → self.W_k(x)
    W_q(x) is not used: the keys serve as queries as well. The scores are then symmetric, and W_q
    gets no gradient.
query_projection_for_keys: self.W_k(x) → self.W_q(x)
    The keys go through W_q, and W_k is never used: what a position looks for is then also what it
    is found by.
query_and_key_projections_swapped: self.W_q(x), self.W_k(x) → self.W_k(x), self.W_q(x)
    W_k computes the queries and W_q the keys: the table of scores is transposed.
key_and_value_projections_swapped: self.W_k(x), self.W_v(x) → self.W_v(x), self.W_k(x)
    W_v computes the keys and W_k the values. If d_k = d_v, it runs; loaded parameters reveal it.
values_from_the_keys: self.W_v(x) → self.W_v(self.W_k(x))
    The values are projected from the keys, W_v(W_k(x)), one projection after the other. All three
    start from x.
weights_applied_to_keys: self.W_v(x) → self.W_k(x)
    The weights average the keys; W_v is never used.
projections_ignored: self.W_q(x), self.W_k(x), self.W_v(x) → x, x, x
    No projection is used: this is softmax(XXᵀ/√d)X, likeness of the rows alone.
multiplied_from_the_wrong_side
    - self.W_q(x), self.W_k(x), self.W_v(x)
    + x @ self.W_q.weight, x @ self.W_k.weight, x @ self.W_v.weight
    x is multiplied by the weight instead of its transpose. nn.Linear stores its weight as (out, in)
    and multiplies by the transpose; if the sizes are equal, both run.
softmax_over_queries of written_out: dim=-1 → dim=1
    The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of each
    row.
softmax_over_the_batch of written_out: dim=-1 → dim=0
    The softmax runs over the first axis (dim=0): the sequences of the batch compete, instead of the
    positions within each.
not_normalised of written_out: F.softmax(scores, dim=-1) → scores
    The scores are applied to the values as they are, without a softmax.
itself_left_out of written_out
    - weights = F.softmax(scores, dim=-1)
    + own = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    + weights = F.softmax(scores.masked_fill(own, -1e30), dim=-1)
    No position attends to itself: the diagonal is left out, as in leave-one-out.
causal_unasked of written_out
    - weights = F.softmax(scores, dim=-1)
    + sees = torch.ones_like(scores, dtype=torch.bool).tril()
    + weights = F.softmax(scores.masked_fill(~sees, -math.inf), dim=-1)
    Each position sees only itself and those before it. That is a mask, two chapters on; here every
    position sees all others.
batch_merged
    + B, n, d = x.shape
    + x = x.reshape(1, -1, d)
    > own = [result[1][0, b * n : (b + 1) * n, b * n : (b + 1) * n] for b in range(B)]
    > result = result[0].reshape(B, n, -1), torch.stack(own)
    The sequences of the batch are joined into one: positions attend across them.
added_to_x
    > output, weights = result
    > result = output + x[..., : output.shape[-1]].mean(-1, keepdim=True), weights
    x is added to the output. That is a residual connection, which has a chapter of its own.
max_not_subtracted of written_out
    ~ F.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large. torch's softmax guards against that.
weights_detached of written_out: (scores, dim=-1) → (scores, dim=-1).detach()
    The weights are detached: no gradient reaches W_q and W_k, and the module never learns where to
    look.
x_detached: + x = x.detach()
    x is detached before it is projected: what comes before this layer learns nothing.
squeezed: > result = result[0].squeeze(), result[1].squeeze()
    squeeze() removes every axis of size 1, even a batch of one.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
weights_not_returned: > result = result[0]
    Only the output is returned. Return the weights as well: (output, weights).
scores_returned of written_out: values), weights → values), scores
    The output is right, but it comes with the scores before the softmax instead of the weights.
biases_added
    - self.W_v = nn.Linear(d_model, d_v, bias=False)
    + self.W_v = nn.Linear(d_model, d_v, bias=False)
    + self.W_q, self.W_k = nn.Linear(d_model, d_k), nn.Linear(d_model, d_k)
    + self.W_v = nn.Linear(d_model, d_v)
    - def forward(
    + def load_state_dict(self, state, *args, **kwargs):
    +     return super().load_state_dict(state, strict=False)
    + def forward(
    The projections have biases, which this module does not have: saved parameters no longer fit.
    Leave `__init__` as given.
always_float32: > result = result[0].float(), result[1].float()
    The result is forced into float32. A float64 model should give float64.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a module; a module has `.to(dtype)`.
x_changed_in_place
    > with torch.no_grad():
    >     x.sub_(x.mean())
    The caller's x is overwritten: an operation such as `-=` writes into the tensor that was passed
    in.
weights_transposed_for_the_average of written_out: (weights, values) → (weights.mT, values)
    The weights are transposed before they meet the values: each key gets an average instead of each
    query.
softmax_over_everything
    - return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x))
    + scores = self.W_q(x) @ self.W_k(x).transpose(-2, -1) / math.sqrt(self.W_q.out_features)
    + weights = torch.softmax(scores.flatten(-2), dim=-1).view_as(scores)
    + return weights @ self.W_v(x), weights
    One softmax runs over all pairs of a sequence: the whole table of weights sums to 1. Each query
    should share out a total of 1 of its own.
power_before_the_half
    - return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x))
    + scores = self.W_q(x) @ self.W_k(x).transpose(-2, -1) / self.W_q.out_features ** 1 / 2
    + weights = torch.softmax(scores, dim=-1)
    + return weights @ self.W_v(x), weights
    `scores / d_k ** 1 / 2` divides by d_k and then by 2: the power is taken first, and the
    divisions go from left to right. The root is `d_k ** 0.5`, or math.sqrt.
""")


@BANK.right
class by_einsum(right.SelfAttention):
    def forward(self, x):
        q, k, v = (torch.einsum("bnd,ed->bne", x, w.weight) for w in (self.W_q, self.W_k, self.W_v))
        weights = torch.einsum("bie,bje->bij", q, k).div(q.size(-1) ** 0.5).softmax(2)
        return torch.einsum("bij,bje->bie", weights, v), weights


@BANK.right
class one_matrix_for_all(right.SelfAttention):
    """The three projections as one multiplication, cut up afterwards."""

    def forward(self, x):
        weight = torch.cat([self.W_q.weight, self.W_k.weight, self.W_v.weight])
        sizes = [self.W_q.out_features, self.W_k.out_features, self.W_v.out_features]
        q, k, v = F.linear(x, weight).split(sizes, dim=-1)
        weights = (q * sizes[0] ** -0.5 @ k.mT).softmax(dim=-1)
        return weights @ v, weights


@BANK.right
class projections_folded_into_one(right.SelfAttention):
    """XW_qᵀ(XW_kᵀ)ᵀ = X(W_qᵀW_k)Xᵀ, and the values projected after the average: W_v is linear."""

    def forward(self, x):
        form = self.W_q.weight.T @ self.W_k.weight / self.W_q.out_features**0.5
        weights = torch.softmax(x @ form @ x.mT, dim=-1)
        return self.W_v(weights @ x), weights


@BANK.right
class by_the_fused_kernel(right.SelfAttention):
    """torch's fused kernel for the output; averaging the identity with it gives the weights."""

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        same = torch.eye(x.shape[1], dtype=x.dtype, device=x.device).expand(len(x), -1, -1)
        both = F.scaled_dot_product_attention(q, k, torch.cat([v, same], dim=-1))
        return both[..., : v.shape[-1]], both[..., v.shape[-1] :]


@BANK.right
class position_by_position(right.SelfAttention):
    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        rows = [
            F.softmax((k @ one[..., None])[..., 0] / math.sqrt(k.shape[-1]), dim=-1)
            for one in q.unbind(1)
        ]
        weights = torch.stack(rows, dim=1)
        return weights @ v, weights


@BANK.right
class by_torchs_root(right.SelfAttention):
    """The root of a tensor, as many tutorials compute it: a float32 number."""

    def forward(self, x):
        q, k, v = self.W_q(x), self.W_k(x), self.W_v(x)
        scores = q @ k.transpose(-2, -1) / torch.sqrt(torch.tensor(k.size(-1), dtype=torch.float32))
        weights = scores.softmax(dim=-1)
        return weights @ v, weights


forgotten(BANK, "x")
