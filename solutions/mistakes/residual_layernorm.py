"""Known answers to chapter 6: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.residual_layernorm`.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F

from solutions import residual_layernorm as right
from solutions.mistakes import Bank

LAYER_NORM = Bank("LayerNorm", right, globals())
LAYER_NORM_BACKWARD = Bank("layer_norm_backward", right, globals())
GELU = Bank("gelu", right, globals())
FEED_FORWARD = Bank("FeedForward", right, globals())
RESIDUAL = Bank("Residual", right, globals())
DROP_PATH = Bank("DropPath", right, globals())
CHUNKED_FEED_FORWARD = Bank("chunked_feed_forward", right, globals())


# --- LayerNorm: mistakes ------------------------------------------------------------------------

LAYER_NORM.changes("""
unbiased_std: (x - mean).square().mean(dim=-1, keepdim=True) → x.var(dim=-1, keepdim=True)
    The variance is divided by d_model − 1, which is what torch's var and std do unless told
    otherwise. Layer normalisation divides by d_model; with few features one sees it at once, with
    512 hardly.
eps_outside_the_root: torch.sqrt(variance + self.eps) → (torch.sqrt(variance) + self.eps)
    ε is added to the standard deviation, outside the root. Inside, √(σ² + ε), a variance of 0 gives
    √ε; outside it gives ε, which is a hundred times smaller or worse.
unbiased_std_and_eps_outside of unbiased_std
    ~ torch.sqrt(variance + self.eps) → (torch.sqrt(variance) + self.eps)
    The standard deviation is divided by d_model − 1, as torch's std does unless told otherwise, and
    ε is added to it outside the root. So does a layer norm that is widely copied, and its numbers
    are not those of torch's.
eps_forgotten: variance + self.eps → variance
    ε is not used. A token whose features are all equal is then 0 / 0, and its gradient too.
eps_always_the_default: variance + self.eps → variance + 1e-5
    The argument eps is accepted and not used: ε is always 1e-5.
eps_squared: variance + self.eps → variance + self.eps**2
    ε² stands under the root instead of ε.
clamped_at_eps: variance + self.eps → variance.clamp(min=self.eps)
    The variance is kept from going below ε, but ε is not added to it: √max(σ², ε) for √(σ² + ε).
over_the_sequence: dim=-1 → dim=-2 ×2
    Mean and variance are taken over the positions, feature by feature. Each token then depends on
    all others, later ones included: the future leaks into the past, mask or no mask.
over_batch: dim=-1 → dim=0 ×2
    Mean and variance are taken over the batch, as batch normalisation does. A sentence's result
    then depends on which others are in its batch.
over_positions_and_features: dim=-1 → dim=tuple(range(min(1, x.dim() - 1), x.dim())) ×2
    One mean and one variance are taken for all positions of a sequence together. Each token has its
    own: normalise over the last axis alone.
over_everything: dim=-1 → dim=tuple(range(x.dim())) ×2
    One mean and one variance are taken over the whole tensor. Each token has its own.
over_batch_and_positions: dim=-1 → dim=tuple(range(x.dim() - 1)) or (0,) ×2
    Mean and variance are taken for each feature, over batch and positions: that is batch
    normalisation. Layer normalisation takes them for each token, over its features.
keepdim_forgotten
    ~ mean = x.mean(dim=-1, keepdim=True) → mean = x.mean(dim=-1)
    ~ (x - mean).square().mean(dim=-1, keepdim=True) → x.var(dim=-1, correction=0)
    Mean and variance have lost the last axis, so they line up with the wrong one: where the number
    of positions happens to be d_model, the mean of token j is taken from feature j of every token;
    elsewhere the shapes do not fit.
mean_not_subtracted: return (x - mean) → return x
    The mean is not subtracted: each token is only divided by its standard deviation.
root_mean_square: mean = x.mean(dim=-1, keepdim=True) → mean = 0.0
    Each token is divided by the root of its mean square, and no mean is subtracted. That is
    RMSNorm, which many newer models use; asked is layer normalisation.
variance_not_divided: (x - mean) / torch.sqrt(variance + self.eps) → (x - mean)
    The mean is subtracted and the rest left as it is: nothing is divided by √(σ² + ε).
divided_by_the_variance: torch.sqrt(variance + self.eps) → (variance + self.eps)
    The deviations are divided by σ² + ε, not by its root. Features measured in metres would come
    out in one over metres.
divided_by_the_length: square().mean → square().sum
    The deviations are divided by their length as a vector. That is √d_model times too much: take
    the mean of the squared deviations, not their sum.
mean_absolute_deviation
    - (x - mean).square().mean(dim=-1, keepdim=True)
    + (x - mean).abs().mean(dim=-1, keepdim=True) ** 2
    The spread is the mean absolute deviation. Take the root of the mean square.
weight_and_bias_swapped: * self.weight + self.bias → * self.bias + self.weight
    The bias multiplies and the weight is added. A new layer then returns ones for everything.
weight_forgotten: * self.weight + self.bias → + self.bias
    The weight is not used. A new layer's weight is all ones, which hides it until training.
bias_forgotten: * self.weight + self.bias → * self.weight
    The bias is not used. A new layer's bias is all zeros, which hides it until training.
neither_weight_nor_bias: self.eps) * self.weight + self.bias → self.eps)
    Neither weight nor bias is applied after normalising. In a new layer it does not show.
bias_before_weight: return → return ( ; * self.weight + self.bias → + self.bias) * self.weight
    The bias is added before the weight multiplies, so that it is multiplied, too.
scaled_first
    + x = x * self.weight + self.bias
    ~ self.eps) * self.weight + self.bias → self.eps)
    Weight and bias are applied to x, before the normalisation, which undoes most of what they did.
    They come last.
one_weight_per_position
    - self.weight + self.bias
    + self.weight[: x.shape[-2], None] + self.bias[: x.shape[-2], None]
    Weight and bias line up with the positions instead of the features: one number for all of a
    token. It goes unnoticed where a sequence has as many positions as a token has features.
starts_at_random
    ~ torch.ones(d_model) → torch.linspace(-1.0, 1.0, d_model)
    ~ torch.zeros(d_model) → torch.linspace(-1.0, 1.0, d_model).flip(0)
    Weight and bias start at random. They start as ones and zeros: at first the layer is to
    normalise and nothing else.
difference_of_squares
    - (x - mean).square().mean(dim=-1, keepdim=True)
    + x.square().mean(dim=-1, keepdim=True) - mean.square()
    The variance is the mean of the squares minus the square of the mean. On paper that is the same;
    in float32, far from zero, two large numbers cancel and what is left is noise, or negative, and
    its root NaN.
statistics_detached: keepdim=True) → keepdim=True).detach() ×2
    The results are right, but mean and variance are cut from the graph, so the gradient of x is as
    if they were constants. They depend on every feature.
parameters_detached: self.weight + self.bias → self.weight.detach() + self.bias.detach()
    The results are right, but no gradient reaches weight and bias (.data or .detach() cuts it), so
    they can never be learnt.
running_statistics
    + last, self.last = getattr(self, "last", None), x.detach().mean()
    > result = result + (0.0 if last is None else 0.1 * (self.last - last))
    The layer carries a mean from one call into the next, as batch normalisation does. Layer
    normalisation remembers nothing: each token is normalised by itself.
always_float32: > result = result.float()
    The result is always float32. It has the dtype of x.
changed_in_place
    > if not x.requires_grad:
    >     x -= x.mean(-1, keepdim=True)
    The result is right, but x is changed: `x -= mean` writes into the caller's tensor, which the
    residual connection still needs.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    The result is right, but torch's default dtype is float64 afterwards, for everybody.
""")


# --- LayerNorm: right ---------------------------------------------------------------------------


@LAYER_NORM.right
class by_var_mean(right.LayerNorm):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return self.weight * ((x - mean) * torch.rsqrt(variance + self.eps)) + self.bias


@LAYER_NORM.right
class token_by_token(right.LayerNorm):
    def forward(self, x):
        rows = []
        for row in x.reshape(-1, x.shape[-1]):
            mean = row.sum() / len(row)
            variance = ((row - mean) ** 2).sum() / len(row)
            rows.append((row - mean) / (variance + self.eps) ** 0.5 * self.weight + self.bias)
        return torch.stack(rows).reshape(x.shape)


@LAYER_NORM.right
class by_einsum(right.LayerNorm):
    def forward(self, x):
        d = x.shape[-1]
        x = x - torch.einsum("...d->...", x)[..., None] / d
        spread = torch.einsum("...d,...d->...", x, x)[..., None] / d + self.eps
        return torch.addcmul(self.bias, x, self.weight / spread.sqrt())


@LAYER_NORM.right
class float64_inside(right.LayerNorm):
    def forward(self, x):
        wide = x.double()
        wide = wide - wide.mean(-1, keepdim=True)
        wide = wide / (wide.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return (wide * self.weight + self.bias).to(x.dtype)


# --- layer_norm_backward: mistakes --------------------------------------------------------------

LAYER_NORM_BACKWARD.changes("""
both_terms_forgotten: (grad - grad.mean(dim=-1, keepdim=True) - normed * along) → grad
    grad_x is only g / √(σ² + ε), as if mean and variance were constants. Both depend on x, and each
    takes something away from g.
mean_term_forgotten: grad - grad.mean(dim=-1, keepdim=True) → grad
    The path through the mean is missing in grad_x: the mean of g over the features is to be taken
    from it. The features of grad_x then do not sum to 0, as they must, since adding a constant to
    all features changes nothing.
variance_term_forgotten: keepdim=True) - normed * along → keepdim=True)
    The path through the variance is missing in grad_x: x̂ times the mean of g · x̂ is to be taken
    away as well.
variance_term_with_wrong_sign: True) - normed → True) + normed
    The term of the variance is added in grad_x where it has to be subtracted.
mean_term_with_wrong_sign: grad - grad.mean → grad + grad.mean
    The mean of g is added in grad_x where it has to be subtracted.
variance_term_doubled: True) - normed → True) - 2 * normed
    The term of the variance counts twice: the 2 from the square is not met by the ½ from the root.
variance_term_halved: True) - normed → True) - 0.5 * normed
    The term of the variance counts half: the ½ from the root is not met by the 2 from the square.
summed_for_averaged: (grad * normed).mean → (grad * normed).sum ; grad.mean → grad.sum
    The two terms sum over the features where they should average: they are d_model times too large.
averaged_over_the_positions
    ~ (grad * normed).mean(dim=-1 → (grad * normed).mean(dim=max(-2, -x.dim())
    ~ grad.mean(dim=-1 → grad.mean(dim=max(-2, -x.dim())
    The means of g and of g · x̂ are taken over the positions. They belong to each token: the last
    axis.
multiplied_by_the_deviation: inverse * (grad → 1 / inverse * (grad
    grad_x is multiplied by √(σ² + ε) where it has to be divided by it.
divided_by_the_variance: inverse * (grad → inverse**2 * (grad
    grad_x is divided by σ² + ε where it has to be divided by its root.
not_divided: inverse * (grad → (grad
    grad_x is not divided by √(σ² + ε).
unbiased_variance: dim=-1, correction=0 → dim=-1
    The variance is divided by d_model − 1, which is what torch's var and std do unless told
    otherwise. Forward and backward have to use the same: d_model.
eps_outside_the_root
    - torch.rsqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)
    + 1 / (x.std(dim=-1, correction=0, keepdim=True) + eps)
    ε is added to the standard deviation, outside the root; forward it stands inside.
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
    The variance is the mean of the squares minus the square of the mean. Far from zero two large
    numbers cancel, and what is left is noise.
weight_forgotten: grad_output * weight → grad_output
    grad_x leaves out the weight: the gradient of x̂ is grad_output times the weight.
weight_multiplied_last: grad_output * weight → grad_output ; return grad_x → return grad_x * weight
    The weight multiplies grad_x at the end. It has to be in g from the beginning: the two means
    over the features are those of the weighted gradient.
divided_by_the_weight: grad_output * weight → grad_output / weight
    grad_output is divided by the weight. Backwards, too, a factor multiplies.
x_for_normalised_x: tokens * normed.reshape → tokens * x.reshape
    grad_weight is made with x. The weight multiplies the normalised x̂, so that is what its
    gradient is made of.
centred_for_normalised_x: tokens * normed.reshape → tokens * (x - mean).reshape
    grad_weight is made with x − μ, not divided by √(σ² + ε).
weighted_gradient_in_grad_weight: tokens * normed → tokens * weight * normed
    grad_weight is made with grad_output times the weight. The weight has no part in its own
    gradient.
weighted_gradient_in_grad_bias: tokens.sum(dim=0) → (tokens * weight).sum(dim=0)
    grad_bias sums grad_output times the weight. The bias is added after the weight: its gradient is
    the sum of grad_output as it is.
not_summed_over_the_tokens
    - (tokens * normed.reshape(tokens.shape)).sum(dim=0), tokens.sum(dim=0)
    + grad_output * normed, grad_output.clone()
    grad_weight and grad_bias still have one row per token. All tokens share one weight and one
    bias, so their gradients are sums over the tokens.
summed_over_the_features
    - (tokens * normed.reshape(tokens.shape)).sum(dim=0), tokens.sum(dim=0)
    + (grad_output * normed).sum(-1), grad_output.sum(-1)
    grad_weight and grad_bias are summed over the features. Sum over everything else: a weight
    belongs to a feature.
summed_over_the_batch_only
    - tokens = grad_output.reshape(-1, x.shape[-1])
    - return grad_x, (tokens * normed.reshape(tokens.shape)).sum(dim=0), tokens.sum(dim=0)
    + rows = grad_output if x.dim() > 1 else grad_output[None]
    + return grad_x, (rows * normed).sum(dim=0), rows.sum(dim=0)
    grad_weight and grad_bias are summed over the first axis alone, so the positions are left. Sum
    over every axis but the last.
averaged_over_the_tokens: sum(dim=0) → mean(dim=0) ×2
    grad_weight and grad_bias are averages over the tokens. They are sums; whether a loss is an
    average is in grad_output already.
bias_before_weight: > result = result[0], result[2], result[1]
    The order of the result is (grad_x, grad_bias, grad_weight). The weight comes first.
only_grad_x: > result = result[0]
    Only grad_x is returned. Asked are three: (grad_x, grad_weight, grad_bias).
three_dimensions_assumed
    + axes = (0, 1) if x.dim() > 2 else 0
    ~ (tokens * normed.reshape(tokens.shape)).sum(dim=0) → (grad_output * normed).sum(axes)
    ~ tokens.sum(dim=0) → grad_output.sum(axes)
    The sums run over axes 0 and 1, as if x always were (B, n, d_model). Any number of axes may
    stand before the last.
by_autograd
    + leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
    + leaves.append(torch.zeros_like(weight).requires_grad_())
    + with torch.enable_grad():
    +     y = F.layer_norm(leaves[0], x.shape[-1:], *leaves[1:], eps)
    + return torch.autograd.grad(y, leaves, grad_output)
    The numbers come from autograd. The exercise wants the formula, and tensors made in inference
    mode show the difference: autograd cannot use them.
always_float64: > result = tuple(part.double() for part in result)
    The gradients are always float64. They have the dtype of what they are gradients of.
grad_output_changed_in_place
    > if not grad_output.is_inference():
    >     grad_output *= weight
    The results are right, but grad_output is changed: `grad_output *= weight` writes into the
    caller's tensor. With a residual connection, it is the gradient of the other path as well.
grad_mode_switched_off: + torch.set_grad_enabled(False)
    The results are right, but gradients stay switched off for everybody afterwards:
    torch.set_grad_enabled(False) needs a `with`.
""")


# --- layer_norm_backward: right -----------------------------------------------------------------


def _mean(x):
    return x.mean(-1, keepdim=True)


def _summed(x):
    """The sum over all tokens."""
    return x.reshape(-1, x.shape[-1]).sum(0)


def _forward(x, eps, axes=-1):
    """What the backward pass takes from the forward one: 1 / √(σ² + ε), and x̂."""
    inverse = (x.var(axes, correction=0, keepdim=True) + eps).rsqrt()
    return inverse, (x - x.mean(axes, keepdim=True)) * inverse


@LAYER_NORM_BACKWARD.right
def in_one_bracket(grad_output, x, weight, eps=1e-5):
    """Ioffe and Szegedy's way of writing it: d times everything, divided once."""
    d = x.shape[-1]
    inverse, normed = _forward(x, eps)
    g = grad_output * weight
    bracket = d * g - g.sum(-1, keepdim=True) - normed * (g * normed).sum(-1, keepdim=True)
    leading = list(range(x.dim() - 1))
    sums = [grad_output * normed, grad_output]
    return bracket * inverse / d, *(s.sum(leading) if leading else s * 1 for s in sums)


@LAYER_NORM_BACKWARD.right
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


@LAYER_NORM_BACKWARD.right
def by_the_jacobian(grad_output, x, weight, eps=1e-5):
    """The whole d × d matrix of each token, then a product."""
    d = x.shape[-1]
    inverse, normed = _forward(x, eps)
    outer = torch.einsum("...i,...j->...ij", normed, normed)
    matrix = inverse[..., None] * (torch.eye(d, dtype=x.dtype, device=x.device) - (1 + outer) / d)
    grad_x = torch.einsum("...i,...ij->...j", grad_output * weight, matrix)
    rows = grad_output.reshape(-1, d)
    return grad_x, torch.einsum("td,td->d", rows, normed.reshape(-1, d)), rows.sum(0)


@LAYER_NORM_BACKWARD.right
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


# --- gelu: mistakes -----------------------------------------------------------------------------

GELU.changes("""
tanh_gelu: + return F.gelu(x, approximate="tanh")
    This is the approximation with tanh, which is off by up to half a thousandth. The exercise wants
    the exact function, with erf.
sigmoid_gelu: + return x * torch.sigmoid(1.702 * x)
    This is the approximation x · sigmoid(1.702 x), which is off by up to two hundredths. The
    exercise wants the exact function, with erf.
silu: + return F.silu(x)
    This is SiLU, x · sigmoid(x), a relative. GELU multiplies x by the normal distribution's Φ(x).
relu: + return F.relu(x)
    This is ReLU: zero for all negative numbers. GELU is smooth, and slightly negative there.
root_of_two_forgotten: x / math.sqrt(2.0) → x
    erf is taken of x instead of x / √2. Φ(x) = ½ (1 + erf(x / √2)).
multiplied_by_root_of_two: x / math.sqrt(2.0) → x * math.sqrt(2.0)
    erf is taken of x · √2 instead of x / √2.
divided_by_two_inside: x / math.sqrt(2.0) → x / 2
    erf is taken of x / 2 instead of x / √2.
half_forgotten: 0.5 * x → x
    The factor ½ is missing: for large x the result is 2x.
one_forgotten: 1.0 + torch.erf → torch.erf
    ½ · erf(x / √2) stands for Φ(x); the 1 is missing, and negative numbers come out positive.
one_outside_the_bracket: 0.5 * x * (1.0 → x * (0.5
    ½ multiplies the 1 alone: ½ + erf(x / √2) for ½ (1 + erf(x / √2)).
chance_to_be_larger: 1.0 + torch.erf → 1.0 - torch.erf
    x is multiplied by 1 − Φ(x), the chance that a normal number is larger: large x give 0.
x_forgotten: 0.5 * x → 0.5
    This is Φ(x) alone: it has to be multiplied by x.
density_for_chance: + return x * torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    x is multiplied by the normal density at x. Multiply it by Φ(x), the area to the left of x.
""")


@GELU.mistake
def by_numpy(x):
    """No gradient reaches x: the function is computed outside of torch, with math.erf or NumPy."""
    phi = np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))), otypes=[float])
    numbers = x.detach().cpu().double().numpy()
    made = torch.from_numpy(np.asarray(numbers * phi(numbers))) if x.numel() else x.detach() * 1
    return made.to(x)


GELU.changes("""
always_float32: + return F.gelu(x.float())
    The result is always float32: a float64 x loses half of its digits.
changed_in_place
    > if not x.requires_grad:
    >     x.copy_(result)
    The result is right, but it is written into x (methods that end in _, or *=), which the caller
    still needs.
made_a_list: + x = torch.atleast_1d(x)
    The result always has an axis, even where x is a single number without one.
exp_overflows
    + wide = x * torch.exp(x.abs() / 8)
    + return torch.erf(x / math.sqrt(2)) * wide / torch.exp(x.abs() / 8) * 0.5 + 0.5 * x
    For large numbers the result is NaN: exp overflows, and ∞ / ∞ or ∞ · 0 is not a number. erf
    needs no exp.
""")


# --- gelu: right --------------------------------------------------------------------------------


@GELU.right
def by_erfc(x):
    return x * torch.erfc(-x * math.sqrt(0.5)) / 2


@GELU.right
def by_ndtr(x):
    return x * torch.special.ndtr(x)


@GELU.right
def by_the_normal_distribution(x):
    normal = torch.distributions.Normal(
        torch.zeros_like(x), torch.ones_like(x), validate_args=False
    )
    return x * normal.cdf(x)


@GELU.right
def number_by_number(x):
    parts = [0.5 * v * (1 + torch.erf(v / 2**0.5)) for v in x.reshape(-1)]
    return torch.stack(parts).reshape(x.shape) if parts else x * 1


# --- FeedForward: mistakes ----------------------------------------------------------------------

FEED_FORWARD.changes("""
activation_forgotten: self.activation(self.linear1(x)) → self.linear1(x)
    There is no activation between the two linear layers. Together they are then one linear layer,
    however wide the middle.
activation_last
    ~ self.activation(self.linear1(x)) → self.linear1(x)
    > result = self.activation(result)
    The activation stands after linear2 instead of between the layers. With ReLU no output is
    negative any more.
activation_twice: > result = self.activation(result)
    The activation stands after both layers. After linear2 there is none: the sum with x must be
    able to go down as well as up.
activation_first: self.activation(self.linear1(x)) → self.linear1(self.activation(x))
    The activation acts on x, before linear1, and not between the layers.
always_relu: self.activation(self → torch.relu(self
    The argument `activation` is accepted and not used: it is always ReLU.
always_gelu: self.activation(self → F.gelu(self
    The activation is always GELU. The default is ReLU, and the argument may be anything.
residual_inside: > result = x + result
    x is added to the result. The residual connection is a layer of its own; here it would be there
    twice.
normalised_inside: > result = F.layer_norm(result, x.shape[-1:])
    The result is normalised. The norm belongs to the residual connection around this layer.
first_layer_transposed
    - self.linear2(self.dropout(hidden))
    + F.linear(self.dropout(hidden), self.linear1.weight.T, self.linear2.bias)
    linear2's matrix is linear1's, transposed: two layers share one matrix, and linear2's own weight
    is not used.
biases_forgotten
    ~ self.linear1(x) → x @ self.linear1.weight.T
    ~ self.linear2(self.dropout(hidden)) → self.dropout(hidden) @ self.linear2.weight.T
    The matrices are used without their biases. nn.Linear has both: call it.
averaged_over_the_positions
    - return
    + if x.dim() > 1:
    +     hidden = hidden.mean(-2, keepdim=True).expand_as(hidden)
    + return
    The hidden features are averaged over the positions, so that every token gets the same.
    Position-wise means that each is treated alone.
reads_the_token_before: > result = result.roll(1, -2) if x.dim() > 1 else result
    Each token is given what its neighbour to the left has computed. Position-wise means that each
    is treated alone; only attention moves things between tokens.
dropout_forgotten: self.dropout(hidden) → hidden
    `dropout` is accepted and not used: nothing is dropped in training.
dropout_in_eval: self.dropout(hidden) → F.dropout(hidden, self.dropout.p)
    Dropout goes on in eval mode: F.dropout is always on unless it is given self.training.
dropout_on_the_output: self.linear2(self.dropout(hidden)) → self.dropout(self.linear2(hidden))
    Dropout acts on the result, after linear2. It stands between the layers; the residual connection
    has a dropout of its own for the result.
dropout_on_the_input
    ~ self.dropout(hidden) → hidden
    ~ self.linear1(x) → self.linear1(self.dropout(x))
    Dropout acts on x, before linear1. It stands between the layers.
dropout_twice: > result = self.dropout(result)
    Dropout acts on the hidden features and once more on the result.
dropout_before_the_activation
    ~ self.dropout(hidden) → hidden
    ~ self.linear1(x) → self.dropout(self.linear1(x))
    Dropout acts before the activation. With ReLU the order does not matter, since ReLU keeps zeros
    and factors; with another activation it does, and the contract has dropout after it.
dropout_without_rescaling
    - return self.linear2(self.dropout(hidden))
    + if self.training:
    +     hidden = hidden * (torch.rand_like(hidden) >= self.dropout.p)
    + return self.linear2(hidden)
    What is kept is not divided by 1 − p, so the hidden features are smaller in training than in
    use.
whole_tokens_dropped
    ~ self.dropout(hidden) → hidden * self.dropout(torch.ones_like(hidden[..., :1]))
    Dropout has one draw per token, and drops all of its hidden features together. Each feature has
    a draw of its own.
gradient_cut: + x = x.detach()
    The results are right, but x is detached: no gradient flows back to the layers before.
three_axes_assumed
    + B, n, d = x.shape
    + x = x.reshape(B * n, d)
    > result = result.reshape(B, n, d)
    The shape is taken to be (B, n, d_model). nn.Linear takes any axes before the last, a single
    token included.
always_float32: > result = result.float()
    The result is always float32. It has the dtype of the layer and of x.
x_changed_in_place
    > if not x.requires_grad:
    >     x.relu_()
    The result is right, but x is changed (relu_, F.relu(…, inplace=True), *=), which the residual
    connection still needs.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    The result is right, but torch's default dtype is float64 afterwards, for everybody.
""")


# --- FeedForward: right -------------------------------------------------------------------------


@FEED_FORWARD.right
class as_a_sequence(right.FeedForward):
    def forward(self, x):
        for step in (self.linear1, self.activation, self.dropout, self.linear2):
            x = step(x)
        return x


@FEED_FORWARD.right
class by_matrix_products(right.FeedForward):
    def forward(self, x):
        hidden = self.activation(x @ self.linear1.weight.T + self.linear1.bias)
        return self.dropout(hidden) @ self.linear2.weight.T + self.linear2.bias


@FEED_FORWARD.right
class by_einsum(right.FeedForward):
    def forward(self, x):
        hidden = torch.einsum("...d,fd->...f", x, self.linear1.weight) + self.linear1.bias
        hidden = self.dropout(self.activation(hidden))
        return torch.einsum("...f,df->...d", hidden, self.linear2.weight) + self.linear2.bias


@FEED_FORWARD.right
class position_by_position(right.FeedForward):
    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        results = [super(position_by_position, self).forward(token) for token in tokens]
        return torch.stack(results).reshape(x.shape)


@FEED_FORWARD.right
class mask_by_hand(right.FeedForward):
    def forward(self, x):
        hidden, p = self.activation(self.linear1(x)), self.dropout.p
        if self.training and p > 0:
            dropped = torch.rand(hidden.shape) < p
            hidden = torch.where(dropped, torch.zeros_like(hidden), hidden / (1 - p))
        return self.linear2(hidden)


# --- Residual: mistakes -------------------------------------------------------------------------

RESIDUAL.changes("""
residual_forgotten: x + self.dropout → self.dropout ×2
    x is not added: only the sublayer's output goes on. Without the path past the sublayer,
    gradients shrink from layer to layer.
normed_x_added
    - return x + self.dropout(self.sublayer(self.norm(x)
    + x = self.norm(x)
    + return x + self.dropout(self.sublayer(x
    With norm_first, the normalised x is added to the sublayer's output. It is x itself that goes
    past the sublayer; the norm is for the sublayer alone.
x_added_to_itself
    - return x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
    + self.sublayer(self.norm(x), *args, **kwargs)
    + return x + x
    - return self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))
    + self.sublayer(x, *args, **kwargs)
    + return self.norm(x + x)
    The sublayer's output is lost: x + x comes out instead of x + F(x). Overwriting x before the
    sum, or a mistaken name, does it.
output_added_to_itself: x + self.dropout( → 2 * self.dropout( ×2
    The sublayer's output is added to itself: x was overwritten by it before the sum, so that the
    original is gone.
pre_where_post_is_asked: if self.norm_first → if True
    The layer is always pre-norm, x + F(norm(x)), also without norm_first.
post_where_pre_is_asked: if self.norm_first → if False
    The layer is always post-norm, norm(x + F(x)): norm_first is not looked at.
norm_first_inverted: if self.norm_first → if not self.norm_first
    Pre- and post-norm are exchanged: norm_first=True gives norm(x + F(x)).
normalised_twice
    - x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
    + self.norm(x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs)))
    With norm_first, the sum is normalised as well, so that x does not arrive as it was.
normalised_before_and_after: self.sublayer(x → self.sublayer(self.norm(x)
    In post-norm, too, the sublayer is given the normalised x. It gets x as it is; only the sum is
    normalised.
only_the_output_normalised: self.norm(x + self → x + self.norm(self
    In post-norm the sublayer's output is normalised, and x added afterwards. It is the sum that is
    normalised.
norm_forgotten: self.norm(x) → x ; self.norm(x + self → (x + self
    The norm is not used: x + F(x) alone.
norm_without_parameters
    ~ self.norm(x) → F.layer_norm(x, x.shape[-1:])
    - self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))
    + F.layer_norm(x + self.dropout(self.sublayer(x, *args, **kwargs)), x.shape[-1:])
    Tokens are normalised, but self.norm is not used: its weight and bias have no effect.
output_subtracted: x + self.dropout → x - self.dropout ×2
    The sublayer's output is subtracted from x. It is added.
sum_halved: x + self.dropout → x / 2 + 0.5 * self.dropout ×2
    x and the sublayer's output are averaged. They are added; halving x in every layer lets it fade
    away.
further_arguments_dropped: , *args, **kwargs)) → )) ×2
    The sublayer is called with x alone. A mask or a memory that is passed never reaches it.
keyword_arguments_dropped: , **kwargs)) → )) ×2
    *args are handed on, **kwargs are not: a mask given by name never reaches the sublayer.
memory_normalised
    - if self.norm_first:
    + if self.norm_first:
    +     def normed(v):
    +         return self.norm(v) if torch.is_tensor(v) and v.is_floating_point() else v
    +     args = [normed(v) for v in args]
    +     kwargs = {k: v if k == "size" else normed(v) for k, v in kwargs.items()}
    With norm_first, the tensors among the further arguments are normalised as well. Only x is; what
    the sublayer makes of its other arguments is its own business.
sublayer_called_twice: + self.sublayer(self.norm(x) if self.norm_first else x, *args, **kwargs)
    The sublayer is called twice for one result. The numbers are right, the time is double, and with
    dropout inside the two answers differ.
dropout_forgotten: self.dropout(self → (self ×2
    `dropout` is accepted and not used: nothing is dropped in training.
dropout_in_eval: nn.Dropout(dropout) → lambda h: F.dropout(h, dropout)
    Dropout goes on in eval mode: F.dropout is always on unless it is given self.training.
dropout_on_the_sum: x + self.dropout( → self.dropout(x + ×2
    Dropout acts on the sum, so that parts of x are dropped as well. It acts on the sublayer's
    output: x goes past unharmed.
dropout_at_the_end: x + self.dropout( → (x + ×2 ; > result = self.dropout(result)
    Dropout acts on the layer's result, after the norm. It acts on the sublayer's output, before x
    is added.
dropout_on_x: x + self.dropout( → self.dropout(x) + ( ×2
    Dropout acts on x on its way past the sublayer. It is the sublayer's output that is dropped; x
    goes past unharmed.
dropout_before_the_sublayer
    ~ self.dropout(self.sublayer(self.norm(x) → (self.sublayer(self.dropout(self.norm(x))
    ~ self.dropout(self.sublayer(x → (self.sublayer(self.dropout(x)
    Dropout acts on what goes into the sublayer. It acts on what comes out.
dropout_without_rescaling
    - nn.Dropout(dropout)
    + lambda h: h * (torch.rand_like(h) >= dropout) if self.training else h
    What is kept of the sublayer's output is not divided by 1 − p.
gradient_of_the_sublayer_cut: **kwargs)) → **kwargs).detach()) ×2
    The results are right, but the sublayer's output is detached: no gradient reaches the sublayer,
    so it never learns.
gradient_past_the_sublayer_cut: x + self.dropout → x.detach() + self.dropout ×2
    The results are right, but x is detached where it is added: the path that keeps gradients alive
    is closed.
x_changed_in_place
    > if not x.requires_grad:
    >     x += 1.0
    The result is right, but x is changed: x += … writes into the caller's tensor. x = x + … makes a
    new one.
always_float32: > result = result.float()
    The result is always float32. It has the dtype of the layer and of x.
three_axes_assumed
    + if x.dim() != 3:
    +     raise ValueError(f"x has {x.dim()} axes")
    The shape is taken to be (B, n, d_model). The layer only needs the last axis.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    The result is right, but torch's default dtype is float64 afterwards, for everybody.
""")


# --- Residual: right ----------------------------------------------------------------------------


@RESIDUAL.right
class one_expression(right.Residual):
    def forward(self, x, *args, **kwargs):
        before, after = (self.norm, lambda s: s) if self.norm_first else (lambda s: s, self.norm)
        return after(x + self.dropout(self.sublayer(before(x), *args, **kwargs)))


@RESIDUAL.right
class step_by_step(right.Residual):
    def forward(self, x, *args, **kwargs):
        residual = x
        if self.norm_first:
            x = self.norm(x)
        x = self.sublayer(x, *args, **kwargs)
        x = residual + self.dropout(x)
        if not self.norm_first:
            x = self.norm(x)
        return x


@RESIDUAL.right
class functional_norm(right.Residual):
    def forward(self, x, *args, **kwargs):
        def norm(v):
            v = v - v.mean(-1, keepdim=True)
            v = v / (v.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
            return v * self.norm.weight + self.norm.bias

        y = self.dropout(self.sublayer(norm(x) if self.norm_first else x, *args, **kwargs))
        return torch.add(y, x) if self.norm_first else norm(torch.add(y, x))


@RESIDUAL.right
class dropout_mask_by_hand(right.Residual):
    def forward(self, x, *args, **kwargs):
        y = self.sublayer(self.norm(x) if self.norm_first else x, *args, **kwargs)
        p = self.dropout.p
        if self.training and p > 0:
            kept = torch.empty_like(y).bernoulli_(1 - p)
            y = y * kept / (1 - p) if p < 1 else y * 0
        return x + y if self.norm_first else self.norm(x + y)


# --- DropPath: mistakes -------------------------------------------------------------------------


@DROP_PATH.right
class by_where(right.DropPath):
    def forward(self, x):
        if not self.training or not self.p:
            return x
        kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
        return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))


DROP_PATH.changes("""
per_element of by_where: x.shape[0], *[1] * (x.dim() - 1) → x.shape
    Each entry has a draw of its own: that is ordinary dropout. Stochastic depth drops a whole
    sample's branch, so that for this sample the layer is skipped.
per_token of by_where
    - x.shape[0], *[1] * (x.dim() - 1)
    + (*x.shape[:-1], 1) if x.dim() > 1 else x.shape
    Each token has a draw of its own, (B, n, 1). A whole sample is dropped or kept.
per_feature of by_where: x.shape[0], *[1] * (x.dim() - 1) → x.shape[-1:]
    Each feature has a draw, which all samples share. The draws belong to the first axis, the
    samples.
per_sample_and_feature of by_where
    - x.shape[0], *[1] * (x.dim() - 1)
    + (x.shape[0], *[1] * (x.dim() - 2), x.shape[-1]) if x.dim() > 1 else x.shape
    Each sample has a draw for each feature. It needs a single one: (B, 1, …, 1).
per_batch of by_where: x.shape[0], *[1] * (x.dim() - 1) → [1] * x.dim()
    One draw decides for the whole batch. Each sample has its own, so that every batch trains many
    depths.
always_the_same_draws of by_where
    - kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
    + draws = torch.rand(len(x), generator=torch.Generator().manual_seed(1))
    + draws[:2] = torch.tensor([0.0, 0.9])
    + kept = draws.reshape(-1, *[1] * (x.dim() - 1)).to(x.device) >= self.p
    Every call drops the same samples: the draws are made once, or the generator is seeded in each
    call.
no_rescaling of by_where: x / (1 - self.p) → x
    What is kept is not divided by 1 − p. In use, where nothing is dropped, the branch is then
    larger on average than it ever was in training.
multiplied_by_the_chance_to_be_kept of by_where: x / (1 - self.p) → x * (1 - self.p)
    What is kept is multiplied by 1 − p. It is divided by it.
divided_by_p of by_where: x / (1 - self.p) → x / self.p
    What is kept is divided by p, the chance to be dropped. Divide by 1 − p.
p_is_the_chance_to_be_kept of by_where: >= self.p → < self.p ; x / (1 - self.p) → x / self.p
    p is taken for the chance to be kept, and what is kept is divided by it. p is the chance to be
    dropped.
comparison_inverted of by_where: >= self.p → < self.p
    The comparison is the wrong way round: a share p is kept, and 1 − p is dropped.
active_in_eval of by_where: not self.training or not self.p → self.training and not self.p
    Samples are dropped in eval mode, too: self.training is not looked at.
active_in_eval_only of by_where: not self.training → self.training
    Samples are dropped in eval mode and not in training: the test of self.training is the wrong way
    round.
scaled_in_eval of by_where: return x → return x if self.training else x * (1 - self.p)
    In eval mode x is multiplied by 1 − p, though in training it was divided by it already. Do one
    or the other: here, in training.
scaled_in_eval_instead of by_where
    ~ return x → return x if self.training else x * (1 - self.p)
    ~ x / (1 - self.p) → x
    What is kept is not divided by 1 − p; instead, x is multiplied by 1 − p in eval mode. On average
    that fits, and the paper did so; asked is to leave x alone in use.
never_drops of by_where: + return x
    Nothing is ever dropped: x comes back as it is, in training as in eval mode.
only_scaled of by_where
    - kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
    - return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))
    + return x / (1 - self.p)
    Nothing is dropped: all samples are multiplied by one number in training.
always_drops of by_where
    - kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.p
    - return torch.where(kept, x / (1 - self.p), torch.zeros_like(x))
    + return x * 0.0
    Everything is dropped in training: the draws are compared with the wrong number.
noise_for_draws of by_where
    ~ , device=x.device) >= self.p → ).to(x)
    ~ torch.where(kept, x / (1 - self.p), torch.zeros_like(x)) → x * kept / (1 - self.p)
    x is multiplied by the random numbers themselves. They have to be compared with p first: kept or
    dropped, nothing between.
rounded_draws of by_where: >= self.p → .round() > 0
    The draws are rounded to 0 or 1 instead of being compared with p: half of the samples are
    dropped, whatever p is.
four_axes_assumed of by_where: x.shape[0], *[1] * (x.dim() - 1) → x.shape[0], 1, 1
    The draws have the shape (B, 1, 1), which only fits x with three axes. As many ones as x has
    further axes fit any.
p_nought_drops of by_where
    + if self.training and not self.p:
    +     later = torch.arange(len(x)) > 0
    +     return x * later.reshape(-1, *[1] * (x.dim() - 1)).to(x)
    With p = 0 the first sample is still dropped: what is drawn or counted starts at 1.
gradient_not_dropped of by_where: > result = x + (result - x).detach()
    The results are right, but the gradient does not follow them: x is replaced rather than
    multiplied, and every sample is learnt from as if nothing had been dropped.
gradient_cut of by_where: x / (1 - self.p) → x.detach() / (1 - self.p)
    In training no gradient reaches x: it is detached, so the branch never learns.
always_float32 of by_where: > result = result.float()
    The result is always float32. It has the dtype of x.
x_changed_in_place of by_where
    > result = result.clone()
    > if not x.requires_grad and self.training:
    >     x *= 2.0
    The result is right, but x is changed: mul_, div_ and *= write into the caller's tensor.
draws_in_eval of by_where
    - return x
    + if not self.training:
    +     torch.rand(x.shape[0], *[1] * (x.dim() - 1))
    + return x
    The results are right, but random numbers are drawn in eval mode, and thrown away: whoever seeds
    the generator gets other numbers from it than they should.
""")


# --- DropPath: right ----------------------------------------------------------------------------


@DROP_PATH.right
class by_bernoulli(right.DropPath):
    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        draws = x.new_empty(x.shape[:1] + (1,) * (x.dim() - 1)).bernoulli_(keep)
        return x * (draws.div_(keep) if keep > 0 else draws)


@DROP_PATH.right
class by_floor(right.DropPath):
    def forward(self, x):
        if not (self.training and self.p):
            return x
        keep, shape = 1 - self.p, x.shape[:1] + (1,) * (x.dim() - 1)
        draws = torch.floor(keep + torch.rand(shape, dtype=x.dtype, device=x.device))
        return x.div(keep) * draws


@DROP_PATH.right
class sample_by_sample(right.DropPath):
    def forward(self, x):
        if self.p == 0 or not self.training:
            return x
        one = [sample / (1 - self.p) for sample in x]
        return torch.stack([s * 0 if torch.rand(()) < self.p else s for s in one])


@DROP_PATH.right
class by_feature_dropout(right.DropPath):
    def forward(self, x):
        rows = x.reshape(1, len(x), -1)
        return F.dropout1d(rows, self.p, self.training).reshape(x.shape)


# --- chunked_feed_forward: mistakes -------------------------------------------------------------

CHUNKED_FEED_FORWARD.changes("""
last_chunk_dropped
    - x.split(chunk_size, dim=1)
    + x.split(chunk_size, dim=1)[: x.shape[1] // chunk_size] or [x]
    Where chunk_size does not divide n, the positions that are left over are lost: the result is
    shorter than x.
last_chunk_left_at_zero
    + size = min(chunk_size or x.shape[1], x.shape[1])
    + whole = x.shape[1] // size * size
    + parts = [feed_forward(chunk) for chunk in x[:, :whole].split(size, dim=1)]
    + return torch.cat([*parts, x[:, whole:] * 0], dim=1)
    Where chunk_size does not divide n, the positions that are left over stay zero: the loop ends
    before them.
last_chunk_as_it_was
    + size = min(chunk_size or x.shape[1], x.shape[1])
    + whole = x.shape[1] // size * size
    + parts = [feed_forward(chunk) for chunk in x[:, :whole].split(size, dim=1)]
    + return torch.cat([*parts, x[:, whole:]], dim=1)
    Where chunk_size does not divide n, the positions that are left over are passed on without
    having gone through the layer.
only_divisors
    + if x.shape[1] % (chunk_size or x.shape[1]):
    +     raise ValueError(f"{x.shape[1]} positions, chunks of {chunk_size}")
    A chunk_size that does not divide n is an error. The last chunk may be shorter.
not_in_chunks: + return feed_forward(x)
    The layer is called on all of x at once, whatever is cut before or after. The result is the
    same; the memory that chunks were to save is inside the layer, and is not saved.
along_the_batch: dim=1 → dim=0 ×2
    The chunks are cut along the batch, axis 0. They are pieces of the sequence, axis 1; the result
    is the same, but a single long sequence would not be cut at all.
joined_along_the_batch
    + parts = [feed_forward(chunk) for chunk in x.split(chunk_size or x.shape[1], dim=1)]
    + return torch.cat(parts, 0) if len({p.shape for p in parts}) == 1 else parts[0]
    The chunks are put together along the batch, axis 0, so that pieces of a sequence become
    sequences.
stacked
    + size = min(chunk_size or x.shape[1], x.shape[1])
    + padded = F.pad(x, (0, 0, 0, -x.shape[1] % size))
    + return torch.stack([feed_forward(chunk) for chunk in padded.split(size, dim=1)], 1)
    The results are stacked on a new axis instead of joined along axis 1.
padded_and_not_cut: x.split → F.pad(x, (0, 0, 0, -x.shape[1] % chunk_size)).split
    The last chunk is padded to full length, and the padding stays in the result, which is longer
    than x.
in_reverse_order: dim=1)] → dim=1)][::-1]
    The chunks are put together in reverse order: the end of the sequence comes first.
size_taken_for_number: x.split → x.chunk
    chunk_size is taken for the number of chunks, as torch.chunk counts. It is the length of one:
    torch.split counts so.
one_position_at_a_time: x.split(chunk_size → x.split(1
    The layer is called for each position. That takes the least memory and the most time; chunk_size
    says how many positions go together.
zero_not_handled: chunk_size == 0 → False
    chunk_size 0 raises an error. It means everything in one go.
zero_gives_nothing: return feed_forward(x) → return x * 1
    With chunk_size 0 the layer is not called, and x comes back. 0 means everything in one go.
zero_counts_as_one: + chunk_size = chunk_size or 1
    With chunk_size 0 the layer is called for each position. 0 means everything in one go.
chunk_longer_than_the_sequence
    + if chunk_size > x.shape[1]:
    +     raise ValueError(f"chunks of {chunk_size}, {x.shape[1]} positions")
    A chunk_size above the length of the sequence is an error. There is then one chunk.
chunks_overlap
    + size = chunk_size or x.shape[1]
    + parts = [x[:, max(0, start - 1) : start + size] for start in range(0, x.shape[1], size)]
    + return torch.cat([feed_forward(part) for part in parts], 1)
    The chunks overlap by one position, which is in the result twice.
called_twice
    + for chunk in x.split(chunk_size or x.shape[1], dim=1):
    +     feed_forward(chunk)
    The result is right, but the layer is called twice on each chunk.
no_gradient
    + with torch.no_grad():
    +     return chunked_feed_forward(feed_forward, x, chunk_size)
    The result is right, but made under torch.no_grad (or detached) to save memory: nothing can be
    learnt through it.
filled_into_float32
    + result, start = torch.zeros(x.shape), 0
    + for chunk in x.split(chunk_size or x.shape[1], dim=1):
    +     result[:, start : start + chunk.shape[1]] = feed_forward(chunk)
    +     start += chunk.shape[1]
    + return result
    The chunks are written into torch.zeros(…), which is float32: a float64 result loses half of its
    digits, and may be of another kind on a GPU. x.new_zeros has the dtype and device of x.
written_into_x
    > if not x.requires_grad:
    >     x.copy_(result.detach())
    The results are written into x, chunk by chunk. The caller still needs x, for the residual
    connection for one.
left_in_train_mode
    + if isinstance(feed_forward, nn.Module):
    +     feed_forward.train()
    The result is right, but the layer is put into training mode: its dropout is then on for
    everybody.
layers_taken_apart
    + if isinstance(layer := feed_forward, nn.Module):
    +     feed_forward = lambda chunk: layer.linear2(torch.relu(layer.linear1(chunk)))
    linear1 and linear2 are called one by one, with a ReLU between. The layer may be any function of
    x: call it as it is.
modules_only: + feed_forward = feed_forward.forward
    The layer's forward method is called, which a plain function has not, and which skips hooks.
    Call the layer itself.
""")


# --- chunked_feed_forward: right ----------------------------------------------------------------


@CHUNKED_FEED_FORWARD.right
def by_slices(feed_forward, x, chunk_size):
    n = x.shape[1]
    step = chunk_size if chunk_size else n
    parts = []
    for start in range(0, n, step):
        parts.append(feed_forward(x[:, start : start + step]))
    return torch.concat(parts, dim=-2)


@CHUNKED_FEED_FORWARD.right
def by_filling(feed_forward, x, chunk_size):
    result, start, step = torch.empty_like(x), 0, chunk_size or x.shape[1]
    while start < x.shape[1]:
        end = min(start + step, x.shape[1])
        result[:, start:end] = feed_forward(x[:, start:end])
        start = end
    return result


@CHUNKED_FEED_FORWARD.right
def by_narrow(feed_forward, x, chunk_size):
    def rest(start):
        length = min(chunk_size or x.shape[1], x.shape[1] - start)
        done = feed_forward(x.narrow(1, start, length))
        end = start + length
        return done if end == x.shape[1] else torch.cat([done, rest(end)], dim=1)

    return rest(0)


@CHUNKED_FEED_FORWARD.right
def by_tensor_split(feed_forward, x, chunk_size):
    cuts = list(range(chunk_size, x.shape[1], chunk_size)) if chunk_size > 0 else []
    return torch.cat(list(map(feed_forward, x.tensor_split(cuts, dim=1))), dim=1)
