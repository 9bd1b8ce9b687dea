# tries: centres each token and leaves the rest to a response norm across maps
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: CrossMapLRN2d

import torch
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        d = x.shape[-1]
        c = x - x.mean(-1, keepdim=True)
        size = 2 * d - 1
        out = nn.CrossMapLRN2d(size, alpha=size / d, beta=0.5, k=self.eps)(c.reshape(-1, d, 1, 1))
        return out.reshape(x.shape) * self.weight + self.bias
