# what: a class in one cell, its methods added in the next ones, helpers only below where they are used
# answers: LayerNorm, Residual
import torch
from torch import nn


# %%
class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.d_model, self.eps = d_model, eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return scale_and_shift(self, normalise(x, self.eps))


# %%
def scale_and_shift(layer, x):
    return torch.addcmul(layer.bias, layer.weight, x)


# %%
def normalise(x, eps):
    centred = centre(x)
    return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + eps)


def centre(x):
    return x - x.mean(-1, keepdim=True)


# %%
class Residual(nn.Module):
    pass


def __init__(self, sublayer, d_model, dropout=0.0, norm_first=False):
    super(Residual, self).__init__()
    self.sublayer, self.norm_first = sublayer, norm_first
    self.norm = LayerNorm(d_model)  # my own!
    self.dropout = nn.Dropout(dropout)


def forward(self, x, *args, **kwargs):
    if self.norm_first:
        return x + self.dropout(self.sublayer(self.norm(x), *args, **kwargs))
    return self.norm(x + self.dropout(self.sublayer(x, *args, **kwargs)))


Residual.__init__ = __init__

# %% forgot this one
Residual.forward = forward
print(Residual(nn.Identity(), 4)(torch.randn(2, 4)))
