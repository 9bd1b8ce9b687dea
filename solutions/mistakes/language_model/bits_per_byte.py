"""Known answers to `bits_per_byte`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right

BANK = Bank("bits_per_byte", right, globals())

BANK.changes("""
nats_for_bits: / math.log(2) → / 1
    The logarithm is the natural one: nats per byte. A bit is log 2 nats.
bits_multiplied: / math.log(2) → * math.log(2)
    The nats are multiplied by log 2. A nat is 1 / log 2 bits, so it should be divided.
decimal_digits: math.log(2) → math.log(10)
    The logarithm is that to the base 10. Bits need the base 2.
averaged_per_token: / byte_lengths[target].sum() → / target.numel()
    These are bits per token. With longer tokens there are fewer, and each needs more bits: only per
    byte can two tokenizers be compared.
bytes_of_the_tokens_read: byte_lengths[target] → byte_lengths[ids[:, :-1]]
    The bytes are those of the tokens that were read. They should be those of the tokens that were
    predicted, like the bits.
bytes_of_all_tokens: byte_lengths[target] → byte_lengths[ids]
    The bytes of all tokens are counted, the first of each row included, which nothing predicted.
bytes_of_the_vocabulary
    ~ byte_lengths[target].sum() → (byte_lengths.double().mean() * target.numel())
    The bytes are those of the vocabulary's mean. A token that occurs often counts as often as it
    occurs.
mean_of_the_tokens
    - -log_p.sum() / math.log(2) / byte_lengths[target].sum()
    + (-log_p[..., 0] / math.log(2) / byte_lengths[target]).mean()
    Each token's bits per byte are averaged: short tokens count for too much. It should be all bits
    over all bytes.
mean_over_all_bytes: -log_p.sum() → -log_p.mean()
    The mean of the bits is divided by the bytes of all tokens: it should be their sum.
mean_of_the_rows
    - -log_p.sum() / math.log(2) / byte_lengths[target].sum()
    + (-log_p[..., 0].sum(1) / math.log(2) / byte_lengths[target].sum(1)).mean()
    Each row's bits per byte are averaged: rows of few bytes count for too much. It should be all
    bits over all bytes.
not_shifted: ids[:, 1:] → ids[:, :-1]
    The logits at t are compared with the token at t, which the model has just read. They are for
    the token at t + 1.
shifted_the_wrong_way: ids[:, 1:] → ids[:, :-1] ; logits[:, :-1] → logits[:, 1:]
    The logits at t are compared with the token at t − 1. They are for the token at t + 1.
upside_down
    - float(-log_p.sum() / math.log(2) / byte_lengths[target].sum())
    + float(byte_lengths[target].sum() / (-log_p.sum() / math.log(2)))
    These are bytes per bit: the fraction is upside down.
bits_for_the_byte: / byte_lengths[target].sum() → / byte_lengths[target].sum() / 8
    The result is divided by 8: these are bits per bit of the text. It should be bits per byte.
nothing_over_nothing: target.numel() == 0 → False
    Where nothing is predicted, the result is 0/0, not a number. It should be 0.
endless_over_nothing: return 0.0 → return float("inf")
    Where nothing is predicted, the result is infinite. It should be 0.
no_softmax: .log_softmax(dim=-1) → .clone()
    The logits are used as if they were log-probabilities, without log_softmax.
logarithm_of_the_softmax: .log_softmax(dim=-1) → .softmax(dim=-1).log()
    log(softmax(…)) is computed in two steps: where a probability is so small that it becomes 0, the
    result is infinite.
sign_forgotten: -log_p.sum() → log_p.sum()
    The minus is missing: the result is negative.
perplexity: > result = 2.0**result
    The result is a perplexity per byte, 2 to the power of it. It should be the bits themselves.
tensor_for_a_float
    - float(-log_p.sum() / math.log(2) / byte_lengths[target].sum())
    + -log_p.sum() / math.log(2) / byte_lengths[target].sum()
    The result is a tensor. It should be a Python float.
in_single: + logits = logits.float()
    The logits are rounded to float32 first, so the digits that float64 logits have beyond that are
    lost.
lengths_overwritten: > byte_lengths[0] += 1
    The caller's byte_lengths are changed.
logits_read_in_order: + logits = logits.as_strided((logits.numel(),), (1,)).reshape(logits.shape)
    The logits are read in the order in which they lie in memory. For a tensor that is not
    contiguous, that is not its own order.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The call changes torch's default dtype for the whole program.
""")


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


forgotten(BANK, "logits")
