"""Known answers to `masked_softmax`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import masking as right

BANK = Bank("masked_softmax", right, globals())
INF = float("inf")


def nan_rows(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -INF)
    return torch.softmax(scores, dim=-1)


def uniform_rows(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return torch.softmax(scores, dim=-1)


def zeroed_after(scores, mask=None):
    if mask is None:
        return torch.softmax(scores, dim=-1)
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) * mask


def nan_gradients(scores, mask=None):
    """−∞ is added, and NaN is replaced at the end: the row's own scores pass the gradient on."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -INF)
    return torch.softmax(scores + bias, dim=-1).nan_to_num(0.0)


# One mistake seldom comes alone: what happens to a row that may attend to nothing is another.
FULLY_MASKED_ROWS = {
    "": ("", right.masked_softmax),
    "_and_fully_masked_row_nan": (
        " And a row that may attend to nothing gives NaN instead of zeros.",
        nan_rows,
    ),
    "_and_fully_masked_row_nan_gradient": (
        " And a row that may attend to nothing gives NaN in the backward pass.",
        nan_gradients,
    ),
    "_and_fully_masked_row_uniform": (
        " And a row that may attend to nothing is shared out evenly instead of being zeros.",
        uniform_rows,
    ),
    "_and_minus_1e9": (
        " And −1e9, used as the forbidden score, is too large for float16.",
        zeroed_after,
    ),
}

for _suffix, (_more, _softmax) in FULLY_MASKED_ROWS.items():
    BANK.change(
        "polarity_inverted" + _suffix,
        "True and False are swapped: the weights fall on what the mask forbids. In this book "
        "True means may attend, whereas masked_fill fills where its mask is True." + _more,
        before="mask = None if mask is None else ~mask",
        of=_softmax.__name__,
    )
    BANK.change(
        "mask_does_not_broadcast" + _suffix,
        "Right for a mask of the same shape as the scores, an error for any other: assigning to "
        "scores[~mask] does not broadcast, unlike masked_fill and where." + _more,
        before="if mask is not None and mask.shape != scores.shape:\n"
        '    raise IndexError("the shape of the mask does not match the shape of the scores")',
        of=_softmax.__name__,
    )


BANK.read()


@BANK.right
def filled_with_the_least_and_zeroed(scores, mask=None):
    if mask is None:
        return F.softmax(scores, -1)
    return F.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1) * mask


@BANK.right
def by_where(scores, mask=None):
    if mask is None:
        return scores.softmax(-1)
    some = mask.any(-1, keepdim=True)
    weights = torch.where(mask | ~some, scores, -INF).softmax(-1)
    return torch.where(some, weights, 0.0)


@BANK.right
def nan_replaced_at_the_end(scores, mask=None):
    # masked_fill passes no gradient on, so the softmax's NaN stops here.
    hidden = scores if mask is None else scores.masked_fill(~mask, -INF)
    return hidden.softmax(-1).nan_to_num(0.0)


@BANK.right
def by_adding_infinity(scores, mask=None):
    if mask is None:
        return scores.softmax(-1)
    some = mask.any(-1, keepdim=True)
    bias = scores.new_zeros(mask.shape).masked_fill(~mask & some, -INF)
    return (scores + bias).softmax(-1) * some


@BANK.right
def exponentials_by_hand(scores, mask=None):
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    shifted = hidden - hidden.amax(-1, keepdim=True).detach()
    counts = shifted.exp().masked_fill(~mask, 0.0)
    total = counts.sum(-1, keepdim=True)
    return counts / total.masked_fill(total == 0, 1.0)


@BANK.right
def by_log_softmax_in_float64(scores, mask=None):
    wide = scores.double()
    if mask is None:
        return wide.log_softmax(-1).exp().to(scores.dtype)
    wide = wide.where(mask, torch.tensor(-1e300, dtype=torch.float64))
    return (wide.log_softmax(-1).exp() * mask).to(scores.dtype)


@BANK.right
def row_by_row(scores, mask=None):
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    rows, seen = scores.reshape(-1, scores.shape[-1]), mask.reshape(-1, scores.shape[-1])
    weights = []
    for row, allowed in zip(rows, seen, strict=True):
        places = allowed.nonzero()[:, 0]
        shares = torch.softmax(row[places], dim=0)
        weights.append(torch.zeros_like(row).index_put((places,), shares))
    return torch.stack(weights).reshape(scores.shape)


@BANK.right
def empty_rows_left_alone(scores, mask=None):
    if mask is None:
        return torch.softmax(scores, dim=-1)
    rows = scores.reshape(-1, scores.shape[-1])
    masks = mask.expand(scores.shape).reshape(rows.shape)
    weights = [
        torch.zeros_like(row).masked_scatter(m, torch.softmax(row[m], -1))
        if m.any()
        else torch.zeros_like(row)
        for row, m in zip(rows, masks, strict=True)
    ]
    return torch.stack(weights).reshape(scores.shape)
