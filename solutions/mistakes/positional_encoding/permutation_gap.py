"""Known answers to `permutation_gap`: mistakes, then right answers."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import positional_encoding as right

BANK = Bank("permutation_gap", right, globals())

BANK.changes("""
output_not_permuted: attention(x)[:, permutation] → attention(x)
    The output is compared without being permuted. That measures whether order changes anything at
    all; plain attention does move its outputs, in step with its inputs.
output_permuted_backwards: attention(x)[:, permutation] → attention(x)[:, permutation.argsort()]
    The output is permuted by the inverse permutation. Both sides must be permuted in the same way;
    when two tokens are merely exchanged, which is its own inverse, nothing shows.
batch_permuted: [:, permutation] → [permutation] ×2
    The permutation is applied to axis 0, the sequences of the batch. They never see each other, so
    the gap is always 0, or there are too few of them. Positions are axis 1.
features_permuted: [:, permutation] → [..., permutation] ×2
    The permutation is applied to the last axis, the features. Positions are axis 1.
input_not_permuted: attention(x[:, permutation]) → attention(x)[:, permutation]
    The gap is 0 whatever the attention does, as when both outputs are computed from the original x
    and permuted afterwards. One of them has to start from the permuted input.
sign_kept: gap.abs().max() → gap.max()
    The largest difference is taken without the absolute value: a large negative one is missed, and
    the two sides are not treated alike.
mean_for_max: max() → mean()
    The differences are averaged. A single token that is sensitive to its position gets lost in the
    average; the largest difference does not overlook it.
norm_for_max: gap.abs().max() → gap.norm()
    This is the length of the difference, which grows with the number of tokens. It should be the
    largest absolute difference.
sums_compared
    ~ attention(x[:, permutation]) → attention(x[:, permutation]).sum(1)
    ~ attention(x)[:, permutation] → attention(x)[:, permutation].sum(1)
    Sums over the positions are compared. They cannot tell whether an output is in the wrong place:
    compare position by position.
first_sequence_only: gap.abs() → gap[0].abs()
    Only the first sequence of the batch is used.
permutation_ignored
    ~ x[:, permutation] → x.flip(1)
    ~ attention(x)[:, permutation] → attention(x).flip(1)
    The order is always reversed, and `permutation` is not used.
a_tensor_for_a_number: max().item() → max()
    The result is a tensor. It should be a Python float.
last_axis_of_the_output: attention(x)[:, permutation] → attention(x)[..., permutation, :]
    The positions are taken to be the last axis but one. They are axis 1; an output may have more
    axes after it.
input_permuted_in_place
    > with torch.no_grad():
    >     x.copy_(x[:, permutation])
    The caller's x itself is permuted: assigning to x[…] writes into it, whereas indexing creates a
    new tensor.
settings_left_changed
    + if isinstance(attention, nn.Module):
    +     attention.eval()
    The caller's settings are left changed: the module's train/eval mode, or whether torch records
    gradients. A measurement should leave everything as it was.
relative_to_the_output
    ~ .item() → .item() / attention(x).abs().max().item()
    The difference is divided by the largest number of the output. The gap is wanted in the
    output's own unit.
""")


@BANK.right
def both_in_one_batch(attention, x, permutation):
    moved, still = attention(torch.cat([x[:, permutation], x])).detach().chunk(2)
    return float((moved - still[:, permutation]).abs().amax())


@BANK.right
def moved_back_by_the_inverse(attention, x, permutation):
    back = torch.argsort(permutation)
    return (attention(x.index_select(1, permutation))[:, back] - attention(x)).abs().max().item()


@BANK.right
def position_by_position(attention, x, permutation):
    shuffled = torch.stack([x[:, p] for p in permutation.tolist()], dim=1)
    moved, still = attention(shuffled), attention(x)
    gaps = [(moved[:, i] - still[:, p]).abs().max() for i, p in enumerate(permutation.tolist())]
    return max(gap.item() for gap in gaps)


@BANK.right
def by_numpy(attention, x, permutation):
    with torch.no_grad():
        outs = [attention(x[:, permutation]), attention(x)]
    moved, still = (out.cpu().numpy() for out in outs)
    return float(np.abs(moved - still[:, permutation.cpu().numpy()]).max())


@BANK.right
def by_a_permutation_matrix(attention, x, permutation):
    P = F.one_hot(permutation, len(permutation)).to(x.dtype)
    left = attention((P @ x.flatten(2)).reshape(x.shape)).flatten(2)
    other = P @ attention(x).flatten(2)
    return torch.dist(left.detach(), other.detach(), p=math.inf).item()


forgotten(BANK, "x", numpy=True)
