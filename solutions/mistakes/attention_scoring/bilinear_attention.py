"""Known answers to `BilinearAttention`: mistakes, then right answers."""

import math

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import attention_scoring as right

BANK = Bank("BilinearAttention", right, globals())
BANK.read()


@BANK.right
class by_einsum(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = torch.einsum("bqi,ij,bkj->bqk", query, self.W, key)
        weights = (scores / math.prod(self.W.shape) ** 0.25).softmax(2)
        return torch.einsum("bqk,bkv->bqv", weights, value), weights


@BANK.right
class key_first(right.BilinearAttention):
    """(qᵀ)(Wk) for (qᵀW)k: the same product, grouped from the other end."""

    def forward(self, query, key, value):
        scores = query @ (key @ self.W.T).transpose(1, 2)
        root = math.sqrt(math.sqrt(query.shape[-1] * key.shape[-1]))
        weights = F.softmax(scores / root, dim=-1)
        return weights.bmm(value), weights


@BANK.right
class by_torchs_bilinear(right.BilinearAttention):
    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1).contiguous()
        keys = key[:, None].expand(-1, n_q, -1, -1).contiguous()
        scores = F.bilinear(queries, keys, self.W[None])[..., 0]
        weights = torch.softmax(scores / (self.W.numel() ** 0.25), dim=-1)
        return weights @ value, weights


@BANK.right
class both_sides_scaled(right.BilinearAttention):
    def forward(self, query, key, value):
        q, k = (x / x.shape[-1] ** 0.25 for x in (query, key))
        weights = torch.exp(F.log_softmax(q.matmul(self.W).matmul(k.mT), dim=-1))
        return weights @ value, weights


@BANK.right
class query_by_query(right.BilinearAttention):
    def forward(self, query, key, value):
        rows = []
        for q in query.unbind(1):
            scores = (key @ (q @ self.W)[..., None])[..., 0]
            rows.append((scores / (self.W.shape[0] * self.W.shape[1]) ** 0.25).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return weights @ value, weights


@BANK.right
class float64_inside(right.BilinearAttention):
    def forward(self, query, key, value):
        scores = query.double() @ self.W.double() @ key.double().mT
        weights = (scores * (query.shape[-1] * key.shape[-1]) ** -0.25).softmax(-1)
        return (weights @ value.double()).to(value.dtype), weights.to(value.dtype)


@BANK.right
class by_torchs_root(right.BilinearAttention):
    """The fourth root of a tensor: a float32 number."""

    def forward(self, query, key, value):
        scores = query @ self.W @ key.mT / torch.tensor(self.W.numel()) ** 0.25
        weights = scores.softmax(-1)
        return weights @ value, weights
