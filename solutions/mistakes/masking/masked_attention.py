"""Known answers to `masked_attention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank, Edit
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


BANK.read()


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
