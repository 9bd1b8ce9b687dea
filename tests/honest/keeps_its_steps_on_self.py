# what: a module that keeps q, k, v, scores and weights on `self`, with methods of its own
# answers: MultiHeadAttention, head_importance
import math

import torch
import torch.nn as nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{d_model=} and {num_heads=} do not fit")
        self.d_model, self.num_heads, self.d_k = d_model, num_heads, d_model // num_heads
        self.W_q = nn.Linear(d_model, d_model, bias)
        self.W_k = nn.Linear(d_model, d_model, bias)
        self.W_v = nn.Linear(d_model, d_model, bias)
        self.W_o = nn.Linear(d_model, d_model, bias)
        self.drop = nn.Dropout(p=dropout)
        self.q = self.k = self.v = None
        self.scores = self.weights = self.context = None
        self.history = []

    def split(self, x):
        self.batch = x.shape[0]
        return x.view(self.batch, -1, self.num_heads, self.d_k).transpose(1, 2)

    def project(self, query, key, value):
        self.q = self.split(self.W_q(query))
        self.k = self.split(self.W_k(key))
        self.v = self.split(self.W_v(value))

    def compute_scores(self):
        self.scores = self.q @ self.k.transpose(-2, -1)
        self.scores = self.scores / math.sqrt(self.d_k)

    def compute_weights(self):
        self.weights = self.scores - self.scores.max(dim=-1, keepdim=True).values
        self.weights = self.weights.exp()
        self.weights = self.weights / self.weights.sum(dim=-1, keepdim=True)

    def attend(self, head_mask):
        self.applied = self.drop(self.weights)
        if head_mask is not None:
            self.applied = self.applied * head_mask[None, :, None, None]
        self.context = self.applied @ self.v
        self.context = self.context.transpose(1, 2).reshape(self.batch, -1, self.d_model)

    def forward(self, query, key, value, head_mask=None):
        self.project(query, key, value)
        self.compute_scores()
        self.compute_weights()
        self.attend(head_mask)
        self.history.append(self.weights.shape)
        return self.W_o(self.context), self.weights


# %%
def head_importance(attention, x):
    with torch.no_grad():
        full_out = attention(x, x, x)[0]
        imp = []
        for h in range(attention.num_heads):
            mask = torch.ones(attention.num_heads, dtype=x.dtype)
            mask[h] = 0
            out_h = attention(x, x, x, head_mask=mask)[0]
            imp.append(torch.sqrt(((full_out - out_h) ** 2).sum(dim=-1)).mean())
        return torch.stack(imp)
