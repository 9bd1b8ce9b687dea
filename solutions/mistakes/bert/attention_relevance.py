"""Known answers to `attention_relevance`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import bert as right

BANK = Bank("attention_relevance", right, globals())
BANK.read()


@BANK.right
def by_products(weights, gradients):
    """The product of the layers' (1 + Ā), the last one leftmost."""
    n = weights[0].shape[-1]
    one = torch.eye(n, dtype=weights[0].dtype, device=weights[0].device)
    found = one.expand(len(weights[0]), n, n)
    for a, g in zip(weights, gradients, strict=True):
        found = (one + torch.relu(a * g).mean(1)) @ found
    return found


@BANK.right
def by_einsum(weights, gradients):
    B, H, n, _ = weights[0].shape
    relevance = torch.diag_embed(weights[0].new_ones(B, n))
    for layer in range(len(weights)):
        kept = torch.maximum(weights[layer] * gradients[layer], weights[layer].new_zeros(()))
        relevance = relevance + torch.einsum("bhij,bjk->bik", kept / H, relevance)
    return relevance


@BANK.right
def text_after_text(weights, gradients):
    found = []
    for b in range(weights[0].size(0)):
        relevance = torch.eye(weights[0].size(-1)).to(weights[0])
        for a, g in zip(weights, gradients, strict=True):
            product = a[b] * g[b]
            heads = torch.where(product > 0, product, torch.zeros_like(product))
            relevance = relevance + torch.stack([*heads]).sum(0) / len(heads) @ relevance
        found.append(relevance)
    return torch.stack(found)


@BANK.right
def without_the_graph(weights, gradients):
    with torch.no_grad():
        relevance = None
        for a, g in zip(weights, gradients, strict=True):
            layer = (a.detach() * g).clamp_min(0.0).mean(-3)
            if relevance is None:
                relevance = layer + torch.eye(layer.shape[-1], device=a.device, dtype=a.dtype)
            else:
                relevance = torch.baddbmm(relevance, layer, relevance)
        return relevance


@BANK.right
def stacked(weights, gradients):
    products = torch.stack([*weights]).double() * torch.stack([*gradients]).double()
    layers = products.clamp(min=0).mean(2)
    relevance = torch.eye(layers.shape[-1], device=layers.device).double()
    for layer in layers:
        relevance = relevance + layer @ relevance
    return relevance.to(weights[0].dtype)
