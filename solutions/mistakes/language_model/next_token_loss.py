"""Known answers to `next_token_loss`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right

BANK = Bank("next_token_loss", right, globals())

BANK.changes("""
not_shifted: ids[:, 1:] → ids[:, :-1]
    The loss is not shifted: the logits at t are compared with the token at t, which the model has
    just read. It learns to repeat it, and the loss falls to nothing.
not_shifted_at_all: ids[:, 1:] → ids ; logits[:, :-1] → logits
    The loss is not shifted: every position's logits are compared with the token that is there,
    which the model has just read. It learns to repeat it, and the loss falls to nothing.
shifted_the_wrong_way: ids[:, 1:] → ids[:, :-1] ; logits[:, :-1] → logits[:, 1:]
    The loss is shifted the wrong way: the logits at t are compared with the token at t − 1, which
    lies in the past.
shifted_twice
    ~ ids[:, 1:] → ids[:, 2:]
    ~ logits[:, :-1] → logits[:, : max(ids.shape[1] - 2, 0)]
    The loss is shifted by two: the logits at t are compared with the token at t + 2.
first_dropped_as_well: ids[:, 1:] → ids[:, 2:] ; logits[:, :-1] → logits[:, 1:-1]
    The first prediction is left out: the token at 1, predicted from the token at 0, counts as well.
rolled: ids[:, 1:] → ids.roll(-1, 1) ; logits[:, :-1] → logits
    The ids are rolled: the last position has to predict the first token of the text.
shifted_along_the_batch: ids[:, 1:] → ids[1:] ; logits[:, :-1] → logits[:-1]
    The shift is along the batch: a row's logits are compared with the next row's tokens.
pad_counted: target != pad_id → torch.ones_like(target, dtype=torch.bool)
    Padding counts like any token: the model is trained to write padding, and the loss falls quickly
    because that is easy.
looked_up_before_the_mask: target.masked_fill(~real, 0) → target
    Padding is looked up like a token, and left out afterwards. A pad_id that is no token, such as
    −100, is no index, and raises an error.
pad_by_the_token_read: else target != pad_id → else ids[:, :-1] != pad_id
    What is left out are the predictions made from padding. It should be the predictions of padding:
    the first pad after a text is one, too.
pad_is_always_zero: target != pad_id → target != 0
    What is left out is token 0. It should be pad_id, whatever that is.
zero_is_padding_without_a_pad_id: + pad_id = 0 if pad_id is None else pad_id
    Without a pad_id, token 0 is left out all the same. Without one, every token counts.
divided_by_the_padded_count: real.sum().clamp(min=1) → max(real.numel(), 1)
    The sum leaves out padding, but is divided by the number of all predictions: the more padding,
    the smaller the loss.
divided_by_all_positions: real.sum().clamp(min=1) → (real.sum() + len(ids)).clamp(min=1)
    The sum is divided by the number of tokens. n tokens have n − 1 predictions.
nothing_over_nothing
    ~ real.sum().clamp(min=1) → real.sum()
    If nothing is predicted, the mean is 0/0: NaN, which ruins the training.
a_plain_zero
    > if not real.any():
    >     return torch.zeros((), dtype=logits.dtype, device=logits.device)
    If nothing is predicted, the loss is 0 but has lost its gradient: backward() stops in the middle
    of the training.
mean_of_the_rows
    - loss.sum() / real.sum().clamp(min=1)
    + (loss.sum(-1) / real.sum(-1).clamp(min=1)).mean()
    The rows' means are averaged, so a token in a short row counts for more than one in a long row.
    The mean should be over tokens.
mean_of_the_rows_that_predict
    - loss.sum() / real.sum().clamp(min=1)
    + (loss.sum(-1) / real.sum(-1).clamp(min=1)).sum() / real.any(-1).sum().clamp(min=1)
    The means of the rows that have something to predict are averaged, so a token in a short row
    counts for more than one in a long row. The mean should be over tokens.
summed: loss.sum() / real.sum().clamp(min=1) → loss.sum()
    The sum over the tokens is returned instead of their mean: the gradient grows with the batch.
one_per_position: loss.sum() / real.sum().clamp(min=1) → loss
    Each position's loss is returned. It should be their mean, a single number.
bits_for_nats: > result = result / 0.6931471805599453
    The loss is in bits, −log₂ p. It should be in nats, −log p.
double_softmax: + logits = logits.softmax(-1)
    The softmax is taken twice: log_softmax of probabilities. These lie between 0 and 1, so the
    result is nearly flat, and the loss hardly falls.
no_softmax: .log_softmax(dim=-1) → .clone()
    The logits are used as if they were log-probabilities, without log_softmax.
softmax_over_positions: log_softmax(dim=-1) → log_softmax(dim=1)
    The softmax is taken over the positions. It should be taken over the vocabulary.
logarithm_of_the_softmax: .log_softmax(dim=-1) → .softmax(dim=-1).log()
    log(softmax(…)) is computed in two steps: where a probability is so small that it becomes 0, the
    loss is infinite.
sign_forgotten: > result = -result
    The minus is missing: training makes the right tokens less likely.
loss_in_single: + logits = logits.float()
    The loss is computed in float32 whatever the logits are.
ids_overwritten
    + given, ids = ids, ids.clone()
    > given[:, :1] = -100
    The caller's ids are changed.
logits_read_in_order: + logits = logits.as_strided((logits.numel(),), (1,)).reshape(logits.shape)
    The logits are read in the order in which they lie in memory. For a tensor that is not
    contiguous, that is not its own order.
loss_without_a_gradient: + logits = logits.detach()
    The number is right but has no gradient: it is cut off from the graph (torch.no_grad, .detach(),
    .item(), torch.tensor …).
seeded_at_the_start: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program.
""")


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


forgotten(BANK, "logits")
