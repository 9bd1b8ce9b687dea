# what: einsum everywhere, and a small `rearrange` of one's own in the manner of einops
# answers: split_heads, multi_head_numpy, MultiHeadAttention
import re

import numpy as np
import torch
from torch import nn


def rearrange(x, pattern, **sizes):
    """einops for the poor: 'b n (h d) -> b h n d'; one split or one join"""
    left, right = (re.findall(r"\(.*?\)|\S+", side) for side in pattern.split("->"))
    names, shape = [], []
    for token, size in zip(left, x.shape):
        parts = token.strip("()").split()
        known = [sizes.get(p) for p in parts]
        if len(parts) > 1:
            rest = size // np.prod([k for k in known if k], dtype=int)
            known = [k or int(rest) for k in known]
        else:
            known = [size]
        names += parts
        shape += known
    x = x.reshape(*shape)
    flat = " ".join(right).replace("(", "").replace(")", "").split()
    x = (
        x.permute(*map(names.index, flat))
        if isinstance(x, torch.Tensor)
        else x.transpose(*map(names.index, flat))
    )
    sizes = dict(zip(names, shape))
    return x.reshape(*(int(np.prod([sizes[p] for p in t.strip("()").split()])) for t in right))


# %%
def split_heads(x, num_heads):
    if x.shape[-1] % num_heads:
        raise ValueError("cannot split %d features into %d heads" % (x.shape[-1], num_heads))
    return rearrange(x, "b n (h d) -> b h n d", h=num_heads)


# %%
def merge_heads(x):
    return rearrange(x, "b h n d -> b n (h d)")


# %%
def multi_head_numpy(query, key, value, num_heads):
    if query.dtype.kind != "f":
        query = query.astype(float)
    q, k, v = (rearrange(a, "n (h d) -> h n d", h=num_heads) for a in (query, key, value))
    s = np.einsum("hid,hjd->hij", q, k) * q.shape[-1] ** -0.5
    a = np.exp(s - s.max(-1, keepdims=True))
    a /= np.einsum("hij->hi", a)[..., None]
    return rearrange(np.einsum("hij,hjd->hid", a, v), "h n d -> n (h d)").astype(query.dtype)


# %%
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, bias=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError("d_model=%d, num_heads=%d" % (d_model, num_heads))
        self.num_heads, self.p = num_heads, dropout
        for name in ("W_q", "W_k", "W_v", "W_o"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=bias))

    def forward(self, query, key, value, head_mask=None):
        q, k, v = (
            rearrange(getattr(self, f"W_{n}")(x), "b n (h d) -> b h n d", h=self.num_heads)
            for n, x in zip("qkv", (query, key, value))
        )
        weights = torch.einsum("bhid,bhjd->bhij", q, k).div(q.shape[-1] ** 0.5).softmax(-1)
        a = torch.nn.functional.dropout(weights, self.p, self.training)
        if head_mask is not None:
            a = torch.einsum("bhij,h->bhij", a, head_mask.to(a.dtype))
        return self.W_o(
            rearrange(torch.einsum("bhij,bhjd->bhid", a, v), "b h n d -> b n (h d)")
        ), weights
