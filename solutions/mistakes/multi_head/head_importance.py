"""Known answers to `head_importance`: mistakes, then right answers."""

import numpy as np
import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import multi_head as right

BANK = Bank("head_importance", right, globals())

BANK.changes("""
all_the_others_masked: 1 - torch.eye → torch.eye
    The mask is the wrong way round: it keeps head h and silences all the others. 1 keeps a head, 0
    masks it.
masks_pile_up
    - 1 - torch.eye(attention.num_heads, dtype=x.dtype, device=x.device)
    + x.new_ones(attention.num_heads, attention.num_heads).triu(1)
    Each round masks one more head, and those masked before stay masked. Every round should start
    with all heads.
weights_compared: full, _ → _, full ; head_mask=mask)[0] → head_mask=mask)[1]
    The weights are compared instead of the outputs. A head mask leaves them as they are, so every
    head has importance 0.
output_of_the_head_alone: 1 - torch.eye → torch.eye ; (full - out) → out
    The length of the output with head h alone is measured. The bias of W_o is part of it; in the
    difference of two outputs, it cancels.
mean_squared_difference: norm(dim=-1) → square()
    The mean squared difference of the numbers is computed. The length of a vector is the root of
    the sum of its squares, position by position.
mean_under_the_root: norm(dim=-1) → square().mean(-1).sqrt()
    Under the root, the squares are averaged over the features. A length adds them up: yours is too
    small by √d_model.
sum_of_absolute_differences: norm(dim=-1) → abs().sum(-1)
    The absolute differences are added up over the features. The Euclidean length is the root of the
    sum of squares.
length_squared: norm(dim=-1) → square().sum(-1)
    The squared length of the difference is averaged. The root comes first, at each position.
root_of_the_mean: norm(dim=-1).mean() → square().sum(-1).mean().sqrt()
    The root is taken after the mean (a root mean square). It is the lengths that are averaged.
summed_not_averaged: mean() → sum()
    The lengths are added up over batch and positions instead of averaged: a longer text makes every
    head look more important.
averaged_over_positions_only: mean() → mean(1).sum()
    The lengths are averaged over the positions but added up over the batch.
one_norm_of_everything: norm(dim=-1).mean() → norm()
    One length is taken over batch, positions and features together. It should be that of the
    feature vector at each position, averaged over batch and positions.
norm_over_positions: norm(dim=-1) → norm(dim=1)
    The length is taken along the positions and the mean over the features. It should be the other
    way round.
mean_absolute_difference: norm(dim=-1) → abs()
    The mean absolute difference of the numbers is computed instead of the length of the vectors.
difference_of_lengths: (full - out).norm(dim=-1) → (full.norm(dim=-1) - out.norm(dim=-1)).abs()
    The lengths of the two outputs are subtracted, instead of taking the length of their difference:
    an output that turns without shrinking counts as unchanged.
shares_of_one: > result = result / result.sum()
    The result is divided by its sum. The importance of a head is a length, not a share.
relative_to_the_output: norm(dim=-1).mean() → norm(dim=-1).div(full.norm(dim=-1)).mean()
    The length of the difference is divided by that of the full output. Return the length itself.
first_sequence_only: + x = x[:1]
    Only the first sequence of the batch is used.
weights_overwritten: > attention.W_o.weight.zero_()
    To silence a head, the module's own parameters are set to 0, and they stay so. head_mask leaves
    the module as it was.
left_in_training_mode: > attention.train()
    The module's mode, or a setting of all of torch, is left changed. Both are the caller's choice.
left_in_eval_mode: + attention.eval()
    The module is switched to eval mode and stays there: whoever trains it after your call trains
    without dropout. Its mode should be as before.
before_the_output_projection
    + with torch.no_grad():
    +     v = split_heads(attention.W_v(x), attention.num_heads)
    +     return (attention(x, x, x)[1] @ v).norm(dim=-1).mean((0, 2))
    The length of the head's own output is measured, before W_o. A head matters through what W_o
    makes of it: compare the outputs of the whole module.
importance_as_float32: > result = result.float()
    The result is always float32. The dtype of x should be kept.
one_norm_per_sequence: norm(dim=-1) → norm(dim=(-2, -1))
    One length is taken of each sequence, over positions and features together, so a longer text
    makes every head look more important. It should be that of the feature vector at each position.
added_up_over_the_positions: mean() → sum(-1).mean()
    The lengths are added up over the positions and averaged over the batch only. A longer text
    makes every head look more important.
""")


def _one_hot(attention, x):
    return torch.eye(attention.num_heads, dtype=x.dtype, device=x.device)


def _difference(attention, x):
    """full − output with head h masked, for each h: (H, B, n, d_model)."""
    with torch.no_grad():
        full = attention(x, x, x)[0]
        masks = 1 - _one_hot(attention, x)
        return torch.stack([full - attention(x, x, x, head_mask=mask)[0] for mask in masks])


@BANK.right
def importance_at_once(attention, x):
    return _difference(attention, x).norm(dim=-1).mean((1, 2))


@BANK.right
def importance_with_gradients(attention, x):
    full, _ = attention(x, x, x)
    found = []
    for h in range(attention.num_heads):
        mask = torch.ones(attention.num_heads)
        mask[h] = 0.0
        out, _ = attention(x, x, x, head_mask=mask)
        found.append(((full - out) ** 2).sum(-1).sqrt().mean())
    return torch.stack(found)


@BANK.right
def importance_from_the_heads(attention, x):
    """What a head adds to the output: its own output times its columns of W_o."""
    _, weights = attention(x, x, x)
    v = attention.W_v(x).unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)
    columns = attention.W_o.weight.unflatten(1, (attention.num_heads, -1)).permute(1, 2, 0)
    return ((weights @ v) @ columns).norm(dim=-1).mean((0, 2)).detach()


@BANK.right
def importance_of_the_head_alone(attention, x):
    """The same difference from the other side: head h alone minus no head at all."""
    with torch.no_grad():
        none = attention(x, x, x, head_mask=x.new_zeros(attention.num_heads))[0]
        alone = [attention(x, x, x, head_mask=mask)[0] - none for mask in _one_hot(attention, x)]
        return torch.stack([torch.linalg.vector_norm(a, dim=-1).mean() for a in alone])


@BANK.right
def importance_in_numpy(attention, x):
    lengths = np.linalg.norm(_difference(attention, x).cpu().numpy(), axis=-1)
    return torch.from_numpy(lengths.mean(axis=(1, 2)).astype(lengths.dtype)).to(x.device)


forgotten(BANK, "x", numpy=True, result=True)
