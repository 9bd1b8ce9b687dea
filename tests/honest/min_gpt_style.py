# what: written after minGPT and "Let's build GPT": tril as float, == 0, masked_fill with -inf, asserts
# answers: causal_mask, masked_softmax, masked_attention, attend_with_cache
import math

import torch
import torch.nn as nn
from torch.nn import functional as F

torch.manual_seed(1337)
B, T, C = 4, 8, 32
device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float32"
x = torch.randn(B, T, C).to(device)

# version 3: use Softmax
tril = torch.tril(torch.ones(T, T, device=device))
wei = torch.zeros((T, T)).to(device)
wei = wei.masked_fill(tril == 0, float("-inf"))
wei = F.softmax(wei, dim=-1)
assert torch.allclose(wei.sum(-1), torch.ones(T, device=device))
# flash attention make GPU go brrrrr but support is only in PyTorch >= 2.0
flash = hasattr(torch.nn.functional, "scaled_dot_product_attention")
print("flash:", flash)


# %%
def causal_mask(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    bias = torch.tril(torch.ones(n_q, n_k, device=device), diagonal=n_k - n_q)
    return bias != 0


# %%
def masked_softmax(scores, mask=None):
    att = scores
    if mask is not None:
        att = att.masked_fill(mask == 0, float("-inf"))
    empty = torch.isinf(att).all(dim=-1, keepdim=True)
    att = F.softmax(att.masked_fill(empty, 0.0), dim=-1)
    return att * (~empty)


# %%
def masked_attention(query, key, value, mask=None):
    # manual implementation of attention
    att = (query @ key.transpose(-2, -1)) * (1.0 / math.sqrt(key.size(-1)))
    att = masked_softmax(att, mask)
    # efficient attention using Flash Attention CUDA kernels
    # y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0)
    y = att @ value  # (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
    return y, att


# %%
def attend_with_cache(attention, x, cache=None):
    B, T, C = x.size()  # batch size, sequence length, embedding dimensionality (n_embd)
    nh = attention.num_heads
    k = attention.W_k(x).view(B, T, nh, C // nh).transpose(1, 2)  # (B, nh, T, hs)
    q = attention.W_q(x).view(B, T, nh, C // nh).transpose(1, 2)  # (B, nh, T, hs)
    v = attention.W_v(x).view(B, T, nh, C // nh).transpose(1, 2)  # (B, nh, T, hs)
    if cache:
        past_k, past_v = cache
        k = torch.cat([past_k, k], dim=2)
        v = torch.cat([past_v, v], dim=2)
    y, _ = masked_attention(q, k, v, causal_mask(T, k.size(2), x.device))
    y = y.transpose(1, 2).contiguous().view(B, T, C)  # re-assemble all head outputs side by side
    return attention.W_o(y), (k, v)
