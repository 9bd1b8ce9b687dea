"""Known answers to `label_smoothed_cross_entropy`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import transformer as right

BANK = Bank("label_smoothed_cross_entropy", right, globals())

BANK.changes("""
divided_by_the_padded_count: real.sum().clamp(min=1) → real.numel()
    The sum leaves out padding, but is divided by the number of all positions: the more padding, the
    smaller the loss.
pad_in_the_loss: target != pad_id → torch.ones_like(target, dtype=torch.bool)
    Padding counts like any token: the model is trained to write padding, and the loss falls quickly
    because that is easy.
pad_in_the_smoothing
    ~ log_p_target - smoothing → log_p_target * real - smoothing
    ~ loss.masked_fill(~real, 0.0) → loss
    The target's part leaves out padding; the evenly spread part does not.
nothing_over_nothing
    ~ loss.masked_fill(~real, 0.0).sum() → (loss * real).sum()
    ~ real.sum().clamp(min=1) → real.sum()
    If there is nothing but padding, the mean is 0/0: NaN, which ruins the training.
mean_of_the_rows
    - loss.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
    + (loss.masked_fill(~real, 0.0).sum(-1) / real.sum(-1).clamp(min=1)).mean()
    The rows' means are averaged, so a token in a short row counts for more than one in a long row.
    The mean should be over tokens.
summed: .sum() / real.sum().clamp(min=1) → .sum()
    The sum over the tokens is returned instead of their mean: the gradient grows with the batch.
one_per_position: .sum() / real.sum().clamp(min=1) → .clone()
    Each position's loss is returned. It should be their mean, a single number.
double_softmax_in_the_loss: + logits = logits.softmax(-1)
    The softmax is taken twice: log_softmax of probabilities. These lie between 0 and 1, so the
    result is nearly flat, and the loss hardly falls.
no_softmax: logits.log_softmax(dim=-1) → logits
    The logits are used as if they were log-probabilities, without log_softmax.
logarithm_of_the_softmax: logits.log_softmax(dim=-1) → logits.softmax(dim=-1).log()
    log(softmax(…)) is computed in two steps: where a probability is so small that it becomes 0, the
    loss is infinite.
smoothing_forgotten: + smoothing = 0.0
    This is the plain cross-entropy, whatever the smoothing.
smoothing_is_always_a_tenth: + smoothing = 0.1
    ε is 0.1 whatever the argument says.
smoothing_over_the_wrong_tokens
    - smoothing * log_p.mean(dim=-1)
    + smoothing * (log_p.sum(dim=-1) - log_p_target) / (logits.shape[-1] - 1)
    ε is shared by the V − 1 wrong tokens. Here all V tokens should share it, including the right
    one.
smoothing_without_the_padding
    - loss = -(1 - smoothing) * log_p_target - smoothing * log_p.mean(dim=-1)
    + others = log_p.sum(dim=-1) - log_p_target - log_p[..., pad_id % logits.shape[-1]]
    + shared = smoothing * others / max(logits.shape[-1] - 2, 1)
    + loss = -(1 - smoothing) * log_p_target - shared
    ε is shared by the V − 2 tokens that are neither the right one nor padding. Here all V tokens
    should share it.
smoothing_not_divided: log_p.mean → log_p.sum
    Every token gets ε instead of ε/V: the shares add up to far more than 1.
smoothing_exchanged: + smoothing = 1 - smoothing
    ε and 1 − ε are swapped: the right token gets a tenth, and chance the rest.
sign_forgotten: > result = -result
    The minus is missing: training makes the right tokens less likely.
loss_in_single: + logits = logits.float()
    The loss is computed in float32 whatever the logits are.
target_overwritten
    + given, target = target, target.clone()
    > given[~real] = -100
    > given.view(-1)[0] = -100
    To take the padding out of it, the caller's target is changed.
loss_read_in_order: + logits = logits.as_strided((logits.numel(),), (1,)).reshape(logits.shape)
    The logits are read in the order in which they lie in memory. For a tensor that is not
    contiguous, that is not its own order.
loss_without_a_gradient: + logits = logits.detach()
    The number is right but has no gradient: it is cut off from the graph (torch.no_grad, .detach(),
    .item(), torch.tensor …).
smoothing_in_place_of_the_share
    - loss = -(1 - smoothing) * log_p_target - smoothing * log_p.mean(dim=-1)
    + others = log_p.sum(dim=-1) - log_p_target
    + loss = -(1 - smoothing) * log_p_target - smoothing * others / logits.shape[-1]
    The right token gets 1 − ε without its share ε/V: the target does not sum to 1.
""")


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


forgotten(BANK, "logits")
