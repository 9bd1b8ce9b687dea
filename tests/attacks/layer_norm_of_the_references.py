# tries: calls torch's layer norm as it is written in Python, for compilers
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: native_layer_norm in line

import torch
import torch._refs.nn.functional
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        shape, affine = self.weight.shape, (self.weight, self.bias)
        return torch._refs.nn.functional.layer_norm(x, shape, *affine, self.eps)
