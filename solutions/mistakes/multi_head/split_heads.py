"""Known answers to `split_heads`: mistakes, then right answers."""

import torch

from solutions import multi_head as right
from solutions.mistakes import Bank

BANK = Bank("split_heads", right, globals())


def _check(d_model, num_heads):
    if d_model % num_heads:
        raise ValueError(f"{d_model} features, {num_heads} heads")


BANK.changes("""
split_by_view: *x.shape[:-1], num_heads → len(x), num_heads, x.shape[1] ; x.transpose(-3, -2) → x
    The array is cut straight to (B, H, n, d_k). The shape is right and the contents are not: each
    head gets a few whole positions, chopped into pieces, instead of a slice of every position. Cut
    to (B, n, H, d_k) first, and exchange the axes then.
split_by_view_unchecked
    ~ d_model % num_heads != 0 → False
    ~ *x.shape[:-1], num_heads → len(x), num_heads, x.shape[1]
    ~ x.transpose(-3, -2) → x
    The array is cut straight to (B, H, n, d_k). The shape is right and the contents are not: each
    head gets a few whole positions, chopped into pieces, instead of a slice of every position. And
    uneven heads end in reshape's own error: raise a ValueError with both numbers.
exchanged_before_cutting
    ~ x.reshape(*x.shape[:-1], num_heads → x.transpose(1, 2).reshape(len(x), num_heads, x.shape[1]
    ~ x.transpose(-3, -2) → x
    The axes of positions and features are exchanged first and the array is cut then, so that a
    head's rows are made of one feature's numbers at several positions. Cut first.
axes_not_exchanged: x.transpose(-3, -2) → x
    The features are cut into heads, (B, n, H, d_k), but the axes of positions and heads are not
    exchanged. Heads must come before positions, so that they ride along like a batch.
heads_interleaved
    ~ num_heads, d_model // num_heads) → d_model // num_heads, num_heads)
    ~ x.transpose(-3, -2) → x.permute(0, 3, 1, 2)
    Head h gets every H-th feature, h, h + H, h + 2H, …, instead of d_k features in a row. The last
    axis is cut to (H, d_k), heads first.
heads_and_batch_exchanged: x.transpose(-3, -2) → x.permute(2, 0, 1, 3)
    The heads stand before the batch, (H, B, n, d_k). The batch comes first, always.
heads_and_size_exchanged: num_heads, d_model // num_heads) → d_model // num_heads, num_heads)
    The heads have num_heads features each; there should be num_heads heads of d_model / num_heads
    features.
features_before_positions: x.transpose(-3, -2) → x.permute(0, 2, 3, 1)
    The result is (B, H, d_k, n): positions and features are exchanged. Each head holds one row per
    position.
rest_dropped
    - raise ValueError(f"d_model = {d_model} cannot be split into {num_heads} equal heads")
    + x = x[..., : d_model // num_heads * num_heads]
    Where d_model is not divisible by the number of heads, the last features are dropped without a
    word. Raise a ValueError that names both numbers.
error_left_to_reshape: d_model % num_heads != 0 → False
    Uneven heads fail inside reshape, with a RuntimeError about sizes. Test for it yourself, and
    raise a ValueError that names d_model and the number of heads.
asserted: ValueError → AssertionError
    Uneven heads end in an AssertionError. An assert is for what cannot happen; for a caller's wrong
    number, raise a ValueError.
error_without_numbers
    - f"d_model = {d_model} cannot be split into {num_heads} equal heads"
    + "d_model must be divisible by num_heads"
    The ValueError does not say which numbers were wrong. Name d_model and num_heads in it: who
    reads the message wants to know which of the two to change.
gradient_cut: + x = x.detach()
    No gradient flows back: the heads are made from x.detach(), x.data or a NumPy array, so whatever
    produced x can never learn.
always_float: + x = x.float()
    The result is always float32. Splitting moves numbers; it does not change their dtype.
strides_assumed
    - x = x.reshape(*x.shape[:-1], num_heads, d_model // num_heads)
    - return x.transpose(-3, -2)
    + (B, n, d), d_k = x.shape, d_model // num_heads
    + return torch.as_strided(x, (B, num_heads, n, d_k), (n * d, d_k, d, 1))
    Strides are computed as if x lay contiguously in memory. x may be a view of something larger;
    reshape and transpose know its real strides.
""")


@BANK.right
def split_unflattened(x, num_heads):
    _check(x.shape[-1], num_heads)
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, 1)


@BANK.right
def split_in_chunks(x, num_heads):
    _check(x.shape[-1], num_heads)
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


@BANK.right
def split_in_a_loop(x, num_heads):
    _check(x.shape[-1], num_heads)
    d_k = x.shape[-1] // num_heads
    heads = [x[:, :, h * d_k : (h + 1) * d_k] for h in range(num_heads)]
    return torch.stack(heads, dim=1)


@BANK.right
def split_contiguous(x, num_heads):
    B, n, d = x.size()
    _check(d, num_heads)
    return x.contiguous().view(B, -1, num_heads, d // num_heads).permute(0, 2, 1, 3).contiguous()


@BANK.right
def split_by_index(x, num_heads):
    d = x.shape[-1]
    _check(d, num_heads)
    columns = torch.arange(d, device=x.device).reshape(num_heads, d // num_heads)
    return x[:, :, columns].swapaxes(1, 2)
