"""Known answers to `layer_norm_backward`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import residual_layernorm as right

BANK = Bank("layer_norm_backward", right, globals())
BANK.read()


def _mean(x):
    return x.mean(-1, keepdim=True)


def _summed(x):
    """The sum over all tokens."""
    return x.reshape(-1, x.shape[-1]).sum(0)


def _forward(x, eps, axes=-1):
    """What the backward pass takes from the forward one: 1 / √(σ² + ε), and x̂."""
    inverse = (x.var(axes, correction=0, keepdim=True) + eps).rsqrt()
    return inverse, (x - x.mean(axes, keepdim=True)) * inverse


@BANK.right
def in_one_bracket(grad_output, x, weight, eps=1e-5):
    """Ioffe and Szegedy's way of writing it: d times everything, divided once."""
    d = x.shape[-1]
    inverse, normed = _forward(x, eps)
    g = grad_output * weight
    bracket = d * g - g.sum(-1, keepdim=True) - normed * (g * normed).sum(-1, keepdim=True)
    leading = list(range(x.dim() - 1))
    sums = [grad_output * normed, grad_output]
    return bracket * inverse / d, *(s.sum(leading) if leading else s * 1 for s in sums)


@BANK.right
def step_by_step(grad_output, x, weight, eps=1e-5):
    """Variance, then mean, then x, as the chain rule has it."""
    d = x.shape[-1]
    centred = x - _mean(x)
    root = torch.sqrt(_mean(centred * centred) + eps)
    g = grad_output * weight
    grad_variance = -0.5 * (g * centred).sum(-1, keepdim=True) / root**3
    grad_mean = -(g / root).sum(-1, keepdim=True)
    grad_x = g / root + grad_variance * 2 * centred / d + grad_mean / d
    return grad_x, _summed(grad_output * centred / root), _summed(grad_output)


@BANK.right
def by_the_jacobian(grad_output, x, weight, eps=1e-5):
    """The whole d × d matrix of each token, then a product."""
    d = x.shape[-1]
    inverse, normed = _forward(x, eps)
    outer = torch.einsum("...i,...j->...ij", normed, normed)
    matrix = inverse[..., None] * (torch.eye(d, dtype=x.dtype, device=x.device) - (1 + outer) / d)
    grad_x = torch.einsum("...i,...ij->...j", grad_output * weight, matrix)
    rows = grad_output.reshape(-1, d)
    return grad_x, torch.einsum("td,td->d", rows, normed.reshape(-1, d)), rows.sum(0)


@BANK.right
def token_by_token(grad_output, x, weight, eps=1e-5):
    """A loop, under no_grad, in float64."""
    with torch.no_grad():
        grad_x, grad_weight = torch.zeros_like(x).reshape(-1, len(weight)), 0.0
        rows = zip(x.reshape(grad_x.shape), grad_output.reshape(grad_x.shape), strict=True)
        for t, (row, slope) in enumerate(rows):
            inverse, normed = _forward(row.double(), eps)
            g = slope.double() * weight
            grad_x[t] = inverse * (g - g.mean() - normed * torch.dot(g, normed) / len(g))
            grad_weight = grad_weight + slope * normed
        bias = torch.stack(list(grad_output.reshape(-1, len(weight)))).sum(0)
        return [grad_x.reshape(x.shape), grad_weight.to(x.dtype), bias]
