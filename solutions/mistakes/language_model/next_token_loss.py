"""Known answers to `next_token_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("next_token_loss", right, globals())
BANK.read()


@BANK.mistake
def left_out_by_the_token_read(logits, ids, pad_id=None):
    """What is left out are the predictions made from padding; the first pad after a text is still
    predicted, and a pad_id that is no token is an index too large or too small."""
    scores, target, read = logits[:, :-1], ids[:, 1:], ids[:, :-1]
    kept = torch.ones_like(read, dtype=torch.bool) if pad_id is None else read != pad_id
    if not kept.any():
        return (logits * 0.0).sum()
    return F.cross_entropy(scores[kept], target[kept])


@BANK.right
def loss_of_torch(logits, ids, pad_id=None):
    scores, target = logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten()
    ignored = -1 if pad_id is None else pad_id
    if (target == ignored).all():
        return (logits * 0).sum()
    return F.cross_entropy(scores, target, ignore_index=ignored)


@BANK.right
def loss_of_torch_summed(logits, ids, pad_id=None):
    ignored = -100 if pad_id is None else pad_id
    scores, target = logits[:, :-1].transpose(1, 2), ids[:, 1:]
    total = F.cross_entropy(scores, target, ignore_index=ignored, reduction="sum")
    return total / max(int((target != ignored).sum()), 1)


@BANK.right
def loss_of_the_chosen(logits, ids, pad_id=None):
    scores, target = logits[:, :-1], ids[:, 1:]
    real = torch.full_like(target, True) > 0 if pad_id is None else target != pad_id
    scores, target = scores[real], target[real]  # (tokens, V), (tokens,)
    if len(target) == 0:
        return (logits * 0.0).sum()
    own = scores.gather(1, target[:, None])[:, 0]
    return (scores.logsumexp(-1) - own).mean()


@BANK.right
def loss_in_a_loop(logits, ids, pad_id=None):
    total, count = (logits * 0).sum(), 0
    for row, text in zip(logits, ids.tolist(), strict=True):
        for scores, token in zip(row, text[1:], strict=False):
            if pad_id is None or token != pad_id:
                total = total - torch.log_softmax(scores, 0)[token]
                count += 1
    return total / max(count, 1)


@BANK.right
def loss_by_padding_the_end(logits, ids, pad_id=None):
    """Every position has a target; the last one's is to be ignored."""
    nobody = -7
    target = F.pad(ids[:, 1:], (0, 1), value=nobody)
    if pad_id is not None:
        target = target.masked_fill(target == pad_id, nobody)
    each = F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]),
        target.reshape(-1),
        ignore_index=nobody,
        reduction="none",
    )
    return each.sum() / (target != nobody).sum().clamp(min=1)


@BANK.right
def loss_wide_inside(logits, ids, pad_id=None):
    return loss_of_the_chosen(logits.double(), ids, pad_id).to(logits.dtype)
