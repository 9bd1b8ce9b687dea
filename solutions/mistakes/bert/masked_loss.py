"""Known answers to `masked_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import bert as right

BANK = Bank("masked_loss", right, globals())
BANK.read()


@BANK.right
def by_gather(logits, labels):
    blank = labels != -100
    log_p = logits.log_softmax(dim=-1)
    loss = -log_p.gather(-1, labels.where(blank, 0)[..., None]).squeeze(-1)
    return (loss * blank).sum() / max(int(blank.sum()), 1)


@BANK.right
def only_the_blanks(logits, labels):
    """The chosen positions alone; the sum of nothing is 0, and still has a gradient."""
    blank = labels >= 0
    rows, wanted = logits[blank], labels[blank]
    sums = torch.logsumexp(rows, 1) - rows[torch.arange(len(wanted)), wanted]
    return sums.sum() / max(1, len(wanted))


@BANK.right
def with_a_case_for_nothing(logits, labels):
    if (labels == -100).all():
        return logits.sum() * 0
    return F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-100)


@BANK.right
def row_after_row(logits, labels):
    total, number = logits.sum() * 0.0, 0
    for scores, wanted in zip(logits, labels, strict=True):
        for row, label in zip(scores, wanted.tolist(), strict=True):
            if label != -100:
                total, number = total - row.log_softmax(0)[label], number + 1
    return total / number if number else total


@BANK.right
def by_one_hot(logits, labels):
    blank = (labels != -100).unsqueeze(-1)
    hot = F.one_hot(labels.clamp_min(0), logits.size(-1)) * blank
    return -(hot * F.log_softmax(logits, -1)).sum() / blank.sum().clamp_min(1)


@BANK.right
def wide_inside(logits, labels):
    loss = F.cross_entropy(
        logits.double().reshape(-1, logits.shape[-1]), labels.reshape(-1), reduction="none"
    )
    return (loss.sum() / (labels != -100).sum().clamp(min=1)).to(logits.dtype)
