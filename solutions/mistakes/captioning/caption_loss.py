"""Known answers to `caption_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import captioning as right

BANK = Bank("caption_loss", right, globals())
BANK.read()


@BANK.right
def picked_out(logits, ids, prompt_length, pad_id):
    first = max(prompt_length, 1)
    scores, target = logits[:, first - 1 : -1], ids[:, first:]
    wanted = target != pad_id
    if not wanted.any():
        return logits.sum() * 0
    return F.cross_entropy(scores[wanted], target[wanted])


@BANK.right
def by_log_softmax(logits, ids, prompt_length, pad_id):
    logp = F.log_softmax(logits[:, :-1], dim=-1).gather(-1, ids[:, 1:, None]).squeeze(-1)
    place = torch.arange(ids.shape[1], device=ids.device)[1:].expand_as(logp)
    weight = ((place >= prompt_length) & (ids[:, 1:] != pad_id)).to(logits.dtype)
    return -(logp * weight).sum() / weight.sum().clamp(min=1)


@BANK.right
def labels_with_a_mark(logits, ids, prompt_length, pad_id):
    labels = ids.clone()
    labels[:, :prompt_length] = -100
    labels[ids == pad_id] = -100
    labels = labels[:, 1:]
    losses = F.cross_entropy(
        logits[:, :-1].transpose(1, 2), labels, ignore_index=-100, reduction="none"
    )
    return losses.sum() / torch.clamp((labels != -100).sum(), min=1)


@BANK.right
def caption_by_caption(logits, ids, prompt_length, pad_id):
    total, number = logits.sum() * 0, 0
    for scores, row in zip(logits, ids, strict=True):
        for t in range(max(prompt_length, 1), len(row)):
            if row[t] != pad_id:
                total = total + torch.logsumexp(scores[t - 1], 0) - scores[t - 1, row[t]]
                number += 1
    return total / max(number, 1)
