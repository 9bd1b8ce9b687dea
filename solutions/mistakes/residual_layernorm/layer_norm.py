"""Known answers to `LayerNorm`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("LayerNorm", right, globals())

BANK.changes("""
unbiased_std: (x - mean).square().mean(dim=-1, keepdim=True) → x.var(dim=-1, keepdim=True)
    The variance is divided by d_model − 1, as torch's var and std do by default. Layer
    normalisation divides by d_model; with few features the difference is obvious, with 512 barely
    visible.
eps_outside_the_root: torch.sqrt(variance + self.eps) → (torch.sqrt(variance) + self.eps)
    ε is added to the standard deviation, outside the root. Inside, √(σ² + ε), a variance of 0 gives
    √ε; outside it gives ε, which for ε = 1e-5 is 300 times less.
unbiased_std_and_eps_outside of unbiased_std
    ~ torch.sqrt(variance + self.eps) → (torch.sqrt(variance) + self.eps)
    The variance is divided by d_model − 1, as torch's std does by default, and ε is added outside
    the root. A widely copied layer norm does the same, and its numbers differ from torch's.
eps_forgotten: variance + self.eps → variance
    ε is not used. A token whose features are all equal then gives 0 / 0, and so does its gradient.
eps_always_the_default: variance + self.eps → variance + 1e-5
    The argument eps is accepted and not used: ε is always 1e-5.
eps_squared: variance + self.eps → variance + self.eps**2
    ε² is under the root instead of ε.
clamped_at_eps: variance + self.eps → variance.clamp(min=self.eps)
    The variance is kept from falling below ε, but ε is not added to it: the divisor is √max(σ², ε)
    instead of √(σ² + ε).
over_the_sequence: dim=-1 → dim=-2 ×2
    Mean and variance are taken over the positions, feature by feature. Each token then depends on
    all others, later ones included: the future leaks into the past, mask or no mask.
over_batch: dim=-1 → dim=0 ×2
    Mean and variance are taken over the batch, as in batch normalisation. The result for a sentence
    then depends on which others are in its batch.
over_positions_and_features: dim=-1 → dim=tuple(range(min(1, x.dim() - 1), x.dim())) ×2
    One mean and one variance are taken over all positions of a sequence. Each token has its own:
    only the last axis is normalised.
over_everything: dim=-1 → dim=tuple(range(x.dim())) ×2
    One mean and one variance are taken over the whole tensor. Each token has its own.
over_batch_and_positions: dim=-1 → dim=tuple(range(x.dim() - 1)) or (0,) ×2
    Mean and variance are taken for each feature, over batch and positions: that is batch
    normalisation. Layer normalisation takes them for each token, over its features.
keepdim_forgotten
    ~ mean = x.mean(dim=-1, keepdim=True) → mean = x.mean(dim=-1)
    ~ (x - mean).square().mean(dim=-1, keepdim=True) → x.var(dim=-1, correction=0)
    Mean and variance have lost the last axis, so they line up with the wrong one: if the number of
    positions happens to be d_model, the mean of token j is subtracted from feature j of every
    token; otherwise the shapes do not fit.
mean_not_subtracted: return (x - mean) → return x
    The mean is not subtracted: each token is only divided by its standard deviation.
root_mean_square: mean = x.mean(dim=-1, keepdim=True) → mean = 0.0
    Each token is divided by the root of its mean square, and no mean is subtracted. That is
    RMSNorm, which many newer models use, and not layer normalisation.
variance_not_divided: (x - mean) / torch.sqrt(variance + self.eps) → (x - mean)
    The mean is subtracted, but nothing is divided by √(σ² + ε).
divided_by_the_variance: torch.sqrt(variance + self.eps) → (variance + self.eps)
    The deviations are divided by σ² + ε, not by its root. Features measured in metres would come
    out in 1/metres.
divided_by_the_length: square().mean → square().sum
    The deviations are divided by their length as a vector, which is √d_model times too large: the
    variance is a mean of squares, not their sum.
mean_absolute_deviation
    - (x - mean).square().mean(dim=-1, keepdim=True)
    + (x - mean).abs().mean(dim=-1, keepdim=True) ** 2
    The spread is computed as the mean absolute deviation. It should be the root of the mean square.
weight_and_bias_swapped: * self.weight + self.bias → * self.bias + self.weight
    The bias multiplies and the weight is added. A new layer then returns ones for everything.
weight_forgotten: * self.weight + self.bias → + self.bias
    The weight is not used. A new layer's weight is all ones, which hides it until training.
bias_forgotten: * self.weight + self.bias → * self.weight
    The bias is not used. A new layer's bias is all zeros, which hides it until training.
neither_weight_nor_bias: self.eps) * self.weight + self.bias → self.eps)
    Neither weight nor bias is applied after normalising. In a new layer, that does not show.
bias_before_weight: return → return ( ; * self.weight + self.bias → + self.bias) * self.weight
    The bias is added before the weight multiplies, so it is multiplied, too.
scaled_first
    + x = x * self.weight + self.bias
    ~ self.eps) * self.weight + self.bias → self.eps)
    Weight and bias are applied to x, before the normalisation, which undoes most of what they did.
    They come last.
one_weight_per_position
    - self.weight + self.bias
    + self.weight[: x.shape[-2], None] + self.bias[: x.shape[-2], None]
    Weight and bias line up with the positions instead of the features: one number for the whole
    token. That goes unnoticed if there are as many positions as features.
starts_at_random
    ~ torch.ones(d_model) → torch.linspace(-1.0, 1.0, d_model)
    ~ torch.zeros(d_model) → torch.linspace(-1.0, 1.0, d_model).flip(0)
    Weight and bias have random initial values. They should be ones and zeros, so that the layer at
    first only normalises.
difference_of_squares
    - (x - mean).square().mean(dim=-1, keepdim=True)
    + x.square().mean(dim=-1, keepdim=True) - mean.square()
    The variance is computed as the mean of the squares minus the square of the mean. On paper that
    is the same; in float32, far from zero, two large numbers cancel and leave noise, or something
    negative, whose root is NaN.
statistics_detached: keepdim=True) → keepdim=True).detach() ×2
    The results are right, but mean and variance are cut from the graph, so the gradient of x treats
    them as constants. They depend on every feature.
parameters_detached: self.weight + self.bias → self.weight.detach() + self.bias.detach()
    The results are right, but no gradient reaches weight and bias (.data or .detach() cuts it), so
    they can never be learnt.
parameters_are_buffers
    - self.weight = nn.Parameter(torch.ones(d_model))
    - self.bias = nn.Parameter(torch.zeros(d_model))
    + self.register_buffer("weight", torch.ones(d_model))
    + self.register_buffer("bias", torch.zeros(d_model))
    The results are right, but weight and bias are no parameters: they are saved and loaded, but no
    optimiser sees them, so they can never be learnt. Wrap them in nn.Parameter.
running_statistics
    + last, self.last = getattr(self, "last", None), x.detach().mean()
    > result = result + (0.0 if last is None else 0.1 * (self.last - last))
    The layer carries a mean over from one call to the next, as batch normalisation does. Layer
    normalisation remembers nothing: each token is normalised on its own.
always_float32: > result = result.float()
    The result is always float32. It should have the dtype of x.
changed_in_place
    > if not x.requires_grad:
    >     x -= x.mean(-1, keepdim=True)
    The result is right, but x is changed: `x -= mean` writes into the caller's tensor, which the
    residual connection still needs.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    The result is right, but afterwards torch's default dtype is float64 for the whole program.
second_moment_for_variance: (x - mean).square() → x.square()
    The variance is the mean of x². It is the mean of (x − μ)²: they differ unless the mean is 0.
root_of_the_deviation: torch.sqrt(variance + → torch.sqrt(variance.sqrt() +
    The root is taken twice: x is divided by the root of the standard deviation.
""")


@BANK.right
class by_var_mean(right.LayerNorm):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return self.weight * ((x - mean) * torch.rsqrt(variance + self.eps)) + self.bias


@BANK.right
class token_by_token(right.LayerNorm):
    def forward(self, x):
        rows = []
        for row in x.reshape(-1, x.shape[-1]):
            mean = row.sum() / len(row)
            variance = ((row - mean) ** 2).sum() / len(row)
            rows.append((row - mean) / (variance + self.eps) ** 0.5 * self.weight + self.bias)
        return torch.stack(rows).reshape(x.shape)


@BANK.right
class by_einsum(right.LayerNorm):
    def forward(self, x):
        d = x.shape[-1]
        x = x - torch.einsum("...d->...", x)[..., None] / d
        spread = torch.einsum("...d,...d->...", x, x)[..., None] / d + self.eps
        return torch.addcmul(self.bias, x, self.weight / spread.sqrt())


@BANK.right
class scaled_and_shifted(right.LayerNorm):
    """As fused kernels do: one product and one sum for each number."""

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        scale = (x.var(dim=-1, correction=0, keepdim=True) + self.eps).rsqrt() * self.weight
        return x * scale + (self.bias - mean * scale)


@BANK.right
class by_moments_in_float64(right.LayerNorm):
    def forward(self, x):
        wide = x.double()
        mean = wide.mean(-1, keepdim=True)
        variance = (wide.square().mean(-1, keepdim=True) - mean.square()).clamp_min(0.0)
        normed = (wide - mean) / (variance + self.eps).sqrt()
        return (normed * self.weight + self.bias).to(x.dtype)


@BANK.right
class float64_inside(right.LayerNorm):
    def forward(self, x):
        wide = x.double()
        wide = wide - wide.mean(-1, keepdim=True)
        wide = wide / (wide.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return (wide * self.weight + self.bias).to(x.dtype)


forgotten(BANK, "x")
