"""Known answers to `training_step`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import language_model as right
from solutions.language_model import next_token_loss

BANK = Bank("training_step", right, globals())


def _length(model):
    """The norm of the whole gradient, which stays as it is."""
    return nn.utils.clip_grad_norm_(model.parameters(), math.inf)


def _scale(model, factor):
    for parameter in model.parameters():
        if parameter.grad is not None:
            parameter.grad *= factor


BANK.changes("""
old_gradients_kept: optimizer.zero_grad() → pass
    Gradients are not cleared before backward, which adds to what earlier steps have left.
cleared_after_the_step_only
    ~ optimizer.zero_grad() → pass
    > optimizer.zero_grad()
    Gradients are cleared after the step, not before backward: whatever somebody has left there
    before the first step counts.
cleared_after_backward: loss.backward() → loss.backward(); _scale(model, 0.0)
    Gradients are cleared after backward, so the step is taken without any.
not_clipped: nn.utils.clip_grad_norm_(model.parameters(), max_norm) → _length(model)
    The gradient has its full length when the step is taken: it is not shortened, or before backward
    has computed it, or after the step.
clipped_to_one: model.parameters(), max_norm) → model.parameters(), 1.0)
    Gradients are shortened to 1, whatever max_norm is.
clipped_by_value
    - norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    + norm = _length(model)
    + nn.utils.clip_grad_value_(model.parameters(), max_norm)
    Each entry of the gradient is cut to max_norm by itself, which changes its direction. The whole
    gradient should be scaled by one number.
each_parameter_by_itself
    - norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    + norm = _length(model)
    + for parameter in model.parameters():
    +     nn.utils.clip_grad_norm_([parameter], max_norm)
    The gradient of each parameter is shortened by itself. The norm is that of all of them together.
always_of_that_length
    - norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    + norm = _length(model)
    + _scale(model, max_norm / norm)
    Every gradient gets the length max_norm. Shorter ones should stay as they are.
squared_norm
    - norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    + norm = _length(model) ** 2
    + _scale(model, min(1, max_norm / norm))
    The norm is squared: the root of the sum of the squares is missing.
largest_entry_for_norm
    - nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    + nn.utils.clip_grad_norm_(model.parameters(), max_norm, norm_type=math.inf)
    The norm is the largest entry of the gradient. It is the root of the sum of the squares.
sum_for_norm
    - nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    + nn.utils.clip_grad_norm_(model.parameters(), max_norm, norm_type=1)
    The norm is the sum of the absolute values. It is the root of the sum of the squares.
part_of_the_gradient
    - nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    + nn.utils.clip_grad_norm_(optimizer.param_groups[0]["params"], max_norm)
    Only the gradients of some parameters count, and are shortened: those of the first group, or of
    the matrices. The norm is that of all of them together.
norm_after_clipping: loss.item(), norm.item() → loss.item(), min(norm.item(), max_norm)
    The norm is that of the shortened gradient. It is wanted from before: it is what tells that
    training goes wrong.
loss_after_the_step: return loss.item(), → return next_token_loss(model(ids), ids).item(),
    The loss is that of the model after the step. It is wanted from before.
rate_of_the_first_group_only
    - for group in optimizer.param_groups:
    -     group["lr"] = rate
    + optimizer.param_groups[0]["lr"] = rate
    Only the first parameter group gets the rate. Here there are two.
rate_set_after_the_step
    - for group in optimizer.param_groups:
    -     group["lr"] = rate
    - if loss.isfinite() and norm.isfinite():
    -     optimizer.step()
    + if loss.isfinite() and norm.isfinite():
    +     optimizer.step()
    + for group in optimizer.param_groups:
    +     group["lr"] = rate
    The rate is set after the step, which was taken with the one before.
rate_not_set: group["lr"] = rate → pass
    The rate stays as the optimizer had it.
rate_multiplied: group["lr"] = rate → group["lr"] *= rate
    The rate that the optimizer had is multiplied by the new one. It should be replaced.
no_warm_up: min(step / warm_up, (1 → min(1.0, (1
    There is no warm-up: the rate begins with its largest value.
no_cosine: (1 + math.cos(math.pi * step / num_steps)) / 2) → 1.0)
    The rate stays at its largest value after the warm-up. It should follow half a cosine.
straight_down: (1 + math.cos(math.pi * step / num_steps)) / 2) → 1 - step / num_steps)
    After the warm-up the rate falls along a straight line. It should follow half a cosine.
cosine_not_halved: / num_steps)) / 2) → / num_steps)))
    The cosine is not halved: at the start it is 2.
whole_cosine: math.pi * step → 2 * math.pi * step
    The cosine goes down and up again. Half a period is wanted.
cosine_from_the_end_of_the_warm_up
    - math.cos(math.pi * step / num_steps)
    + math.cos(math.pi * max(0, step - warm_up) / max(num_steps - warm_up, 1))
    The cosine begins at the end of the warm-up, as in some recipes. Here it begins at step 0.
warm_up_times_cosine: min(step / warm_up, (1 + → min(step / warm_up, 1) * min(1.0, (1 +
    Warm-up and cosine are multiplied. The smaller of the two is wanted.
larger_of_the_two: min(step → max(step
    The rate is the larger of the two curves. The smaller one is wanted.
counted_from_zero: rate = most → step = step - 1; rate = most
    Steps are counted from 0, so the first one has a rate of 0 and changes nothing. They are counted
    from 1.
cosine_from_zero: math.pi * step → math.pi * (step - 1)
    In the cosine, steps are counted from 0. They are counted from 1, so the last one has a rate of
    0.
one_step_ahead: rate = most → step = step + 1; rate = most
    The rate is that of the next step.
most_forgotten: rate = most * min( → rate = min(
    The rate is not multiplied by `most`.
not_finite_not_noticed: if loss.isfinite() and norm.isfinite(): → if True:
    The step is taken although the loss is not finite: afterwards every parameter is NaN.
not_finite_raises
    - if loss.isfinite() and norm.isfinite():
    + if not loss.isfinite():
    +     raise FloatingPointError("the loss is not finite")
    + else:
    A loss that is not finite raises an exception. The step should be left out, and the loss come
    back as it is.
nan_made_zero: norm = nn → [p.grad.nan_to_num_(0.0) for p in model.parameters()]; norm = nn
    NaN in the gradient is replaced by 0, and the step is taken. It should be left out.
no_step: optimizer.step() → pass
    The optimizer's step is missing: nothing is learnt.
two_steps: optimizer.step() → optimizer.step(); optimizer.step()
    The optimizer takes two steps.
plain_descent
    - optimizer.step()
    + for group in optimizer.param_groups:
    +     for p in group["params"]:
    +         p.data -= group["lr"] * (0 if p.grad is None else p.grad)
    Parameters are moved by rate times gradient, without the optimizer: momentum and weight decay
    are missing.
loss_not_shifted: next_token_loss(model(ids), ids) → F.cross_entropy(model(ids).mT, ids)
    The logits at position t are compared with the token at t. They are for the one at t + 1.
loss_summed
    - next_token_loss(model(ids), ids)
    + next_token_loss(model(ids), ids) * ids[:, 1:].numel()
    The loss is the sum over all predictions. It is their mean.
left_in_training_mode: + model.train()
    The model is put into training mode. Its mode is the caller's.
left_in_eval_mode: > model.eval()
    The model is left in eval mode: dropout is off for the rest of the training.
tensors_returned: return loss.item(), norm.item() → return loss.detach(), norm
    Loss and norm are tensors. They should be floats.
norm_first: return loss.item(), norm.item() → return norm.item(), loss.item()
    The norm comes first. The loss should.
loss_only: > result = result[0]
    Only the loss is returned.
ids_changed: > ids.zero_()
    The caller's ids are changed.
seeded: + torch.manual_seed(0)
    The call seeds torch's random numbers for the whole program: with dropout, every step drops the
    same.
""")


def _rate(step, num_steps, warm_up, most):
    return most * min(step / warm_up, 0.5 + 0.5 * math.cos(step / num_steps * math.pi))


@BANK.right
def clipped_by_oneself(model, optimizer, ids, step, num_steps, warm_up, most, max_norm=1.0):
    optimizer.zero_grad(set_to_none=False)
    loss = next_token_loss(model(ids), ids)
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = sum((g**2).sum() for g in gradients).sqrt().item()
    if norm > max_norm:
        for g in gradients:
            g.mul_(max_norm / norm)
    for group in optimizer.param_groups:
        group["lr"] = _rate(step, num_steps, warm_up, most)
    if math.isfinite(norm) and math.isfinite(loss.item()):
        optimizer.step()
    return loss.item(), norm


@BANK.right
def gradients_by_autograd(model, optimizer, ids, step, num_steps, warm_up, most, max_norm=1.0):
    """Gradients are computed apart, and put in their places."""
    for group in optimizer.param_groups:
        group.update(lr=_rate(step, num_steps, warm_up, most))
    trained = [p for p in model.parameters() if p.requires_grad]
    loss = next_token_loss(model(ids), ids)
    gradients = torch.autograd.grad(loss, trained)
    norm = torch.linalg.vector_norm(torch.cat([g.flatten() for g in gradients]))
    found = loss.item(), norm.item()
    if all(map(math.isfinite, found)):
        factor = min(1.0, max_norm / max(found[1], 1e-12))
        for p, g in zip(trained, gradients, strict=True):
            p.grad = g * factor
        optimizer.step()
    return found


@BANK.right
def by_cross_entropy(model, optimizer, ids, step, num_steps, warm_up, most, max_norm=1.0):
    model.zero_grad()
    loss = F.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    norm = nn.utils.get_total_norm([p.grad for p in model.parameters() if p.grad is not None])
    nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)
    warming, cooling = step / warm_up, math.cos(math.pi * step / (2 * num_steps)) ** 2
    for i in range(len(optimizer.param_groups)):
        optimizer.param_groups[i]["lr"] = most * (warming if warming < cooling else cooling)
    if not (torch.isnan(norm) or torch.isinf(norm) or not torch.isfinite(loss)):
        optimizer.step()
    return float(loss), float(norm)


@BANK.right
def with_a_closure(model, optimizer, ids, step, num_steps, warm_up, most, max_norm=1.0):
    """The optimizer calls back for the loss."""
    rate = _rate(step, num_steps, warm_up, most)
    for group in optimizer.param_groups:
        group["lr"] = rate

    def compute():
        optimizer.zero_grad()
        loss = next_token_loss(model(ids), ids)
        loss.backward()
        return loss, nn.utils.clip_grad_norm_(model.parameters(), max_norm)

    with torch.enable_grad():
        loss, norm = compute()
    if torch.stack([loss.detach(), norm]).isfinite().all():
        optimizer.step(lambda: loss)
    return loss.item(), norm.item()


forgotten(BANK, "ids")
