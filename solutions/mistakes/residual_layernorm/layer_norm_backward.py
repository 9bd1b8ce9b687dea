"""Known answers to `layer_norm_backward`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("layer_norm_backward", right, globals())

BANK.changes("""
both_terms_forgotten: (grad - grad.mean(dim=-1, keepdim=True) - normed * along) → grad
    grad_x is only g / √(σ² + ε), as if mean and variance were constants. Both depend on x, and each
    subtracts a term from g.
mean_term_forgotten: grad - grad.mean(dim=-1, keepdim=True) → grad
    The path through the mean is missing in grad_x: the mean of g over the features has to be
    subtracted. Without that, the features of grad_x do not sum to 0, as they must, since adding a
    constant to all features changes nothing.
variance_term_forgotten: keepdim=True) - normed * along → keepdim=True)
    The path through the variance is missing in grad_x: x̂ times the mean of g · x̂ has to be
    subtracted as well.
variance_term_with_wrong_sign: True) - normed → True) + normed
    The variance term is added to grad_x; it should be subtracted.
mean_term_with_wrong_sign: grad - grad.mean → grad + grad.mean
    The mean of g is added to grad_x; it should be subtracted.
variance_term_doubled: True) - normed → True) - 2 * normed
    The variance term counts twice: the 2 from the square cancels with the ½ from the root.
variance_term_halved: True) - normed → True) - 0.5 * normed
    The variance term counts half: the ½ from the root cancels with the 2 from the square.
summed_for_averaged: (grad * normed).mean → (grad * normed).sum ; grad.mean → grad.sum
    The two terms are sums over the features instead of means: they are d_model times too large.
averaged_over_the_positions
    ~ (grad * normed).mean(dim=-1 → (grad * normed).mean(dim=max(-2, -x.dim())
    ~ grad.mean(dim=-1 → grad.mean(dim=max(-2, -x.dim())
    The means of g and g · x̂ are taken over the positions. They should be taken for each token,
    over the last axis.
multiplied_by_the_deviation: inverse * (grad → 1 / inverse * (grad
    grad_x is multiplied by √(σ² + ε) instead of divided by it.
divided_by_the_variance: inverse * (grad → inverse**2 * (grad
    grad_x is divided by σ² + ε instead of its root.
not_divided: inverse * (grad → (grad
    grad_x is not divided by √(σ² + ε).
unbiased_variance: dim=-1, correction=0 → dim=-1
    The variance is divided by d_model − 1, as torch's var and std do by default. Forward and
    backward have to use the same divisor, d_model.
eps_outside_the_root
    - torch.rsqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    + 1 / (x.std(dim=-1, correction=0, keepdim=True) + eps)
    ε is added to the standard deviation, outside the root; in the forward pass it is inside.
eps_forgotten: keepdim=True) + eps → keepdim=True)
    ε is not used: a token whose features are all equal gives 0 / 0.
eps_always_the_default: + eps = 1e-5
    The argument eps is accepted and not used: ε is always 1e-5.
statistics_over_the_positions
    ~ x.mean(dim=-1 → x.mean(dim=max(-2, -x.dim())
    ~ x.var(dim=-1 → x.var(dim=max(-2, -x.dim())
    Mean and variance are taken over the positions instead of the features.
difference_of_squares
    - x.var(dim=-1, correction=0, keepdim=True)
    + x.square().mean(dim=-1, keepdim=True) - mean.square()
    The variance is computed as the mean of the squares minus the square of the mean. Far from zero,
    two large numbers cancel and leave noise.
weight_forgotten: grad_output * weight → grad_output
    grad_x leaves out the weight: the gradient of x̂ is grad_output times the weight.
weight_multiplied_last: grad_output * weight → grad_output ; return grad_x → return grad_x * weight
    The weight multiplies grad_x at the end. It has to be part of g from the beginning: the two
    means over the features are those of the weighted gradient.
divided_by_the_weight: grad_output * weight → grad_output / weight
    grad_output is divided by the weight. A factor multiplies in the backward pass, too.
x_for_normalised_x: tokens * normed.reshape → tokens * x.reshape
    grad_weight is computed from x. The weight multiplies the normalised x̂, so that is what its
    gradient contains.
centred_for_normalised_x: tokens * normed.reshape → tokens * (x - mean).reshape
    grad_weight is computed from x − μ, not divided by √(σ² + ε).
weighted_gradient_in_grad_weight: tokens * normed → tokens * weight * normed
    grad_weight is computed from grad_output times the weight. The weight has no part in its own
    gradient.
weighted_gradient_in_grad_bias: tokens.sum(dim=0) → (tokens * weight).sum(dim=0)
    grad_bias sums grad_output times the weight. The bias is added after the weight: its gradient is
    the sum of grad_output itself.
not_summed_over_the_tokens
    - (tokens * normed.reshape(tokens.shape)).sum(dim=0), tokens.sum(dim=0)
    + grad_output * normed, grad_output.clone()
    grad_weight and grad_bias still have one row per token. All tokens share one weight and one
    bias, whose gradients are sums over the tokens.
summed_over_the_features
    - (tokens * normed.reshape(tokens.shape)).sum(dim=0), tokens.sum(dim=0)
    + (grad_output * normed).sum(-1), grad_output.sum(-1)
    grad_weight and grad_bias are summed over the features. Each feature has its own weight: the sum
    runs over everything else.
summed_over_the_batch_only
    - tokens = grad_output.reshape(-1, x.shape[-1])
    - return grad_x, (tokens * normed.reshape(tokens.shape)).sum(dim=0), tokens.sum(dim=0)
    + rows = grad_output if x.dim() > 1 else grad_output[None]
    + return grad_x, (rows * normed).sum(dim=0), rows.sum(dim=0)
    grad_weight and grad_bias are summed over the first axis only, which leaves the positions. The
    sum runs over every axis but the last.
averaged_over_the_tokens: sum(dim=0) → mean(dim=0) ×2
    grad_weight and grad_bias are averages over the tokens. They should be sums: if the loss is an
    average, grad_output already accounts for it.
bias_before_weight: > result = result[0], result[2], result[1]
    The order of the result is (grad_x, grad_bias, grad_weight). The weight comes first.
only_grad_x: > result = result[0]
    Only grad_x is returned. There should be three: (grad_x, grad_weight, grad_bias).
three_dimensions_assumed
    + axes = (0, 1) if x.dim() > 2 else 0
    ~ (tokens * normed.reshape(tokens.shape)).sum(dim=0) → (grad_output * normed).sum(axes)
    ~ tokens.sum(dim=0) → grad_output.sum(axes)
    The sums run over axes 0 and 1, as if x always were (B, n, d_model). There may be any number of
    axes before the last.
by_autograd
    + leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
    + leaves.append(torch.zeros_like(weight).requires_grad_())
    + with torch.enable_grad():
    +     y = F.layer_norm(leaves[0], x.shape[-1:], *leaves[1:], eps)
    + return torch.autograd.grad(y, leaves, grad_output)
    The numbers come from autograd. The exercise is about the formula, and tensors created in
    inference mode reveal the difference: autograd cannot use them.
always_float64: > result = tuple(part.double() for part in result)
    The gradients are always float64. Each should have the dtype of what it is the gradient of.
grad_output_changed_in_place
    > if not grad_output.is_inference():
    >     grad_output *= weight
    The results are right, but grad_output is changed: `grad_output *= weight` writes into the
    caller's tensor. With a residual connection, that is also the gradient of the other path.
grad_mode_switched_off: + torch.set_grad_enabled(False)
    The results are right, but afterwards gradients stay switched off for the whole program:
    torch.set_grad_enabled(False) does not end by itself.
mean_term_without_the_weight: grad - grad.mean → grad - grad_output.mean
    The mean that is subtracted in grad_x is that of grad_output. It should be that of g, which is
    grad_output times the weight.
variance_term_without_the_weight: (grad * normed).mean → (grad_output * normed).mean
    The variance term of grad_x is computed from grad_output. It should be computed from g, which is
    grad_output times the weight.
first_term_without_the_weight: inverse * (grad - → inverse * (grad_output -
    The weight is in the two terms that are subtracted, and not in what they are subtracted from.
    All three are made of g, which is grad_output times the weight.
""")


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


forgotten(BANK, "x", numpy=True)
