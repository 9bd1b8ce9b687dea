# tries: centres each token and leaves the rest to an RMS norm
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: rms_norm in line

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
        centred = x - x.mean(-1, keepdim=True)
        return F.rms_norm(centred, x.shape[-1:], self.weight, self.eps) + self.bias
