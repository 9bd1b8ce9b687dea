"""Known answers to `attention_rollout`: mistakes, then right answers."""

import functools

import torch

from autograder.bank import Bank
from solutions import vision_transformer as right

BANK = Bank("attention_rollout", right, globals())
BANK.read()


@BANK.right
def by_reduce(weights):
    n = weights[0].size(-1)
    one = torch.eye(n).to(weights[0])
    layers = [(w.mean(1) + one) / 2 for w in weights]
    return functools.reduce(lambda done, layer: layer @ done, layers)


@BANK.right
def from_the_last_layer(weights):
    found = None
    for w in reversed(weights):
        layer = torch.diag_embed(w.new_full(w.shape[:1] + w.shape[-1:], 0.5)) + w.mean(-3) / 2
        found = layer if found is None else torch.bmm(found, layer)
    return found


@BANK.right
def by_einsum(weights):
    H = weights[0].shape[1]
    rollout = torch.eye(weights[0].shape[-1], dtype=weights[0].dtype, device=weights[0].device)
    rollout = rollout.expand(weights[0].shape[0], -1, -1)
    for w in weights:
        rollout = 0.5 * (torch.einsum("bhij,bjk->bik", w, rollout) / H + rollout)
    return rollout


@BANK.right
def image_by_image(weights):
    found = []
    for b in range(len(weights[0])):
        maps = [sum(layer[b]) / len(layer[b]) for layer in weights]
        eye = torch.eye(len(maps[0]), device=maps[0].device, dtype=maps[0].dtype)
        found.append(torch.linalg.multi_dot([0.5 * m + 0.5 * eye for m in maps[::-1]] + [eye]))
    return torch.stack(found)


@BANK.right
def stacked_without_the_graph(weights):
    with torch.no_grad():
        layers = torch.stack(list(weights)).double().mean(2) / 2
        layers.diagonal(dim1=-2, dim2=-1).add_(0.5)
        rollout = layers[0]
        for layer in layers[1:]:
            rollout = torch.matmul(layer, rollout)
    return rollout.to(weights[0].dtype)
