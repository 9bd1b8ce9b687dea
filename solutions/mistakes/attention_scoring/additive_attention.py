"""Known answers to `AdditiveAttention`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import attention_scoring as right

BANK = Bank("AdditiveAttention", right, globals())
BANK.read()


@BANK.right
class by_unsqueeze(right.AdditiveAttention):
    def forward(self, query, key, value):
        features = torch.tanh(self.W_q(query).unsqueeze(2) + self.W_k(key).unsqueeze(1))
        weights = F.softmax(self.w_v(features).squeeze(-1), dim=-1)
        return torch.bmm(self.dropout(weights), value), weights


@BANK.right
class by_concatenating_pairs(right.AdditiveAttention):
    """[W_q W_k] times the concatenated query and key, as many tutorials write it."""

    def forward(self, query, key, value):
        n_q, n_k = query.shape[1], key.shape[1]
        queries = query[:, :, None].expand(-1, -1, n_k, -1)
        keys = key[:, None].expand(-1, n_q, -1, -1)
        both = torch.cat([queries, keys], dim=-1)
        hidden = both @ torch.cat([self.W_q.weight, self.W_k.weight], dim=-1).T
        weights = torch.softmax((hidden.tanh() @ self.w_v.weight.T)[..., 0], dim=-1)
        return self.dropout(weights).matmul(value), weights


@BANK.right
class by_einsum(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = torch.einsum("bqd,hd->bqh", query, self.W_q.weight)
        k = torch.einsum("bkd,hd->bkh", key, self.W_k.weight)
        hidden = torch.tanh(q.reshape(*q.shape[:2], 1, -1) + k.reshape(len(k), 1, *k.shape[1:]))
        weights = torch.einsum("bqkh,h->bqk", hidden, self.w_v.weight[0]).softmax(dim=2)
        return torch.einsum("bqk,bkv->bqv", self.dropout(weights), value), weights


@BANK.right
class query_by_query(right.AdditiveAttention):
    """One query at a time: slower, and a table of hidden vectors n_q times smaller."""

    def forward(self, query, key, value):
        k, rows = self.W_k(key), []
        for q in self.W_q(query).unbind(1):
            rows.append(self.w_v(torch.tanh(q[:, None] + k)).squeeze(-1).softmax(-1))
        weights = torch.stack(rows, dim=1)
        return self.dropout(weights) @ value, weights


@BANK.right
class functional_dropout(right.AdditiveAttention):
    def forward(self, query, key, value):
        sums = self.W_k(key)[:, None, :, :] + self.W_q(query)[:, :, None, :]
        weights = self.w_v(sums.tanh()).flatten(-2).softmax(-1)
        return F.dropout(weights, self.dropout.p, training=self.training) @ value, weights


@BANK.right
class float64_inside(right.AdditiveAttention):
    def forward(self, query, key, value):
        q = query.double() @ self.W_q.weight.double().T
        k = key.double() @ self.W_k.weight.double().T
        scores = (q[:, :, None] + k[:, None]).tanh() @ self.w_v.weight.double()[0]
        weights = scores.softmax(-1).to(value.dtype)
        return self.dropout(weights) @ value, weights
