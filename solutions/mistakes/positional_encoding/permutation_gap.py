"""Known answers to `permutation_gap`: mistakes, then right answers."""

import math

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("permutation_gap", right, globals())
BANK.read()


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
