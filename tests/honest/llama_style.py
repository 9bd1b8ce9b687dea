# what: rotary embedding after Llama's code, with complex numbers; assertions; f-strings with =
# answers: rotary_embedding, rotary_attention
import math
from typing import Tuple

import torch
from torch import Tensor


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0, start: int = 0) -> Tensor:
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2, dtype=torch.float64)[: (dim // 2)] / dim))
    t = torch.arange(start, start + end, device=freqs.device, dtype=torch.float64)
    freqs = torch.outer(t, freqs)
    return torch.polar(torch.ones_like(freqs), freqs)  # complex128


def reshape_for_broadcast(freqs_cis: Tensor, x: Tensor) -> Tensor:
    ndim = x.ndim
    assert 0 <= 1 < ndim
    assert freqs_cis.shape == (x.shape[-2], x.shape[-1]), f"{freqs_cis.shape=} {x.shape=}"
    shape = [d if i >= ndim - 2 else 1 for i, d in enumerate(x.shape)]
    return freqs_cis.view(*shape)


# %%
def rotary_embedding(x: Tensor, base: float = 10000.0, offset: int = 0) -> Tensor:
    x_ = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    freqs_cis = precompute_freqs_cis(x.shape[-1], x.shape[-2], base, offset)
    freqs_cis = reshape_for_broadcast(freqs_cis.to(x_.device), x_)
    x_out = torch.view_as_real(x_ * freqs_cis).flatten(-2)
    return x_out.type_as(x)


# %%
def apply_rotary_emb(xq: Tensor, xk: Tensor, base: float) -> Tuple[Tensor, Tensor]:
    return rotary_embedding(xq, base, xk.shape[-2] - xq.shape[-2]), rotary_embedding(xk, base)


def rotary_attention(query, key, value, base=10000.0):
    xq, xk = apply_rotary_emb(query, key, base)
    scores = torch.matmul(xq, xk.transpose(-2, -1)) / math.sqrt(query.shape[-1])
    scores = torch.softmax(scores, dim=-1).type_as(xq)
    return torch.matmul(scores, value), scores
