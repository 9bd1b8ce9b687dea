# what: written after d2l.ai: sequence_mask, X[~mask] = value on a copy, show_heatmaps, add_to_class
# answers: padding_mask, causal_mask, masked_softmax, masked_attention
import math

import torch
from torch import nn


def sequence_mask(X, valid_len, value=0):
    """Mask irrelevant entries in sequences."""
    maxlen = X.size(1)
    mask = (
        torch.arange((maxlen), dtype=torch.float32, device=X.device)[None, :] < valid_len[:, None]
    )
    X[~mask] = value
    return X


sequence_mask(torch.tensor([[1, 2, 3], [4, 5, 6]]), torch.tensor([1, 2]))


# %%
def padding_mask(lengths, max_len=None):
    if max_len is None:
        max_len = max(lengths.tolist())
    if (lengths > max_len).any():
        raise ValueError(
            f"sequence of length {int(lengths.max())} is longer than max_len={max_len}"
        )
    X = torch.ones(len(lengths), max_len, dtype=torch.bool, device=lengths.device)
    return sequence_mask(X, lengths, False).reshape(-1, 1, 1, max_len)


# %%
def causal_mask(n_q, n_k=None, device=None):
    n_k = n_q if n_k is None else n_k
    rows = torch.arange(n_k - n_q, n_k, device=device).repeat(n_k, 1).T
    cols = torch.arange(n_k, device=device).repeat(n_q, 1)
    return cols <= rows


# %%
def masked_softmax(scores, mask=None):
    """Perform softmax operation by masking elements on the last axis."""
    # X: nD tensor, valid: True = may attend
    X, valid = scores, mask
    if valid is None:
        valid = torch.ones_like(X, dtype=torch.bool)
    valid = valid.expand(X.shape) & (X > -math.inf)
    X = X.masked_fill(~valid, -1e30 if X.dtype != torch.float16 else -6e4)
    weights = nn.functional.softmax(X, dim=-1)
    return torch.where(valid, weights, 0.0)


# %%
class DotProductAttention:
    pass


def add_to_class(Class):
    """Register functions as methods in created class."""

    def wrapper(obj):
        setattr(Class, obj.__name__, obj)

    return wrapper


@add_to_class(DotProductAttention)
def __call__(self, queries, keys, values, mask=None):
    d = queries.shape[-1]
    scores = torch.matmul(queries, keys.transpose(-2, -1)) / math.sqrt(d)
    self.attention_weights = masked_softmax(scores, mask)
    return torch.matmul(self.attention_weights, values), self.attention_weights


def masked_attention(query, key, value, mask=None):
    return DotProductAttention()(query, key, value, mask)
