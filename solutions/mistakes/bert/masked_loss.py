"""Known answers to `masked_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import bert as right

BANK = Bank("masked_loss", right, globals())

BANK.changes("""
all_tokens
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    - return total / (labels != -100).sum().clamp(min=1)
    + return F.cross_entropy(logits.flatten(0, 1), labels.clamp(min=0).flatten())
    The loss is over all tokens, with token 0 as the label of those that are no blanks. Only the
    blanks should count.
divided_by_all: (labels != -100).sum().clamp(min=1) → labels.numel()
    The sum of the blanks' losses is divided by the number of all positions: the fewer blanks, the
    smaller the loss.
divided_by_the_rows: (labels != -100).sum().clamp(min=1) → len(labels)
    The sum of the blanks' losses is divided by the number of rows. It should be divided by the
    number of blanks.
mean_of_the_rows
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    - return total / (labels != -100).sum().clamp(min=1)
    + loss = F.cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
    + return (loss.sum(-1) / (labels != -100).sum(-1).clamp(min=1)).mean()
    The rows' means are averaged, so a blank in a row with few of them counts for more. The mean
    should be over all blanks.
mean_of_the_rows_with_blanks
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    - return total / (labels != -100).sum().clamp(min=1)
    + loss = F.cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
    + blanks = (labels != -100).sum(-1)
    + return (loss.sum(-1) / blanks.clamp(min=1)).sum() / (blanks > 0).sum().clamp(min=1)
    The means of the rows that have blanks are averaged. The mean should be over all blanks.
nothing_over_nothing: .clamp(min=1) → .clamp(min=0)
    Where there are no blanks, the mean is 0/0: NaN, which ruins the
    training. F.cross_entropy alone does the same.
a_plain_zero
    > if not (labels != -100).any():
    >     return torch.zeros((), dtype=logits.dtype, device=logits.device)
    Where there are no blanks, the loss is 0 but has lost its gradient: backward() stops in the
    middle of the training.
shifted
    + labels = torch.cat([labels[:, 1:], torch.full_like(labels[:, :1], -100)], 1)
    The logits at t are compared with the label at t + 1, as for a GPT. BERT fills in a blank where
    it is.
shifted_backwards
    + labels = torch.cat([torch.full_like(labels[:, :1], -100), labels[:, :-1]], 1)
    The logits at t are compared with the label at t − 1. A blank is filled in where it is.
last_position_left_out: + labels, logits = labels[:, :-1], logits[:, :-1]
    The last position never counts. Nothing is shifted here, so it counts like all others.
first_position_left_out: + labels, logits = labels[:, 1:], logits[:, 1:]
    The first position never counts. There is no rule that it holds a special token.
zero_is_ignored: + labels = labels.masked_fill(labels == 0, -100)
    Blanks with the label 0 are left out, as padding often is. Only −100 says that a position does
    not count.
negative_labels_wrapped
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    - return total / (labels != -100).sum().clamp(min=1)
    + loss = -logits.log_softmax(-1).gather(-1, (labels % logits.shape[-1])[..., None])
    + return loss.mean()
    Python's remainder makes some token's id of −100, and these count as well.
not_the_blanks
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    - return total / (labels != -100).sum().clamp(min=1)
    + loss = -logits.log_softmax(-1).gather(-1, labels.clamp(min=0)[..., None])[..., 0]
    + return loss.masked_fill(labels != -100, 0.0).sum() / (labels == -100).sum().clamp(min=1)
    The positions that are no blanks count, and the blanks do not.
summed: total / (labels != -100).sum().clamp(min=1) → total
    The sum over the blanks is returned instead of their mean: the gradient grows with the batch.
one_per_position
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    - return total / (labels != -100).sum().clamp(min=1)
    + return F.cross_entropy(logits.movedim(-1, 1), labels, reduction="none")
    Each position's loss is returned. It should be their mean, a single number.
bits_for_nats: > result = result / 0.6931471805599453
    The loss is in bits, −log₂ p. It should be in nats, −log p.
double_softmax: + logits = logits.softmax(-1)
    The softmax is taken twice: cross-entropy takes one itself. Probabilities lie between 0 and 1,
    so the result is nearly flat, and the loss hardly falls.
no_softmax
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    + total = F.nll_loss(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    The logits are used as if they were log-probabilities, without log_softmax.
softmax_over_positions
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    + logits = logits.log_softmax(1)
    + total = F.nll_loss(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    The softmax is taken over the positions. It should be taken over the vocabulary.
logarithm_of_the_softmax
    - total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    + logits = logits.softmax(-1).log()
    + total = F.nll_loss(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    log(softmax(…)) is computed in two steps: where a probability is so small that it becomes 0, the
    loss is infinite.
sign_forgotten: > result = -result
    The minus is missing: training makes the right tokens less likely.
smoothed: reduction="sum" → reduction="sum", label_smoothing=0.1
    The labels are smoothed, as in chapter 7. Here the loss is the plain cross-entropy.
perplexity: > result = result.exp()
    The perplexity is returned, exp of the loss.
loss_in_single: + logits = logits.float()
    The loss is computed in float32 whatever the logits are.
labels_overwritten
    > labels[:, :1] = 0
    The caller's labels are changed.
views_only: logits.flatten(0, 1) → logits.view(-1, logits.shape[-1])
    `view` refuses logits that are no contiguous tensor, such as a transposed one. flatten and
    reshape take any.
loss_without_a_gradient: + logits = logits.detach()
    The number is right but has no gradient: it is cut off from the graph (torch.no_grad, .detach(),
    .item(), torch.tensor …).
a_number: > result = float(result)
    A Python number is returned, which has no gradient. It should be a tensor.
switches_gradients_off: > torch.set_grad_enabled(False)
    Gradients are switched off, and stay off for the whole program.
""")


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


forgotten(BANK, "logits", result=True)
