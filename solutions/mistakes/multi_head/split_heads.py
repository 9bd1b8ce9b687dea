"""Known answers to `split_heads`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import multi_head as right

BANK = Bank("split_heads", right, globals())


def _check(d_model, num_heads):
    if d_model % num_heads:
        raise ValueError(f"{d_model} features, {num_heads} heads")


BANK.changes("""
split_by_view: *x.shape[:-1], num_heads → len(x), num_heads, x.shape[1] ; x.transpose(-3, -2) → x
    The array is cut straight to (B, H, n, d_k). The shape is right but the contents are not: each
    head gets a few whole positions, cut into pieces, instead of a slice of every position.
split_by_view_unchecked
    ~ d_model % num_heads != 0 → False
    ~ *x.shape[:-1], num_heads → len(x), num_heads, x.shape[1]
    ~ x.transpose(-3, -2) → x
    The array is cut straight to (B, H, n, d_k). The shape is right but the contents are not: each
    head gets a few whole positions, cut into pieces, instead of a slice of every position. And
    a d_model not divisible by num_heads ends in reshape's own error instead of a ValueError with
    both numbers.
exchanged_before_cutting
    ~ x.reshape(*x.shape[:-1], num_heads → x.transpose(1, 2).reshape(len(x), num_heads, x.shape[1]
    ~ x.transpose(-3, -2) → x
    The axes of positions and features are exchanged before the array is cut, so a head's rows
    consist of one feature's numbers at several positions. Cut first.
axes_not_exchanged: x.transpose(-3, -2) → x
    The features are cut into heads, (B, n, H, d_k), but the axes of positions and heads are not
    exchanged. Heads come before positions, where they act as another batch axis.
heads_interleaved
    ~ num_heads, d_model // num_heads) → d_model // num_heads, num_heads)
    ~ x.transpose(-3, -2) → x.permute(0, 3, 1, 2)
    Head h gets every H-th feature, h, h + H, h + 2H, …, instead of d_k features in a row. The last
    axis is cut to (H, d_k), heads first.
heads_and_batch_exchanged: x.transpose(-3, -2) → x.permute(2, 0, 1, 3)
    The heads come before the batch, (H, B, n, d_k). The batch always comes first.
heads_and_size_exchanged: num_heads, d_model // num_heads) → d_model // num_heads, num_heads)
    The heads have num_heads features each; there should be num_heads heads of d_model / num_heads
    features.
features_before_positions: x.transpose(-3, -2) → x.permute(0, 2, 3, 1)
    The result is (B, H, d_k, n): positions and features are exchanged. Each head has one row per
    position.
rest_dropped
    - raise ValueError(f"d_model = {d_model} cannot be split into {num_heads} equal heads")
    + x = x[..., : d_model // num_heads * num_heads]
    Where d_model is not divisible by the number of heads, the last features are silently dropped.
    It should raise a ValueError that names both numbers.
error_left_to_reshape: d_model % num_heads != 0 → False
    A d_model not divisible by num_heads fails inside reshape, with a RuntimeError about sizes. It
    should raise a ValueError that names both numbers.
asserted: ValueError → AssertionError
    A d_model not divisible by num_heads raises an AssertionError. An assert is for what cannot
    happen; a caller's wrong number deserves a ValueError.
error_without_numbers
    - f"d_model = {d_model} cannot be split into {num_heads} equal heads"
    + "d_model must be divisible by num_heads"
    The ValueError does not say which numbers are wrong. Name d_model and num_heads: whoever reads
    the message wants to know which of the two to change.
gradient_cut: + x = x.detach()
    No gradient flows back: the heads are cut off from the graph (torch.no_grad, .detach(), NumPy,
    torch.tensor …), so whatever produced x cannot learn.
always_float: + x = x.float()
    The result is always float32. Splitting only moves numbers; the dtype should stay the same.
strides_assumed
    - x = x.reshape(*x.shape[:-1], num_heads, d_model // num_heads)
    - return x.transpose(-3, -2)
    + (B, n, d), d_k = x.shape, d_model // num_heads
    + return torch.as_strided(x, (B, num_heads, n, d_k), (n * d, d_k, d, 1))
    Strides are computed as if x were contiguous in memory. x may be a view of something larger;
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


forgotten(BANK, "x")
