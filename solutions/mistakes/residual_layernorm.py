"""Known answers to chapter 6: the mistakes that students make, and right answers written otherwise.

Signatures and shapes are those of `solutions.residual_layernorm`.
"""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

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


class _Norm(nn.Module):
    """Layer normalisation in small parts, each of which a mistake can replace."""

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.ones(d_model)),
            nn.Parameter(torch.zeros(d_model)),
        )
        self.eps = eps

    def axes(self, x):
        return (-1,)

    def centred(self, x):
        return x - x.mean(self.axes(x), keepdim=True)

    def variance(self, x):
        return x.var(self.axes(x), correction=0, keepdim=True)

    def divisor(self, variance):
        return (variance + self.eps).sqrt()

    def finish(self, normed):
        return normed * self.weight + self.bias

    def forward(self, x):
        return self.finish(self.centred(x) / self.divisor(self.variance(x)))


@LAYER_NORM.mistake
class unbiased_std(_Norm):
    """The variance is divided by d_model − 1, which is what torch's var and std do unless told
    otherwise. Layer normalisation divides by d_model; with few features one sees it at once, with
    512 hardly.
    """

    def variance(self, x):
        return x.var(-1, keepdim=True)


@LAYER_NORM.mistake
class eps_outside_the_root(_Norm):
    """ε is added to the standard deviation, outside the root. Inside, √(σ² + ε), a variance of 0
    gives √ε; outside it gives ε, which is a hundred times smaller or worse.
    """

    def divisor(self, variance):
        return variance.sqrt() + self.eps


@LAYER_NORM.mistake
class unbiased_std_and_eps_outside(unbiased_std):
    """The standard deviation is divided by d_model − 1, as torch's std does unless told otherwise,
    and ε is added to it outside the root. So does a layer norm that is widely copied, and its
    numbers are not those of torch's.
    """

    def divisor(self, variance):
        return variance.sqrt() + self.eps


@LAYER_NORM.mistake
class eps_forgotten(_Norm):
    """ε is not used. A token whose features are all equal is then 0 / 0, and its gradient too."""

    def divisor(self, variance):
        return variance.sqrt()


@LAYER_NORM.mistake
class eps_always_the_default(_Norm):
    """The argument eps is accepted and not used: ε is always 1e-5."""

    def divisor(self, variance):
        return (variance + 1e-5).sqrt()


@LAYER_NORM.mistake
class eps_squared(_Norm):
    """ε² stands under the root instead of ε."""

    def divisor(self, variance):
        return (variance + self.eps**2).sqrt()


@LAYER_NORM.mistake
class clamped_at_eps(_Norm):
    """The variance is kept from going below ε, but ε is not added to it: √max(σ², ε) for
    √(σ² + ε).
    """

    def divisor(self, variance):
        return variance.clamp(min=self.eps).sqrt()


@LAYER_NORM.mistake
class over_the_sequence(_Norm):
    """Mean and variance are taken over the positions, feature by feature. Each token then depends
    on all others, later ones included: the future leaks into the past, mask or no mask.
    """

    def axes(self, x):
        return (-2,)


@LAYER_NORM.mistake
class over_batch(_Norm):
    """Mean and variance are taken over the batch, as batch normalisation does. A sentence's result
    then depends on which others are in its batch.
    """

    def axes(self, x):
        return (0,)


@LAYER_NORM.mistake
class over_positions_and_features(_Norm):
    """One mean and one variance are taken for all positions of a sequence together. Each token has
    its own: normalise over the last axis alone.
    """

    def axes(self, x):
        return tuple(range(min(1, x.dim() - 1), x.dim()))


@LAYER_NORM.mistake
class over_everything(_Norm):
    """One mean and one variance are taken over the whole tensor. Each token has its own."""

    def axes(self, x):
        return tuple(range(x.dim()))


@LAYER_NORM.mistake
class over_batch_and_positions(_Norm):
    """Mean and variance are taken for each feature, over batch and positions: that is batch
    normalisation. Layer normalisation takes them for each token, over its features.
    """

    def axes(self, x):
        return tuple(range(x.dim() - 1)) or (0,)


@LAYER_NORM.mistake
class keepdim_forgotten(_Norm):
    """Mean and variance have lost the last axis, so they line up with the wrong one: where the
    number of positions happens to be d_model, the mean of token j is taken from feature j of every
    token; elsewhere the shapes do not fit.
    """

    def forward(self, x):
        mean, variance = x.mean(-1), x.var(-1, correction=0)
        return self.finish((x - mean) / (variance + self.eps).sqrt())


@LAYER_NORM.mistake
class mean_not_subtracted(_Norm):
    """The mean is not subtracted: each token is only divided by its standard deviation."""

    def centred(self, x):
        return x


@LAYER_NORM.mistake
class root_mean_square(_Norm):
    """Each token is divided by the root of its mean square, and no mean is subtracted. That is
    RMSNorm, which many newer models use; asked is layer normalisation.
    """

    def centred(self, x):
        return x

    def variance(self, x):
        return x.square().mean(-1, keepdim=True)


@LAYER_NORM.mistake
class variance_not_divided(_Norm):
    """The mean is subtracted and the rest left as it is: nothing is divided by √(σ² + ε)."""

    def divisor(self, variance):
        return 1.0


@LAYER_NORM.mistake
class divided_by_the_variance(_Norm):
    """The deviations are divided by σ² + ε, not by its root. Features measured in metres would come
    out in one over metres.
    """

    def divisor(self, variance):
        return variance + self.eps


@LAYER_NORM.mistake
class divided_by_the_length(_Norm):
    """The deviations are divided by their length as a vector. That is √d_model times too much: the
    sum of the squared deviations, where their mean is asked.
    """

    def variance(self, x):
        return super().variance(x) * x.shape[-1]


@LAYER_NORM.mistake
class mean_absolute_deviation(_Norm):
    """The spread is the mean absolute deviation. Asked is the root of the mean square."""

    def variance(self, x):
        return self.centred(x).abs().mean(-1, keepdim=True) ** 2


@LAYER_NORM.mistake
class weight_and_bias_swapped(_Norm):
    """The bias multiplies and the weight is added. A new layer then returns ones for everything."""

    def finish(self, normed):
        return normed * self.bias + self.weight


@LAYER_NORM.mistake
class weight_forgotten(_Norm):
    """The weight is not used. A new layer's weight is all ones, which hides it until training."""

    def finish(self, normed):
        return normed + self.bias


@LAYER_NORM.mistake
class bias_forgotten(_Norm):
    """The bias is not used. A new layer's bias is all zeros, which hides it until training."""

    def finish(self, normed):
        return normed * self.weight


@LAYER_NORM.mistake
class neither_weight_nor_bias(_Norm):
    """Neither weight nor bias is applied after normalising. In a new layer it does not show."""

    def finish(self, normed):
        return normed


@LAYER_NORM.mistake
class bias_before_weight(_Norm):
    """The bias is added before the weight multiplies, so that it is multiplied, too."""

    def finish(self, normed):
        return (normed + self.bias) * self.weight


@LAYER_NORM.mistake
class scaled_first(_Norm):
    """Weight and bias are applied to x, before the normalisation, which undoes most of what they
    did. They come last.
    """

    def forward(self, x):
        x = x * self.weight + self.bias
        return self.centred(x) / self.divisor(self.variance(x))


@LAYER_NORM.mistake
class one_weight_per_position(_Norm):
    """Weight and bias line up with the positions instead of the features: one number for all of a
    token. It goes unnoticed where a sequence has as many positions as a token has features.
    """

    def finish(self, normed):
        return normed * self.weight[: normed.shape[-2], None] + self.bias[: normed.shape[-2], None]


@LAYER_NORM.mistake
class starts_at_random(_Norm):
    """Weight and bias start at random. They start as ones and zeros: at first the layer is to
    normalise and nothing else.
    """

    def __init__(self, d_model, eps=1e-5):
        super().__init__(d_model, eps)
        line = torch.linspace(-1.0, 1.0, d_model)
        self.weight, self.bias = nn.Parameter(line), nn.Parameter(line.flip(0))


@LAYER_NORM.mistake
class difference_of_squares(_Norm):
    """The variance is the mean of the squares minus the square of the mean. On paper that is the
    same; in float32, far from zero, two large numbers cancel and what is left is noise, or
    negative, and its root NaN.
    """

    def variance(self, x):
        return x.square().mean(-1, keepdim=True) - x.mean(-1, keepdim=True).square()


@LAYER_NORM.mistake
class statistics_detached(_Norm):
    """The results are right, but mean and variance are cut from the graph, so the gradient of x is
    as if they were constants. They depend on every feature.
    """

    def forward(self, x):
        mean, variance = x.mean(-1, keepdim=True).detach(), self.variance(x).detach()
        return self.finish((x - mean) / self.divisor(variance))


@LAYER_NORM.mistake
class parameters_detached(_Norm):
    """The results are right, but no gradient reaches weight and bias (.data or .detach() cuts it),
    so they can never be learnt.
    """

    def finish(self, normed):
        return normed * self.weight.detach() + self.bias.detach()


@LAYER_NORM.mistake
class running_statistics(_Norm):
    """The layer carries a mean from one call into the next, as batch normalisation does. Layer
    normalisation remembers nothing: each token is normalised by itself.
    """

    def forward(self, x):
        last, self.last = getattr(self, "last", None), x.detach().mean()
        return super().forward(x) + (0.0 if last is None else 0.1 * (self.last - last))


@LAYER_NORM.mistake
class always_float32(_Norm):
    """The result is always float32. It has the dtype of x."""

    def forward(self, x):
        return super().forward(x).float()


@LAYER_NORM.mistake
class changed_in_place(_Norm):
    """The result is right, but x is changed: `x -= mean` writes into the caller's tensor, which the
    residual connection still needs.
    """

    def forward(self, x):
        result = super().forward(x)
        if not x.requires_grad:
            x -= x.mean(-1, keepdim=True)
        return result


@LAYER_NORM.mistake
class default_dtype_switched(_Norm):
    """The result is right, but torch's default dtype is float64 afterwards, for everybody."""

    def forward(self, x):
        torch.set_default_dtype(torch.float64)
        return super().forward(x)


# --- LayerNorm: right ---------------------------------------------------------------------------


@LAYER_NORM.right
class by_var_mean(_Norm):
    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, unbiased=False, keepdim=True)
        return self.weight * ((x - mean) * torch.rsqrt(variance + self.eps)) + self.bias


@LAYER_NORM.right
class token_by_token(_Norm):
    def forward(self, x):
        rows = []
        for row in x.reshape(-1, x.shape[-1]):
            mean = row.sum() / len(row)
            variance = ((row - mean) ** 2).sum() / len(row)
            rows.append((row - mean) / (variance + self.eps) ** 0.5 * self.weight + self.bias)
        return torch.stack(rows).reshape(x.shape)


@LAYER_NORM.right
class by_einsum(_Norm):
    def forward(self, x):
        d = x.shape[-1]
        x = x - torch.einsum("...d->...", x)[..., None] / d
        spread = torch.einsum("...d,...d->...", x, x)[..., None] / d + self.eps
        return torch.addcmul(self.bias, x, self.weight / spread.sqrt())


@LAYER_NORM.right
class float64_inside(_Norm):
    def forward(self, x):
        wide = x.double()
        wide = wide - wide.mean(-1, keepdim=True)
        wide = wide / (wide.pow(2).mean(-1, keepdim=True) + self.eps).sqrt()
        return (wide * self.weight + self.bias).to(x.dtype)


# --- layer_norm_backward: mistakes --------------------------------------------------------------


def _mean(x):
    return x.mean(-1, keepdim=True)


def _summed(x):
    """The sum over all tokens."""
    return x.reshape(-1, x.shape[-1]).sum(0)


def _forward(x, eps, axes=-1):
    """What the backward pass takes from the forward one: 1 / √(σ² + ε), and x̂."""
    inverse = (x.var(axes, correction=0, keepdim=True) + eps).rsqrt()
    return inverse, (x - x.mean(axes, keepdim=True)) * inverse


def _backward(mean_term=1.0, spread_term=1.0, power=1.0, forward=_forward, mean=_mean):
    """The right answer with parts to be exchanged: factors of the two terms, the power of
    1 / √(σ² + ε), the statistics, the mean."""

    def answer(grad_output, x, weight, eps=1e-5):
        inverse, normed = forward(x, eps)
        g = grad_output * weight
        terms = mean_term * mean(g) + spread_term * normed * mean(g * normed)
        grad_x = inverse**power * (g - terms)
        return grad_x, _summed(grad_output * normed), _summed(grad_output)

    return answer


def _std_for_variance(x, eps):
    centred = x - _mean(x)
    inverse = 1 / (_mean(centred.square()).sqrt() + eps)
    return inverse, centred * inverse


def _unbiased(x, eps):
    inverse = (x.var(-1, keepdim=True) + eps).rsqrt()
    return inverse, (x - _mean(x)) * inverse


def _without_eps(x, eps):
    return _forward(x, 0.0)


def _default_eps(x, eps):
    return _forward(x, 1e-5)


def _over_positions(x, eps):
    return _forward(x, eps, max(-2, -x.dim()))


def _cancelling(x, eps):
    inverse = (_mean(x.square()) - _mean(x).square() + eps).rsqrt()
    return inverse, (x - _mean(x)) * inverse


for _name, _doc, _answer in (
    (
        "both_terms_forgotten",
        "grad_x is only g / √(σ² + ε), as if mean and variance were constants. Both depend on x, "
        "and each takes something away from g.",
        _backward(mean_term=0.0, spread_term=0.0),
    ),
    (
        "mean_term_forgotten",
        "The path through the mean is missing in grad_x: the mean of g over the features is to be "
        "taken from it. The features of grad_x then do not sum to 0, as they must, since adding a "
        "constant to all features changes nothing.",
        _backward(mean_term=0.0),
    ),
    (
        "variance_term_forgotten",
        "The path through the variance is missing in grad_x: x̂ times the mean of g · x̂ is to be "
        "taken away as well.",
        _backward(spread_term=0.0),
    ),
    (
        "variance_term_with_wrong_sign",
        "The term of the variance is added in grad_x where it has to be subtracted.",
        _backward(spread_term=-1.0),
    ),
    (
        "mean_term_with_wrong_sign",
        "The mean of g is added in grad_x where it has to be subtracted.",
        _backward(mean_term=-1.0),
    ),
    (
        "variance_term_doubled",
        "The term of the variance counts twice: the 2 from the square is not met by the ½ from the "
        "root.",
        _backward(spread_term=2.0),
    ),
    (
        "variance_term_halved",
        "The term of the variance counts half: the ½ from the root is not met by the 2 from the "
        "square.",
        _backward(spread_term=0.5),
    ),
    (
        "summed_for_averaged",
        "The two terms sum over the features where they should average: they are d_model times too "
        "large.",
        _backward(mean=lambda x: x.sum(-1, keepdim=True)),
    ),
    (
        "averaged_over_the_positions",
        "The means of g and of g · x̂ are taken over the positions. They belong to each token: the "
        "last axis.",
        _backward(mean=lambda x: x.mean(max(-2, -x.dim()), keepdim=True)),
    ),
    (
        "multiplied_by_the_deviation",
        "grad_x is multiplied by √(σ² + ε) where it has to be divided by it.",
        _backward(power=-1.0),
    ),
    (
        "divided_by_the_variance",
        "grad_x is divided by σ² + ε where it has to be divided by its root.",
        _backward(power=2.0),
    ),
    (
        "not_divided",
        "grad_x is not divided by √(σ² + ε).",
        _backward(power=0.0),
    ),
    (
        "unbiased_variance",
        "The variance is divided by d_model − 1, which is what torch's var and std do unless told "
        "otherwise. Forward and backward have to use the same: d_model.",
        _backward(forward=_unbiased),
    ),
    (
        "eps_outside_the_root",
        "ε is added to the standard deviation, outside the root; forward it stands inside.",
        _backward(forward=_std_for_variance),
    ),
    (
        "eps_forgotten",
        "ε is not used: a token whose features are all equal gives 0 / 0.",
        _backward(forward=_without_eps),
    ),
    (
        "eps_always_the_default",
        "The argument eps is accepted and not used: ε is always 1e-5.",
        _backward(forward=_default_eps),
    ),
    (
        "statistics_over_the_positions",
        "Mean and variance are taken over the positions instead of the features.",
        _backward(forward=_over_positions),
    ),
    (
        "difference_of_squares",
        "The variance is the mean of the squares minus the square of the mean. Far from zero two "
        "large numbers cancel, and what is left is noise.",
        _backward(forward=_cancelling),
    ),
):
    _answer.__name__, _answer.__doc__ = _name, _doc
    LAYER_NORM_BACKWARD.mistake(_answer)


@LAYER_NORM_BACKWARD.mistake
def weight_forgotten(grad_output, x, weight, eps=1e-5):
    """grad_x leaves out the weight: the gradient of x̂ is grad_output times the weight."""
    return right.layer_norm_backward(grad_output, x, torch.ones_like(weight), eps)


@LAYER_NORM_BACKWARD.mistake
def weight_multiplied_last(grad_output, x, weight, eps=1e-5):
    """The weight multiplies grad_x at the end. It has to be in g from the beginning: the two means
    over the features are those of the weighted gradient.
    """
    grad_x, *rest = right.layer_norm_backward(grad_output, x, torch.ones_like(weight), eps)
    return grad_x * weight, *rest


@LAYER_NORM_BACKWARD.mistake
def divided_by_the_weight(grad_output, x, weight, eps=1e-5):
    """grad_output is divided by the weight. Backwards, too, a factor multiplies."""
    return right.layer_norm_backward(grad_output, x, 1 / weight, eps)


@LAYER_NORM_BACKWARD.mistake
def x_for_normalised_x(grad_output, x, weight, eps=1e-5):
    """grad_weight is made with x. The weight multiplies the normalised x̂, so that is what its
    gradient is made of.
    """
    grad_x, _, grad_bias = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, _summed(grad_output * x), grad_bias


@LAYER_NORM_BACKWARD.mistake
def centred_for_normalised_x(grad_output, x, weight, eps=1e-5):
    """grad_weight is made with x − μ, not divided by √(σ² + ε)."""
    grad_x, _, grad_bias = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, _summed(grad_output * (x - _mean(x))), grad_bias


@LAYER_NORM_BACKWARD.mistake
def weighted_gradient_in_grad_weight(grad_output, x, weight, eps=1e-5):
    """grad_weight is made with grad_output times the weight. The weight has no part in its own
    gradient.
    """
    grad_x, _, grad_bias = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, _summed(grad_output * weight * _forward(x, eps)[1]), grad_bias


@LAYER_NORM_BACKWARD.mistake
def weighted_gradient_in_grad_bias(grad_output, x, weight, eps=1e-5):
    """grad_bias sums grad_output times the weight. The bias is added after the weight: its gradient
    is the sum of grad_output as it is.
    """
    grad_x, grad_weight, _ = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, grad_weight, _summed(grad_output * weight)


@LAYER_NORM_BACKWARD.mistake
def not_summed_over_the_tokens(grad_output, x, weight, eps=1e-5):
    """grad_weight and grad_bias still have one row per token. All tokens share one weight and one
    bias, so their gradients are sums over the tokens.
    """
    grad_x, *_ = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, grad_output * _forward(x, eps)[1], grad_output.clone()


@LAYER_NORM_BACKWARD.mistake
def summed_over_the_features(grad_output, x, weight, eps=1e-5):
    """grad_weight and grad_bias are summed over the features. Sum over everything else: a weight
    belongs to a feature.
    """
    grad_x, *_ = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, (grad_output * _forward(x, eps)[1]).sum(-1), grad_output.sum(-1)


@LAYER_NORM_BACKWARD.mistake
def summed_over_the_batch_only(grad_output, x, weight, eps=1e-5):
    """grad_weight and grad_bias are summed over the first axis alone, so the positions are left.
    Sum over every axis but the last.
    """
    grad_x, *_ = right.layer_norm_backward(grad_output, x, weight, eps)
    axes = 0 if x.dim() > 1 else ()
    normed = _forward(x, eps)[1]
    if axes == ():
        return grad_x, grad_output * normed, grad_output.clone()
    return grad_x, (grad_output * normed).sum(axes), grad_output.sum(axes)


@LAYER_NORM_BACKWARD.mistake
def averaged_over_the_tokens(grad_output, x, weight, eps=1e-5):
    """grad_weight and grad_bias are averages over the tokens. They are sums; whether a loss is an
    average is in grad_output already.
    """
    grad_x, grad_weight, grad_bias = right.layer_norm_backward(grad_output, x, weight, eps)
    tokens = x.numel() // x.shape[-1]
    return grad_x, grad_weight / tokens, grad_bias / tokens


@LAYER_NORM_BACKWARD.mistake
def bias_before_weight(grad_output, x, weight, eps=1e-5):
    """The order of the result is (grad_x, grad_bias, grad_weight). The weight comes first."""
    grad_x, grad_weight, grad_bias = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, grad_bias, grad_weight


@LAYER_NORM_BACKWARD.mistake
def only_grad_x(grad_output, x, weight, eps=1e-5):
    """Only grad_x is returned. Asked are three: (grad_x, grad_weight, grad_bias)."""
    return right.layer_norm_backward(grad_output, x, weight, eps)[0]


@LAYER_NORM_BACKWARD.mistake
def three_dimensions_assumed(grad_output, x, weight, eps=1e-5):
    """The sums run over axes 0 and 1, as if x always were (B, n, d_model). Any number of axes may
    stand before the last.
    """
    axes = (0, 1) if x.dim() > 2 else 0
    grad_x, *_ = right.layer_norm_backward(grad_output, x, weight, eps)
    return grad_x, (grad_output * _forward(x, eps)[1]).sum(axes), grad_output.sum(axes)


@LAYER_NORM_BACKWARD.mistake
def by_autograd(grad_output, x, weight, eps=1e-5):
    """The numbers come from autograd. Asked is the formula, and tensors made in inference mode show
    the difference: autograd cannot use them.
    """
    leaves = [x.detach().requires_grad_(), weight.detach().requires_grad_()]
    leaves.append(torch.zeros_like(weight).requires_grad_())
    with torch.enable_grad():
        y = F.layer_norm(leaves[0], x.shape[-1:], *leaves[1:], eps)
    return torch.autograd.grad(y, leaves, grad_output)


@LAYER_NORM_BACKWARD.mistake
def always_float64(grad_output, x, weight, eps=1e-5):
    """The gradients are always float64. They have the dtype of what they are gradients of."""
    parts = right.layer_norm_backward(grad_output, x, weight, eps)
    return tuple(part.double() for part in parts)


@LAYER_NORM_BACKWARD.mistake
def grad_output_changed_in_place(grad_output, x, weight, eps=1e-5):
    """The results are right, but grad_output is changed: `grad_output *= weight` writes into the
    caller's tensor. With a residual connection, it is the gradient of the other path as well.
    """
    parts = right.layer_norm_backward(grad_output.clone(), x, weight, eps)
    if not grad_output.is_inference():
        grad_output *= weight
    return parts


@LAYER_NORM_BACKWARD.mistake
def grad_mode_switched_off(grad_output, x, weight, eps=1e-5):
    """The results are right, but gradients stay switched off for everybody afterwards:
    torch.set_grad_enabled(False) needs a `with`.
    """
    torch.set_grad_enabled(False)
    return right.layer_norm_backward(grad_output, x, weight, eps)


# --- layer_norm_backward: right -----------------------------------------------------------------


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


@GELU.mistake
def tanh_gelu(x):
    """This is the approximation with tanh, which is off by up to half a thousandth. Asked is the
    exact function, with erf.
    """
    return F.gelu(x, approximate="tanh")


@GELU.mistake
def sigmoid_gelu(x):
    """This is the approximation x · sigmoid(1.702 x), which is off by up to two hundredths. Asked
    is the exact function, with erf.
    """
    return x * torch.sigmoid(1.702 * x)


@GELU.mistake
def silu(x):
    """This is SiLU, x · sigmoid(x), a relative. GELU multiplies x by the normal distribution's
    Φ(x).
    """
    return F.silu(x)


@GELU.mistake
def relu(x):
    """This is ReLU: zero for all negative numbers. GELU is smooth, and slightly negative there."""
    return F.relu(x)


@GELU.mistake
def root_of_two_forgotten(x):
    """erf is taken of x instead of x / √2. Φ(x) = ½ (1 + erf(x / √2))."""
    return 0.5 * x * (1 + torch.erf(x))


@GELU.mistake
def multiplied_by_root_of_two(x):
    """erf is taken of x · √2 instead of x / √2."""
    return 0.5 * x * (1 + torch.erf(x * math.sqrt(2)))


@GELU.mistake
def divided_by_two_inside(x):
    """erf is taken of x / 2 instead of x / √2."""
    return 0.5 * x * (1 + torch.erf(x / 2))


@GELU.mistake
def half_forgotten(x):
    """The factor ½ is missing: for large x the result is 2x."""
    return x * (1 + torch.erf(x / math.sqrt(2)))


@GELU.mistake
def one_forgotten(x):
    """½ · erf(x / √2) stands for Φ(x); the 1 is missing, and negative numbers come out positive."""
    return 0.5 * x * torch.erf(x / math.sqrt(2))


@GELU.mistake
def one_outside_the_bracket(x):
    """½ multiplies the 1 alone: ½ + erf(x / √2) for ½ (1 + erf(x / √2))."""
    return x * (0.5 + torch.erf(x / math.sqrt(2)))


@GELU.mistake
def chance_to_be_larger(x):
    """x is multiplied by 1 − Φ(x), the chance that a normal number is larger: large x give 0."""
    return 0.5 * x * (1 - torch.erf(x / math.sqrt(2)))


@GELU.mistake
def x_forgotten(x):
    """This is Φ(x) alone: it has to be multiplied by x."""
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


@GELU.mistake
def density_for_chance(x):
    """x is multiplied by the normal density at x. Asked is Φ(x), the area to the left of x."""
    return x * torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)


@GELU.mistake
def by_numpy(x):
    """No gradient reaches x: the function is computed outside of torch, with math.erf or NumPy."""
    phi = np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))), otypes=[float])
    numbers = x.detach().cpu().double().numpy()
    made = torch.from_numpy(np.asarray(numbers * phi(numbers))) if x.numel() else x.detach() * 1
    return made.to(x)


@GELU.mistake
def always_float32(x):
    """The result is always float32: a float64 x loses half of its digits."""
    return F.gelu(x.float())


@GELU.mistake
def changed_in_place(x):
    """The result is right, but it is written into x (methods that end in _, or *=), which the
    caller still needs.
    """
    result = F.gelu(x)
    if not x.requires_grad:
        x.copy_(result)
    return result


@GELU.mistake
def made_a_list(x):
    """The result always has an axis, even where x is a single number without one."""
    return F.gelu(torch.atleast_1d(x))


@GELU.mistake
def exp_overflows(x):
    """For large numbers the result is NaN: exp overflows, and ∞ / ∞ or ∞ · 0 is not a number. erf
    needs no exp.
    """
    wide = x * torch.exp(x.abs() / 8)
    return torch.erf(x / math.sqrt(2)) * wide / torch.exp(x.abs() / 8) * 0.5 + 0.5 * x


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


class _FeedForward(nn.Module):
    """The feed-forward layer with a forward pass to be replaced."""

    def __init__(self, d_model, d_ff, dropout=0.0, activation=torch.relu):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.p, self.activation = dropout, activation

    def drop(self, x):
        return F.dropout(x, self.p, self.training)

    def forward(self, x):
        return self.linear2(self.drop(self.activation(self.linear1(x))))


@FEED_FORWARD.mistake
class activation_forgotten(_FeedForward):
    """There is no activation between the two linear layers. Together they are then one linear
    layer, however wide the middle.
    """

    def forward(self, x):
        return self.linear2(self.drop(self.linear1(x)))


@FEED_FORWARD.mistake
class activation_last(_FeedForward):
    """The activation stands after linear2 instead of between the layers. With ReLU no output is
    negative any more.
    """

    def forward(self, x):
        return self.activation(self.linear2(self.drop(self.linear1(x))))


@FEED_FORWARD.mistake
class activation_twice(_FeedForward):
    """The activation stands after both layers. After linear2 there is none: the sum with x must be
    able to go down as well as up.
    """

    def forward(self, x):
        return self.activation(super().forward(x))


@FEED_FORWARD.mistake
class activation_first(_FeedForward):
    """The activation acts on x, before linear1, and not between the layers."""

    def forward(self, x):
        return self.linear2(self.drop(self.linear1(self.activation(x))))


@FEED_FORWARD.mistake
class always_relu(_FeedForward):
    """The argument `activation` is accepted and not used: it is always ReLU."""

    def forward(self, x):
        return self.linear2(self.drop(torch.relu(self.linear1(x))))


@FEED_FORWARD.mistake
class always_gelu(_FeedForward):
    """The activation is always GELU. The default is ReLU, and the argument may be anything."""

    def forward(self, x):
        return self.linear2(self.drop(F.gelu(self.linear1(x))))


@FEED_FORWARD.mistake
class residual_inside(_FeedForward):
    """x is added to the result. The residual connection is a layer of its own; here it would be
    there twice.
    """

    def forward(self, x):
        return x + super().forward(x)


@FEED_FORWARD.mistake
class normalised_inside(_FeedForward):
    """The result is normalised. The norm belongs to the residual connection around this layer."""

    def forward(self, x):
        return F.layer_norm(super().forward(x), x.shape[-1:])


@FEED_FORWARD.mistake
class first_layer_transposed(_FeedForward):
    """linear2's matrix is linear1's, transposed: two layers share one matrix, and linear2's own
    weight is not used.
    """

    def forward(self, x):
        hidden = self.drop(self.activation(self.linear1(x)))
        return F.linear(hidden, self.linear1.weight.T, self.linear2.bias)


@FEED_FORWARD.mistake
class biases_forgotten(_FeedForward):
    """The matrices are used without their biases. nn.Linear has both: call it."""

    def forward(self, x):
        return self.drop(self.activation(x @ self.linear1.weight.T)) @ self.linear2.weight.T


@FEED_FORWARD.mistake
class averaged_over_the_positions(_FeedForward):
    """The hidden features are averaged over the positions, so that every token gets the same.
    Position-wise means that each is treated alone.
    """

    def forward(self, x):
        hidden = self.activation(self.linear1(x))
        if x.dim() > 1:
            hidden = hidden.mean(-2, keepdim=True).expand_as(hidden)
        return self.linear2(self.drop(hidden))


@FEED_FORWARD.mistake
class reads_the_token_before(_FeedForward):
    """Each token is given what its neighbour to the left has computed. Position-wise means that
    each is treated alone; only attention moves things between tokens.
    """

    def forward(self, x):
        result = super().forward(x)
        return result.roll(1, -2) if x.dim() > 1 else result


@FEED_FORWARD.mistake
class dropout_forgotten(_FeedForward):
    """`dropout` is accepted and not used: nothing is dropped in training."""

    def drop(self, x):
        return x


@FEED_FORWARD.mistake
class dropout_in_eval(_FeedForward):
    """Dropout goes on in eval mode: F.dropout is always on unless it is given self.training."""

    def drop(self, x):
        return F.dropout(x, self.p)


@FEED_FORWARD.mistake
class dropout_on_the_output(_FeedForward):
    """Dropout acts on the result, after linear2. It stands between the layers; the residual
    connection has a dropout of its own for the result.
    """

    def forward(self, x):
        return self.drop(self.linear2(self.activation(self.linear1(x))))


@FEED_FORWARD.mistake
class dropout_on_the_input(_FeedForward):
    """Dropout acts on x, before linear1. It stands between the layers."""

    def forward(self, x):
        return self.linear2(self.activation(self.linear1(self.drop(x))))


@FEED_FORWARD.mistake
class dropout_twice(_FeedForward):
    """Dropout acts on the hidden features and once more on the result."""

    def forward(self, x):
        return self.drop(super().forward(x))


@FEED_FORWARD.mistake
class dropout_before_the_activation(_FeedForward):
    """Dropout acts before the activation. With ReLU the order does not matter, since ReLU keeps
    zeros and factors; with another activation it does, and the contract has dropout after it.
    """

    def forward(self, x):
        return self.linear2(self.activation(self.drop(self.linear1(x))))


@FEED_FORWARD.mistake
class dropout_without_rescaling(_FeedForward):
    """What is kept is not divided by 1 − p, so the hidden features are smaller in training than in
    use.
    """

    def drop(self, x):
        if not self.training:
            return x
        return x * (torch.rand_like(x) >= self.p)


@FEED_FORWARD.mistake
class whole_tokens_dropped(_FeedForward):
    """Dropout has one draw per token, and drops all of its hidden features together. Each feature
    has a draw of its own.
    """

    def drop(self, x):
        return x * F.dropout(torch.ones_like(x[..., :1]), self.p, self.training)


@FEED_FORWARD.mistake
class gradient_cut(_FeedForward):
    """The results are right, but x is detached: no gradient flows back to the layers before."""

    def forward(self, x):
        return super().forward(x.detach())


@FEED_FORWARD.mistake
class three_axes_assumed(_FeedForward):
    """The shape is taken to be (B, n, d_model). nn.Linear takes any axes before the last, a single
    token included.
    """

    def forward(self, x):
        B, n, d = x.shape
        return super().forward(x.reshape(B * n, d)).reshape(B, n, d)


@FEED_FORWARD.mistake
class always_float32(_FeedForward):
    """The result is always float32. It has the dtype of the layer and of x."""

    def forward(self, x):
        return super().forward(x).float()


@FEED_FORWARD.mistake
class x_changed_in_place(_FeedForward):
    """The result is right, but x is changed (relu_, F.relu(…, inplace=True), *=), which the
    residual connection still needs.
    """

    def forward(self, x):
        result = super().forward(x)
        if not x.requires_grad:
            x.relu_()
        return result


@FEED_FORWARD.mistake
class default_dtype_switched(_FeedForward):
    """The result is right, but torch's default dtype is float64 afterwards, for everybody."""

    def forward(self, x):
        torch.set_default_dtype(torch.float64)
        return super().forward(x)


# --- FeedForward: right -------------------------------------------------------------------------


@FEED_FORWARD.right
class as_a_sequence(right.FeedForward):
    def forward(self, x):
        for step in (self.linear1, self.activation, self.dropout, self.linear2):
            x = step(x)
        return x


@FEED_FORWARD.right
class by_matrix_products(_FeedForward):
    def forward(self, x):
        hidden = self.activation(x @ self.linear1.weight.T + self.linear1.bias)
        return self.drop(hidden) @ self.linear2.weight.T + self.linear2.bias


@FEED_FORWARD.right
class by_einsum(_FeedForward):
    def forward(self, x):
        hidden = torch.einsum("...d,fd->...f", x, self.linear1.weight) + self.linear1.bias
        hidden = self.drop(self.activation(hidden))
        return torch.einsum("...f,df->...d", hidden, self.linear2.weight) + self.linear2.bias


@FEED_FORWARD.right
class position_by_position(_FeedForward):
    def forward(self, x):
        tokens = x.reshape(-1, x.shape[-1])
        results = [super(position_by_position, self).forward(token) for token in tokens]
        return torch.stack(results).reshape(x.shape)


@FEED_FORWARD.right
class mask_by_hand(_FeedForward):
    def drop(self, x):
        if not self.training or self.p == 0:
            return x
        return torch.where(torch.rand(x.shape) < self.p, torch.zeros_like(x), x / (1 - self.p))


# --- Residual: mistakes -------------------------------------------------------------------------


class _Residual(nn.Module):
    """A residual connection in small parts, each of which a mistake can replace."""

    def __init__(self, sublayer, d_model, dropout=0.0, norm_first=False):
        super().__init__()
        self.sublayer, self.norm = sublayer, nn.LayerNorm(d_model)
        self.p, self.norm_first = dropout, norm_first

    def drop(self, x):
        return F.dropout(x, self.p, self.training)

    def inner(self, x, *args, **kwargs):
        return self.sublayer(x, *args, **kwargs)

    def pre(self, x, *args, **kwargs):
        return x + self.drop(self.inner(self.norm(x), *args, **kwargs))

    def post(self, x, *args, **kwargs):
        return self.norm(x + self.drop(self.inner(x, *args, **kwargs)))

    def forward(self, x, *args, **kwargs):
        return (self.pre if self.norm_first else self.post)(x, *args, **kwargs)


@RESIDUAL.mistake
class residual_forgotten(_Residual):
    """x is not added: only the sublayer's output goes on. Without the path past the sublayer,
    gradients shrink from layer to layer.
    """

    def pre(self, x, *args, **kwargs):
        return self.drop(self.inner(self.norm(x), *args, **kwargs))

    def post(self, x, *args, **kwargs):
        return self.norm(self.drop(self.inner(x, *args, **kwargs)))


@RESIDUAL.mistake
class normed_x_added(_Residual):
    """With norm_first, the normalised x is added to the sublayer's output. It is x itself that goes
    past the sublayer; the norm is for the sublayer alone.
    """

    def pre(self, x, *args, **kwargs):
        x = self.norm(x)
        return x + self.drop(self.inner(x, *args, **kwargs))


@RESIDUAL.mistake
class x_added_to_itself(_Residual):
    """The sublayer's output is lost: x + x comes out where x + F(x) is asked. Overwriting x before
    the sum, or a name mistaken, does it.
    """

    def pre(self, x, *args, **kwargs):
        self.inner(self.norm(x), *args, **kwargs)
        return x + x

    def post(self, x, *args, **kwargs):
        self.inner(x, *args, **kwargs)
        return self.norm(x + x)


@RESIDUAL.mistake
class output_added_to_itself(_Residual):
    """The sublayer's output is added to itself: x was overwritten by it before the sum, so that
    the original is gone.
    """

    def pre(self, x, *args, **kwargs):
        x = self.drop(self.inner(self.norm(x), *args, **kwargs))
        return x + x

    def post(self, x, *args, **kwargs):
        x = self.drop(self.inner(x, *args, **kwargs))
        return self.norm(x + x)


@RESIDUAL.mistake
class pre_where_post_is_asked(_Residual):
    """The layer is always pre-norm, x + F(norm(x)), also without norm_first."""

    def forward(self, x, *args, **kwargs):
        return self.pre(x, *args, **kwargs)


@RESIDUAL.mistake
class post_where_pre_is_asked(_Residual):
    """The layer is always post-norm, norm(x + F(x)): norm_first is not looked at."""

    def forward(self, x, *args, **kwargs):
        return self.post(x, *args, **kwargs)


@RESIDUAL.mistake
class norm_first_inverted(_Residual):
    """Pre- and post-norm are exchanged: norm_first=True gives norm(x + F(x))."""

    def forward(self, x, *args, **kwargs):
        return (self.post if self.norm_first else self.pre)(x, *args, **kwargs)


@RESIDUAL.mistake
class normalised_twice(_Residual):
    """With norm_first, the sum is normalised as well, so that x does not arrive as it was."""

    def pre(self, x, *args, **kwargs):
        return self.norm(super().pre(x, *args, **kwargs))


@RESIDUAL.mistake
class normalised_before_and_after(_Residual):
    """In post-norm, too, the sublayer is given the normalised x. It gets x as it is; only the sum
    is normalised.
    """

    def post(self, x, *args, **kwargs):
        return self.norm(x + self.drop(self.inner(self.norm(x), *args, **kwargs)))


@RESIDUAL.mistake
class only_the_output_normalised(_Residual):
    """In post-norm the sublayer's output is normalised, and x added afterwards. It is the sum that
    is normalised.
    """

    def post(self, x, *args, **kwargs):
        return x + self.norm(self.drop(self.inner(x, *args, **kwargs)))


@RESIDUAL.mistake
class norm_forgotten(_Residual):
    """The norm is not used: x + F(x) alone."""

    def pre(self, x, *args, **kwargs):
        return x + self.drop(self.inner(x, *args, **kwargs))

    post = pre


@RESIDUAL.mistake
class norm_without_parameters(_Residual):
    """Tokens are normalised, but self.norm is not used: its weight and bias have no effect."""

    def __init__(self, sublayer, d_model, dropout=0.0, norm_first=False):
        super().__init__(sublayer, d_model, dropout, norm_first)
        self.norm = nn.LayerNorm(d_model)

    def pre(self, x, *args, **kwargs):
        return x + self.drop(self.inner(F.layer_norm(x, x.shape[-1:]), *args, **kwargs))

    def post(self, x, *args, **kwargs):
        return F.layer_norm(x + self.drop(self.inner(x, *args, **kwargs)), x.shape[-1:])


@RESIDUAL.mistake
class output_subtracted(_Residual):
    """The sublayer's output is subtracted from x. It is added."""

    def inner(self, x, *args, **kwargs):
        return -super().inner(x, *args, **kwargs)


@RESIDUAL.mistake
class sum_halved(_Residual):
    """x and the sublayer's output are averaged. They are added; halving x in every layer lets it
    fade away.
    """

    def pre(self, x, *args, **kwargs):
        return super().pre(x, *args, **kwargs) / 2

    def post(self, x, *args, **kwargs):
        return self.norm((x + self.drop(self.inner(x, *args, **kwargs))) / 2 ** (1 + 0 * self.p))


@RESIDUAL.mistake
class further_arguments_dropped(_Residual):
    """The sublayer is called with x alone. A mask or a memory that is passed never reaches it."""

    def inner(self, x, *args, **kwargs):
        return self.sublayer(x)


@RESIDUAL.mistake
class keyword_arguments_dropped(_Residual):
    """*args are handed on, **kwargs are not: a mask given by name never reaches the sublayer."""

    def inner(self, x, *args, **kwargs):
        return self.sublayer(x, *args)


@RESIDUAL.mistake
class memory_normalised(_Residual):
    """With norm_first, the tensors among the further arguments are normalised as well. Only x is;
    what the sublayer makes of its other arguments is its own business.
    """

    def pre(self, x, *args, **kwargs):
        def normed(thing):
            same = torch.is_tensor(thing) and thing.is_floating_point()
            return self.norm(thing) if same else thing

        kwargs = {name: normed(thing) for name, thing in kwargs.items() if name != "size"} | {
            name: thing for name, thing in kwargs.items() if name == "size"
        }
        return super().pre(x, *map(normed, args), **kwargs)


@RESIDUAL.mistake
class sublayer_called_twice(_Residual):
    """The sublayer is called twice for one result. The numbers are right, the time is double, and
    with dropout inside the two answers differ.
    """

    def inner(self, x, *args, **kwargs):
        self.sublayer(x, *args, **kwargs)
        return self.sublayer(x, *args, **kwargs)


@RESIDUAL.mistake
class dropout_forgotten(_Residual):
    """`dropout` is accepted and not used: nothing is dropped in training."""

    def drop(self, x):
        return x


@RESIDUAL.mistake
class dropout_in_eval(_Residual):
    """Dropout goes on in eval mode: F.dropout is always on unless it is given self.training."""

    def drop(self, x):
        return F.dropout(x, self.p)


@RESIDUAL.mistake
class dropout_on_the_sum(_Residual):
    """Dropout acts on the sum, so that parts of x are dropped as well. It acts on the sublayer's
    output: x goes past unharmed.
    """

    def pre(self, x, *args, **kwargs):
        return self.drop(x + self.inner(self.norm(x), *args, **kwargs))

    def post(self, x, *args, **kwargs):
        return self.norm(self.drop(x + self.inner(x, *args, **kwargs)))


@RESIDUAL.mistake
class dropout_at_the_end(_Residual):
    """Dropout acts on the layer's result, after the norm. It acts on the sublayer's output, before
    x is added.
    """

    def forward(self, x, *args, **kwargs):
        if self.norm_first:
            return self.drop(x + self.inner(self.norm(x), *args, **kwargs))
        return self.drop(self.norm(x + self.inner(x, *args, **kwargs)))


@RESIDUAL.mistake
class dropout_on_x(_Residual):
    """Dropout acts on x on its way past the sublayer. It is the sublayer's output that is dropped;
    x goes past unharmed.
    """

    def pre(self, x, *args, **kwargs):
        return self.drop(x) + self.inner(self.norm(x), *args, **kwargs)

    def post(self, x, *args, **kwargs):
        return self.norm(self.drop(x) + self.inner(x, *args, **kwargs))


@RESIDUAL.mistake
class dropout_before_the_sublayer(_Residual):
    """Dropout acts on what goes into the sublayer. It acts on what comes out."""

    def pre(self, x, *args, **kwargs):
        return x + self.inner(self.drop(self.norm(x)), *args, **kwargs)

    def post(self, x, *args, **kwargs):
        return self.norm(x + self.inner(self.drop(x), *args, **kwargs))


@RESIDUAL.mistake
class dropout_without_rescaling(_Residual):
    """What is kept of the sublayer's output is not divided by 1 − p."""

    def drop(self, x):
        return x * (torch.rand_like(x) >= self.p) if self.training else x


@RESIDUAL.mistake
class gradient_of_the_sublayer_cut(_Residual):
    """The results are right, but the sublayer's output is detached: no gradient reaches the
    sublayer, so it never learns.
    """

    def inner(self, x, *args, **kwargs):
        return super().inner(x, *args, **kwargs).detach()


@RESIDUAL.mistake
class gradient_past_the_sublayer_cut(_Residual):
    """The results are right, but x is detached where it is added: the path that keeps gradients
    alive is closed.
    """

    def pre(self, x, *args, **kwargs):
        return x.detach() + self.drop(self.inner(self.norm(x), *args, **kwargs))

    def post(self, x, *args, **kwargs):
        return self.norm(x.detach() + self.drop(self.inner(x, *args, **kwargs)))


@RESIDUAL.mistake
class x_changed_in_place(_Residual):
    """The result is right, but x is changed: x += … writes into the caller's tensor. x = x + …
    makes a new one.
    """

    def forward(self, x, *args, **kwargs):
        result = super().forward(x, *args, **kwargs)
        if not x.requires_grad:
            x += 1.0
        return result


@RESIDUAL.mistake
class always_float32(_Residual):
    """The result is always float32. It has the dtype of the layer and of x."""

    def forward(self, x, *args, **kwargs):
        return super().forward(x, *args, **kwargs).float()


@RESIDUAL.mistake
class three_axes_assumed(_Residual):
    """The shape is taken to be (B, n, d_model). The layer only needs the last axis."""

    def forward(self, x, *args, **kwargs):
        if x.dim() != 3:
            raise ValueError(f"x has {x.dim()} axes")
        return super().forward(x, *args, **kwargs)


@RESIDUAL.mistake
class default_dtype_switched(_Residual):
    """The result is right, but torch's default dtype is float64 afterwards, for everybody."""

    def forward(self, x, *args, **kwargs):
        torch.set_default_dtype(torch.float64)
        return super().forward(x, *args, **kwargs)


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
class functional_norm(_Residual):
    def forward(self, x, *args, **kwargs):
        def norm(v):
            v = v - v.mean(-1, keepdim=True)
            v = v / (v.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
            return v * self.norm.weight + self.norm.bias

        y = self.drop(self.sublayer(norm(x) if self.norm_first else x, *args, **kwargs))
        return torch.add(y, x) if self.norm_first else norm(torch.add(y, x))


@RESIDUAL.right
class dropout_mask_by_hand(_Residual):
    def drop(self, x):
        if not self.training or self.p == 0:
            return x
        kept = torch.empty_like(x).bernoulli_(1 - self.p)
        return x * kept / (1 - self.p) if self.p < 1 else x * 0


# --- DropPath: mistakes -------------------------------------------------------------------------


class _DropPath(nn.Module):
    """Stochastic depth in small parts, each of which a mistake can replace."""

    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def shape(self, x):
        return (x.shape[0],) + (1,) * (x.dim() - 1)

    def kept(self, x):
        return torch.rand(self.shape(x), device=x.device) >= self.p

    def scaled(self, x):
        return x / (1 - self.p)

    def evaluated(self, x):
        return x

    def trained(self, x):
        return torch.where(self.kept(x), self.scaled(x), torch.zeros_like(x))

    def forward(self, x):
        if not self.training:
            return self.evaluated(x)
        return self.trained(x) if self.p else x


@DROP_PATH.mistake
class per_element(_DropPath):
    """Each entry has a draw of its own: that is ordinary dropout. Stochastic depth drops a whole
    sample's branch, so that for this sample the layer is skipped.
    """

    def shape(self, x):
        return x.shape


@DROP_PATH.mistake
class per_token(_DropPath):
    """Each token has a draw of its own, (B, n, 1). A whole sample is dropped or kept."""

    def shape(self, x):
        return (*x.shape[:-1], 1) if x.dim() > 1 else x.shape


@DROP_PATH.mistake
class per_feature(_DropPath):
    """Each feature has a draw, which all samples share. The draws belong to the first axis, the
    samples.
    """

    def shape(self, x):
        return x.shape[-1:]


@DROP_PATH.mistake
class per_sample_and_feature(_DropPath):
    """Each sample has a draw for each feature. It needs a single one: (B, 1, …, 1)."""

    def shape(self, x):
        return (x.shape[0],) + (1,) * (x.dim() - 2) + x.shape[-1:] if x.dim() > 1 else x.shape


@DROP_PATH.mistake
class per_batch(_DropPath):
    """One draw decides for the whole batch. Each sample has its own, so that every batch trains
    many depths.
    """

    def shape(self, x):
        return (1,) * x.dim()


@DROP_PATH.mistake
class always_the_same_draws(_DropPath):
    """Every call drops the same samples: the draws are made once, or the generator is seeded in
    each call.
    """

    def kept(self, x):
        draws = torch.rand(len(x), generator=torch.Generator().manual_seed(1))
        draws[:2] = torch.tensor([0.0, 0.9])
        return draws.reshape(self.shape(x)).to(x.device) >= self.p


@DROP_PATH.mistake
class no_rescaling(_DropPath):
    """What is kept is not divided by 1 − p. In use, where nothing is dropped, the branch is then
    larger on average than it ever was in training.
    """

    def scaled(self, x):
        return x


@DROP_PATH.mistake
class multiplied_by_the_chance_to_be_kept(_DropPath):
    """What is kept is multiplied by 1 − p. It is divided by it."""

    def scaled(self, x):
        return x * (1 - self.p)


@DROP_PATH.mistake
class divided_by_p(_DropPath):
    """What is kept is divided by p, the chance to be dropped. Divide by 1 − p."""

    def scaled(self, x):
        return x / self.p


@DROP_PATH.mistake
class p_is_the_chance_to_be_kept(_DropPath):
    """p is taken for the chance to be kept, and what is kept is divided by it. p is the chance to
    be dropped.
    """

    def kept(self, x):
        return torch.rand(self.shape(x), device=x.device) < self.p

    def scaled(self, x):
        return x / self.p


@DROP_PATH.mistake
class comparison_inverted(_DropPath):
    """The comparison is the wrong way round: a share p is kept, and 1 − p is dropped."""

    def kept(self, x):
        return torch.rand(self.shape(x), device=x.device) < self.p


@DROP_PATH.mistake
class active_in_eval(_DropPath):
    """Samples are dropped in eval mode, too: self.training is not looked at."""

    def evaluated(self, x):
        return self.trained(x)


@DROP_PATH.mistake
class active_in_eval_only(_DropPath):
    """Samples are dropped in eval mode and not in training: the test of self.training is the wrong
    way round.
    """

    def forward(self, x):
        return x if self.training or not self.p else self.trained(x)


@DROP_PATH.mistake
class scaled_in_eval(_DropPath):
    """In eval mode x is multiplied by 1 − p, though in training it was divided by it already. Do
    one or the other: here, in training.
    """

    def evaluated(self, x):
        return x * (1 - self.p)


@DROP_PATH.mistake
class scaled_in_eval_instead(_DropPath):
    """What is kept is not divided by 1 − p; instead, x is multiplied by 1 − p in eval mode. On
    average that fits, and the paper did so; asked is to leave x alone in use.
    """

    def scaled(self, x):
        return x

    def evaluated(self, x):
        return x * (1 - self.p)


@DROP_PATH.mistake
class never_drops(_DropPath):
    """Nothing is ever dropped: x comes back as it is, in training as in eval mode."""

    def trained(self, x):
        return x


@DROP_PATH.mistake
class only_scaled(_DropPath):
    """Nothing is dropped: all samples are multiplied by one number in training."""

    def trained(self, x):
        return self.scaled(x)


@DROP_PATH.mistake
class always_drops(_DropPath):
    """Everything is dropped in training: the draws are compared with the wrong number."""

    def trained(self, x):
        return x * 0.0


@DROP_PATH.mistake
class noise_for_draws(_DropPath):
    """x is multiplied by the random numbers themselves. They have to be compared with p first: kept
    or dropped, nothing between.
    """

    def trained(self, x):
        return x * torch.rand(self.shape(x)).to(x) / (1 - self.p)


@DROP_PATH.mistake
class rounded_draws(_DropPath):
    """The draws are rounded to 0 or 1 instead of being compared with p: half of the samples are
    dropped, whatever p is.
    """

    def kept(self, x):
        return torch.rand(self.shape(x), device=x.device).round() > 0


@DROP_PATH.mistake
class four_axes_assumed(_DropPath):
    """The draws have the shape (B, 1, 1), which only fits x with three axes. As many ones as x has
    further axes fit any.
    """

    def shape(self, x):
        return (x.shape[0], 1, 1)


@DROP_PATH.mistake
class p_nought_drops(_DropPath):
    """With p = 0 the first sample is still dropped: what is drawn or counted starts at 1."""

    def forward(self, x):
        if self.training and not self.p:
            return x * (torch.arange(len(x)) > 0).reshape(self.shape(x)).to(x)
        return super().forward(x)


@DROP_PATH.mistake
class gradient_not_dropped(_DropPath):
    """The results are right, but the gradient does not follow them: x is replaced rather than
    multiplied, and every sample is learnt from as if nothing had been dropped.
    """

    def trained(self, x):
        return x + (super().trained(x) - x).detach()


@DROP_PATH.mistake
class gradient_cut(_DropPath):
    """In training no gradient reaches x: it is detached, so the branch never learns."""

    def trained(self, x):
        return super().trained(x.detach())


@DROP_PATH.mistake
class always_float32(_DropPath):
    """The result is always float32. It has the dtype of x."""

    def forward(self, x):
        return super().forward(x).float()


@DROP_PATH.mistake
class x_changed_in_place(_DropPath):
    """The result is right, but x is changed: mul_, div_ and *= write into the caller's tensor."""

    def forward(self, x):
        result = super().forward(x).clone()
        if not x.requires_grad and self.training:
            x *= 2.0
        return result


@DROP_PATH.mistake
class draws_in_eval(_DropPath):
    """The results are right, but random numbers are drawn in eval mode, and thrown away: whoever
    seeds the generator gets other numbers from it than they should.
    """

    def evaluated(self, x):
        torch.rand(self.shape(x))
        return x


# --- DropPath: right ----------------------------------------------------------------------------


@DROP_PATH.right
class by_where(_DropPath):
    pass


@DROP_PATH.right
class by_bernoulli(_DropPath):
    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = 1 - self.p
        draws = x.new_empty(self.shape(x)).bernoulli_(keep)
        return x * (draws.div_(keep) if keep > 0 else draws)


@DROP_PATH.right
class by_floor(_DropPath):
    def trained(self, x):
        keep = 1 - self.p
        draws = torch.floor(keep + torch.rand(self.shape(x), dtype=x.dtype, device=x.device))
        return x.div(keep) * draws


@DROP_PATH.right
class sample_by_sample(_DropPath):
    def trained(self, x):
        one = [sample / (1 - self.p) for sample in x]
        return torch.stack([s * 0 if torch.rand(()) < self.p else s for s in one])


@DROP_PATH.right
class by_feature_dropout(_DropPath):
    def forward(self, x):
        rows = x.reshape(1, len(x), -1)
        return F.dropout1d(rows, self.p, self.training).reshape(x.shape)


# --- chunked_feed_forward: mistakes -------------------------------------------------------------


def _pieces(x, size, dim=1):
    return x.split(size or x.shape[dim], dim)


@CHUNKED_FEED_FORWARD.mistake
def last_chunk_dropped(feed_forward, x, chunk_size):
    """Where chunk_size does not divide n, the positions that are left over are lost: the result is
    shorter than x.
    """
    size = chunk_size or x.shape[1]
    whole = [x[:, i * size : (i + 1) * size] for i in range(x.shape[1] // size)]
    return torch.cat([feed_forward(chunk) for chunk in whole or [x]], 1)


@CHUNKED_FEED_FORWARD.mistake
def last_chunk_left_at_zero(feed_forward, x, chunk_size):
    """Where chunk_size does not divide n, the positions that are left over stay zero: the loop ends
    before them.
    """
    size = min(chunk_size or x.shape[1], x.shape[1])
    parts = [feed_forward(x[:, i * size : (i + 1) * size]) for i in range(x.shape[1] // size)]
    rest = x.shape[1] % size
    return torch.cat([*parts, x[:, x.shape[1] - rest :] * 0], 1)


@CHUNKED_FEED_FORWARD.mistake
def last_chunk_as_it_was(feed_forward, x, chunk_size):
    """Where chunk_size does not divide n, the positions that are left over are passed on without
    having gone through the layer.
    """
    size = min(chunk_size or x.shape[1], x.shape[1])
    parts = [feed_forward(x[:, i * size : (i + 1) * size]) for i in range(x.shape[1] // size)]
    rest = x.shape[1] % size
    return torch.cat([*parts, x[:, x.shape[1] - rest :]], 1)


@CHUNKED_FEED_FORWARD.mistake
def only_divisors(feed_forward, x, chunk_size):
    """A chunk_size that does not divide n is an error. The last chunk may be shorter."""
    size = chunk_size or x.shape[1]
    if x.shape[1] % size:
        raise ValueError(f"{x.shape[1]} positions, chunks of {size}")
    return right.chunked_feed_forward(feed_forward, x, chunk_size)


@CHUNKED_FEED_FORWARD.mistake
def not_in_chunks(feed_forward, x, chunk_size):
    """The layer is called on all of x at once, whatever is cut before or after. The result is the
    same; the memory that chunks were to save is inside the layer, and is not saved.
    """
    return feed_forward(x)


@CHUNKED_FEED_FORWARD.mistake
def along_the_batch(feed_forward, x, chunk_size):
    """The chunks are cut along the batch, axis 0. They are pieces of the sequence, axis 1; the
    result is the same, but a single long sequence would not be cut at all.
    """
    return torch.cat([feed_forward(chunk) for chunk in _pieces(x, chunk_size, 0)], 0)


@CHUNKED_FEED_FORWARD.mistake
def joined_along_the_batch(feed_forward, x, chunk_size):
    """The chunks are put together along the batch, axis 0, so that pieces of a sequence become
    sequences.
    """
    parts = [feed_forward(chunk) for chunk in _pieces(x, chunk_size)]
    return torch.cat(parts, 0) if len({p.shape for p in parts}) == 1 else parts[0]


@CHUNKED_FEED_FORWARD.mistake
def stacked(feed_forward, x, chunk_size):
    """The results are stacked on a new axis instead of joined along axis 1."""
    size = min(chunk_size or x.shape[1], x.shape[1])
    padded = F.pad(x, (0, 0, 0, -x.shape[1] % size))
    return torch.stack([feed_forward(chunk) for chunk in _pieces(padded, size)], 1)


@CHUNKED_FEED_FORWARD.mistake
def padded_and_not_cut(feed_forward, x, chunk_size):
    """The last chunk is padded to full length, and the padding stays in the result, which is longer
    than x.
    """
    size = chunk_size or x.shape[1]
    padded = F.pad(x, (0, 0, 0, -x.shape[1] % size))
    return torch.cat([feed_forward(chunk) for chunk in _pieces(padded, size)], 1)


@CHUNKED_FEED_FORWARD.mistake
def in_reverse_order(feed_forward, x, chunk_size):
    """The chunks are put together in reverse order: the end of the sequence comes first."""
    return torch.cat([feed_forward(chunk) for chunk in _pieces(x, chunk_size)][::-1], 1)


@CHUNKED_FEED_FORWARD.mistake
def size_taken_for_number(feed_forward, x, chunk_size):
    """chunk_size is taken for the number of chunks, as torch.chunk counts. It is the length of one:
    torch.split counts so.
    """
    return torch.cat([feed_forward(c) for c in x.chunk(chunk_size or 1, dim=1)], 1)


@CHUNKED_FEED_FORWARD.mistake
def one_position_at_a_time(feed_forward, x, chunk_size):
    """The layer is called for each position. That takes the least memory and the most time;
    chunk_size says how many positions go together.
    """
    return torch.cat([feed_forward(c) for c in _pieces(x, 1 if chunk_size else 0)], 1)


@CHUNKED_FEED_FORWARD.mistake
def zero_not_handled(feed_forward, x, chunk_size):
    """chunk_size 0 raises an error. It means everything in one go."""
    return torch.cat([feed_forward(chunk) for chunk in x.split(chunk_size, 1)], 1)


@CHUNKED_FEED_FORWARD.mistake
def zero_gives_nothing(feed_forward, x, chunk_size):
    """With chunk_size 0 the layer is not called, and x comes back. 0 means everything in one go."""
    return right.chunked_feed_forward(feed_forward, x, chunk_size) if chunk_size else x * 1


@CHUNKED_FEED_FORWARD.mistake
def zero_counts_as_one(feed_forward, x, chunk_size):
    """With chunk_size 0 the layer is called for each position. 0 means everything in one go."""
    return right.chunked_feed_forward(feed_forward, x, chunk_size or 1)


@CHUNKED_FEED_FORWARD.mistake
def chunk_longer_than_the_sequence(feed_forward, x, chunk_size):
    """A chunk_size above the length of the sequence is an error. There is then one chunk."""
    if chunk_size > x.shape[1]:
        raise ValueError(f"chunks of {chunk_size}, {x.shape[1]} positions")
    return right.chunked_feed_forward(feed_forward, x, chunk_size)


@CHUNKED_FEED_FORWARD.mistake
def chunks_overlap(feed_forward, x, chunk_size):
    """The chunks overlap by one position, which is in the result twice."""
    size = chunk_size or x.shape[1]
    starts = range(0, x.shape[1], size)
    parts = [x[:, max(0, start - 1) : start + size] for start in starts]
    return torch.cat([feed_forward(part) for part in parts], 1)


@CHUNKED_FEED_FORWARD.mistake
def called_twice(feed_forward, x, chunk_size):
    """The result is right, but the layer is called twice on each chunk."""
    for chunk in _pieces(x, chunk_size):
        feed_forward(chunk)
    return right.chunked_feed_forward(feed_forward, x, chunk_size)


@CHUNKED_FEED_FORWARD.mistake
def no_gradient(feed_forward, x, chunk_size):
    """The result is right, but made under torch.no_grad (or detached) to save memory: nothing can
    be learnt through it.
    """
    with torch.no_grad():
        return right.chunked_feed_forward(feed_forward, x, chunk_size)


@CHUNKED_FEED_FORWARD.mistake
def filled_into_float32(feed_forward, x, chunk_size):
    """The chunks are written into torch.zeros(…), which is float32: a float64 result loses half of
    its digits, and may be of another kind on a GPU. x.new_zeros has the dtype and device of x.
    """
    result = torch.zeros(x.shape)
    start = 0
    for chunk in _pieces(x, chunk_size):
        result[:, start : start + chunk.shape[1]] = feed_forward(chunk)
        start += chunk.shape[1]
    return result


@CHUNKED_FEED_FORWARD.mistake
def written_into_x(feed_forward, x, chunk_size):
    """The results are written into x, chunk by chunk. The caller still needs x, for the residual
    connection for one.
    """
    result = right.chunked_feed_forward(feed_forward, x, chunk_size)
    if not x.requires_grad:
        x.copy_(result.detach())
    return result


@CHUNKED_FEED_FORWARD.mistake
def left_in_train_mode(feed_forward, x, chunk_size):
    """The result is right, but the layer is put into training mode: its dropout is then on for
    everybody.
    """
    if isinstance(feed_forward, nn.Module):
        feed_forward.train()
    return right.chunked_feed_forward(feed_forward, x, chunk_size)


@CHUNKED_FEED_FORWARD.mistake
def layers_taken_apart(feed_forward, x, chunk_size):
    """linear1 and linear2 are called one by one, with a ReLU between. The layer may be any function
    of x: call it as it is.
    """

    def layer(chunk):
        if isinstance(feed_forward, nn.Module):
            return feed_forward.linear2(torch.relu(feed_forward.linear1(chunk)))
        return feed_forward(chunk)

    return right.chunked_feed_forward(layer, x, chunk_size)


@CHUNKED_FEED_FORWARD.mistake
def modules_only(feed_forward, x, chunk_size):
    """The layer's forward method is called, which a plain function has not, and which skips hooks.
    Call the layer itself.
    """
    return right.chunked_feed_forward(feed_forward.forward, x, chunk_size)


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
