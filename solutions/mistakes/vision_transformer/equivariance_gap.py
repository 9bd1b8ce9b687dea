"""Known answers to `equivariance_gap`: mistakes, then right answers."""

import copy
from itertools import combinations

import numpy as np
import torch

from autograder.bank import Bank
from solutions import vision_transformer as right

BANK = Bank("equivariance_gap", right, globals())
BANK.read()


def _in_eval(model, ask):
    """What `ask()` returns while the model is in eval mode."""
    modes = {part: part.training for part in model.modules()}
    try:
        model.eval()
        return ask()
    finally:
        for part, mode in modes.items():
            part.training = mode


def _two_or_more(images):
    if len(images) == 1:
        raise ValueError("1 image is one too few")


@BANK.right
def pair_by_pair(model, images, changes):
    """Loops, over pairs without order and over images."""
    _two_or_more(images)

    @torch.no_grad()
    def measure():
        answers, gaps = model(images), []
        pairs = [(a - b).norm() ** 2 for a, b in combinations(answers, 2)]
        apart = sum(pairs) / len(pairs)
        for g, h in changes:
            off = [(a - b).norm() ** 2 for a, b in zip(model(g(images)), h(answers), strict=True)]
            off = sum(off) / len(off)
            gaps.append(torch.sqrt(off / apart) if off > 0 else off)
        return torch.stack(gaps)

    return _in_eval(model, measure)


@BANK.right
def change_by_change(model, images, changes):
    """A loop over the changes, and a batch laid flat."""
    B = len(images)
    if B < 2:
        raise ValueError(f"{B} images are too few")
    was = {part: part.training for part in model.modules()}
    model.eval()
    gaps = []
    with torch.no_grad():
        answers = model(images)
        flat = answers.reshape(B, -1)
        pairs = (flat[:, None] - flat[None]).pow(2).sum(-1)
        below = pairs.sum() / (B * (B - 1))
        for g, h in changes:
            above = (model(g(images)) - h(answers)).reshape(B, -1).pow(2).sum(-1).mean()
            gaps.append(above if above == 0 else (above / below).sqrt())
    for part, mode in was.items():
        part.training = mode
    return torch.stack(gaps)


@BANK.right
def by_the_variance(model, images, changes):
    """Twice the variance is the mean squared distance of two."""
    if (B := len(images)) < 2:
        raise ValueError(f"B = {B}")
    before = [part.training for part in model.modules()]
    model.train(False)
    answers = model(images).detach()
    spread = 2 * (answers - answers.mean(0)).pow(2).sum() / (B - 1)
    gaps = answers.new_zeros(len(changes))
    for k, (change, wanted) in enumerate(changes):
        off = torch.nn.functional.mse_loss(model(change(images)).detach(), wanted(answers))
        off = off * answers[0].numel()
        if off.item() != 0:
            gaps[k] = off.div(spread).sqrt()
    for part, mode in zip(model.modules(), before, strict=True):
        part.training = mode
    return gaps


@BANK.right
def on_a_copy_in_one_batch(model, images, changes):
    """A copy of the model reads all images, as they are and changed, at once."""
    assert len(changes) > 0
    if len(images) < 2:
        raise ValueError(f"needs two images or more, and has {len(images)}")
    still = copy.deepcopy(model).eval()
    every = torch.cat([images, *(g(images) for g, _ in changes)])
    answers, *moved = still(every).detach().split(len(images))
    wanted = torch.stack([h(answers) for _, h in changes])
    off = (torch.stack(moved) - wanted).flatten(2).square().sum(-1).mean(-1)
    i, j = torch.triu_indices(len(images), len(images), 1, device=answers.device)
    apart = (answers[i] - answers[j]).flatten(1).square().sum(-1).mean()
    return (off / apart).sqrt().masked_fill(off == 0, 0.0)


@BANK.right
def in_numpy(model, images, changes):
    """Image by image, and the numbers in NumPy's float64."""
    _two_or_more(images)

    def ask(some):
        return torch.cat([model(one[None]) for one in some]).detach()

    def measure():
        answers = ask(images)
        return answers, [(ask(g(images)).cpu(), h(answers).cpu()) for g, h in changes]

    answers, sides = _in_eval(model, measure)
    flat = answers.cpu().double().flatten(1).numpy()
    apart = ((flat[:, None] - flat) ** 2).sum(-1)[~np.eye(len(flat), dtype=bool)].mean()
    off = np.array([((a - b).double().flatten(1).numpy() ** 2).sum(1).mean() for a, b in sides])
    with np.errstate(divide="ignore", invalid="ignore"):
        gaps = np.where(off == 0, 0.0, np.sqrt(off / apart))
    return torch.as_tensor(gaps, dtype=answers.dtype, device=answers.device)


@BANK.right
def with_distances(model, images, changes):
    """The distances of all pairs from torch, none of an image with itself."""
    B = len(images)
    if B <= 1:
        raise ValueError(f"cannot tell from a batch of {B}")
    modes = {name: part.training for name, part in model.named_modules()}
    with torch.no_grad():
        answers = model.eval()(images)
        apart = torch.pdist(answers.flatten(1)).square().mean()
        off = [torch.dist(model(g(images)), h(answers)).square() / B for g, h in changes]
    for name, training in modes.items():
        model.get_submodule(name).training = training
    return torch.stack([x if x == 0 else (x / apart).sqrt() for x in off])
