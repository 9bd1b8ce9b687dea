"""Known answers to `merge_heads`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import multi_head as right

BANK = Bank("merge_heads", right, globals())

BANK.changes("""
merge_without_transpose: x.transpose(-3, -2).reshape → x.reshape
    The heads are joined without exchanging the axes first. The shape (B, n, H·d_k) is right, but
    each row holds several positions of one head instead of one position of all heads.
view_after_transpose: reshape → view
    `view` refuses the result of transpose: its numbers no longer lie in memory in that order.
    reshape copies where it must.
features_of_heads_interleaved: x.transpose(-3, -2) → x.permute(0, 2, 3, 1)
    The features of the heads alternate: feature 0 of each head, then feature 1 of each head, and so
    on. All of head 0 comes first.
sizes_read_in_another_order: num_heads, n, d_k = → n, num_heads, d_k =
    The sizes are read as (B, n, H, d_k), but x is (B, H, n, d_k): the result has as many rows as
    there are heads. With as many heads as positions, the shape does not reveal it.
wrong_axes_exchanged: x.transpose(-3, -2) → x.transpose(2, 3)
    The last two axes, positions and features, are exchanged before joining. It is heads and
    positions that change places.
heads_added: + return x.sum(dim=1)
    The heads are added up, leaving d_k features. They should be concatenated: H·d_k features.
heads_averaged: + return x.mean(dim=1)
    The heads are averaged, leaving d_k features. They should be concatenated: H·d_k features.
joined_as_positions: + return torch.cat(x.unbind(1), dim=1)
    The heads are concatenated along the positions, (B, H·n, d_k), instead of along the features.
last_head_first: + return torch.cat(x.unbind(1)[::-1], dim=-1)
    The heads are concatenated backwards, the last one first.
gradient_cut_in_merging: + x = x.detach()
    No gradient flows back: the result is made from x.detach(), x.data or a NumPy array.
merged_as_float: + x = x.float()
    The result is always float32. Merging only moves numbers; the dtype should stay the same.
merge_with_strides_assumed
    - return x.transpose(-3, -2).reshape(*batch, n, num_heads * d_k)
    + size, strides = (*batch, n, num_heads, d_k), (num_heads * n * d_k, d_k, n * d_k, 1)
    + return torch.as_strided(x, size, strides).reshape(*batch, n, num_heads * d_k)
    Strides are computed as if x were contiguous in memory. x may be a view of something larger;
    reshape and transpose know its real strides.
sequences_joined
    - *batch, num_heads, n, d_k = x.shape
    - return x.transpose(-3, -2).reshape(*batch, n, num_heads * d_k)
    + return torch.cat([head for head in x], dim=-1)
    A loop over x runs over its first axis, the batch: sequences are put side by side, not heads.
    The heads are the axis after it.
""")


@BANK.right
def merge_flattened(x):
    return x.movedim(1, 2).flatten(-2)


@BANK.right
def merge_concatenated(x):
    return torch.cat(x.unbind(1), dim=-1)


@BANK.right
def merge_contiguous(x):
    B, H, n, d_k = x.size()
    return x.permute(0, 2, 1, 3).contiguous().view(B, n, H * d_k)


@BANK.right
def merge_in_a_loop(x):
    B, H, n, d_k = x.shape
    out = x.new_zeros(B, n, H * d_k)
    for h in range(H):
        out[..., h * d_k : (h + 1) * d_k] = x[:, h]
    return out


forgotten(BANK, "x")
