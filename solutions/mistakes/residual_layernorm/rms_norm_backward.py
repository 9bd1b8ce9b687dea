"""Known answers to `rms_norm_backward`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import residual_layernorm as right

BANK = Bank("rms_norm_backward", right, globals())
BANK.read()


@BANK.right
def by_the_quotient_rule(grad_output, x, weight, eps=1e-6):
    """∂(x_j / r) / ∂x_i = δ_ij / r − x_i x_j / (d r³)."""
    r = (x.pow(2).mean(-1, keepdim=True) + eps).sqrt()
    g = grad_output * weight
    grad_x = g / r - x * (g * x).sum(-1, keepdim=True) / (x.shape[-1] * r**3)
    leading = list(range(x.dim() - 1))
    per_token = grad_output * x / r
    return grad_x, per_token.sum(leading) if leading else per_token


@BANK.right
def by_the_jacobian(grad_output, x, weight, eps=1e-6):
    """The whole d × d matrix of each token, then a product."""
    d = x.shape[-1]
    rows, grads = x.reshape(-1, d), grad_output.reshape(-1, d)
    r = (torch.einsum("ti,ti->t", rows, rows) / d + eps).sqrt()[:, None]
    unit = rows / r
    identity = torch.eye(d, dtype=x.dtype, device=x.device)
    matrix = (identity - unit[:, :, None] * unit[:, None, :] / d) / r[..., None]
    grad_x = torch.einsum("ti,tij->tj", grads * weight, matrix)
    return grad_x.reshape(x.shape), torch.einsum("ti,ti->i", grads, unit)


@BANK.right
def token_by_token(grad_output, x, weight, eps=1e-6):
    """A loop, under no_grad, in float64."""
    with torch.no_grad():
        flat, total = torch.zeros_like(x).reshape(-1, len(weight)), 0.0
        rows = zip(x.reshape(flat.shape), grad_output.reshape(flat.shape), strict=True)
        for t, (row, slope) in enumerate(rows):
            r = (row.double() @ row.double() / len(row) + eps) ** 0.5
            unit, g = row.double() / r, slope.double() * weight
            flat[t] = (g - unit * (g @ unit) / len(row)) / r
            total = total + slope * unit
        return [flat.reshape(x.shape), total.to(x.dtype)]


@BANK.right
def through_the_size(grad_output, x, weight, eps=1e-6):
    """The chain rule, from the mean of squares to x."""
    d = x.shape[-1]
    squares = (x * x).sum(-1, keepdim=True) / d
    root = torch.sqrt(squares + eps)
    g = weight * grad_output
    grad_root = -(g * x).sum(-1, keepdim=True) / root.square()
    grad_squares = 0.5 * grad_root / root
    grad_weight = (x / root * grad_output).flatten(end_dim=-2).sum(0) if x.dim() > 1 else None
    grad_x = g / root + 2 * x / d * grad_squares
    return grad_x, x / root * grad_output if grad_weight is None else grad_weight
