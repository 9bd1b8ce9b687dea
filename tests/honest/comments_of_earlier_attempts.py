# what: earlier attempts commented out or in strings, with the forbidden names in them
# answers: LayerNorm, layer_norm_backward, gelu
import math

import torch
import torch.nn.functional as F
from torch import nn


# %%
class LayerNorm(nn.Module):
    """My LayerNorm.

    I first tried `return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)`, which is of
    course not the idea. torch.nn.LayerNorm and torch.native_layer_norm give the same numbers.
    """

    # class LayerNorm(nn.LayerNorm): pass   # <- works but that is cheating :-)

    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        # TODO: is F.layer_norm faster?
        # return F.layer_norm(x, x.shape[-1:], self.weight, self.bias, self.eps)
        """
        old version:
        from attention_by_hand.blocks import LayerNorm
        return torch.layer_norm(x, (self.weight.shape[0],), self.weight, self.bias)
        """
        mu = x.mean(-1, keepdim=True)
        sigma2 = ((x - mu) ** 2).mean(-1, keepdim=True)
        if not torch.isfinite(sigma2).all():
            print("F.layer_norm would give nan here, too")
        return self.weight * ((x - mu) / (sigma2 + self.eps) ** 0.5) + self.bias


# %%
@torch.no_grad()
def layer_norm_backward(grad_output, x, weight, eps=1e-5):
    grad_output, x, weight = grad_output.detach(), x.detach(), weight.data
    # y = F.layer_norm(x.requires_grad_(), weight.shape, weight); torch.autograd.grad(y, x, grad_output)
    # ^ only to check the formula
    d = x.shape[-1]
    mu = x.sum(-1, keepdim=True) / d
    xmu = x - mu
    var = (xmu * xmu).sum(-1, keepdim=True) / d
    ivar = 1 / torch.sqrt(var + eps)
    xhat = xmu * ivar
    dxhat = grad_output * weight
    dx = (
        ivar
        / d
        * (d * dxhat - dxhat.sum(-1, keepdim=True) - xhat * (dxhat * xhat).sum(-1, keepdim=True))
    )
    over = tuple(range(x.dim() - 1))
    return (
        (dx, (grad_output * xhat).sum(over), grad_output.sum(over))
        if over
        else (dx, grad_output * xhat, grad_output.clone())
    )


# %%
def gelu(x):
    # return F.gelu(x)
    # return nn.GELU()(x)
    # tanh approximation: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    cdf = 0.5 * (1.0 + torch.erf(x * math.sqrt(0.5)))
    return x * cdf
