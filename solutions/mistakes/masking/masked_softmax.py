"""Known answers to `masked_softmax`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
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

BANK.changes("""
fully_masked_row_nan
    - nothing = scores.isneginf().all(dim=-1, keepdim=True)
    ~ scores.masked_fill(nothing, 0.0) → scores
    ~ weights.masked_fill(nothing, 0.0) → weights
    Right, except for a row that may attend to nothing: a softmax of nothing but −∞ is 0/0, NaN, and
    the NaN spreads through every layer above. Such a row should be all zeros.
fully_masked_row_nan_gradient of nan_rows
    - scores.masked_fill(~mask, -INF)
    + scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -INF)
    ~ dim=-1) → dim=-1).nan_to_num(0.0)
    The weights are right, the gradients are not: −∞ is added and NaN overwritten after the softmax.
    In the backward pass it returns, since 0 · NaN is NaN, and spreads through the sum. It must not
    arise in the first place: such a row needs harmless scores before the softmax.
fully_masked_row_uniform: float("-inf") → -1e9
    Forbidden scores are set to a large negative number instead of −∞. If a whole row is forbidden,
    all its scores are equal and each key gets 1/n: the query attends evenly to what it must not
    see.
minus_1e9_in_half_precision
    ~ float("-inf") → -1e9
    > result = result if mask is None else result * mask
    Right in float32, but −1e9 does not exist in float16, which ends at −65504.
fully_masked_row_uniform_by_finfo: float("-inf") → torch.finfo(scores.dtype).min
    Right, except for a row that may attend to nothing: its scores are made equal, by the least
    number of their dtype or otherwise, and each key gets 1/n. Harmless scores are half of the cure;
    setting the weights to zero is the other half.
least_number_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + (~mask).to(scores.dtype) * torch.finfo(scores.dtype).min
    torch.finfo(dtype).min is added to forbidden scores. If a whole row is forbidden, that swallows
    the scores and leaves equal ones: each key gets 1/n and passes a gradient on.
minus_1e9_added: scores.masked_fill(~mask, float("-inf")) → scores + (1.0 - mask.float()) * -1e9
    −1e9 is added to forbidden scores. If a whole row is forbidden, that swallows the scores and
    leaves equal ones, so each key gets 1/n. And this number does not exist in float16.
minus_infinity_added_in_float32 of nan_rows
    - scores.masked_fill(~mask, -INF)
    + scores + torch.zeros(mask.shape).masked_fill(~mask, -INF)
    ~ dim=-1) → dim=-1).nan_to_num(0.0)
    A float32 mask of 0 and −∞ is added, and NaN overwritten after the softmax. In the backward pass
    the NaN returns, since 0 · NaN is NaN; and float16 scores give float32 weights.
empty_row_sees_everything: ~mask → ~mask & mask.any(dim=-1, keepdim=True)
    Where everything is forbidden, the mask is lifted to avoid NaN, and stays lifted: such a query
    attends to what it must not see. Its weights should be zeros.
mask_is_needed: mask is not None → True
    Right, but an error without a mask: None is the default, and means that everything may be seen.
minus_hundred_leaks: float("-inf") → -100.0
    A forbidden score of −100 is not low enough: next to allowed scores that are even lower, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks.
minus_hundred_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + (~mask).to(scores.dtype) * -100.0
    A forbidden score of −100 is not low enough: next to allowed scores that are even lower, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks. And adding it does
    not even replace the score.
minus_thousand_leaks: float("-inf") → -1e3
    A forbidden score of −1,000 is not low enough: next to allowed scores that are even lower, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks.
minus_thousand_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + (~mask).to(scores.dtype) * -1e3
    A forbidden score of −1,000 is not low enough: next to allowed scores that are even lower, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks. And adding it does
    not even replace the score.
minus_ten_thousand_leaks: float("-inf") → -1e4
    A forbidden score of −10,000 is not low enough: next to allowed scores that are even lower, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks.
minus_ten_thousand_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + (~mask).to(scores.dtype) * -1e4
    A forbidden score of −10,000 is not low enough: next to allowed scores that are even lower, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks. And adding it does
    not even replace the score.
masked_fill_result_dropped: scores = scores.masked_fill → scores.masked_fill
    The mask has no effect: the scores go into the softmax as they came. If you call masked_fill: it
    returns a new tensor, and without an assignment its result is lost.
masked_after_softmax
    - scores = scores.masked_fill(~mask, float("-inf"))
    + return torch.softmax(scores, dim=-1) * mask
    The mask multiplies the weights after the softmax, without normalising again: the weights of a
    row no longer sum to 1. Forbidden keys must not take part in the sum.
renormalised_too_late
    - scores = scores.masked_fill(~mask, float("-inf"))
    + weights = torch.softmax(scores, dim=-1) * mask
    + return weights / weights.sum(dim=-1, keepdim=True)
    The mask acts after the softmax, and the rest is divided by its sum. With moderate scores that
    is right; where a forbidden score is far above the others, their weights have vanished by then,
    leaving 0/0.
renormalised_too_late_and_guarded
    - scores = scores.masked_fill(~mask, float("-inf"))
    + weights = torch.softmax(scores, dim=-1) * mask
    + return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
    The mask acts after the softmax, and the rest is divided by its sum, or by a small number. Where
    a forbidden score is far above the others, their weights have vanished by then, and the row
    becomes all zeros.
zero_times_infinity of nan_rows
    ~ scores.masked_fill(~mask, -INF) → scores + (~mask).to(scores.dtype) * -INF
    The mask is multiplied by −∞ and then added. Where it is 0 that gives 0 · (−∞), which is NaN: a
    single allowed key makes the whole row NaN.
scores_multiplied: scores.masked_fill(~mask, float("-inf")) → scores * mask
    Scores are multiplied by the mask, so a forbidden one becomes 0. But 0 is a score like any
    other, and exp(0) = 1: forbidden keys get weight, and more than those with negative scores.
mask_added_as_ones: scores.masked_fill(~mask, float("-inf")) → scores + mask
    The boolean mask is added to the scores: True adds 1 and False 0, which forbids nothing.
softmax_over_queries: dim=-1 → dim=-2 ×2
    The softmax runs over the queries (dim=-2), so columns sum to 1 and rows do not. Each query
    spreads a total of 1 over its keys: the last axis.
softmax_over_axis_one: dim=-1 → dim=1 ×2
    The softmax runs over dim=1, which is a different axis for each number of dimensions, so columns
    sum to 1 and rows do not. Each query spreads a total of 1 over its keys: the last axis.
softmax_over_queries_and_fully_masked_row_nan of nan_rows: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2), so columns sum to 1 and rows do not. Each query
    spreads a total of 1 over its keys: the last axis. And nothing is done about NaN.
softmax_over_axis_one_and_fully_masked_row_nan of nan_rows: dim=-1 → dim=1
    The softmax runs over dim=1, which is a different axis for each number of dimensions, so columns
    sum to 1 and rows do not. Each query spreads a total of 1 over its keys: the last axis. And
    nothing is done about NaN.
softmax_over_queries_and_minus_1e9 of uniform_rows: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2), so columns sum to 1 and rows do not. Each query
    spreads a total of 1 over its keys: the last axis. And −1e9 is used for −∞.
softmax_over_axis_one_and_minus_1e9 of uniform_rows: dim=-1 → dim=1
    The softmax runs over dim=1, which is a different axis for each number of dimensions, so columns
    sum to 1 and rows do not. Each query spreads a total of 1 over its keys: the last axis. And −1e9
    is used for −∞.
scores_changed_in_place: scores = scores.masked_fill( → scores.masked_fill_(
    masked_fill_, with an underscore, writes −∞ into the caller's scores, and fails where they need
    a gradient.
gradient_cut: + scores = scores.detach()
    The weights are right, but no gradient reaches the scores: the graph is cut (torch.no_grad,
    .detach(), NumPy, torch.tensor …).
always_float32: + scores = scores.float()
    The weights are float32 whatever the scores are. The dtype should be kept.
exp_without_the_largest_subtracted
    + weights = torch.exp(scores)
    + if mask is not None:
    +     weights = weights.masked_fill(~mask, 0.0)
    + total = weights.sum(dim=-1, keepdim=True)
    + return weights / torch.where(total == 0, 1.0, total)
    exp is taken of the raw scores: exp(10000) is infinite and ∞/∞ is NaN. Subtract the largest
    allowed score of each row first, or leave that to torch's softmax.
exp_without_the_largest_subtracted_and_nan
    + weights = torch.exp(scores) if mask is None else torch.exp(scores) * mask
    + return weights / weights.sum(dim=-1, keepdim=True)
    This is equation 4.1 to the letter: exp is taken of the raw scores, and exp(10000) is infinite.
    Subtract the largest allowed score of each row first, or leave that to torch's softmax. A row
    that may attend to nothing is 0/0.
nan_overwritten_in_place of nan_rows: > result[result.isnan()] = 0.0
    The weights are right, but NaN is overwritten in the output of softmax itself, which its
    backward pass needs unchanged. Overwrite in a new tensor instead.
filled_with_the_least_score_minus_fifty
    - scores.masked_fill(~mask, float("-inf"))
    + torch.where(mask, scores, scores.detach().min() - 50)
    - nothing = scores.isneginf().all(dim=-1, keepdim=True)
    + nothing = scores.isneginf().all(dim=-1, keepdim=True)
    + if mask is not None:
    +     nothing = ~mask.expand_as(scores).any(dim=-1, keepdim=True)
    What is forbidden gets the least score of all, less 50. Its weight is tiny, but not exactly 0;
    and exp of −∞ is.
""")


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


forgotten(BANK, "scores", result=True)
