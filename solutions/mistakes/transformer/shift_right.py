"""Known answers to `shift_right`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right

BANK = Bank("shift_right", right, globals())

BANK.changes("""
not_shifted: + return target.clone()
    The target is returned as it is: at position i, the decoder reads the very token that it should
    predict there. The loss goes to 0, and nothing is learnt.
last_token_kept: target[..., :-1] → target
    bos is put in front, but nothing is dropped: the result is one token longer than the target.
shifted_left: [bos, target[..., :-1]] → [target[..., 1:], bos]
    The target is shifted to the left, with bos at its end: the decoder reads the token after the
    one that it should predict.
first_token_replaced: target[..., :-1] → target[..., 1:]
    bos takes the first token's place, and all others stay where they are: from position 1 on, the
    decoder reads what it should predict.
rolled: + return target.roll(1, dims=-1)
    The last token wraps around to the front, where bos should be.
last_token_replaced: [bos, target[..., :-1]] → [target[..., :-1], bos]
    bos is at the end, in place of the last token, and nothing has moved.
bos_forgotten: + return target[..., :-1].clone()
    The last token is dropped, but bos is not put in front: the result is one token short.
bos_is_zero: + bos_id = 0
    The result begins with 0 instead of bos_id.
shifted_along_the_batch
    + return torch.cat([torch.full_like(target[:1], bos_id), target[:-1]])
    The rows are shifted instead of the tokens within them: along the first axis, not the last.
second_axis_only
    + target = target[None] if target.dim() == 1 else target
    + return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)
    The shift runs along axis 1, which is the last one only for (B, n).
written_into_the_target
    + target[..., 1:] = target[..., :-1].clone()
    + target[..., 0] = bos_id
    + return target
    The shift happens in the caller's own tensor, which also is the target of the loss.
ids_as_floats: > result = result.float()
    The ids are returned as floating-point numbers, which no embedding can look up.
single_token_kept
    + if target.shape[-1] == 1:
    +     return target.clone()
    A target with a single token is returned as it is; only bos should be left.
memory_read_in_order
    + target = target.as_strided((target.numel(),), (1,)).reshape(target.shape)
    The tokens are read in the order in which they lie in memory. For a view that is not contiguous,
    that is not the tensor's order.
""")


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


forgotten(BANK, "target", numpy=True, result=True)
