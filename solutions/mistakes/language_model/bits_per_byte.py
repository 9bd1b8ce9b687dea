"""Known answers to `bits_per_byte`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("bits_per_byte", right, globals())
BANK.read()


@BANK.right
def by_torchs_loss(logits, ids, byte_lengths):
    target = ids[:, 1:].reshape(-1)
    if not len(target):
        return 0.0
    scores = logits[:, :-1].reshape(-1, logits.shape[-1])
    nats = F.cross_entropy(scores, target, reduction="sum").item()
    return nats / math.log(2) / byte_lengths[target].sum().item()


@BANK.right
def by_base_two(logits, ids, byte_lengths):
    scores = logits.double()[:, :-1]
    log2_p = (scores - scores.logsumexp(-1, keepdim=True)) * math.log2(math.e)
    bits = -(log2_p * F.one_hot(ids[:, 1:], logits.shape[-1])).sum()
    total = (byte_lengths.double() * F.one_hot(ids[:, 1:], logits.shape[-1])).sum()
    return (bits / total).item() if total else 0.0


@BANK.right
def token_by_token(logits, ids, byte_lengths):
    bits, size = 0.0, 0
    for row, text in zip(logits, ids.tolist(), strict=True):
        for scores, token in zip(row, text[1:], strict=False):
            bits -= torch.log_softmax(scores.double(), 0)[token].item() / math.log(2)
            size += int(byte_lengths[token])
    return bits / size if size else 0.0


@BANK.right
def by_index(logits, ids, byte_lengths):
    B, n = ids.shape
    if n < 2:
        return 0.0
    row = torch.arange(B, device=ids.device)[:, None]
    place = torch.arange(n - 1, device=ids.device)
    log_p = logits.log_softmax(-1)[row, place, ids[:, 1:]]
    return float(-log_p.sum() / math.log(2.0)) / int(byte_lengths.take(ids[:, 1:]).sum())
