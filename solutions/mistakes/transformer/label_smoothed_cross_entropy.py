"""Known answers to `label_smoothed_cross_entropy`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("label_smoothed_cross_entropy", right, globals())
BANK.read()


def _smoothed(logits, target, smoothing, pad_id):
    """The smoothed loss at every position, and which positions hold a real token."""
    log_p = logits.log_softmax(-1)
    one_hot = F.one_hot(target, logits.shape[-1]).to(logits)
    shares = (1 - smoothing) * one_hot + smoothing / logits.shape[-1]
    return -(shares * log_p).sum(-1), target != pad_id


def _mean(loss, real):
    return (loss * real).sum() / real.sum().clamp(min=1)


@BANK.right
def loss_by_one_hot(logits, target, smoothing=0.1, pad_id=0):
    return _mean(*_smoothed(logits, target, smoothing, pad_id))


@BANK.right
def loss_by_flat_one_hot(logits, target, smoothing=0.1, pad_id=0):
    V = logits.shape[-1]
    log_p, ids = logits.reshape(-1, V).log_softmax(-1), target.reshape(-1)
    shares = (1 - smoothing) * F.one_hot(ids, V).to(log_p) + smoothing / V
    return _mean(-(shares * log_p).sum(-1), ids != pad_id)


@BANK.right
def loss_of_torch(logits, target, smoothing=0.1, pad_id=0):
    flat, ids = logits.flatten(0, -2), target.flatten()
    if (ids == pad_id).all():
        return (logits * 0).sum()
    return F.cross_entropy(flat, ids, ignore_index=pad_id, label_smoothing=smoothing)


@BANK.right
def loss_of_the_chosen(logits, target, smoothing=0.1, pad_id=0):
    real = target != pad_id
    logits, ids = logits[real], target[real]  # (tokens, V), (tokens,)
    if len(ids) == 0:
        return logits.sum()
    log_p = logits - logits.logsumexp(-1, keepdim=True)
    own = log_p[torch.arange(len(ids), device=ids.device), ids]
    return -((1 - smoothing) * own + smoothing * log_p.mean(-1)).mean()


@BANK.right
def loss_in_a_loop(logits, target, smoothing=0.1, pad_id=0):
    V = logits.shape[-1]
    total, count = (logits * 0).sum(), 0
    for scores, token in zip(logits.reshape(-1, V), target.reshape(-1).tolist(), strict=True):
        if token != pad_id:
            log_p = torch.log_softmax(scores, 0)
            total = total - (1 - smoothing) * log_p[token] - smoothing / V * log_p.sum()
            count += 1
    return total / max(count, 1)


@BANK.right
def loss_of_two_sums(logits, target, smoothing=0.1, pad_id=0):
    """One sum over the targets, one over all tokens, with padding as what is looked for."""
    log_p = F.log_softmax(logits, dim=-1)
    padding = target.eq(pad_id).unsqueeze(-1)
    nll = -log_p.gather(-1, target.unsqueeze(-1).masked_fill(padding, 0)).masked_fill(padding, 0.0)
    even = -log_p.sum(dim=-1, keepdim=True).masked_fill(padding, 0.0)
    share = smoothing / logits.shape[-1]
    return ((1 - smoothing) * nll.sum() + share * even.sum()) / max((~padding).sum().item(), 1)


@BANK.right
def loss_wide_inside(logits, target, smoothing=0.1, pad_id=0):
    return _mean(*_smoothed(logits.double(), target, smoothing, pad_id)).to(logits.dtype)
