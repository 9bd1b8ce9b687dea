"""Known answers to `scaled_dot_product_attention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import attention_scoring as right

BANK = Bank("scaled_dot_product_attention", right, globals())

BANK.changes("""
not_scaled: key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → key.transpose(-2, -1)
    The scores are not divided by √d_k.
divided_by_d_k: math.sqrt(query.shape[-1]) → query.shape[-1]
    The scores are divided by d_k. That is the variance of a dot product; its typical size is the
    root, √d_k.
divided_by_root_d_v: query.shape[-1] → value.shape[-1]
    The scores are divided by √d_v, from the size of a value. The dot product has d_k terms, one for
    each feature of a query.
divided_by_root_n_k: query.shape[-1] → key.shape[-2]
    The scores are divided by √n_k, from the number of keys. A dot product is a sum over features:
    its size grows with d_k, however many keys there are.
divided_by_root_n_q: query.shape[-1] → query.shape[-2]
    The scores are divided by √n_q, from the number of queries: the wrong axis of the query's shape.
multiplied_by_root_d_k: / math.sqrt → * math.sqrt
    The scores are multiplied by √d_k instead of divided: they saturate all the sooner.
weights_divided
    ~ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → key.transpose(-2, -1)
    ~ (scores, dim=-1) → (scores, dim=-1) / math.sqrt(query.shape[-1])
    The weights are divided by √d_k, after the softmax. The division has to come before: the softmax
    of smaller scores is a different one, and rows must sum to 1.
softmax_over_queries: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2): each column of the weights sums to 1 instead of each
    row.
softmax_over_the_first_axis: dim=-1 → dim=0
    The softmax runs over the first axis (dim=0): over the sequences of a batch or, without one,
    over the queries. The keys are always the last axis.
softmax_over_axis_1: dim=-1 → dim=1
    The softmax runs over dim=1. Without a batch that is the keys, with one it is the queries, and
    with two leading axes something else again. The keys are always the last axis.
softmax_over_axis_2: dim=-1 → dim=2
    The softmax runs over dim=2, which is the keys only if there is exactly one batch axis. The keys
    are always the last axis.
weights_applied_to_keys: weights @ value → weights @ key
    The weights average the keys. The keys say where to look; it is the values that are averaged.
key_and_value_swapped: + key, value = value, key
    Key and value are swapped: the values are scored and the keys averaged.
query_and_key_swapped: + query, key = key, query
    The scores compare every key with every query, KQᵀ, one row per key. There should be one row per
    query, QKᵀ.
bmm_wants_three_axes
    ~ query @ key.transpose(-2, -1) → torch.bmm(query, key.transpose(1, 2))
    ~ weights @ value → torch.bmm(weights, value)
    torch.bmm requires exactly one batch axis. There may be any number of them, or none.
axes_counted_from_the_front: transpose(-2, -1) → transpose(1, 2)
    key.transpose(1, 2) counts axes from the front: these are the last two only if there is exactly
    one batch axis. Count from the end instead.
key_reshaped_for_transposed
    ~ key.transpose(-2, -1) → key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    key is reshaped to (d_k, n_k) instead of transposed: the shape fits, but the numbers are read in
    another order and the keys are torn apart.
squeezed: weights @ value, weights → (weights @ value).squeeze(), weights.squeeze()
    squeeze() removes every axis of size 1: a batch of one, a single query. Where no size is 1,
    nothing shows.
not_normalised: torch.softmax(scores, dim=-1) → scores
    The scores are applied to the values as they are, without a softmax: they may be negative and do
    not sum to 1.
max_not_subtracted
    ~ torch.softmax(scores, dim=-1) → (counts := scores.exp()) / counts.sum(-1, keepdim=True)
    exp is taken of the raw scores: with scores of 10,000 it overflows to infinity and the weights
    are NaN. torch's softmax guards against that.
scores_clamped: (scores, dim=-1) → (scores.clamp(-60, 60), dim=-1)
    The scores are clamped so that exp does not overflow, and scores beyond the limit then count as
    equal. Subtracting the largest score is enough, and changes nothing.
weights_detached: (scores, dim=-1) → (scores, dim=-1).detach()
    The weights are detached: no gradient reaches query and key, and nothing before them can learn
    where to look.
values_detached: weights @ value → weights @ value.detach()
    The values are detached: no gradient reaches them.
through_numpy
    + q, k, v = (x.detach().numpy() for x in (query, key, value))
    + results = simple_attention(q / math.sqrt(q.shape[-1]), k, v)
    + return tuple(torch.from_numpy(x).to(value.dtype) for x in results)
    The numbers are right, but no gradient reaches query, key and value: the results are cut off
    from the graph (torch.no_grad, .detach(), NumPy, torch.tensor …).
weights_first: weights @ value, weights → weights, weights @ value
    The weights are returned first. The order is (output, weights).
weights_not_returned: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights as well: (output, weights).
scores_returned: weights @ value, weights → weights @ value, scores
    The output is right, but it comes with the scores before the softmax instead of the weights.
causal_unasked
    - weights = torch.softmax(scores, dim=-1)
    + sees = torch.ones_like(scores, dtype=torch.bool).tril()
    + weights = torch.softmax(scores.masked_fill(~sees, -math.inf), dim=-1)
    Each query sees only the keys up to its own position. That is a mask, two chapters on; here
    every query sees every key.
always_float32: + query, key, value = query.float(), key.float(), value.float()
    The computation is forced into float32. float64 should stay float64.
query_changed_in_place
    > with torch.no_grad():
    >     query /= math.sqrt(query.shape[-1])
    The caller's query is divided in place: `query /= …` writes into it, and the next layer to read
    it gets different numbers.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    A global setting is left changed, such as torch's default dtype. Such settings belong to the
    program, not to a function.
all_axes_transposed: transpose(-2, -1) → permute(*reversed(range(key.ndim)))
    `.T` reverses all axes, the batch included. Only the last two should be exchanged.
first_two_axes_exchanged: transpose(-2, -1) → transpose(0, 1)
    key.transpose(0, 1) exchanges the first two axes, which are the last two only if there is no
    batch. Count from the end instead.
divided_by_root_of_the_first_size: query.shape[-1] → query.shape[0]
    The scores are divided by √query.shape[0], the number of sequences in a batch or, without one,
    of queries. The features are the last axis.
output_divided
    ~ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → key.transpose(-2, -1)
    ~ weights @ value → weights @ value / math.sqrt(query.shape[-1])
    The output is divided by √d_k, after the average. It is the scores that are divided, before the
    softmax: dividing the output makes it smaller and leaves the softmax saturated.
output_copied: weights @ value → (weights @ value).detach()
    The output is detached, or copied by torch.tensor(…): the numbers are right, but no gradient
    flows back through it.
power_before_the_half
    ~ math.sqrt(query.shape[-1]) → query.shape[-1] ** 1 / 2
    `scores / d_k ** 1 / 2` divides by d_k and then by 2: the power is taken first, and the
    divisions go from left to right. The root is `d_k ** 0.5`, or math.sqrt.
scores_standardised
    - weights = torch.softmax(scores, dim=-1)
    + centred = query @ key.transpose(-2, -1)
    + centred = centred - centred.mean(dim=-1, keepdim=True)
    + spread = centred.square().mean(dim=-1, keepdim=True).sqrt() + 1e-6
    + weights = torch.softmax(centred / spread, dim=-1)
    Each row of scores is brought to mean 0 and variance 1. √d_k is one number for all rows: it
    leaves a query whose scores are close together with weights that are close together.
""")


def _scaled(query, key, value, scale=None, dim=-1):
    scale = math.sqrt(query.shape[-1]) if scale is None else scale
    weights = torch.softmax(query @ key.mT / scale, dim)
    return weights @ value, weights


@BANK.right
def by_einsum(query, key, value):
    scores = torch.einsum("...id,...jd->...ij", query, key) / query.size(-1) ** 0.5
    weights = scores.softmax(-1)
    return torch.einsum("...ij,...jv->...iv", weights, value), weights


@BANK.right
def query_scaled_first(query, key, value):
    weights = F.softmax((query * key.shape[-1] ** -0.5) @ key.mT, dim=-1)
    return weights.matmul(value), weights


@BANK.right
def scale_shared(query, key, value):
    fourth_root = query.shape[-1] ** 0.25
    scores = (query / fourth_root) @ (key / fourth_root).transpose(-1, -2)
    weights = torch.exp(torch.log_softmax(scores, dim=-1))
    return weights @ value, weights


@BANK.right
def query_by_query(query, key, value):
    rows = []
    for i in range(query.shape[-2]):
        scores = (query[..., i : i + 1, :] * key).sum(-1) / math.sqrt(key.shape[-1])
        rows.append(F.softmax(scores, dim=-1))
    weights = torch.stack(rows, dim=-2)
    return weights @ value, weights


@BANK.right
def softmax_by_hand(query, key, value):
    scores = query @ key.swapaxes(-1, -2) / torch.tensor(query.shape[-1], dtype=query.dtype).sqrt()
    counts = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    weights = counts / counts.sum(dim=-1, keepdim=True)
    return weights @ value, weights


@BANK.right
def float64_inside(query, key, value):
    output, weights = _scaled(query.double(), key.double(), value.double())
    return output.to(query.dtype), weights.to(query.dtype)


@BANK.right
def flattened_for_bmm(query, key, value):
    batch = query.shape[:-2]
    q, k, v = (x.reshape(-1, *x.shape[-2:]) for x in (query, key, value))
    weights = torch.bmm(q, k.transpose(1, 2)).div(math.sqrt(q.shape[2])).softmax(2)
    output = torch.bmm(weights, v)
    return output.reshape(*batch, *output.shape[1:]), weights.reshape(*batch, *weights.shape[1:])


@BANK.right
def by_torchs_root(query, key, value):
    """The root of a tensor, as many tutorials compute it: a float32 number."""
    scores = torch.matmul(query, key.transpose(-2, -1)) / torch.sqrt(torch.tensor(query.size(-1)))
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value), weights


forgotten(BANK, "query")
