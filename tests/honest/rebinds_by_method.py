# what: `x = x.permute(...)`, `x = x.view(...)`, `x = x.contiguous()` in each of several answers
# answers: split_heads, MultiHeadAttention
import torch
from torch import nn


# %%
def split_heads(x, num_heads):
    if x.shape[2] % num_heads:
        raise ValueError(f"d_model={x.shape[2]} not divisible by num_heads={num_heads}")
    b, n, d = x.size()
    x = x.contiguous()
    x = x.view(b, n, num_heads, d // num_heads)
    x = x.permute(0, 2, 1, 3)
    x = x.contiguous()
    x = x.to(x.device)
    return x


# %%
def merge_heads(x):
    b, h, n, d = x.size()
    x = x.permute(0, 2, 1, 3)
    x = x.contiguous()
    x = x.view(b, n, h * d)
    x = x.to(x.device)
    return x


# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model ({d_model}) must be divisible by num_heads ({num_heads})")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, head_mask=None):
        query = self.W_q(query)
        query = query.contiguous()
        query = split_heads(query, self.num_heads)
        key = self.W_k(key)
        key = key.contiguous()
        key = split_heads(key, self.num_heads)
        key = key.permute(0, 1, 3, 2)
        value = self.W_v(value)
        value = split_heads(value, self.num_heads)
        x = query.matmul(key)
        x = x.div(query.shape[-1] ** 0.5)
        x = x.softmax(dim=-1)
        weights = x
        x = self.dropout(x)
        if head_mask is not None:
            head_mask = head_mask.to(x.device)
            head_mask = head_mask.view(1, -1, 1, 1)
            x = x * head_mask
        x = x.matmul(value)
        x = merge_heads(x)
        x = self.W_o(x)
        return x, weights
