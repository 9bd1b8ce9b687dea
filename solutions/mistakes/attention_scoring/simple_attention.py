"""Known answers to `simple_attention`: mistakes, then right answers."""

import numpy as np
import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import attention_scoring as right

BANK = Bank("simple_attention", right, globals())


def _softmax(scores, axis=-1):
    counts = np.exp(scores - scores.max(axis, keepdims=True))
    return counts / counts.sum(axis, keepdims=True)


def _dots(query, key):
    return np.einsum("...qd,...kd->...qk", query, key)


def _attend(scores, value):
    weights = _softmax(scores)
    return weights @ value, weights


BANK.read()


@BANK.right
def by_einsum(query, key, value):
    weights = _softmax(np.einsum("...id,...jd->...ij", query, key))
    return np.einsum("...ij,...jv->...iv", weights, value), weights


@BANK.right
def query_by_query(query, key, value):
    weights = np.zeros(query.shape[:-1] + key.shape[-2:-1], np.result_type(query, key, np.float32))
    for index in np.ndindex(*query.shape[:-1]):
        scores = key[index[:-1]] @ query[index]
        counts = np.exp(scores - scores.max())
        weights[index] = counts / counts.sum()
    return weights @ value, weights


@BANK.right
def largest_score_by_logsumexp(query, key, value):
    scores = np.matmul(query, np.moveaxis(key, -1, -2))
    weights = np.exp(scores - np.logaddexp.reduce(scores, axis=-1, keepdims=True))
    return np.matmul(weights, value), weights


@BANK.right
def averaged_before_dividing(query, key, value):
    scores = _dots(query, key)
    counts = np.exp(scores - np.amax(scores, axis=-1)[..., None])
    total = counts.sum(axis=-1)[..., None]
    return (counts @ value) / total, counts / total


@BANK.right
def by_broadcasting(query, key, value):
    scores = np.sum(np.expand_dims(query, -2) * np.expand_dims(key, -3), axis=-1)
    weights = _softmax(scores)
    return (weights[..., None] * value[..., None, :, :]).sum(axis=-2), weights


@BANK.right
def by_torch(query, key, value):
    kind = np.result_type(query, key, value)
    kind = kind if kind == np.float32 else np.float64
    q, k, v = (torch.from_numpy(np.ascontiguousarray(x, kind)) for x in (query, key, value))
    weights = F.softmax(q @ k.mT, dim=-1)
    return (weights @ v).numpy(), weights.numpy()
