"""Known answers to `rms_norm_backward`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("rms_norm_backward", right, globals())

BANK.changes("""
size_taken_for_constant: (slope - radial * sized) → slope
    grad_x is the gradient divided by the size, as if the size were a constant. It depends on every
    feature of x, and that path is missing.
size_term_with_wrong_sign: slope - radial → slope + radial
    The path through the size has the wrong sign: a larger feature makes the size larger, and all
    outputs smaller.
size_term_doubled: slope - radial → slope - 2 * radial
    The path through the size counts twice: the 2 from the square cancels with the ½ from the root.
size_term_halved: slope - radial → slope - 0.5 * radial
    The path through the size counts half: the ½ from the root cancels with the 2 from the square.
summed_for_averaged: slope).mean → slope).sum
    The term for the size is a sum over the features; the size is made of a mean of squares, so it
    is d_model times too large.
mean_subtracted_too: (slope - radial → (slope - slope.mean(dim=-1, keepdim=True) - radial
    The mean of the gradient is subtracted as well. That belongs to layer normalisation, whose
    output does not depend on the mean of x; this one does.
variance_for_mean_of_squares
    - x.square().mean(dim=-1, keepdim=True)
    + x.var(dim=-1, correction=0, keepdim=True)
    The size is taken from the variance. RMSNorm subtracts no mean: it takes the mean of the squares
    of x itself.
norm_for_root_mean_square: x.square().mean → x.square().sum
    x is divided by its length. RMSNorm divides by the root of the *mean* of the squares, which is
    √d_model times smaller.
by_layer_norm
    + normed = F.layer_norm(x, x.shape[-1:], eps=eps)
    ~ sized = x * per_size → sized = normed
    x̂ is that of layer normalisation: the mean of x has been subtracted.
averaged_over_the_positions
    ~ x.square().mean(dim=-1 → x.square().mean(dim=max(-2, -x.dim())
    The mean of the squares is taken over the positions. Each token has a size of its own, over its
    features.
multiplied_by_the_size: per_size * (slope → 1 / per_size * (slope
    grad_x is multiplied by the size, and should be divided by it.
divided_by_the_square: per_size * (slope → per_size**2 * (slope
    grad_x is divided by the mean of squares, and not by its root.
not_divided: per_size * (slope → (slope
    grad_x is not divided by the size.
eps_outside_the_root
    - torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
    + 1 / (x.square().mean(dim=-1, keepdim=True).sqrt() + eps)
    ε is added to the root, and not under it.
eps_forgotten: keepdim=True) + eps → keepdim=True)
    ε is not used: a token of zeros gives 0 / 0.
eps_always_the_default: + eps = 1e-6
    The argument eps is accepted and not used: ε is always 1e-6.
default_of_layer_norm: eps=1e-6 → eps=1e-5
    The default of eps is 1e-5, as in layer normalisation. Here it is 1e-6.
weight_forgotten: weight * grad_output → grad_output
    grad_x leaves out the weight: the gradient of the normalised x is grad_output times the weight.
weight_multiplied_last
    ~ weight * grad_output → grad_output
    ~ return grad_x → return weight * grad_x
    The weight multiplies grad_x at the end. It stands in front of both paths: the term for the size
    is made of the weighted gradient.
weight_missing_in_the_size_term: (sized * slope) → (sized * grad_output)
    The term for the size is made of grad_output, without the weight.
x_for_normalised_x: (grad_output * sized) → (grad_output * x)
    grad_weight is computed from x. The weight multiplies the normalised x, so that is what its
    gradient contains.
x_in_the_size_term: radial * sized) → radial * x)
    The term for the size points along x, and should along the normalised x.
weighted_gradient_in_grad_weight: (grad_output * sized) → (slope * sized)
    grad_weight is computed from grad_output times the weight. The weight has no part in its own
    gradient.
not_summed_over_the_tokens: sized).reshape(-1, len(weight)).sum(dim=0) → sized)
    grad_weight still has a row for each token. All tokens share one weight, whose gradient is the
    sum over the tokens.
averaged_over_the_tokens: len(weight)).sum(dim=0) → len(weight)).mean(dim=0)
    grad_weight is an average over the tokens, and should be a sum: if the loss is an average,
    grad_output already accounts for it.
summed_over_the_features: .reshape(-1, len(weight)).sum(dim=0) → .sum(dim=-1)
    grad_weight is summed over the features. Each feature has its own weight: the sum runs over
    everything else.
summed_over_the_first_axis: .reshape(-1, len(weight)).sum(dim=0) → .sum(dim=0)
    grad_weight is summed over the first axis alone. The sum runs over every axis but the last.
a_bias_as_well: > result = *result, grad_output.reshape(-1, len(weight)).sum(dim=0)
    There are three gradients, as for layer normalisation. RMSNorm has no bias.
only_grad_x: > result = result[0]
    Only grad_x is returned. There should be two: (grad_x, grad_weight).
always_float64: > result = tuple(part.double() for part in result)
    The gradients are always float64. Each should have the dtype of what it is the gradient of.
by_autograd
    + leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
    + with torch.enable_grad():
    +     y = F.rms_norm(leaves[0], x.shape[-1:], leaves[1], eps)
    + return torch.autograd.grad(y, leaves, grad_output)
    The numbers come from autograd. The exercise is about the formula, and tensors created in
    inference mode reveal the difference: autograd cannot use them.
grad_output_changed_in_place
    > if not grad_output.is_inference():
    >     grad_output *= weight
    The results are right, but grad_output is changed: `grad_output *= weight` writes into the
    caller's tensor. With a residual connection, that is also the gradient of the other path.
grad_mode_switched_off: + torch.set_grad_enabled(False)
    The results are right, but afterwards gradients stay switched off for the whole program:
    torch.set_grad_enabled(False) does not end by itself.
""")


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


forgotten(BANK, "x", numpy=True)
