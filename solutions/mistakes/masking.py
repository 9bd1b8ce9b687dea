"""Known answers to chapter 4: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.masking`.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from solutions import masking as right
from solutions.mistakes import Bank, Edit

PADDING_MASK = Bank("padding_mask", right, globals())
CAUSAL_MASK = Bank("causal_mask", right, globals())
MASKED_SOFTMAX = Bank("masked_softmax", right, globals())
ADDITIVE_MASK = Bank("additive_mask", right, globals())
MASKED_ATTENTION = Bank("masked_attention", right, globals())
ATTEND_WITH_CACHE = Bank("attend_with_cache", right, globals())
INF = float("inf")


# --- padding_mask: mistakes ---------------------------------------------------------------------

PADDING_MASK.changes("""
polarity_inverted: position < lengths → position >= lengths
    True and False are exchanged: the mask is True on the padding. In this book, as in torch's
    scaled_dot_product_attention, True means may attend; nn.MultiheadAttention means the opposite.
mask_on_query_rows: [:, None, None, :] → [:, None, :, None]
    The positions stand on the axis of the queries, (B, 1, max_len, 1). That forbids padding to ask,
    and lets everybody look at padding: it is the keys, the last axis, that must be hidden.
head_axis_missing: [:, None, None, :] → [:, None, :]
    The mask has one axis too few, (B, 1, max_len). Against scores (B, H, n_q, n_k) its B lines up
    with the heads, and that fails, or silently takes heads for sequences where H = B.
axes_for_broadcasting_missing: )[:, None, None, :] → )
    The mask is (B, max_len), without the two axes of size 1 that let it broadcast over heads and
    queries. Against scores (B, H, n_q, n_k) its sequences would line up with the queries.
one_position_too_many: position < lengths → position <= lengths
    The comparison is ≤ for <: positions count from 0, so a sequence of length n ends at n − 1, and
    position n, the first padding, must not be seen.
last_token_hidden: position < lengths → position + 1 < lengths
    The last token of each sequence is hidden: position n − 1 is the last of n.
padded_on_the_left: > result = result.flip(-1)
    The tokens stand at the end of each row and the padding before them. Here the tokens come first:
    True up to the length, then False.
max_len_ignored: torch.arange(max_len → torch.arange(longest
    The mask is always as wide as the longest sequence, whatever max_len says. It then does not fit
    scores of max_len keys.
default_is_the_batch_size
    - max_len = longest if max_len is None else max_len
    - if longest > max_len:
    + if max_len is None:
    +     max_len = len(lengths)
    + elif longest > max_len:
    Without max_len, the mask is as wide as there are sequences. It has to be as wide as the longest
    of them: the largest of the lengths, not their number.
sequence_cut_silently: longest > max_len → False
    A length above max_len is let through: the mask says that the sequence fills the row, and nobody
    learns that its end is lost. Raise ValueError.
error_without_numbers
    - f"a sequence of length {longest} does not fit into max_len {max_len}"
    + "a sequence is longer than max_len"
    The ValueError does not say which length was too long, nor for what. Whoever reads it needs both
    numbers.
assert_for_an_error: ValueError → AssertionError
    A length above max_len ends in an AssertionError. Asserts are for what cannot happen (and are
    gone under python -O); for a caller's mistake, raise ValueError.
full_length_refused
    - max_len = longest if max_len is None else max_len
    - if longest > max_len:
    + if max_len is None:
    +     max_len = longest
    + elif longest >= max_len:
    A sequence of exactly max_len tokens is refused. It fits; only what is longer does not.
length_zero_refused
    + if (lengths < 1).any():
    +     raise ValueError(f"length {int(lengths.min())} is below 1")
    A sequence of length 0 raises an error. It is an empty row, all False.
length_zero_sees_one: + lengths = lengths.clamp(min=1)
    A sequence of length 0 gets one True, perhaps against NaN further on. It has no token to attend
    to; dealing with an empty row is the softmax's business.
numbers_for_booleans: > result = result.float()
    The mask holds 1 and 0 instead of True and False. Code that inverts it with ~ or hands it to
    masked_fill goes wrong, and torch's attention adds a mask of numbers to the scores.
lengths_changed_in_place: > lengths.sub_(1)
    The mask is right, but the caller's lengths are changed: methods that end in _ write into the
    tensor they are called on.
queries_of_padding_hidden_as_well: > result = result & result.mT
    The mask is (B, 1, max_len, max_len): it also forbids padding to ask. Nobody reads what padding
    finds, and its rows are left with nothing to see. Return (B, 1, 1, max_len).
polarity_inverted_and_cut_silently of polarity_inverted: longest > max_len → False
    True and False are exchanged: the mask is True on the padding. In this book, as in torch's
    scaled_dot_product_attention, True means may attend; nn.MultiheadAttention means the opposite.
    And a length above max_len is let through: raise ValueError.
mask_on_query_rows_and_cut_silently of mask_on_query_rows: longest > max_len → False
    The positions stand on the axis of the queries, (B, 1, max_len, 1). That forbids padding to ask,
    and lets everybody look at padding: it is the keys, the last axis, that must be hidden. And a
    length above max_len is let through: raise ValueError.
head_axis_missing_and_cut_silently of head_axis_missing: longest > max_len → False
    The mask has one axis too few, (B, 1, max_len). Against scores (B, H, n_q, n_k) its B lines up
    with the heads, and that fails, or silently takes heads for sequences where H = B. And a length
    above max_len is let through: raise ValueError.
axes_for_broadcasting_missing_and_cut_silently of axes_for_broadcasting_missing
    ~ longest > max_len → False
    The mask is (B, max_len), without the two axes of size 1 that let it broadcast over heads and
    queries. Against scores (B, H, n_q, n_k) its sequences would line up with the queries. And a
    length above max_len is let through: raise ValueError.
one_position_too_many_and_cut_silently of one_position_too_many: longest > max_len → False
    The comparison is ≤ for <: positions count from 0, so a sequence of length n ends at n − 1, and
    position n, the first padding, must not be seen. And a length above max_len is let through:
    raise ValueError.
numbers_for_booleans_and_cut_silently of numbers_for_booleans: longest > max_len → False
    The mask holds 1 and 0 instead of True and False. Code that inverts it with ~ or hands it to
    masked_fill goes wrong, and torch's attention adds a mask of numbers to the scores. And a length
    above max_len is let through: raise ValueError.
""")


# --- padding_mask: right ------------------------------------------------------------------------


def _checked(lengths, max_len):
    n = max(lengths.tolist()) if max_len is None else max_len
    if max(lengths.tolist()) > n:
        raise ValueError(f"lengths {lengths.tolist()} do not fit into {n}")
    return n


@PADDING_MASK.right
def sequence_by_sequence(lengths, max_len=None):
    mask = torch.zeros(len(lengths), 1, 1, _checked(lengths, max_len), dtype=torch.bool)
    for row, length in zip(mask, lengths.tolist(), strict=True):
        row[..., :length] = True
    return mask


@PADDING_MASK.right
def by_counting_down(lengths, max_len=None):
    n = _checked(lengths, max_len)
    left = lengths.view(-1, 1, 1, 1) - torch.arange(n).view(1, 1, 1, -1)
    return left.ge(1)


@PADDING_MASK.right
def by_a_table_of_lists(lengths, max_len=None):
    n = _checked(lengths, max_len)
    return torch.tensor([[[[j < length for j in range(n)]]] for length in lengths.tolist()])


@PADDING_MASK.right
def by_numpy(lengths, max_len=None):
    n = _checked(lengths, max_len)
    mask = np.less.outer(np.arange(n), lengths.numpy()).T
    return torch.from_numpy(mask.copy()).unsqueeze(1).unsqueeze(1)


@PADDING_MASK.right
def by_looking_up_a_triangle(lengths, max_len=None):
    n = _checked(lengths, max_len)
    return torch.ones(n + 1, n).tril(-1).bool()[lengths][:, None, None]


@PADDING_MASK.right
def by_padding_ones(lengths, max_len=None):
    n = _checked(lengths, max_len)
    rows = [F.pad(torch.ones(length), (0, n - length)) for length in lengths.tolist()]
    return torch.stack(rows).to(torch.bool).reshape(-1, 1, 1, n)


# --- causal_mask: mistakes ----------------------------------------------------------------------

CAUSAL_MASK.changes("""
polarity_inverted: everything.tril → ~everything.tril
    True and False are exchanged: the mask is True on the future. In this book True means may
    attend; nn.MultiheadAttention and its generate_square_subsequent_mask mean the opposite.
diagonal_excluded: diagonal=n_k - n_q → diagonal=n_k - n_q - 1
    The diagonal is False: a position does not see itself, and the first sees nothing at all.
    Position i sees 0 … i, i included.
one_step_into_the_future: diagonal=n_k - n_q → diagonal=n_k - n_q + 1
    Each query sees one key beyond its own position: the very token it has to predict. The
    training loss falls to almost nothing and the model has learnt to copy.
top_left_aligned: diagonal=n_k - n_q → diagonal=0
    The triangle starts at the top left also where there are more keys than queries, as if the
    queries were the first positions. They are the last: a new token would see only the beginning of
    what it continues.
looks_into_the_future_only: tril → triu
    The triangle is the upper one: each query sees itself and what comes after it. Rows are queries,
    columns are keys; the past is below the diagonal.
keys_along_rows: > result = result.T
    The mask is transposed, (n_k, n_q): asked is one row for each query.
n_k_ignored: + n_k = n_q
    The mask is always square: n_k is not used. While a text is being written there are few queries
    and many keys.
shift_has_the_wrong_sign: diagonal=n_k - n_q → diagonal=n_q - n_k
    The triangle is shifted by n_q − n_k instead of n_k − n_q: with more keys than queries it moves
    to the left, and queries that should see much see nothing.
never_shifted_to_the_left: diagonal=n_k - n_q → diagonal=max(0, n_k - n_q)
    With more queries than keys the triangle is aligned at the top left, so that early queries see
    keys that come after them. The rule is one: the last query stands at the last key.
everybody_sees_the_first: > result[:, 0] = True
    The first key is True for all queries, perhaps against empty rows. With more queries than keys,
    the first queries come before every key and have nothing to see.
numbers_for_booleans: > result = result.float()
    The mask holds 1 and 0 instead of True and False; torch's attention would add them to the
    scores. Ask for dtype=torch.bool.
minus_infinity_for_false
    > result = torch.zeros(result.shape, device=device).masked_fill(~result, -INF)
    The mask is an additive one, 0 and −∞. Return a boolean one: True where a query may attend.
    Turning one into the other is an exercise of its own.
device_ignored: torch.bool, device=device → torch.bool
    The mask is made on the CPU whatever `device` says, and meets the scores of a GPU only to raise
    an error.
axes_for_heads_added: > result = result[None, None]
    The mask is (1, 1, n_q, n_k). It would broadcast, but so does (n_q, n_k), the shape to return.
""")


# Whoever starts from torch.tril(torch.ones(…)) or triu makes two of these mistakes at a time.
CAUSAL_MASK.changes("""
top_left_aligned_and_polarity_inverted of top_left_aligned: everything.tril → ~everything.tril
    The triangle starts at the top left also where there are more keys than queries, as if the
    queries were the first positions. They are the last: a new token would see only the beginning of
    what it continues. And True and False are exchanged.
top_left_aligned_and_numbers_for_booleans of top_left_aligned: > result = result.float()
    The triangle starts at the top left also where there are more keys than queries, as if the
    queries were the first positions. They are the last: a new token would see only the beginning of
    what it continues. And it holds 1 and 0 instead of True and False.
top_left_aligned_and_diagonal_excluded of top_left_aligned: diagonal=0 → diagonal=-1
    The triangle starts at the top left also where there are more keys than queries, as if the
    queries were the first positions. They are the last: a new token would see only the beginning of
    what it continues. And a position does not see itself.
n_k_ignored_and_polarity_inverted of n_k_ignored: everything.tril → ~everything.tril
    The mask is always square: n_k is not used. While a text is being written there are few queries
    and many keys. And True and False are exchanged.
n_k_ignored_and_numbers_for_booleans of n_k_ignored: > result = result.float()
    The mask is always square: n_k is not used. While a text is being written there are few queries
    and many keys. And it holds 1 and 0 instead of True and False.
n_k_ignored_and_diagonal_excluded of n_k_ignored: diagonal=n_k - n_q → diagonal=-1
    The mask is always square: n_k is not used. While a text is being written there are few queries
    and many keys. And a position does not see itself.
""")


# --- causal_mask: right -------------------------------------------------------------------------


@CAUSAL_MASK.right
def by_comparing_positions(n_q, n_k=None, device=None):
    n_k = n_k or n_q
    query = torch.arange(n_k - n_q, n_k, device=device).unsqueeze(1)
    return query >= torch.arange(n_k, device=device)


@CAUSAL_MASK.right
def without_the_upper_triangle(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    return ~torch.ones((n_q, n_k), device=device).triu(1 + n_k - n_q).bool()


@CAUSAL_MASK.right
def cell_by_cell(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    rows = [[j - n_k <= i - n_q for j in range(n_k)] for i in range(n_q)]
    return torch.tensor(rows, dtype=torch.bool, device=device)


@CAUSAL_MASK.right
def row_by_row(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    mask = torch.zeros(n_q, n_k, dtype=torch.bool, device=device)
    for i in range(n_q):
        mask[i, : max(0, i + 1 + n_k - n_q)] = True
    return mask


@CAUSAL_MASK.right
def by_numpy(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    return torch.from_numpy(np.tri(n_q, n_k, n_k - n_q).astype(bool)).to(device or "cpu")


@CAUSAL_MASK.right
def the_last_rows_of_a_square(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    side = max(n_q, n_k)
    return torch.ones(side, side, device=device).tril()[side - n_q :, side - n_k :] > 0


# --- masked_softmax: mistakes -------------------------------------------------------------------


def _nan_rows(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -INF)
    return torch.softmax(scores, dim=-1)


def _uniform_rows(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return torch.softmax(scores, dim=-1)


def _zeroed_after(scores, mask=None):
    if mask is None:
        return torch.softmax(scores, dim=-1)
    return torch.softmax(scores.masked_fill(~mask, -1e9), dim=-1) * mask


def _nan_gradients(scores, mask=None):
    """−∞ is added, and NaN is replaced at the end: the row's own scores pass the gradient on."""
    if mask is None:
        return torch.softmax(scores, dim=-1)
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -INF)
    return torch.softmax(scores + bias, dim=-1).nan_to_num(0.0)


# As students write it, one mistake seldom comes alone: what happens to a row
# in which all is forbidden is another.
_FULLY_MASKED_ROWS = {
    "": ("", right.masked_softmax),
    "_and_fully_masked_row_nan": (
        " And a row in which all is forbidden gives NaN instead of zeros.",
        _nan_rows,
    ),
    "_and_fully_masked_row_nan_gradient": (
        " And a row in which all is forbidden gives NaN in the backward pass.",
        _nan_gradients,
    ),
    "_and_fully_masked_row_uniform": (
        " And a row in which all is forbidden is shared out evenly instead of getting zeros.",
        _uniform_rows,
    ),
    "_and_minus_1e9": (
        " And −1e9, the score of what is forbidden, is too large for float16.",
        _zeroed_after,
    ),
}

for _suffix, (_more, _softmax) in _FULLY_MASKED_ROWS.items():
    MASKED_SOFTMAX.change(
        "polarity_inverted" + _suffix,
        "True and False are exchanged: the weights fall on what the mask forbids. In this book "
        "True means may attend, and masked_fill fills where it is given True." + _more,
        before="mask = None if mask is None else ~mask",
        of=_softmax.__name__,
    )
    MASKED_SOFTMAX.change(
        "mask_does_not_broadcast" + _suffix,
        "Right for a mask of the same shape as the scores, an error for any other: assigning to "
        "scores[~mask] does not broadcast. masked_fill and where do." + _more,
        before="if mask is not None and mask.shape != scores.shape:\n"
        '    raise IndexError("the shape of the mask does not match the shape of the scores")',
        of=_softmax.__name__,
    )

MASKED_SOFTMAX.changes("""
fully_masked_row_nan
    - nothing = scores.isneginf().all(dim=-1, keepdim=True)
    ~ scores.masked_fill(nothing, 0.0) → scores
    ~ weights.masked_fill(nothing, 0.0) → weights
    Right, except for a row in which all is forbidden: a softmax of nothing but −∞ is 0/0, NaN, and
    the NaN goes through every layer above. Such a row has to be all zeros.
fully_masked_row_nan_gradient of _nan_rows
    - scores.masked_fill(~mask, -INF)
    + scores + torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask, -INF)
    ~ dim=-1) → dim=-1).nan_to_num(0.0)
    The weights are right, the gradients are not: −∞ is added and NaN overwritten after the softmax.
    In the backward pass it comes back, since 0 · NaN is NaN, and goes through the sum. Keep it from
    arising: give such a row harmless scores before the softmax.
fully_masked_row_uniform: float("-inf") → -1e9
    Forbidden scores are set to a large negative number instead of −∞. In a row in which all is
    forbidden all are then equal, so each gets 1/n: the query attends evenly to what it must not
    see.
minus_1e9_in_half_precision
    ~ float("-inf") → -1e9
    > result = result if mask is None else result * mask
    Right in float32, but −1e9 does not exist in float16, which ends at −65504. Use −inf, or
    torch.finfo(scores.dtype).min.
fully_masked_row_uniform_by_finfo: float("-inf") → torch.finfo(scores.dtype).min
    Right, except for a row in which all is forbidden: its scores are made equal, by the least
    number of their dtype or otherwise, and each key gets 1/n. Harmless scores are half of the cure;
    zeros in place of the weights are the other.
least_number_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + additive_mask(mask, scores.dtype)
    torch.finfo(dtype).min is added to forbidden scores. In a row in which all is forbidden that
    swallows the scores and leaves equal ones: each key gets 1/n, and passes a gradient on.
minus_1e9_added: scores.masked_fill(~mask, float("-inf")) → scores + (1.0 - mask.float()) * -1e9
    −1e9 is added to forbidden scores. In a row in which all is forbidden that swallows the scores
    and leaves equal ones, so each key gets 1/n. And float16 does not have this number.
minus_infinity_added_in_float32 of _nan_rows
    - scores.masked_fill(~mask, -INF)
    + scores + torch.zeros(mask.shape).masked_fill(~mask, -INF)
    ~ dim=-1) → dim=-1).nan_to_num(0.0)
    A float32 mask of 0 and −∞ is added, and NaN overwritten after the softmax. In the backward pass
    the NaN comes back, since 0 · NaN is NaN; and float16 scores come out as float32 weights.
empty_row_sees_everything: ~mask → ~mask & mask.any(dim=-1, keepdim=True)
    Where all is forbidden the mask is lifted, against NaN, and stays lifted: such a query attends
    to what it must not see. Its weights have to become zeros after the softmax.
mask_is_needed: mask is not None → True
    Right, but an error without a mask: None is the default, and means that all may be seen.
minus_hundred_leaks: float("-inf") → -100.0
    A forbidden score of −100 is not low enough: beside allowed scores that are lower still, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks.
minus_hundred_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + (~mask).to(scores.dtype) * -100.0
    A forbidden score of −100 is not low enough: beside allowed scores that are lower still, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks. Added, it does not
    even replace the score it stands on.
minus_thousand_leaks: float("-inf") → -1e3
    A forbidden score of −1,000 is not low enough: beside allowed scores that are lower still, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks.
minus_thousand_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + (~mask).to(scores.dtype) * -1e3
    A forbidden score of −1,000 is not low enough: beside allowed scores that are lower still, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks. Added, it does not
    even replace the score it stands on.
minus_ten_thousand_leaks: float("-inf") → -1e4
    A forbidden score of −10,000 is not low enough: beside allowed scores that are lower still, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks.
minus_ten_thousand_added
    - scores.masked_fill(~mask, float("-inf"))
    + scores + (~mask).to(scores.dtype) * -1e4
    A forbidden score of −10,000 is not low enough: beside allowed scores that are lower still, the
    forbidden key wins. Only −∞ (or the least number of the dtype) never leaks. Added, it does not
    even replace the score it stands on.
masked_fill_result_dropped: scores = scores.masked_fill → scores.masked_fill
    The mask has no effect. Mind that scores.masked_fill(…) returns a new tensor: without an
    assignment its result is dropped, and the old scores go into the softmax.
masked_after_softmax
    - scores = scores.masked_fill(~mask, float("-inf"))
    + return torch.softmax(scores, dim=-1) * mask
    The mask multiplies the weights after the softmax, without dividing again by what is left: the
    weights of a row no longer sum to 1. Forbidden keys must not take part in the sum.
renormalised_too_late
    - scores = scores.masked_fill(~mask, float("-inf"))
    + weights = torch.softmax(scores, dim=-1) * mask
    + return weights / weights.sum(dim=-1, keepdim=True)
    The mask acts after the softmax, and the rest is divided by its sum. With ordinary scores that
    is right; where a forbidden score is far above the others, their weights have vanished by then
    and 0/0 is left.
renormalised_too_late_and_guarded
    - scores = scores.masked_fill(~mask, float("-inf"))
    + weights = torch.softmax(scores, dim=-1) * mask
    + return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
    The mask acts after the softmax, and the rest is divided by its sum, or by a small number. Where
    a forbidden score is far above the others, their weights have vanished by then, and the row
    comes out as zeros.
zero_times_infinity of _nan_rows
    ~ scores.masked_fill(~mask, -INF) → scores + (~mask).to(scores.dtype) * -INF
    The mask is multiplied by −∞ to be added. Where it is 0 that gives 0 · (−∞), which is NaN: a
    single allowed key makes the whole row NaN. Fill instead of multiplying.
scores_multiplied: scores.masked_fill(~mask, float("-inf")) → scores * mask
    Scores are multiplied by the mask, so that a forbidden one becomes 0. But a score of 0 is an
    ordinary score, and exp(0) = 1: forbidden keys get weight, and more than those with negative
    scores.
mask_added_as_ones: scores.masked_fill(~mask, float("-inf")) → scores + mask
    The boolean mask is added to the scores: True adds 1 and False 0, which forbids nothing.
softmax_over_queries: dim=-1 → dim=-2 ×2
    The softmax runs over the queries (dim=-2), so columns sum to 1 and rows do not. Each query
    spreads a total of 1 over its keys: the last axis.
softmax_over_axis_one: dim=-1 → dim=1 ×2
    The softmax runs over dim=1, which is another axis for each number of dimensions, so columns sum
    to 1 and rows do not. Each query spreads a total of 1 over its keys: the last axis.
softmax_over_queries_and_fully_masked_row_nan of _nan_rows: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2), so columns sum to 1 and rows do not. Each query
    spreads a total of 1 over its keys: the last axis. And nothing is done about NaN.
softmax_over_axis_one_and_fully_masked_row_nan of _nan_rows: dim=-1 → dim=1
    The softmax runs over dim=1, which is another axis for each number of dimensions, so columns sum
    to 1 and rows do not. Each query spreads a total of 1 over its keys: the last axis. And nothing
    is done about NaN.
softmax_over_queries_and_minus_1e9 of _uniform_rows: dim=-1 → dim=-2
    The softmax runs over the queries (dim=-2), so columns sum to 1 and rows do not. Each query
    spreads a total of 1 over its keys: the last axis. And −1e9 stands for −∞.
softmax_over_axis_one_and_minus_1e9 of _uniform_rows: dim=-1 → dim=1
    The softmax runs over dim=1, which is another axis for each number of dimensions, so columns sum
    to 1 and rows do not. Each query spreads a total of 1 over its keys: the last axis. And −1e9
    stands for −∞.
scores_changed_in_place: scores = scores.masked_fill( → scores.masked_fill_(
    masked_fill_ with an underscore writes −∞ into the caller's scores, and fails where they need a
    gradient. masked_fill makes a new tensor.
gradient_cut: + scores = scores.detach()
    The weights are right, but no gradient reaches the scores: .detach(), .data, NumPy or
    torch.tensor(…) cut the graph.
always_float32: + scores = scores.float()
    The weights are float32 whatever the scores are. Keep the dtype of what you are given.
exp_without_the_largest_subtracted
    + weights = torch.exp(scores)
    + if mask is not None:
    +     weights = weights.masked_fill(~mask, 0.0)
    + total = weights.sum(dim=-1, keepdim=True)
    + return weights / torch.where(total == 0, 1.0, total)
    exp is taken of the raw scores: exp(10000) is infinite and ∞/∞ is NaN. Subtract the largest
    allowed score of each row, or leave it to torch.softmax.
exp_without_the_largest_subtracted_and_nan
    + weights = torch.exp(scores) if mask is None else torch.exp(scores) * mask
    + return weights / weights.sum(dim=-1, keepdim=True)
    Equation 4.1 as it stands: exp is taken of the raw scores, and exp(10000) is infinite. Subtract
    the largest allowed score of each row, or leave it to torch.softmax. A row in which all is
    forbidden is 0/0.
nan_overwritten_in_place of _nan_rows: > result[result.isnan()] = 0.0
    The weights are right, but NaN is overwritten in the result of softmax itself, which its
    backward pass needs as it was. Make a new tensor: masked_fill, where.
""")


# --- masked_softmax: right ----------------------------------------------------------------------


@MASKED_SOFTMAX.right
def filled_with_the_least_and_zeroed(scores, mask=None):
    if mask is None:
        return F.softmax(scores, -1)
    return F.softmax(scores.masked_fill(~mask, torch.finfo(scores.dtype).min), -1) * mask


@MASKED_SOFTMAX.right
def by_where(scores, mask=None):
    if mask is None:
        return scores.softmax(-1)
    some = mask.any(-1, keepdim=True)
    weights = torch.where(mask | ~some, scores, -INF).softmax(-1)
    return torch.where(some, weights, 0.0)


@MASKED_SOFTMAX.right
def nan_replaced_at_the_end(scores, mask=None):
    # masked_fill passes no gradient on, so that the softmax's NaN stops here.
    hidden = scores if mask is None else scores.masked_fill(~mask, -INF)
    return hidden.softmax(-1).nan_to_num(0.0)


@MASKED_SOFTMAX.right
def by_adding_infinity(scores, mask=None):
    if mask is None:
        return scores.softmax(-1)
    some = mask.any(-1, keepdim=True)
    bias = torch.zeros(mask.shape, dtype=scores.dtype).masked_fill(~mask & some, -INF)
    return (scores + bias).softmax(-1) * some


@MASKED_SOFTMAX.right
def exponentials_by_hand(scores, mask=None):
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    hidden = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    shifted = hidden - hidden.amax(-1, keepdim=True).detach()
    counts = shifted.exp().masked_fill(~mask, 0.0)
    total = counts.sum(-1, keepdim=True)
    return counts / total.masked_fill(total == 0, 1.0)


@MASKED_SOFTMAX.right
def by_log_softmax_in_float64(scores, mask=None):
    wide = scores.double()
    if mask is None:
        return wide.log_softmax(-1).exp().to(scores.dtype)
    wide = wide.where(mask, torch.tensor(-1e300, dtype=torch.float64))
    return (wide.log_softmax(-1).exp() * mask).to(scores.dtype)


@MASKED_SOFTMAX.right
def row_by_row(scores, mask=None):
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand_as(scores)
    rows, seen = scores.reshape(-1, scores.shape[-1]), mask.reshape(-1, scores.shape[-1])
    weights = []
    for row, allowed in zip(rows, seen, strict=True):
        places = allowed.nonzero()[:, 0]
        shares = torch.softmax(row[places], dim=0)
        weights.append(torch.zeros_like(row).index_put((places,), shares))
    return torch.stack(weights).reshape(scores.shape)


@MASKED_SOFTMAX.right
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


# --- additive_mask: mistakes --------------------------------------------------------------------

ADDITIVE_MASK.changes("""
polarity_inverted: ~mask → mask
    The large negative number stands where the mask is True. True means may attend: there, nothing
    is added.
minus_infinity: torch.finfo(dtype).min → -INF
    −∞ stands where the mask is False. It hides well, but a row with nothing else is NaN after the
    softmax; asked is torch.finfo(dtype).min, the least finite number.
zero_times_infinity
    - allowed.masked_fill(~mask, torch.finfo(dtype).min)
    + (~mask).to(dtype) * -INF
    The mask is multiplied by −∞. Where it is 0 that gives 0 · (−∞), NaN: allowed keys get NaN. Fill
    instead of multiplying.
minus_hundred: torch.finfo(dtype).min → -100.0
    −100 stands where the mask is False, in every dtype. A number that is picked once is too small
    for large scores or too large for float16; torch.finfo(dtype).min is the end of the dtype at
    hand.
minus_ten_thousand: torch.finfo(dtype).min → -1e4
    −10000 stands where the mask is False, in every dtype. A number that is picked once is too small
    for large scores or too large for float16; torch.finfo(dtype).min is the end of the dtype at
    hand.
minus_1e9
    ~ dtype=dtype → dtype=torch.float64
    ~ torch.finfo(dtype).min → -1e9
    > result = result.to(dtype)
    −1e+09 stands where the mask is False, in every dtype. A number that is picked once is too small
    for large scores or too large for float16; torch.finfo(dtype).min is the end of the dtype at
    hand.
minus_1e30
    ~ dtype=dtype → dtype=torch.float64
    ~ torch.finfo(dtype).min → -1e30
    > result = result.to(dtype)
    −1e+30 stands where the mask is False, in every dtype. A number that is picked once is too small
    for large scores or too large for float16; torch.finfo(dtype).min is the end of the dtype at
    hand.
least_of_float32_in_every_dtype
    ~ dtype=dtype → dtype=torch.float64
    ~ finfo(dtype) → finfo(torch.float32)
    > result = result.to(dtype)
    The least float32 is used for every dtype: in float16 it is −∞, and in float64 a middling
    number. Ask torch.finfo for the dtype you are given.
nothing_added: torch.finfo(dtype).min → 0.0
    Where the mask is False stands 0, or next to it, and hides nothing. Perhaps the result of
    masked_fill was dropped: it returns a new tensor. Or tiny, the smallest positive number, or eps
    was taken for torch.finfo(dtype).min, the least number, far below 0.
half_of_the_least: torch.finfo(dtype).min → torch.finfo(dtype).min / 2
    torch.finfo(dtype).min / 2 stands where the mask is False: two of these can be added, but a
    third is −∞. Take the least number itself.
largest_number: torch.finfo(dtype).min → torch.finfo(dtype).max
    The largest number stands where the mask is False: added to a score, it makes the forbidden key
    win. The minus sign is missing.
one_where_true: torch.zeros → torch.ones
    1 stands where the mask is True. It is added to the scores, so what is allowed must get 0;
    adding 1 changes every score.
mask_only_converted: allowed.masked_fill(~mask, torch.finfo(dtype).min) → mask.to(dtype)
    The mask's True and False have become 1 and 0. Added to the scores these hide nothing.
dtype_ignored: dtype=dtype → dtype=torch.float32 ; finfo(dtype) → finfo(torch.float32)
    The result is float32 whatever `dtype` says. Added to float16 scores it makes float32 ones, and
    its least number is not theirs.
integers_allowed
    - raise TypeError(f"an additive mask needs a floating-point dtype, not {dtype}")
    + return additive_mask(mask).to(dtype)
    An integer or boolean dtype gives a mask instead of a TypeError. Scores are floating-point, and
    in whole numbers there is no such mask.
value_error_for_type_error: TypeError → ValueError
    A dtype that will not do ends in a ValueError. What is wrong is a type: TypeError.
least_in_float32_then_narrowed: mask.shape, dtype=dtype → mask.shape
    The least number of the dtype is right, but the result is float32: it takes its dtype from
    torch.zeros, which has to be told.
mask_changed_in_place: > mask.logical_not_()
    The result is right, but the caller's mask is inverted: logical_not_ writes into it.
""")


# --- additive_mask: right -----------------------------------------------------------------------


def _checked_dtype(dtype):
    if not dtype.is_floating_point:
        raise TypeError(f"{dtype} is not a floating-point dtype")


@ADDITIVE_MASK.right
def by_where(mask, dtype=torch.float32):
    least = torch.tensor(torch.finfo(dtype).min, dtype=dtype)  # finfo raises TypeError itself
    return torch.where(mask, torch.zeros((), dtype=dtype), least)


@ADDITIVE_MASK.right
def by_multiplying(mask, dtype=torch.float32):
    _checked_dtype(dtype)
    return (1 - mask.to(dtype)) * torch.finfo(dtype).min


@ADDITIVE_MASK.right
def the_other_way_round(mask, dtype=torch.float32):
    result = torch.full(mask.shape, -torch.finfo(dtype).max, dtype=dtype)
    result[mask] = 0
    return result


@ADDITIVE_MASK.right
def by_lists(mask, dtype=torch.float32):
    least = torch.finfo(dtype).min
    flat = [0.0 if allowed else least for allowed in mask.flatten().tolist()]
    return torch.tensor(flat, dtype=torch.float64).to(dtype).reshape(mask.shape)


@ADDITIVE_MASK.right
def by_looking_up(mask, dtype=torch.float32):
    if dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise TypeError(str(dtype))
    return torch.tensor([torch.finfo(dtype).min, 0.0], dtype=dtype)[mask.long()]


# --- masked_attention: mistakes -----------------------------------------------------------------


_SCALE = "/ math.sqrt(query.shape[-1])"
_WRONG_SCALES = {
    "no_scale": (
        "",
        "The scores are not divided by √d_k. Their spread grows with d_k, and the softmax turns "
        "into a choice of the largest.",
    ),
    "scaled_by_d_k": (
        "/ query.shape[-1]",
        "The scores are divided by d_k; asked is its square root.",
    ),
    "scaled_by_the_size_of_values": (
        "/ math.sqrt(value.shape[-1])",
        "The scores are divided by √d_v. Values take no part in the scores: it is the size of "
        "queries and keys, d_k, that makes dot products large.",
    ),
    "scaled_by_the_number_of_keys": (
        "/ math.sqrt(key.shape[-2])",
        "The scores are divided by √n_k, the number of keys. Take the size of a key, its last "
        "axis.",
    ),
    "multiplied_by_the_scale": (
        "* math.sqrt(query.shape[-1])",
        "The scores are multiplied by √d_k instead of divided by it.",
    ),
}

for _suffix, (_more, _softmax) in list(_FULLY_MASKED_ROWS.items())[:-1]:  # float16 is not asked
    _masked = Edit("masked_softmax", _softmax.__name__)
    for _name, (_scale, _cause) in _WRONG_SCALES.items():
        MASKED_ATTENTION.change(_name + _suffix, _cause + _more, Edit(_SCALE, _scale), _masked)
    MASKED_ATTENTION.change(
        "polarity_inverted" + _suffix,
        "True and False are exchanged: queries attend to what the mask forbids. True means may "
        "attend, and masked_fill fills where it is given True." + _more,
        _masked,
        before="mask = None if mask is None else ~mask",
    )

MASKED_ATTENTION.changes("""
fully_masked_row_nan: masked_softmax → _nan_rows
    Right, except for a query that may see nothing: a softmax of nothing but −∞ is 0/0, NaN, and the
    output is NaN too. Weights and output have to be zeros.
fully_masked_row_nan_gradient: masked_softmax → _nan_gradients
    The output is right, the gradients are not: −∞ is added and NaN overwritten after the softmax.
    It comes back in the backward pass, since 0 · NaN is NaN, and goes through the sum.
fully_masked_row_uniform: masked_softmax → _uniform_rows
    A query that may see nothing gets the plain average of the values it must not see, since all its
    scores are the same large negative number. Its weights and output have to be zeros.
least_number_added: masked_softmax → MASKED_SOFTMAX.mistakes["least_number_added"]
    The least number of the dtype is added to forbidden scores. A query that may see nothing is left
    with equal scores: it gets the average of all values, and passes gradients on. Weights and
    output have to be zeros.
masked_after_softmax: masked_softmax → MASKED_SOFTMAX.mistakes["masked_after_softmax"]
    The mask multiplies the weights after the softmax, so that a row no longer sums to 1, and
    forbidden keys still take part in its sum.
renormalised_too_late: masked_softmax → MASKED_SOFTMAX.mistakes["renormalised_too_late"]
    The mask acts after the softmax and the rest is divided by its sum. Where a forbidden score is
    far above the others, 0/0 is left.
masked_fill_result_dropped: masked_softmax → MASKED_SOFTMAX.mistakes["masked_fill_result_dropped"]
    The mask has no effect. Mind that masked_fill returns a new tensor; without an assignment its
    result is dropped.
minus_hundred_leaks: masked_softmax → MASKED_SOFTMAX.mistakes["minus_hundred_leaks"]
    A forbidden score of −100 is not low enough: beside allowed scores that are lower still, the
    forbidden key wins.
minus_ten_thousand_leaks: masked_softmax → MASKED_SOFTMAX.mistakes["minus_ten_thousand_leaks"]
    A forbidden score of −10,000 is not low enough for large scores, and where all is forbidden it
    gives the average of everything.
zero_times_infinity: masked_softmax → MASKED_SOFTMAX.mistakes["zero_times_infinity"]
    The mask is multiplied by −∞ to be added: 0 · (−∞) is NaN, in every row that has an allowed key.
softmax_over_queries: masked_softmax → MASKED_SOFTMAX.mistakes["softmax_over_queries"]
    The softmax runs over the queries, so columns sum to 1 and rows do not. Each query spreads a
    total of 1 over its keys.
softmax_over_queries_and_fully_masked_row_nan
    - masked_softmax
    + MASKED_SOFTMAX.mistakes["softmax_over_queries_and_fully_masked_row_nan"]
    The softmax runs over the queries, so columns sum to 1 and rows do not. And nothing is done
    about NaN.
mask_on_query_rows: (scores, mask) → (scores, None if mask is None else mask.mT)
    The mask is laid over the rows of the queries: transposed, it forbids the hidden positions to
    ask instead of forbidding others to look at them. It is the keys, the last axis, that it hides.
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
    Forbidden keys keep their weight and only their values are set to 0. The weights then sum to
    less than 1 over what is allowed: the output shrinks.
fully_masked_row_zeroed_in_the_output_only
    - return weights @ value, weights
    + output = weights @ value
    + if mask is not None:
    +     weights = weights.masked_fill(~mask.any(-1, keepdim=True), 1 / key.shape[-2])
    + return output, weights
    A query that may see nothing gets a zero output, but its weights are not zeros: whoever looks at
    the weights sees it attend to what it must not.
nan_replaced_in_the_output_only
    ~ masked_softmax → _nan_rows
    ~ weights @ value → (weights @ value).nan_to_num(0.0)
    A query that may see nothing gets a zero output, but its weights are NaN, and so are the
    gradients of the values: 0 has to stand in the weights already.
weights_without_the_mask: @ value, weights → @ value, masked_softmax(scores)
    The output obeys the mask, the weights that are returned do not: they have to be those that made
    the output.
output_and_weights_swapped: weights @ value, weights → weights, weights @ value
    The result is (weights, output); asked is (output, weights).
output_only: weights @ value, weights → weights @ value
    Only the output is returned; asked is the pair (output, weights).
scores_for_weights: @ value, weights → @ value, scores
    The second part of the result holds the scores; asked are the weights, after the softmax.
keys_averaged: @ value → @ key
    The weights average the keys. Keys are what is compared; what is averaged are the values.
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
    The mask that is given is combined with a causal one. Not every mask is causal: which keys may
    be seen is for the mask to say, and without one all may be.
three_dimensions_only: transpose(-2, -1) → transpose(1, 2)
    key.transpose(1, 2) fits (B, n, d) alone: without a batch, or with heads, it is an error or
    nonsense. Swap the last two axes, transpose(-2, -1), whatever stands before them.
two_dimensions_only: transpose(-2, -1) → permute(*reversed(range(key.ndim)))
    key.T turns all axes around: right for one sequence alone, an error or nonsense for a batch.
    Swap the last two axes only.
""")


# --- masked_attention: right --------------------------------------------------------------------


def _scores(query, key):
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


@MASKED_ATTENTION.right
def nan_replaced_at_the_end(query, key, value, mask=None):
    weights = MASKED_SOFTMAX.rights["nan_replaced_at_the_end"](_scores(query, key), mask)
    return weights @ value, weights


@MASKED_ATTENTION.right
def by_einsum(query, key, value, mask=None):
    scores = torch.einsum("...qd,...kd->...qk", query, key) * query.shape[-1] ** -0.5
    weights = filled_with_the_least_and_zeroed(scores, mask)
    return torch.einsum("...qk,...kv->...qv", weights, value), weights


@MASKED_ATTENTION.right
def queries_scaled_first(query, key, value, mask=None):
    weights = by_adding_infinity((query / math.sqrt(key.size(-1))).matmul(key.mT), mask)
    return weights.matmul(value), weights


@MASKED_ATTENTION.right
def query_by_query(query, key, value, mask=None):
    outputs, weights = [], []
    n_q, n_k = query.shape[-2], key.shape[-2]
    mask = torch.ones(n_q, n_k, dtype=torch.bool) if mask is None else mask
    mask = mask.expand(*torch.broadcast_shapes(mask.shape, (n_q, 1)))
    for i in range(n_q):
        scores = (query[..., i, None, :] * key).sum(-1) / math.sqrt(key.shape[-1])
        weights.append(right.masked_softmax(scores, mask[..., i, :]))
        outputs.append((weights[-1][..., None] * value).sum(-2))
    return torch.stack(outputs, -2), torch.stack(weights, -2)


@MASKED_ATTENTION.right
def by_torch(query, key, value, mask=None):
    def fused(value):
        if mask is None:
            return F.scaled_dot_product_attention(query, key, value)
        some = mask.any(-1, keepdim=True)
        return F.scaled_dot_product_attention(query, key, value, mask | ~some) * some

    identity = torch.eye(key.shape[-2], dtype=key.dtype).expand(*key.shape[:-2], -1, -1)
    return fused(value), fused(identity)


@MASKED_ATTENTION.right
def in_float64_inside(query, key, value, mask=None):
    scores = query.double() @ key.double().mT / key.shape[-1] ** 0.5
    weights = right.masked_softmax(scores, mask)
    return (weights @ value.double()).to(value.dtype), weights.to(value.dtype)


# --- attend_with_cache: mistakes ----------------------------------------------------------------


def _heads(attention, x):
    """(B, t, d_model) → (B, H, t, d_k)."""
    return x.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)


def _merged(heads):
    """(B, H, t, d_k) → (B, t, d_model)."""
    return heads.transpose(1, 2).flatten(2)


def _projected(attention, x):
    return tuple(_heads(attention, W(x)) for W in (attention.W_q, attention.W_k, attention.W_v))


def _attended(attention, q, k, v, mask):
    return attention.W_o(_merged(right.masked_attention(q, k, v, mask)[0]))


def _tril(rows, columns, diagonal):
    return torch.ones(rows, columns, dtype=torch.bool).tril(diagonal)


_kept: dict = {}

ATTEND_WITH_CACHE.changes("""
causal_inside_the_chunk_forgotten: causal_mask(q.shape[2], k.shape[2], x.device) → None
    No causal mask: within a chunk of several new positions, each sees those that come after it.
    With one position at a time nothing shows.
causal_without_cache_only: causal_mask( → None if cache is not None else causal_mask(
    The causal mask is left out as soon as there is a cache. For one new position that is right; in
    a chunk of several, each sees those that come after it.
top_left_aligned: causal_mask(q.shape[2], k.shape[2], x.device) → _tril(q.shape[2], k.shape[2], 0)
    The causal mask is aligned at the top left, as if the new positions were the first: they see the
    beginning of the cache, and never themselves. torch's is_causal=True does the same.
one_step_into_the_future
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] + 1)
    Each position sees one beyond its own, the token it is to predict.
diagonal_excluded
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] - 1)
    A position does not see itself: it sees only what came before, and the very first sees nothing.
cache_position_off_by_one
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] - (cache is not None))
    With a cache of T positions, the first new one stands at position T, counting from 0. It is
    taken to stand at T − 1, so that no new position sees itself.
cache_position_one_too_far
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], k.shape[2] - q.shape[2] + (cache is not None))
    With a cache of T positions, the first new one stands at position T, counting from 0. It is
    taken to stand at T + 1, so that each sees one position of the future.
causal_with_a_cache_only: causal_mask( → None if cache is None else causal_mask(
    The causal mask is left out where there is no cache yet: in the first chunk, each position sees
    those that come after it.
top_left_aligned_in_chunks
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + None if q.shape[2] == 1 else _tril(q.shape[2], k.shape[2], 0)
    One position at a time is right. In a chunk, the causal mask is aligned at the top left, as
    torch's is_causal=True does it: the new positions see the beginning of the cache, and never
    themselves.
mask_without_columns_for_the_cache
    ~ causal_mask(q.shape[2], k.shape[2] → causal_mask(q.shape[2], q.shape[2]
    The mask has a column for each of the t new positions only; with a cache of T it needs T + t,
    one for each key. With one new position it broadcasts, and nothing shows.
chunk_sees_only_the_cache
    - heads, _ =
    + mask = causal_mask(q.shape[2], k.shape[2])
    + if cache is not None:
    +     mask = torch.arange(k.shape[2]) < cache[0].shape[2]
    + heads, _ =
    ~ causal_mask(q.shape[2], k.shape[2], x.device) → mask
    The new positions see all of the cache and nothing of each other, not even themselves.
cache_not_grown: ), (k, v) → ), (k[:, :, -x.shape[1] :], v[:, :, -x.shape[1] :])
    The cache that is returned holds the new positions only: the next call sees one chunk back and
    has forgotten all before it.
old_cache_returned: ), (k, v) → ), (k, v) if cache is None else cache
    The cache is returned as it came in, without the new keys and values, so that no call sees what
    the one before it added.
cache_ignored: + cache = None
    The new positions attend only to each other: the cache is not used.
cache_grown_but_not_used: > result = attend_with_cache(attention, x)[0], result[1]
    The cache grows as it should, but the new positions attend only to each other: keys and values
    are joined with the cache after the attention instead of before it.
new_before_old: [cache[0], k] → [k, cache[0]] ; [cache[1], v] → [v, cache[1]]
    The new keys and values are put in front of the old ones. The causal mask counts positions from
    the left, so the newest would have to stand last.
sizes_do_not_fit_the_cache: dim=2 → dim=1 ×2
    Every call with a cache ends in a RuntimeError, because sizes do not fit. Old and new are joined
    along positions, dim=2 of (B, H, T, d_k): dim=0 counts sequences, dim=1 heads. The mask then has
    t rows and T + t columns.
keys_and_values_exchanged_in_the_cache: ), (k, v) → ), (v, k)
    The cache is returned as (v, k), so that the next call takes values for keys.
cache_projected_again
    ~ [cache[0], k] → [_heads(attention, attention.W_k(_merged(cache[0]))), k]
    ~ [cache[1], v] → [_heads(attention, attention.W_v(_merged(cache[1]))), v]
    What stands in the cache goes through W_k and W_v once more. It has been projected when it was
    new; only the new positions need to be.
inputs_cached
    + whole = x if cache is None else torch.cat([cache[0], x], 1)
    + q, (_, k, v) = _projected(attention, x)[0], _projected(attention, whole)
    + mask = causal_mask(q.shape[2], k.shape[2])
    + return _attended(attention, q, k, v, mask), (whole, whole)
    The cache holds the inputs x instead of keys and values. The outputs are right, but every call
    projects the whole past again, and the cache is not (k, v) of shape (B, H, T, d_k).
cached_before_the_split
    + q, k, v = _heads(attention, attention.W_q(x)), attention.W_k(x), attention.W_v(x)
    + if cache is not None:
    +     k, v = torch.cat([cache[0], k], 1), torch.cat([cache[1], v], 1)
    + mask = causal_mask(x.shape[1], k.shape[1])
    + return _attended(attention, q, _heads(attention, k), _heads(attention, v), mask), (k, v)
    The cache holds keys and values of shape (B, T, d_model), before they are split into heads.
    The exercise wants (B, H, T, d_k).
positions_before_heads_in_the_cache
    + cache = None if cache is None else tuple(part.transpose(1, 2) for part in cache)
    ~ ), (k, v) → ), (k.transpose(1, 2), v.transpose(1, 2))
    The cache is (B, T, H, d_k), with positions before heads. The exercise wants (B, H, T, d_k).
heads_split_by_view
    - p.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
    + p.reshape(len(x), attention.num_heads, x.shape[1], -1)
    Heads are split by a reshape to (B, H, t, d_k) alone, which cuts the sequence into pieces
    instead of the features. Split the features into (H, d_k) first, then swap axes 1 and 2.
merged_without_transpose: heads.transpose(1, 2).flatten(2) → heads.reshape(x.shape)
    The heads are merged by a reshape alone, which mixes positions and heads: swap axes 1 and 2
    before flattening.
output_projection_forgotten
    ~ attention.W_o(heads.transpose(1, 2).flatten(2)) → heads.transpose(1, 2).flatten(2)
    The merged heads are returned without W_o.
scaled_by_d_model: masked_attention(q → masked_attention(q * attention.num_heads**-0.5
    The scores are divided by √d_model. Each head works on d_k = d_model / H features: divide by
    √d_k.
no_scale: masked_attention(q → masked_attention(q * q.shape[-1] ** 0.5
    The scores are not divided by √d_k.
cache_kept_in_a_global
    + cache = None if cache is None else _kept.get("cache")
    > _kept["cache"] = result[1]
    The keys and values are kept in a variable outside of the function, and the cache that is passed
    in is not looked at. Two sequences, or two continuations of one, then get mixed up.
cache_changed_in_place
    - if cache is not None:
    -     k = torch.cat([cache[0], k], dim=2)
    -     v = torch.cat([cache[1], v], dim=2)
    + cache = [k[:, :, :0], v[:, :, :0]] if cache is None else cache
    + cache = list(cache) if isinstance(cache, tuple) else cache
    + k = cache[0] = torch.cat([cache[0], k], dim=2)
    + v = cache[1] = torch.cat([cache[1], v], dim=2)
    ~ ), (k, v) → ), cache
    The cache that came in is changed: it is a list whose two parts are replaced. Whoever kept it,
    to try another continuation, finds the new positions in it.
cache_detached: ), (k, v) → ), (k.detach(), v.detach())
    The cache that is handed on is cut off from the graph: no gradient of a later position reaches
    the inputs of an earlier one, as it would in the full pass.
no_gradient
    + with torch.no_grad():
    +     return attend_with_cache(attention, x, cache)
    Everything runs under torch.no_grad, so that no gradient reaches x. That is for the caller to
    decide; the cached pass equals the full pass backward, too.
last_output_only: > result = result[0][:, -1:], result[1]
    Only the output of the last position is returned; asked is one for each of the t new ones.
weights_for_cache: heads, _ = → heads, weights = ; ), (k, v) → ), weights
    The second part of the result holds the weights; here it has to be the new cache, (k, v).
key_and_value_projections_swapped: q, k, v = split → q, v, k = split
    W_v makes the keys and W_k the values. The shapes agree, the numbers do not.
keys_twice_in_the_cache: ), (k, v) → ), (k, k)
    The cache that is handed on is (k, k): the next call averages keys for values.
output_only: ), (k, v) → )
    Only the output is returned. The next call needs the new cache: asked is the pair (output, (k,
    v)).
heads_counted_for_positions
    - causal_mask(q.shape[2], k.shape[2], x.device)
    + _tril(q.shape[2], k.shape[2], 0 if cache is None else cache[0].shape[1])
    The number of old positions is read off the wrong axis: of (B, H, T, d_k), shape[1] is the
    number of heads, and shape[2] that of positions.
mode_of_the_module_changed: + attention.eval()
    attention.eval() or attention.train() changes the caller's module for good: its dropout is off
    or on from then on. The mode is for whoever calls to choose.
""")


# --- attend_with_cache: right -------------------------------------------------------------------


def _grown(cache, k, v):
    if cache is None:
        return k, v
    return torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)


@ATTEND_WITH_CACHE.right
def by_torch(attention, x, cache=None):
    q, k, v = _projected(attention, x)
    k, v = _grown(cache, k, v)
    heads = F.scaled_dot_product_attention(q, k, v, right.causal_mask(q.shape[2], k.shape[2]))
    return attention.W_o(_merged(heads)), (k, v)


@ATTEND_WITH_CACHE.right
def position_by_position(attention, x, cache=None):
    outputs = []
    for token in x.split(1, dim=1):
        q, k, v = _projected(attention, token)
        cache = _grown(cache, k, v)
        outputs.append(_attended(attention, q, *cache, None))
    return torch.cat(outputs, dim=1), cache


@ATTEND_WITH_CACHE.right
def head_by_head(attention, x, cache=None):
    d_k = x.shape[-1] // attention.num_heads
    q, k, v = (W(x).split(d_k, dim=-1) for W in (attention.W_q, attention.W_k, attention.W_v))
    outputs, keys, values = [], [], []
    for h in range(attention.num_heads):
        keys.append(k[h] if cache is None else torch.cat([cache[0][:, h], k[h]], 1))
        values.append(v[h] if cache is None else torch.cat([cache[1][:, h], v[h]], 1))
        scores = torch.bmm(q[h], keys[-1].mT) / d_k**0.5
        future = torch.full(scores.shape[1:], -INF).triu(1 + keys[-1].shape[1] - x.shape[1])
        outputs.append(torch.softmax(scores + future, -1) @ values[-1])
    output = attention.W_o(torch.cat(outputs, -1))
    return output, [torch.stack(keys, 1), torch.stack(values, 1)]


@ATTEND_WITH_CACHE.right
def by_einsum_over_positions_first(attention, x, cache=None):
    b, t, _ = x.shape
    shape = (b, t, attention.num_heads, -1)
    q, k, v = (W(x).reshape(shape) for W in (attention.W_q, attention.W_k, attention.W_v))
    past = 0
    if cache is not None:
        past = cache[0].shape[2]
        k = torch.cat((cache[0].permute(0, 2, 1, 3), k), 1)
        v = torch.cat((cache[1].permute(0, 2, 1, 3), v), 1)
    scores = torch.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    seen = torch.arange(past + t) <= torch.arange(past, past + t)[:, None]
    weights = scores.masked_fill(seen.logical_not(), -1e30).softmax(-1)
    output = attention.W_o(torch.einsum("bhqk,bkhd->bqhd", weights, v).reshape(b, t, -1))
    return output, (k.permute(0, 2, 1, 3), v.permute(0, 2, 1, 3))


@ATTEND_WITH_CACHE.right
def cache_of_no_length_to_begin_with(attention, x, cache=None):
    b, t, d_model = x.shape
    d_k = d_model // attention.num_heads
    empty = x.new_zeros(b, attention.num_heads, 0, d_k)
    k, v = (empty, empty) if cache is None else cache
    new = torch.stack([attention.W_k(x), attention.W_v(x)])
    k, v = torch.cat([torch.stack([k, v]), torch.stack(new.split(d_k, -1), 2)], 3)
    q = torch.stack(attention.W_q(x).split(d_k, -1), 1)
    heads, _ = right.masked_attention(q, k, v, _tril(t, k.shape[2], k.shape[2] - t))
    return attention.W_o(torch.cat(heads.unbind(1), -1)), (k, v)
