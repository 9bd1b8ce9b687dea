"""Known answers to `shift_right`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from solutions import transformer as right
from solutions.mistakes import Bank

BANK = Bank("shift_right", right, globals())

BANK.changes("""
not_shifted: + return target.clone()
    The target comes back as it is: the decoder reads at position i the very token that it is to
    predict there. The loss goes to 0, and nothing is learnt.
last_token_kept: target[..., :-1] → target
    bos is put in front and nothing dropped: the result is one token longer than the target.
shifted_left: [bos, target[..., :-1]] → [target[..., 1:], bos]
    The target is shifted to the left, with bos at its end: the decoder reads the token after the
    one that it is to predict.
first_token_replaced: target[..., :-1] → target[..., 1:]
    bos takes the first token's place, and all others stay where they are: from position 1 on, the
    decoder reads what it is to predict.
rolled: + return target.roll(1, dims=-1)
    The last token comes round to the front instead of bos.
last_token_replaced: [bos, target[..., :-1]] → [target[..., :-1], bos]
    bos stands at the end, where the last token was, and nothing has moved.
bos_forgotten: + return target[..., :-1].clone()
    The last token is dropped and bos is not put in front: the result is one token short.
bos_is_zero: + bos_id = 0
    What stands in front is 0, not bos_id.
shifted_along_the_batch
    + return torch.cat([torch.full_like(target[:1], bos_id), target[:-1]])
    The rows are shifted, not the tokens within them: along the first axis, not the last.
second_axis_only
    + target = target[None] if target.dim() == 1 else target
    + return torch.cat([torch.full_like(target[:, :1], bos_id), target[:, :-1]], dim=1)
    The shift runs along axis 1. That is the last one of (B, n), and only there.
written_into_the_target
    + target[..., 1:] = target[..., :-1].clone()
    + target[..., 0] = bos_id
    + return target
    The shift happens in the caller's own tensor, which is the target of the loss as well.
ids_as_floats: > result = result.float()
    The ids come back as floating-point numbers, which no embedding can look up.
single_token_kept
    + if target.shape[-1] == 1:
    +     return target.clone()
    A target of one token comes back as it is; of one token, only bos is left.
memory_read_in_order
    + target = target.as_strided((target.numel(),), (1,)).reshape(target.shape)
    The tokens are read in the order in which they lie in memory. For a view that is not contiguous,
    that is another order than the tensor's.
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
