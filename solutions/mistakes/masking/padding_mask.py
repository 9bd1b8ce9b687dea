"""Known answers to `padding_mask`: mistakes, then right answers."""

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import masking as right

BANK = Bank("padding_mask", right, globals())

BANK.changes("""
polarity_inverted: position < lengths → position >= lengths
    True and False are swapped: the mask is True on the padding. In this book, as in torch's
    scaled_dot_product_attention, True means may attend; in nn.MultiheadAttention it means the
    opposite.
mask_on_query_rows: [:, None, None, :] → [:, None, :, None]
    The positions are on the axis of the queries, (B, 1, max_len, 1). That stops padding from
    attending and lets everybody attend to padding: it is the keys, the last axis, that must be
    hidden.
head_axis_missing: [:, None, None, :] → [:, None, :]
    The mask has one axis too few, (B, 1, max_len). Against scores (B, H, n_q, n_k) its B lines up
    with the heads: that fails or, where H = B, silently takes heads for sequences.
axes_for_broadcasting_missing: )[:, None, None, :] → )
    The mask is (B, max_len), without the two axes of size 1 that let it broadcast over heads and
    queries. Against scores (B, H, n_q, n_k) its sequences would line up with the queries.
one_position_too_many: position < lengths → position <= lengths
    The comparison is ≤ instead of <: positions count from 0, so a sequence of length n ends at n −
    1, and position n, the first padding, must not be seen.
last_token_hidden: position < lengths → position + 1 < lengths
    The last token of each sequence is hidden: position n − 1 is the last of n.
padded_on_the_left: > result = result.flip(-1)
    The tokens are at the end of each row, with the padding before them. Here the tokens come first:
    True up to the length, then False.
max_len_ignored: torch.arange(max_len → torch.arange(longest
    The mask is always as wide as the longest sequence, whatever max_len says. It does not fit
    scores with max_len keys.
default_is_the_batch_size
    - max_len = longest if max_len is None else max_len
    - if longest > max_len:
    + if max_len is None:
    +     max_len = len(lengths)
    + elif longest > max_len:
    Without max_len, the mask is as wide as the number of sequences. It should be as wide as the
    longest of them: the largest length, not how many lengths there are.
sequence_cut_silently: longest > max_len → False
    A length above max_len is accepted: the mask says that the sequence fills the row, and nobody
    notices that its end is lost. It should raise a ValueError.
error_without_numbers
    - f"a sequence of length {longest} does not fit into max_len {max_len}"
    + "a sequence is longer than max_len"
    The ValueError does not say which length is too long, nor for what. Whoever reads it needs both
    numbers.
assert_for_an_error: ValueError → AssertionError
    A length above max_len raises an AssertionError. Asserts are for what cannot happen (and are
    gone under python -O); a caller's mistake deserves a ValueError.
full_length_refused
    - max_len = longest if max_len is None else max_len
    - if longest > max_len:
    + if max_len is None:
    +     max_len = longest
    + elif longest >= max_len:
    A sequence of exactly max_len tokens is rejected. It fits; only longer ones do not.
length_zero_refused
    + if (lengths < 1).any():
    +     raise ValueError(f"length {int(lengths.min())} is below 1")
    A sequence of length 0 raises an error. It is simply an empty row, all False.
length_zero_sees_one: + lengths = lengths.clamp(min=1)
    A sequence of length 0 gets one True, perhaps to avoid NaN later on. It has no token to attend
    to; handling empty rows is up to the softmax.
numbers_for_booleans: > result = result.float()
    The mask holds 1 and 0 instead of True and False. Code that inverts it with ~ or passes it to
    masked_fill goes wrong, and torch's attention adds a mask of numbers to the scores.
lengths_changed_in_place: > lengths.sub_(1)
    The mask is right, but the caller's lengths are changed: methods whose names end in _ write into
    the tensor they are called on.
queries_of_padding_hidden_as_well: > result = result & result.mT
    The mask is (B, 1, max_len, max_len): it also stops padding from attending. Nobody reads what
    padding finds, and its rows are left with nothing to attend to. The shape should be (B, 1, 1,
    max_len).
polarity_inverted_and_cut_silently of polarity_inverted: longest > max_len → False
    True and False are swapped: the mask is True on the padding. In this book, as in torch's
    scaled_dot_product_attention, True means may attend; in nn.MultiheadAttention it means the
    opposite. And a length above max_len raises no ValueError.
mask_on_query_rows_and_cut_silently of mask_on_query_rows: longest > max_len → False
    The positions are on the axis of the queries, (B, 1, max_len, 1). That stops padding from
    attending and lets everybody attend to padding: it is the keys, the last axis, that must be
    hidden. And a length above max_len raises no ValueError.
head_axis_missing_and_cut_silently of head_axis_missing: longest > max_len → False
    The mask has one axis too few, (B, 1, max_len). Against scores (B, H, n_q, n_k) its B lines up
    with the heads: that fails or, where H = B, silently takes heads for sequences. And a length
    above max_len raises no ValueError.
axes_for_broadcasting_missing_and_cut_silently of axes_for_broadcasting_missing
    ~ longest > max_len → False
    The mask is (B, max_len), without the two axes of size 1 that let it broadcast over heads and
    queries. Against scores (B, H, n_q, n_k) its sequences would line up with the queries. And a
    length above max_len raises no ValueError.
one_position_too_many_and_cut_silently of one_position_too_many: longest > max_len → False
    The comparison is ≤ instead of <: positions count from 0, so a sequence of length n ends at n −
    1, and position n, the first padding, must not be seen. And a length above max_len raises no
    ValueError.
numbers_for_booleans_and_cut_silently of numbers_for_booleans: longest > max_len → False
    The mask holds 1 and 0 instead of True and False. Code that inverts it with ~ or passes it to
    masked_fill goes wrong, and torch's attention adds a mask of numbers to the scores. And a length
    above max_len raises no ValueError.
""")


def _checked(lengths, max_len):
    n = max(lengths.tolist()) if max_len is None else max_len
    if max(lengths.tolist()) > n:
        raise ValueError(f"lengths {lengths.tolist()} do not fit into {n}")
    return n


@BANK.right
def sequence_by_sequence(lengths, max_len=None):
    shape = len(lengths), 1, 1, _checked(lengths, max_len)
    mask = torch.zeros(shape, dtype=torch.bool, device=lengths.device)
    for row, length in zip(mask, lengths.tolist(), strict=True):
        row[..., :length] = True
    return mask


@BANK.right
def by_counting_down(lengths, max_len=None):
    n = _checked(lengths, max_len)
    left = lengths.view(-1, 1, 1, 1) - torch.arange(n).to(lengths).view(1, 1, 1, -1)
    return left.ge(1)


@BANK.right
def by_a_table_of_lists(lengths, max_len=None):
    n = _checked(lengths, max_len)
    table = [[[[j < length for j in range(n)]]] for length in lengths.tolist()]
    return torch.tensor(table, device=lengths.device)


@BANK.right
def by_numpy(lengths, max_len=None):
    n = _checked(lengths, max_len)
    mask = np.less.outer(np.arange(n), lengths.cpu().numpy()).T
    return torch.from_numpy(mask.copy()).unsqueeze(1).unsqueeze(1).to(lengths.device)


@BANK.right
def by_looking_up_a_triangle(lengths, max_len=None):
    n = _checked(lengths, max_len)
    return lengths.new_ones(n + 1, n).tril(-1).bool()[lengths][:, None, None]


@BANK.right
def by_padding_ones(lengths, max_len=None):
    n = _checked(lengths, max_len)
    ones = [lengths.new_ones(length) for length in lengths.tolist()]
    rows = [F.pad(row, (0, n - len(row))) for row in ones]
    return torch.stack(rows).to(torch.bool).reshape(-1, 1, 1, n)


forgotten(BANK, "lengths", numpy=True, result=True)
