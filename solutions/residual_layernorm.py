"""Residual connections and layer normalisation: what keeps a deep stack of layers trainable.

Sources: K. He et al., "Deep residual learning for image recognition" (2016); J. L. Ba, J. R. Kiros,
G. E. Hinton, "Layer normalization" (2016); A. Vaswani et al., "Attention is all you need" (2017),
sections 3.1 and 3.3; R. Xiong et al., "On layer normalization in the Transformer architecture"
(2020); D. Hendrycks, K. Gimpel, "Gaussian error linear units" (2016); G. Huang et al., "Deep
networks with stochastic depth" (2016); N. Kitaev, Ł. Kaiser, A. Levskaya, "Reformer" (2020).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class LayerNorm(nn.Module):
    """Layer normalisation: bring each token to mean 0 and variance 1; scale; shift.

    Parameters: `weight` (γ, initially ones) and `bias` (β, initially zeros), both
    `(d_model,)`. Source: Ba, Kiros, Hinton (2016), equation 4.
    """

    def __init__(self, d_model: int, eps: float = 1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
    ) -> Float[Tensor, "*batch d_model"]:
        """Normalise over the features: (x − μ) / √(σ² + ε) · γ + β.

        Shapes: x `(..., d_model)` → the same, with any leading axes or none. σ² is
        the mean squared deviation (divided by d_model, not d_model − 1), and
        ε = `eps` is added to it under the root. A token whose features are all
        equal becomes the bias. In float32, too, features of 3000 ± 1 get mean 0 and
        variance 1.
        """
        ### BEGIN SOLUTION
        mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
        variance = (x - mean).square().mean(dim=-1, keepdim=True)  # (..., 1)
        return (x - mean) / torch.sqrt(variance + self.eps) * self.weight + self.bias
        ### END SOLUTION


def bug_in_layer_norm(
    n: int, d_model: int
) -> tuple[Float[Tensor, "B n d_model"], Float[Tensor, "B n d_model"]]:
    """Find two inputs for `wrong_norm`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(B, n, d_model)`, n and d_model ≥ 2; B is yours,
    from 1 to 64. On `shows`, the right result and the wrong one differ by 0.01 or more
    somewhere; on `hides` they are equal, although the features of each token differ by
    0.1 or more.
    """
    ### BEGIN SOLUTION
    token = torch.arange(float(d_model))
    hides = torch.stack([token.roll(i) for i in range(n)])[None]
    return hides + 10 * torch.arange(n)[:, None], hides
    ### END SOLUTION


def layer_norm_backward(
    grad_output: Float[Tensor, "*batch d_model"],
    x: Float[Tensor, "*batch d_model"],
    weight: Float[Tensor, "d_model"],
    eps: float = 1e-5,
) -> tuple[
    Float[Tensor, "*batch d_model"],
    Float[Tensor, "d_model"],
    Float[Tensor, "d_model"],
]:
    """The backward pass of layer normalisation, by its formula, not by autograd.

    `grad_output` is the gradient of a loss with respect to the layer's output.
    Shapes: grad_output and x `(..., d_model)`, weight `(d_model,)` → `(grad_x,
    grad_weight, grad_bias)`, with the shapes of x, weight and bias. The last two
    are sums over all tokens. Works on any tensors, even those created under
    `torch.inference_mode()`.
    """
    ### BEGIN SOLUTION
    mean = x.mean(dim=-1, keepdim=True)  # (..., 1)
    inverse = torch.rsqrt(x.var(dim=-1, correction=0, keepdim=True) + eps)  # (..., 1)
    normed = (x - mean) * inverse  # (..., d_model)
    grad = grad_output * weight  # (..., d_model), the gradient of `normed`
    along = (grad * normed).mean(dim=-1, keepdim=True)  # (..., 1)
    grad_x = inverse * (grad - grad.mean(dim=-1, keepdim=True) - normed * along)
    tokens = grad_output.reshape(-1, x.shape[-1])  # (tokens, d_model)
    return grad_x, (tokens * normed.reshape(tokens.shape)).sum(dim=0), tokens.sum(dim=0)
    ### END SOLUTION


def rms_norm_backward(
    grad_output: Float[Tensor, "*batch d_model"],
    x: Float[Tensor, "*batch d_model"],
    weight: Float[Tensor, "d_model"],
    eps: float = 1e-6,
) -> tuple[Float[Tensor, "*batch d_model"], Float[Tensor, "d_model"]]:
    """The backward pass of RMSNorm, weight · x / √(mean(x²) + eps), not by autograd.

    The mean runs over the features of a token; there is no bias. `grad_output` is the
    gradient of a loss with respect to the layer's output.
    Shapes: grad_output and x `(..., d_model)`, weight `(d_model,)` → `(grad_x,
    grad_weight)`, with the shapes and dtypes of x and weight. Works on any tensors, even
    those created under `torch.inference_mode()`. Source: Zhang and Sennrich (2019).
    """
    ### BEGIN SOLUTION
    per_size = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)  # (..., 1)
    sized = x * per_size  # (..., d_model), x with root mean square 1
    slope = weight * grad_output  # (..., d_model), the gradient of `sized`
    radial = (sized * slope).mean(dim=-1, keepdim=True)  # (..., 1)
    grad_x = per_size * (slope - radial * sized)
    return grad_x, (grad_output * sized).reshape(-1, len(weight)).sum(dim=0)
    ### END SOLUTION


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """The exact Gaussian error linear unit: x Φ(x).

    Φ(x) = ½ (1 + erf(x / √2)) is the probability that a standard normal variable
    is below x. Shapes: any → the same. Source: Hendrycks, Gimpel (2016),
    section 2.
    """
    ### BEGIN SOLUTION
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))
    ### END SOLUTION


class FeedForward(nn.Module):
    """The position-wise feed-forward layer: linear, activation, linear.

    Parameters: the linear layers `linear1` (d_model to d_ff) and `linear2` (d_ff
    to d_model). Source: Vaswani et al. (2017), section 3.3.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: Callable[[Tensor], Tensor] = torch.relu,
    ):
        super().__init__()
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.activation = activation

    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
    ) -> Float[Tensor, "*batch d_model"]:
        """Apply the same small network to every token.

        Shapes: x `(..., d_model)` → the same; inside, `(..., d_ff)`. Dropout
        acts between the linear layers, on the output of the activation.
        """
        ### BEGIN SOLUTION
        hidden = self.activation(self.linear1(x))  # (..., d_ff)
        return self.linear2(self.dropout(hidden))  # (..., d_model)
        ### END SOLUTION


class Residual(nn.Module):
    """A residual connection with layer normalisation around any sublayer F.

    Parts: `sublayer` (a module or a function that takes x first and returns one
    tensor of the same shape) and `norm`. Post-norm, the default:
    norm(x + dropout(F(x))). Pre-norm, with `norm_first`:
    x + dropout(F(norm(x))). Source: Vaswani et al. (2017), sections 3.1 and 5.4,
    for post-norm; Xiong et al. (2020), section 3.1, for both.
    """

    def __init__(
        self,
        sublayer: Callable[..., Tensor],
        d_model: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.sublayer = sublayer
        self.norm = nn.LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(
        self,
        x: Float[Tensor, "*batch d_model"],
        *args: Any,
        **kwargs: Any,
    ) -> Float[Tensor, "*batch d_model"]:
        """Apply the sublayer and add x, normalising after the sum or before F.

        Shapes: x `(..., d_model)` → the same. All further arguments, such as a
        mask, are passed on to the sublayer.
        """
        ### BEGIN SOLUTION
        if self.norm_first:
            return x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
        return self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))
        ### END SOLUTION


class DropPath(nn.Module):
    """Stochastic depth: in training, drop a branch for whole samples at random.

    It acts on the branch, x + drop_path(F(x)): for a dropped sample, the layer is
    the identity. Source: Huang et al. (2016), section 3.
    """

    def __init__(self, p: float = 0.0):
        super().__init__()
        self.p = p

    def forward(
        self,
        x: Float[Tensor, "batch *rest"],
    ) -> Float[Tensor, "batch *rest"]:
        """Zero each sample with probability p; divide the others by 1 − p.

        Shapes: x `(B, ...)` → the same; a sample is x[b], and each is drawn
        independently. In eval mode or with p = 0, x is returned unchanged, with p = 1
        all is zero; in eval mode, nothing is drawn.
        """
        ### BEGIN SOLUTION
        one_each = x.new_ones(x.shape[0], *[1] * (x.dim() - 1))  # (B, 1, ...)
        return x * F.dropout(one_each, self.p, self.training)
        ### END SOLUTION


def chunked_feed_forward(
    feed_forward: Callable[[Tensor], Tensor],
    x: Float[Tensor, "batch n d_model"],
    chunk_size: int,
) -> Float[Tensor, "batch n d_out"]:
    """Apply a position-wise layer to chunk_size positions at a time.

    Shapes: x `(B, n, d_model)` → `(B, n, d_out)`, equal to `feed_forward(x)`, which
    need not be as wide as x. x is cut along axis 1, and the last chunk may be
    shorter; a `chunk_size` of 0 means no cutting at all. Source: Kitaev, Kaiser,
    Levskaya (2020), section 3.
    """
    ### BEGIN SOLUTION
    if chunk_size == 0:
        return feed_forward(x)
    return torch.cat([feed_forward(chunk) for chunk in x.split(chunk_size, dim=1)], dim=1)
    ### END SOLUTION
