"""Known answers to `caption_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import captioning as right

BANK = Bank("caption_loss", right, globals())

BANK.changes("""
prompt_scored
    - counts = (target != pad_id) & (position >= prompt_length)
    + counts = target != pad_id
    The prompt is scored as well. It is the same for all captions and given, so it should not count.
one_token_too_few: position >= prompt_length → position > prompt_length
    The first id after the prompt is not scored. It stands at position prompt_length, and it is the
    first that the model has to find.
one_token_too_many: position >= prompt_length → position >= prompt_length - 1
    The last id of the prompt is scored. The first that counts stands at position prompt_length.
only_the_prompt: position >= prompt_length → position < prompt_length
    The prompt is scored, and what comes after it is not.
pad_scored
    - counts = (target != pad_id) & (position >= prompt_length)
    + counts = (position >= prompt_length).expand_as(target)
    Padding is scored like any other token.
only_pad_scored: target != pad_id → target == pad_id
    Only padding is scored. It is what should be left out.
pad_of_the_input
    ~ target != pad_id → ids[:, :-1] != pad_id
    What counts is decided by the ids that are read. It is the predicted id that must not be
    padding.
pad_is_zero: target != pad_id → target != 0
    Token 0 is taken for padding, whatever pad_id is.
not_shifted
    - target = ids[:, 1:]
    - position = torch.arange(1, ids.shape[1], device=ids.device)
    + target = ids
    + position = torch.arange(ids.shape[1], device=ids.device)
    ~ logits[:, :-1] → logits
    The logits at a position are compared with the id at the same position, which the model has
    read. They are for the next one.
shifted_the_other_way
    ~ target = ids[:, 1:] → target = ids[:, :-1]
    ~ logits[:, :-1] → logits[:, 1:]
    The logits at a position are compared with the id before it. They are for the id after it.
shifted_twice
    ~ ids[:, 1:] → ids[:, 2:]
    ~ torch.arange(1, ids → torch.arange(2, ids
    ~ logits[:, :-1] → logits[:, :-2]
    The logits at a position are compared with the id two places further. They are for the next one.
ids_shifted_only
    - target = ids[:, 1:]
    + target = ids[:, :-1]
    The ids are cut at the wrong end: the logits at a position are compared with the id that was
    read there.
averaged_by_caption
    - total = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten(), reduction="sum")
    - return total / counts.sum().clamp(min=1)
    + each = F.cross_entropy(logits[:, :-1].mT, labels, reduction="none").sum(1)
    + return (each / counts.sum(1).clamp(min=1)).mean()
    Each caption is averaged by itself, and then the captions. All ids that count should count
    alike.
divided_by_all: counts.sum().clamp(min=1) → counts.numel()
    The sum is divided by the number of all predicted ids, those that do not count included.
divided_by_the_captions: counts.sum().clamp(min=1) → len(ids)
    The sum is divided by the number of captions. It should be divided by the number of ids that
    count.
divided_by_what_is_no_padding: counts.sum().clamp(min=1) → (target != pad_id).sum().clamp(min=1)
    The sum is divided by the number of all ids but padding, the prompt's included.
summed: > result = total
    The losses are summed. Take their mean.
nan_for_nothing: counts.sum().clamp(min=1) → counts.sum()
    Where nothing counts, the result is 0/0. It should be 0.
constant_for_nothing: > result = result if counts.any() else torch.zeros_like(result.detach())
    Where nothing counts, the loss is a constant 0, which knows nothing of the logits: a backward
    pass through it fails.
probabilities_for_logits: logits[:, :-1].flatten(0, 1) → logits[:, :-1].flatten(0, 1).softmax(-1)
    The cross-entropy gets probabilities. It takes logits, and applies a softmax of its own.
logarithm_of_the_softmax
    - total = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten(), reduction="sum")
    + chances = logits[:, :-1].softmax(-1).gather(2, target[..., None])[..., 0]
    + total = -chances.log()[counts].sum()
    Right for ordinary logits; for large ones a softmax underflows to 0, and its logarithm is −∞.
wrong_sign: return total → return -total
    The loss has the wrong sign.
in_bits: > result = result / 0.6931471805599453
    The loss is in bits. It should be in nats.
smoothed_labels: reduction="sum") → reduction="sum", label_smoothing=0.1)
    The labels are smoothed. Here they are not.
softmax_over_positions: logits[:, :-1].flatten(0, 1) → logits[:, :-1].log_softmax(1).flatten(0, 1)
    A softmax over the positions comes first. There is one softmax, over the vocabulary.
view_for_flatten
    - total = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten(), reduction="sum")
    + flat = logits.view(-1, logits.shape[-1]).view(logits.shape)[:, :-1].flatten(0, 1)
    + total = F.cross_entropy(flat, labels.flatten(), reduction="sum")
    `.view` fails for logits that are no contiguous tensor. `.flatten` and `.reshape` work on any.
detached: logits[:, :-1].flatten(0, 1) → logits[:, :-1].detach().flatten(0, 1)
    Nothing can be learnt from this loss: it is cut off from the graph (torch.no_grad, .detach(),
    NumPy, torch.tensor …).
rounded_to_single: > result = result.float()
    The result is float32 whatever the logits are.
a_number: > result = result.item()
    The loss is a Python number, from which nothing can be learnt. Return a tensor.
ids_overwritten
    + ids[:, :prompt_length] = pad_id
    The caller's ids are overwritten.
seeds_everything: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


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


forgotten(BANK, "logits", result=True)
