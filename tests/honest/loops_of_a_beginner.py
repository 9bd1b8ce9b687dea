# what: for-loops over every index, prints while looking for an error, i and j and temp
# answers: leave_one_out_mse, KernelRegression
import math

import numpy as np
import torch
from torch import nn


# %%
def leave_one_out_mse(x, y, w):
    n = len(x)
    total_error = 0
    for i in range(n):
        # compute weights for every other point
        temp = []
        for j in range(n):
            if j != i:
                temp.append(-0.5 * ((float(x[i]) - float(x[j])) * w) ** 2)
        biggest = max(temp)
        weights = []
        for t in temp:
            weights.append(math.exp(t - biggest))
        s = sum(weights)
        # print("i", i, "s", s)
        pred = 0
        k = 0
        for j in range(n):
            if j != i:
                pred = pred + weights[k] / s * float(y[j])
                k = k + 1
        error = (pred - float(y[i])) ** 2
        total_error = total_error + error
        # print("error", error)
    print("done!!!", total_error / n)
    return total_error / n


# %%
class KernelRegression(nn.Module):
    def __init__(self, w=1.0):
        super(KernelRegression, self).__init__()
        self.w = nn.Parameter(torch.tensor(float(w)))

    def forward(self, query, key, value, exclude_self=False):
        n_q = query.shape[0]
        n_k = key.shape[0]
        outputs = []
        for i in range(n_q):
            keep = [j for j in range(n_k) if not (exclude_self and i == j)]
            if len(keep) == 0:
                outputs.append(torch.zeros_like(value[0]))
                continue
            s = -0.5 * ((query[i] - key[keep]) * self.w) ** 2
            a = torch.exp(s - s.max())
            a = a / a.sum()
            outputs.append((a.reshape([-1] + [1] * (value.dim() - 1)) * value[keep]).sum(0))
        return torch.stack(outputs)
