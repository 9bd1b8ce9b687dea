# what: one name for every step of an answer, each made by a method of the last
# answers: scaled_dot_product_attention, SelfAttention, cosine_scores
import torch
from torch import nn


# %%
def scaled_dot_product_attention(query, key, value):
    scores = key
    scores = scores.transpose(-1, -2)
    scores = query.matmul(scores)
    scores = scores.div(query.shape[-1] ** 0.5)
    scores = scores.sub(scores.amax(dim=-1, keepdim=True))
    scores = scores.clamp(min=-1e30)
    scores = scores.exp()
    scores = scores.div(scores.sum(dim=-1, keepdim=True))
    scores = scores.contiguous()
    output = scores
    output = output.matmul(value)
    output = output.contiguous()
    return output, scores


# %%
class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)

    def forward(self, x):
        x = x.contiguous()
        x = x.to(self.W_q.weight.dtype)
        q = self.W_q(x)
        k = self.W_k(x)
        k = k.permute(0, 2, 1)
        v = self.W_v(x)
        a = q.bmm(k)
        a = a.mul(self.W_k.out_features**-0.5)
        a = a.softmax(2)
        return a.bmm(v), a


# %%
def cosine_scores(query, key, eps=1e-8):
    q = query
    q = q.square()
    q = q.sum(-1, keepdim=True)
    q = q.sqrt()
    q = q.clamp(min=eps)
    q = query.div(q)
    k = key
    k = k.square()
    k = k.sum(-1, keepdim=True)
    k = k.sqrt()
    k = k.clamp(min=eps)
    k = key.div(k)
    k = k.transpose(-1, -2)
    s = q
    s = s.matmul(k)
    s = s.clamp(-1, 1)
    return s
