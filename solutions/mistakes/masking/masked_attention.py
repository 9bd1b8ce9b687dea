"""Known answers to `masked_attention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank, Edit
from autograder.bank.devices import forgotten
from solutions import masking as right
from solutions.mistakes.masking import masked_softmax as softmaxes
from solutions.mistakes.masking.masked_softmax import nan_gradients, nan_rows, uniform_rows

BANK = Bank("masked_attention", right, globals())

_SCALE = "/ math.sqrt(query.shape[-1])"
_WRONG_SCALES = {
    "no_scale": (
        "",
        "The scores are not divided by √d_k. Their spread grows with d_k, and the softmax comes "
        "to pick the largest.",
    ),
    "scaled_by_d_k": (
        "/ query.shape[-1]",
        "The scores are divided by d_k instead of its square root.",
    ),
    "scaled_by_the_size_of_values": (
        "/ math.sqrt(value.shape[-1])",
        "The scores are divided by √d_v. Values take no part in the scores: it is the size of "
        "queries and keys, d_k, that makes dot products large.",
    ),
    "scaled_by_the_number_of_keys": (
        "/ math.sqrt(key.shape[-2])",
        "The scores are divided by √n_k, from the number of keys. It should be the size of a key, "
        "its last axis.",
    ),
    "multiplied_by_the_scale": (
        "* math.sqrt(query.shape[-1])",
        "The scores are multiplied by √d_k instead of divided by it.",
    ),
}

# All but float16, which this exercise does not use.
for _suffix, (_more, _softmax) in list(softmaxes.FULLY_MASKED_ROWS.items())[:-1]:
    _masked = Edit("masked_softmax", _softmax.__name__)
    for _name, (_scale, _cause) in _WRONG_SCALES.items():
        BANK.change(_name + _suffix, _cause + _more, Edit(_SCALE, _scale), _masked)
    BANK.change(
        "polarity_inverted" + _suffix,
        "True and False are swapped: queries attend to what the mask forbids. True means may "
        "attend, whereas masked_fill fills where its mask is True." + _more,
        _masked,
        before="mask = None if mask is None else ~mask",
    )

BANK.changes("""
fully_masked_row_nan: masked_softmax → nan_rows
    Right, except for a query that may attend to nothing: a softmax of nothing but −∞ is 0/0, NaN,
    and so is the output. Weights and output should be zeros.
fully_masked_row_nan_gradient: masked_softmax → nan_gradients
    The output is right, the gradients are not: −∞ is added and NaN overwritten after the softmax.
    It returns in the backward pass, since 0 · NaN is NaN, and spreads through the sum.
fully_masked_row_uniform: masked_softmax → uniform_rows
    A query that may attend to nothing gets the plain average of the values it must not see, since
    all its scores are the same large negative number. Its weights and output should be zeros.
least_number_added: masked_softmax → softmaxes.BANK.mistakes["least_number_added"]
    The least number of the dtype is added to forbidden scores. A query that may attend to nothing
    is left with equal scores: it gets the average of all values and passes gradients on. Its
    weights and output should be zeros.
masked_after_softmax: masked_softmax → softmaxes.BANK.mistakes["masked_after_softmax"]
    The mask multiplies the weights after the softmax, so a row no longer sums to 1, and forbidden
    keys still take part in its sum.
renormalised_too_late: masked_softmax → softmaxes.BANK.mistakes["renormalised_too_late"]
    The mask acts after the softmax, and the rest is divided by its sum. Where a forbidden score is
    far above the others, that leaves 0/0.
masked_fill_result_dropped: masked_softmax → softmaxes.BANK.mistakes["masked_fill_result_dropped"]
    The mask has no effect. If you call masked_fill: it returns a new tensor, and without an
    assignment its result is lost.
minus_hundred_leaks: masked_softmax → softmaxes.BANK.mistakes["minus_hundred_leaks"]
    A forbidden score of −100 is not low enough: next to allowed scores that are even lower, the
    forbidden key wins.
minus_ten_thousand_leaks: masked_softmax → softmaxes.BANK.mistakes["minus_ten_thousand_leaks"]
    A forbidden score of −10,000 is not low enough for large scores, and where everything is
    forbidden it gives the average of everything.
zero_times_infinity: masked_softmax → softmaxes.BANK.mistakes["zero_times_infinity"]
    The mask is multiplied by −∞ and then added: 0 · (−∞) is NaN, in every row that has an allowed
    key.
softmax_over_queries: masked_softmax → softmaxes.BANK.mistakes["softmax_over_queries"]
    The softmax runs over the queries, so columns sum to 1 and rows do not. Each query spreads a
    total of 1 over its keys.
softmax_over_queries_and_fully_masked_row_nan
    - masked_softmax
    + softmaxes.BANK.mistakes["softmax_over_queries_and_fully_masked_row_nan"]
    The softmax runs over the queries, so columns sum to 1 and rows do not. And nothing is done
    about NaN.
mask_on_query_rows: (scores, mask) → (scores, None if mask is None else mask.mT)
    The mask is applied to the queries: transposed, it stops the hidden positions from attending,
    instead of stopping others from attending to them. It should hide keys, the last axis.
output_rows_zeroed
    - weights = masked_softmax(scores, mask)
    + weights = masked_softmax(scores)
    + if mask is not None:
    +     weights = weights * mask.expand_as(weights).any(dim=-1, keepdim=True)
    The mask is taken to say which queries count: those that it hides get an output of 0, and all
    keys are seen by everybody else.
values_zeroed_instead
    ~ (scores, mask) → (scores)
    ~ weights @ value → (weights if mask is None else weights * mask) @ value
    Forbidden keys keep their weight, and only their values are set to 0. The allowed weights then
    sum to less than 1: the output shrinks.
fully_masked_row_zeroed_in_the_output_only
    - return weights @ value, weights
    + output = weights @ value
    + if mask is not None:
    +     weights = weights.masked_fill(~mask.any(-1, keepdim=True), 1 / key.shape[-2])
    + return output, weights
    A query that may attend to nothing gets a zero output, but its weights are not zeros: according
    to them, it attends to what it must not see.
nan_replaced_in_the_output_only
    ~ masked_softmax → nan_rows
    ~ weights @ value → (weights @ value).nan_to_num(0.0)
    A query that may attend to nothing gets a zero output, but its weights are NaN, and so are the
    gradients of the values: the weights themselves should be 0.
weights_divided
    - scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    + scores = query @ key.transpose(-2, -1)
    ~ masked_softmax(scores, mask) → masked_softmax(scores, mask) / math.sqrt(query.shape[-1])
    The weights are divided by √d_k, after the softmax. It is the scores that should be divided,
    before it: rows of weights sum to 1.
weights_without_the_mask: @ value, weights → @ value, masked_softmax(scores)
    The output obeys the mask, but the returned weights do not: they should be those behind the
    output.
output_and_weights_swapped: weights @ value, weights → weights, weights @ value
    The result is (weights, output). The order is (output, weights).
output_only: weights @ value, weights → weights @ value
    Only the output is returned. Return the weights as well: (output, weights).
scores_for_weights: @ value, weights → @ value, scores
    The second part of the result holds the scores instead of the weights, which come after the
    softmax.
keys_averaged: @ value → @ key
    The weights average the keys. Keys are compared with queries; it is the values that are
    averaged.
queries_changed_in_place
    + query /= math.sqrt(query.shape[-1])
    ~ key.transpose(-2, -1) / math.sqrt(query.shape[-1]) → key.transpose(-2, -1)
    The result is right, but the caller's queries are divided by √d_k in place: `/=` and `div_`
    write into the tensor that was passed in, and fail where it needs a gradient.
gradient_cut: (scores, mask) → (scores, mask).detach()
    No gradient reaches query and key: the weights are cut off by .detach(), .data or no_grad.
causal_whatever_the_mask
    + causal = causal_mask(query.shape[-2], key.shape[-2])
    + mask = causal if mask is None else mask & causal
    The given mask is combined with a causal one. Not every mask is causal: it is the mask that says
    which keys may be seen, and without one, all may.
three_dimensions_only: transpose(-2, -1) → transpose(1, 2)
    key.transpose(1, 2) suits (B, n, d) only: without a batch, or with heads, it is an error or
    nonsense. It is always the last two axes that are exchanged.
two_dimensions_only: transpose(-2, -1) → permute(*reversed(range(key.ndim)))
    key.T reverses all axes: right for a single sequence, an error or nonsense for a batch. It is
    always the last two axes that are exchanged.
softmax_forgotten: masked_softmax(scores, mask) → scores
    The scores serve as weights, without softmax and mask.
mask_added_as_ones
    - weights = masked_softmax(scores, mask)
    + if mask is not None:
    +     scores = scores + mask
    + weights = torch.softmax(scores, dim=-1)
    + if mask is not None:
    +     weights = weights.masked_fill(~mask.any(-1, keepdim=True), 0.0)
    The boolean mask is added to the scores: True adds 1 and False 0, which forbids nothing.
power_before_the_half: math.sqrt(query.shape[-1]) → query.shape[-1] ** 1 / 2
    `scores / d_k ** 1 / 2` divides by d_k and then by 2: the power is taken first, and the
    divisions go from left to right. The root is `d_k ** 0.5`, or math.sqrt.
""")


def _scores(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


@BANK.right
def nan_replaced_at_the_end(query, key, value, mask=None):
    weights = softmaxes.BANK.rights["nan_replaced_at_the_end"](_scores(query, key), mask)
    return weights @ value, weights


@BANK.right
def by_einsum(query, key, value, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5
    weights = softmaxes.filled_with_the_least_and_zeroed(scores, mask)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


@BANK.right
def queries_scaled_first(query, key, value, mask=None):
    weights = softmaxes.by_adding_infinity((query / math.sqrt(key.size(-1))).matmul(key.mT), mask)
    return weights.matmul(value), weights


@BANK.right
def query_by_query(query, key, value, mask=None):
    outputs, weights = [], []
    n_q, n_k = query.shape[-2], key.shape[-2]
    mask = query.new_ones(n_q, n_k).bool() if mask is None else mask
    mask = mask.expand(*torch.broadcast_shapes(mask.shape, (n_q, 1)))
    for i in range(n_q):
        scores = (query[..., i, None, :] * key).sum(-1) / math.sqrt(key.shape[-1])
        weights.append(right.masked_softmax(scores, mask[..., i, :]))
        outputs.append((weights[-1][..., None] * value).sum(-2))
    return torch.stack(outputs, -2), torch.stack(weights, -2)


@BANK.right
def by_torch(query, key, value, mask=None):
    def fused(value):
        if mask is None:
            return F.scaled_dot_product_attention(query, key, value)
        some = mask.any(-1, keepdim=True)
        return F.scaled_dot_product_attention(query, key, value, mask | ~some) * some

    identity = torch.eye(key.shape[-2], dtype=key.dtype, device=key.device)
    return fused(value), fused(identity.expand(*key.shape[:-2], -1, -1))


@BANK.right
def in_float64_inside(query, key, value, mask=None):
    scores = query.double() @ key.double().mT / key.shape[-1] ** 0.5
    weights = right.masked_softmax(scores, mask)
    return (weights @ value.double()).to(value.dtype), weights.to(value.dtype)


forgotten(BANK, "query")
