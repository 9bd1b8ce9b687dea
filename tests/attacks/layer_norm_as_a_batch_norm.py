# tries: normalises each token as a channel of a batch norm
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.batch_norm in line

import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        channels = x.reshape(-1, x.shape[-1]).T
        normed = F.batch_norm(channels, None, None, training=True, eps=self.eps).T
        return normed.reshape(x.shape) * self.weight + self.bias
