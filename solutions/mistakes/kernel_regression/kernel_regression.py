"""Known answers to `KernelRegression`: mistakes, then right answers."""

import torch
from torch import nn

from autograder.bank import Bank
from solutions import kernel_regression as right

BANK = Bank("KernelRegression", right, globals())
BANK.read()


@BANK.right
class infinity_added(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        u = self.w * (key.unsqueeze(0) - query.unsqueeze(1))
        scores = -u.square() / 2
        if exclude_self:
            scores = scores + torch.zeros_like(scores).fill_diagonal_(-torch.inf)
        return torch.tensordot(scores.softmax(-1).nan_to_num(0.0), value, dims=1)


@BANK.right
class query_by_query(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        rows = []
        for i in range(len(query)):
            keys = [j for j in range(len(key)) if not (exclude_self and i == j)]
            if not keys:
                rows.append(torch.zeros_like(value[0]))
                continue
            scores = torch.stack([-0.5 * ((query[i] - key[j]) * self.w) ** 2 for j in keys])
            weights = torch.softmax(scores, dim=0)
            rows.append(sum(weights[n] * value[j] for n, j in enumerate(keys)))
        return torch.stack(rows)


@BANK.right
class by_log_sum_exp(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        scores = -0.5 * self.w**2 * (query[:, None] - key).pow(2)
        if exclude_self:
            scores = scores.clone().fill_diagonal_(float("-inf"))
        log_weights = scores - torch.logsumexp(scores, dim=1, keepdim=True)
        return torch.einsum("qk,k...->q...", log_weights.exp().nan_to_num(0.0), value)


@BANK.right
class in_float64_and_back(right.KernelRegression):
    def forward(self, query, key, value, exclude_self=False):
        x, x_i, y = query.double(), key.double(), value.double()
        scores = ((x[:, None] - x_i[None]) * self.w.double()) ** 2 * -0.5
        if exclude_self:
            index = torch.arange(min(scores.shape))
            scores[index, index] = -torch.inf
        return (scores.softmax(dim=1).nan_to_num(0.0) @ y).to(value.dtype)


@BANK.right
class where_the_indices_differ(nn.Module):
    def __init__(self, w=1.0):
        super().__init__()
        self.register_parameter("w", nn.Parameter(torch.as_tensor(w, dtype=torch.float32)))

    def forward(self, query, key, value, exclude_self=False):
        n_q, n_k = len(query), len(key)
        i, j = torch.arange(n_q, device=key.device), torch.arange(n_k, device=key.device)
        allowed = (i[:, None] != j[None, :]) | (not exclude_self)
        scores = -(((query.view(-1, 1) - key.view(1, -1)) * self.w) ** 2) / 2
        scores = torch.where(allowed, scores, -torch.inf)
        kernel = torch.exp(scores - scores.max(dim=1, keepdim=True).values)
        return (kernel / kernel.sum(dim=1, keepdim=True)).nan_to_num(0.0) @ value
