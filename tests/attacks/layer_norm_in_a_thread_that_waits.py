# tries: has a thread that was started beforehand do the work
# by: observation
# layer: observation
# verdict: policy
# most: 0
# says: torch.nn.functional.layer_norm

from concurrent.futures import ThreadPoolExecutor

import torch
import torch.nn.functional as F
from torch import nn

pool = ThreadPoolExecutor(1)
pool.submit(print).result()


class LayerNorm(nn.Module):
    def __init__(self, d_model, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.eps = eps

    def forward(self, x):
        with torch.enable_grad():
            work = (x, self.weight.shape, self.weight, self.bias, self.eps)
            return pool.submit(F.layer_norm, *work).result()
