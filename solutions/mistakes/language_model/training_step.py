"""Known answers to `training_step`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
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


BANK.read()


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


@BANK.right
def left_early(model, optimizer, ids, step, num_steps, warm_up, most, max_norm=1.0):
    """Where no step is taken, the rate stays as well: it is part of the optimizer's state_dict."""
    optimizer.zero_grad()
    loss = next_token_loss(model(ids), ids)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    if loss.isfinite() and norm.isfinite():
        for group in optimizer.param_groups:
            group["lr"] = _rate(step, num_steps, warm_up, most)
        optimizer.step()
    return loss.item(), norm.item()
