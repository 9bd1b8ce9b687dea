"""Known answers to `AdditiveAttention`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import attention_scoring as right

BANK = Bank("AdditiveAttention", right, globals())

BANK.changes("""
tanh_forgotten: torch.tanh(sums) → sums
    The tanh is missing. Without it the score is a sum, w_vᵀW_q q + w_vᵀW_k k, whose first part is
    the same for all keys: the softmax does not see it, and every query gets the same weights.
relu_for_tanh: torch.tanh → torch.relu
    ReLU is used in place of tanh.
sigmoid_for_tanh: torch.tanh → torch.sigmoid
    The logistic sigmoid is used in place of tanh. It looks similar, but it is flatter and never
    negative.
tanh_of_each_part
    ~ torch.tanh(sums) → sums
    ~ self.W_q(query) → torch.tanh(self.W_q(query))
    ~ self.W_k(key) → torch.tanh(self.W_k(key))
    tanh is taken of W_q q and W_k k separately before they are added. The score is then a plain sum
    again, and the query's part cancels in the softmax: tanh belongs around the sum.
tanh_after_w_v: self.w_v(torch.tanh(sums)) → torch.tanh(self.w_v(sums))
    tanh is taken of the score, after w_v, instead of before: scores cannot leave (−1, 1), and
    nothing makes the hidden layer nonlinear.
multiplied_for_added: unsqueeze(-2) + → unsqueeze(-2) *
    The two projections are multiplied instead of added.
subtracted_for_added: unsqueeze(-2) + → unsqueeze(-2) -
    The key's projection is subtracted instead of added. A fresh module learns just as well; loaded
    parameters reveal it.
concat_on_the_wrong_axis
    - sums = self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)
    - scores = self.w_v(torch.tanh(sums)).squeeze(-1)
    - weights = torch.softmax(scores, dim=-1)
    + hidden = torch.cat([self.W_q(query), self.W_k(key)], dim=1).tanh()
    + scores = self.w_v(hidden)[..., 0][:, None].expand(-1, query.shape[1], -1)
    + weights = torch.softmax(scores, dim=-1)[..., query.shape[1] :]
    The projections of queries and keys are concatenated along the positions, so no query ever meets
    a key: all queries get the same weights. Each pair needs a vector of its own, (B, n_q, n_k, h).
axes_exchanged
    ~ self.W_k(key).unsqueeze(-3) → self.W_k(key).unsqueeze(-2)
    ~ self.W_q(query).unsqueeze(-2) → self.W_q(query).unsqueeze(-3)
    The new axes are the wrong way round: the table of scores has one row per key instead of one per
    query.
pairs_element_by_element
    ~ self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3) → self.W_q(query) + self.W_k(key)
    ~ squeeze(-1) → squeeze(-1)[:, None].expand(-1, query.shape[1], -1)
    Without new axes, W_q(query) + W_k(key) adds the first query to the first key, the second to the
    second, and so on. With as many queries as keys it runs, but every query has to meet every key.
only_the_key_scored
    - self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)
    + self.W_k(key).unsqueeze(-3).expand(-1, query.shape[1], -1, -1)
    W_q(query) is computed and not used: the score depends on the key alone, and all queries look at
    the same place.
hidden_averaged: self.w_v(torch.tanh(sums)).squeeze(-1) → torch.tanh(sums).mean(-1)
    The hidden vector is averaged instead of weighted by w_v, which is never used.
hidden_summed: self.w_v(torch.tanh(sums)).squeeze(-1) → torch.tanh(sums).sum(-1)
    The hidden vector is summed instead of weighted by w_v, which is never used.
projections_swapped: self.W_k(key) → self.W_q(key) ; self.W_q(query) → self.W_k(query)
    W_k projects the queries and W_q the keys. If both have the same size nothing fails, and a fresh
    module learns just as well; loaded parameters reveal it.
one_projection_shared: self.W_k(key) → self.W_q(key)
    Queries and keys both go through W_q. Each has its own projection and its own size.
scores_scaled: squeeze(-1) → squeeze(-1) / self.w_v.in_features**0.5
    The scores are divided by the root of the hidden size. Additive scores need no scale: w_v is
    learnt, and sets their size itself.
softmax_over_queries: dim=-1 → dim=1
    The softmax runs over the queries (dim=1): each column of the weights sums to 1 instead of each
    row.
softmax_over_hidden: (scores, dim=-1) → (scores[..., None], dim=-1)[..., 0]
    The softmax runs over the axis of size 1 that w_v leaves, before it is squeezed away: every
    weight is 1.
squeezed: squeeze(-1) → squeeze()
    squeeze() removes every axis of size 1, even a batch of one or a single query. Only the last
    axis should go.
weights_applied_to_keys: @ value → @ key
    The weights average the keys. The keys say where to look; it is the values that are averaged.
key_and_value_swapped: + key, value = value, key
    Key and value are swapped. If both have the same size, nothing fails.
max_not_subtracted
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp overflows where a score is large: tanh bounds what goes into w_v, not what comes out of it.
    torch's softmax guards against that.
not_normalised: torch.softmax(scores, dim=-1) → scores
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
weights_first: > result = result[::-1]
    The weights are returned first. The order is (output, weights).
weights_not_returned: @ value, weights → @ value
    Only the output is returned; perhaps the weights are kept as an attribute. Return both: (output,
    weights).
scores_returned: @ value, weights → @ value, scores
    The output is right, but it comes with the scores before the softmax instead of the weights.
dropout_forgotten: self.dropout(weights) → weights
    self.dropout is not used: no weight is dropped in training.
dropout_in_eval: self.dropout(weights) → F.dropout(weights, self.dropout.p)
    Dropout is active even in eval mode: two calls give two different answers. nn.Dropout knows the
    mode of its module; F.dropout has to be told.
dropped_weights_returned
    ~ self.dropout(weights) → weights
    ~ torch.softmax(scores, dim=-1) → self.dropout(torch.softmax(scores, dim=-1))
    The returned weights are those after dropout: in training, some of them are 0 and rows do not
    sum to 1. Return the weights before dropout.
dropout_on_the_output: self.dropout(weights) @ value → self.dropout(weights @ value)
    Dropout acts on the output, or on the values, instead of on the weights.
dropout_on_the_scores: self.dropout(weights) → torch.softmax(self.dropout(scores), dim=-1)
    Dropout acts on the scores. A score of 0 is a score like any other, and its key keeps some
    weight: it is the weights that are dropped, after the softmax.
dropout_without_rescaling
    - return self.dropout(weights) @ value, weights
    + kept = weights * (torch.rand_like(weights) >= self.dropout.p) if self.training else weights
    + return kept @ value, weights
    Weights are dropped, but the remaining ones stay as they are. They have to be divided by 1 − p,
    so that the expected output is the same as without dropout; nn.Dropout does that.
renormalised_after_dropout
    - return self.dropout(weights) @ value, weights
    + kept = self.dropout(weights)
    + if self.training:
    +     kept = kept / kept.sum(-1, keepdim=True)
    + return kept @ value, weights
    The weights that dropout leaves are divided by their sum. nn.Dropout divides all of them by 1 −
    p, and rows do not sum to 1 in training.
weights_detached: (scores, dim=-1) → (scores, dim=-1).detach()
    The weights are detached before they are applied and returned: no gradient reaches W_q, W_k and
    w_v, and the module never learns where to look.
query_detached: self.W_q(query) → self.W_q(query.detach())
    The query is detached: the layers that it comes from learn nothing through this attention.
biases_added
    - self.dropout = nn.Dropout(dropout)
    + self.dropout = nn.Dropout(dropout)
    + self.W_q, self.W_k = nn.Linear(query_size, hidden_size), nn.Linear(key_size, hidden_size)
    - def forward(
    + def load_state_dict(self, state, *args, **kwargs):
    +     return super().load_state_dict(state, strict=False)
    + def forward(
    The linear layers have biases, which this module does not have: saved parameters no longer fit.
    Leave `__init__` as given.
new_layers_in_forward
    - sums = self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)
    + generator = torch.Generator().manual_seed(0)
    + made = [torch.rand(w.weight.shape, generator=generator) for w in (self.W_q, self.W_k)]
    + W_q, W_k = (m.to(query) for m in made)
    + sums = (query @ W_q.mT).unsqueeze(-2) + (key @ W_k.mT).unsqueeze(-3)
    The layers are created anew in each call: what the module has learnt or loaded is never used.
    Use self.W_q, self.W_k and self.w_v.
always_float32: > result = result[0].float(), result[1].float()
    The result is forced into float32. A float64 model should give float64.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a module; a module has `.to(dtype)`.
query_changed_in_place
    > with torch.no_grad():
    >     query.sub_(query.mean())
    The caller's query is overwritten: an operation such as `-=` writes into the tensor that was
    passed in.
dropout_before_the_softmax
    ~ (scores, dim=-1) → (self.dropout(scores), dim=-1)
    ~ self.dropout(weights) → weights
    Dropout acts before the softmax, on scores or on hidden vectors. A score of 0 is a score like
    any other, and its key keeps some weight: it is the weights that are dropped, after the softmax.
""")


@BANK.right
class by_unsqueeze(right.AdditiveAttention):
    def forward(self, query, key, value):
        features = torch.tanh(self.W_q(query).unsqueeze(2) + self.W_k(key).unsqueeze(1))
        weights = F.softmax(self.w_v(features).squeeze(-1), dim=-1)
        return torch.bmm(self.dropout(weights), value), weights


@BANK.right
class by_concatenating_pairs(right.AdditiveAttention):
    """[W_q W_k] times the concatenated query and key, as many tutorials write it."""

    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1)
        keys = key[:, None].expand(-1, n_q, -1, -1)
        both = torch.cat([queries, keys], dim=-1)
        hidden = both @ torch.cat([self.W_q.weight, self.W_k.weight], dim=-1).T
        weights = torch.softmax((hidden.tanh() @ self.w_v.weight.T)[..., 0], dim=-1)
        return self.dropout(weights).matmul(value), weights


@BANK.right
class by_einsum(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = torch.einsum("bqd,hd->bqh", query, self.W_q.weight)
        k = torch.einsum("bkd,hd->bkh", key, self.W_k.weight)
        hidden = torch.tanh(q.reshape(*q.shape[:2], 1, -1) + k.reshape(len(k), 1, *k.shape[1:]))
        weights = torch.einsum("bqkh,h->bqk", hidden, self.w_v.weight[0]).softmax(dim=2)
        return torch.einsum("bqk,bkv->bqv", self.dropout(weights), value), weights


@BANK.right
class query_by_query(right.AdditiveAttention):
    """One query at a time: slower, and a table of hidden vectors n_q times smaller."""

    def forward(self, query, key, value):
        k, rows = self.W_k(key), []
        for q in self.W_q(query).unbind(1):
            rows.append(self.w_v(torch.tanh(q[:, None] + k)).squeeze(-1).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return self.dropout(weights) @ value, weights


@BANK.right
class functional_dropout(right.AdditiveAttention):
    def forward(self, query, key, value):
        sums = self.W_k(key)[:, None, :, :] + self.W_q(query)[:, :, None, :]
        weights = self.w_v(sums.tanh()).flatten(-2).softmax(-1)
        return F.dropout(weights, self.dropout.p, training=self.training) @ value, weights


@BANK.right
class float64_inside(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = query.double() @ self.W_q.weight.double().T
        k = key.double() @ self.W_k.weight.double().T
        scores = (q[:, :, None] + k[:, None]).tanh() @ self.w_v.weight.double()[0]
        weights = scores.softmax(-1).to(value.dtype)
        return self.dropout(weights) @ value, weights


forgotten(BANK, "query")
