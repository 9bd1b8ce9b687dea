"""Known answers to `multi_head_numpy`: mistakes, then right answers."""

import math

import numpy as np

from autograder.bank import Bank
from solutions import multi_head as right

BANK = Bank("multi_head_numpy", right, globals())
BANK.read()


def _cut(x, num_heads):
    return x.reshape(len(x), num_heads, -1).swapaxes(0, 1)


def _joined(heads):
    return heads.swapaxes(0, 1).reshape(heads.shape[1], -1)


def _softmax(scores, axis=-1):
    weights = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return weights / weights.sum(axis=axis, keepdims=True)


@BANK.right
def numpy_loop_over_heads(query, key, value, num_heads):
    slices = [np.split(x, num_heads, axis=-1) for x in (query, key, value)]
    heads = []
    for q, k, v in zip(*slices, strict=True):
        heads.append(_softmax(q @ k.T / q.shape[-1] ** 0.5) @ v)
    return np.concatenate(heads, axis=-1)


@BANK.right
def numpy_einsum(query, key, value, num_heads):
    q, k, v = (x.reshape(x.shape[0], num_heads, -1) for x in (query, key, value))
    scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(q.shape[-1])
    return np.einsum("hqk,khd->qhd", _softmax(scores), v).reshape(query.shape)


@BANK.right
def numpy_wide_inside(query, key, value, num_heads):
    q, k, v = (_cut(x.astype(np.float64), num_heads) for x in (query, key, value))
    out = _joined(_softmax(q / math.sqrt(q.shape[-1]) @ k.swapaxes(1, 2)) @ v)
    return out.astype(query.dtype) if query.dtype.kind == "f" else out


@BANK.right
def numpy_divided_last(query, key, value, num_heads):
    q, k, v = (_cut(x, num_heads) for x in (query, key, value))
    scores = (q @ k.transpose(0, 2, 1)) * (q.shape[-1] ** -0.5)
    scores = scores - scores.max(-1)[..., None]
    weights = np.exp(scores)
    return _joined((weights @ v) / weights.sum(-1)[..., None])


@BANK.right
def numpy_filled_slices(query, key, value, num_heads):
    d_k = query.shape[1] // num_heads
    out = np.empty(query.shape, np.result_type(query, np.float32 if query.itemsize < 8 else float))
    for h in range(num_heads):
        own = slice(h * d_k, (h + 1) * d_k)
        out[:, own] = _softmax(query[:, own] @ key[:, own].T / math.sqrt(d_k)) @ value[:, own]
    return out
