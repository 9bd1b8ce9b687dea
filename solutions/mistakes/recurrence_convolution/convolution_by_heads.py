"""Known answers to `convolution_by_heads`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import recurrence_convolution as right

BANK = Bank("convolution_by_heads", right, globals())

BANK.changes("""
kernel_flipped: weight.permute(2, 1, 0) → weight.flip(2).permute(2, 1, 0)
    The kernel is turned round: the first head's values belong to the last one. That is convolution
    as mathematics defines it; nn.Conv1d, like most of the field, does not turn it.
heads_look_the_other_way: position[:, None] + step → position[:, None] - step
    The heads look the other way: head 0 looks ahead, the last one back. Head h looks from i at
    i + h − (k − 1)/2. Tables with rows and columns exchanged look the same.
weights_turned_round_only
    - return output if bias is None else output + bias, weights
    + weights = weights.flip(0)
    + return output if bias is None else output + bias, weights
    The output is right, but the tables of weights are in the wrong order: head 0 looks back, the
    last one ahead.
one_step_too_far: (k - 1) // 2 → ((k - 1) // 2 - 1)
    Every head looks one position too far to the right.
one_step_too_short: (k - 1) // 2 → ((k - 1) // 2 + 1)
    Every head looks one position too far to the left.
from_the_left_end
    - torch.arange(k, device=x.device) - (k - 1) // 2
    + torch.arange(k, device=x.device)
    Head 0 looks where it stands, and all others to the right. The middle head is the one that looks
    where it stands.
causal: (k - 1) // 2 → (k - 1)
    All heads look back, the last one where it stands. That is a causal convolution; here the middle
    head looks where it stands.
wraps_around: position == looked_at → position == looked_at % n
    Beyond one end the heads look at the other: the sequence is bent into a ring. There is nothing
    beyond the ends.
ends_repeated: position == looked_at → position == looked_at.clamp(0, n - 1)
    Beyond the ends the heads look at the last position that there is, as if it went on for ever.
    There is nothing beyond the ends: the row is zero.
wraps_before_the_start
    - (position == looked_at)
    + ((position == looked_at) | (position - n == looked_at))
    Before the start the heads look at the end: a negative index counts from there, but a row of
    weights has nothing to show for a position that does not exist.
ends_averaged
    - values = x[:, None]
    + weights = torch.where(weights.any(-1, keepdim=True), weights, torch.ones_like(weights) / n)
    + values = x[:, None]
    Where a head looks beyond the end, its row holds equal weights, as a softmax makes of equal
    scores. It sees nothing there, so the row is zero.
ends_nan
    - (position == looked_at).to(x.dtype)
    + (x.new_zeros(k, n, n)).masked_fill(position != looked_at, -torch.inf).softmax(-1)
    A softmax over −∞ alone is NaN: where a head looks beyond the end, its row has to be zero.
value_matrix_transposed: weight.permute(2, 1, 0) → weight.permute(2, 0, 1)
    The value matrices are transposed. weight[:, :, h] is (d_out, d_in), as in nn.Linear, so rows of
    x are multiplied by its transpose; where both sizes are equal, no error shows it.
value_matrices_from_the_wrong_axis: weight.permute(2, 1, 0) → _first_axes(weight)
    The value matrices are made by a mere reshape, which mixes heads and features: weight is (d_out,
    d_in, k), and its axes have to be exchanged.
width_from_the_wrong_axis: n, k = x.shape[1], weight.shape[2] → n, k = x.shape[1], weight.shape[1]
    The number of heads is read from the wrong axis: weight is (d_out, d_in, k).
heads_averaged: .sum(dim=1) → .mean(dim=1)
    The outputs of the heads are averaged. A convolution adds them up.
middle_head_only: (weights @ values).sum(dim=1) → (weights @ values)[:, k // 2]
    Only the head in the middle contributes.
heads_not_summed: (weights @ values).sum(dim=1) → (weights @ values)
    The outputs of the heads are returned one by one, (B, k, n, d_out). They are added up.
heads_bias_forgotten: output if bias is None else output + bias → output
    The bias is not added.
bias_of_every_head: output + bias → output + k * bias
    The bias is added by every head, k times in all. It is added once.
bias_inside_the_values
    - output = (weights @ values)
    + values = values if bias is None else values + bias / k
    + output = (weights @ values)
    ~ return output if bias is None else output + bias, weights → return output, weights
    The bias is part of the values, so at the ends, where some heads look at nothing, some of it is
    missing.
weights_for_the_batch
    - else output + bias, weights
    + else output + bias, weights.expand(len(x), k, n, n)
    The weights are (B, k, n, n). They are the same for every sequence: (k, n, n).
booleans_for_weights: else output + bias, weights → else output + bias, weights.bool()
    The weights are booleans. They are numbers, 1 and 0, of x's dtype.
sum_of_the_weights: else output + bias, weights → else output + bias, weights.sum(0)
    The tables of the heads are added up to one. There is one for each: (k, n, n).
convolved_output_only
    - return output if bias is None else output + bias, weights
    + return output if bias is None else output + bias
    Only the output is returned. The weights are wanted as well: (output, weights).
output_features_first: > result = result[0].mT, result[1]
    The output is (B, d_out, n), as from nn.Conv1d. Here features come last: (B, n, d_out).
even_accepted: if k % 2 == 0: → if False:
    An even k is accepted, although no head stands in the middle.
even_error_without_k: f"a kernel of even width k = {k} has no middle" → "the width must be odd"
    The ValueError does not say what k is. Whoever reads it wants to know.
even_asserted: ValueError → AssertionError
    An even k raises an AssertionError. Asserts are for what cannot happen (and are gone under
    python -O); a caller's mistake deserves a ValueError.
short_sequences_refused
    - position = torch.arange(n
    + if k > n:
    +     raise ValueError(f"a kernel of width {k} on {n} positions")
    + position = torch.arange(n
    A kernel wider than the sequence raises an error. It is a convolution like any other; most of
    its heads see nothing.
convolved_in_float32
    ~ .to(x.dtype) → .float()
    - values = x[:, None] @ weight.permute(2, 1, 0)
    + values = x[:, None].float() @ weight.permute(2, 1, 0).float()
    The convolution is computed in float32, whatever the dtype of x is.
weights_of_float32: else output + bias, weights → else output + bias, weights.float()
    The weights are float32, whatever the dtype of x is.
x_detached: x[:, None] @ → x.detach()[:, None] @
    x is detached: nothing before this layer gets a gradient.
kernel_detached: weight.permute → weight.detach().permute
    The kernel is detached, so it never learns.
x_overwritten
    > with torch.no_grad():
    >     x.sub_(1)
    The caller's x is changed: methods whose names end in _ write into the tensor they are called
    on.
generator_seeded: + torch.manual_seed(0)
    The function seeds torch's random generator, which belongs to the program and not to it.
""")


def _first_axes(weight):
    d_out, d_in, k = weight.shape
    return weight.reshape(k, d_in, d_out)


def _checked(weight):
    if weight.shape[-1] % 2 != 1:
        raise ValueError(f"the kernel's width should be odd, but k = {weight.shape[-1]}")
    return weight.shape[-1]


@BANK.right
def head_by_head(x, weight, bias=None):
    k, n = _checked(weight), x.shape[1]
    out = torch.zeros(len(x), n, len(weight), dtype=x.dtype, device=x.device)
    tables = []
    for h in range(k):
        step = h - k // 2
        table = torch.zeros_like(x[0] @ x[0].T)
        if abs(step) < n:
            ones = torch.ones(n - abs(step), dtype=x.dtype, device=x.device)
            table = torch.diag(ones, step)
        out = out + F.linear(table @ x, weight[:, :, h])
        tables.append(table)
    return (out if bias is None else out + bias), torch.stack(tables)


@BANK.right
def by_einsum(x, weight, bias=None):
    k, n = _checked(weight), x.shape[1]
    wide = torch.eye(n + k - 1, dtype=x.dtype, device=x.device)[:, k // 2 : k // 2 + n]
    tables = torch.stack([wide[h : h + n] for h in range(k)])
    out = torch.einsum("hij,bjc,och->bio", tables, x, weight)
    return out + (0 if bias is None else bias), tables


@BANK.right
def by_shifted_copies(x, weight, bias=None):
    """The output from a padded x, the tables beside it, entry by entry."""
    k, n = _checked(weight), x.shape[1]
    padded = F.pad(x, (0, 0, k // 2, k // 2))
    out = sum(padded[:, h : h + n] @ weight[..., h].T for h in range(k))
    entries = [[[float(j - i == h - k // 2) for j in range(n)] for i in range(n)] for h in range(k)]
    tables = torch.tensor(entries, dtype=x.dtype, device=x.device)
    return out if bias is None else bias + out, tables


@BANK.right
def by_windows(x, weight, bias=None):
    """unfold for the output, a softmax with a large factor for the weights."""
    k, n = _checked(weight), x.shape[1]
    windows = F.pad(x, (0, 0, k // 2, k // 2)).unfold(1, k, 1)  # (B, n, d_in, k)
    out = windows.flatten(2) @ weight.flatten(1).T
    place = torch.arange(n, device=x.device, dtype=x.dtype)
    middle = place[:, None] + torch.arange(k, device=x.device)[:, None, None] - k // 2
    tables = torch.softmax(-1e4 * (place - middle).square(), dim=-1)
    tables = tables * ((middle >= 0) & (middle < n))
    return [out if bias is None else out + bias, tables]


@BANK.right
def mixed_before_mapping(x, weight, bias=None):
    k, n = _checked(weight), x.shape[1]
    difference = torch.arange(n, device=x.device) - torch.arange(n, device=x.device).unsqueeze(1)
    heads = torch.arange(-(k // 2), k // 2 + 1, device=x.device).view(k, 1, 1)
    tables = torch.where(difference == heads, x.new_ones(()), x.new_zeros(()))
    moved = torch.matmul(tables, x.unsqueeze(1)).transpose(1, 2)  # (B, n, k, d_in)
    out = torch.tensordot(moved, weight, dims=([2, 3], [2, 1]))
    return (out if bias is None else torch.add(out, bias)), tables


forgotten(BANK, "x")
