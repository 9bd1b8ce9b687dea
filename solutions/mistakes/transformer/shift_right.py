"""Known answers to `shift_right`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("shift_right", right, globals())
BANK.read()


@BANK.right
def shifted_by_padding(target, bos_id):
    return F.pad(target[..., :-1], (1, 0), value=bos_id)


@BANK.right
def shifted_by_filling(target, bos_id):
    out = torch.empty_like(target, memory_format=torch.contiguous_format)
    out[..., 0], out[..., 1:] = bos_id, target[..., :-1]
    return out


@BANK.right
def shifted_by_rolling(target, bos_id):
    out = target.roll(1, dims=-1)
    out[..., 0] = bos_id
    return out


@BANK.right
def shifted_by_index(target, bos_id):
    place = torch.arange(target.shape[-1], device=target.device)
    return torch.where(place == 0, bos_id, target[..., (place - 1).clamp(min=0)]).to(target.dtype)
