"""Known answers to `cosine_scores`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import attention_scoring as right

BANK = Bank("cosine_scores", right, globals())
BANK.read()


@BANK.right
def by_torchs_cosine(query, key, eps=1e-8):
    return F.cosine_similarity(query[..., :, None, :], key[..., None, :, :], dim=-1, eps=eps)


@BANK.right
def by_normalize(query, key, eps=1e-8):
    return F.normalize(query, dim=-1, eps=eps) @ F.normalize(key, dim=-1, eps=eps).mT


@BANK.mistake
def eps_bounds_the_product(query, key, eps=1e-8):
    """eps bounds the product of the two lengths. It is the least that each length counts as: beside
    a long vector, a short one would go unnoticed."""
    lengths = (
        torch.linalg.norm(query, dim=-1)[..., None] * torch.linalg.norm(key, dim=-1)[..., None, :]
    )
    return torch.einsum("...id,...jd->...ij", query, key) / torch.clamp(lengths, min=eps)


@BANK.mistake
def eps_added_to_lengths(query, key, eps=1e-8):
    """eps is added to every length. It is the least that a length counts as, and changes no longer
    one."""
    q, k = (x / (x.norm(dim=-1, keepdim=True) + eps) for x in (query, key))
    return torch.matmul(q, k.transpose(-1, -2))


@BANK.right
def maximum_with_eps(query, key, eps=1e-8):
    lengths = [x.square().sum(-1).sqrt() for x in (query, key)]
    q, k = (n.maximum(torch.full_like(n, eps)) for n in lengths)
    return (query @ key.mT) / q.unsqueeze(-1) / k.unsqueeze(-2)


@BANK.right
def query_by_query(query, key, eps=1e-8):
    rows = [
        F.cosine_similarity(query[..., i : i + 1, :], key, dim=-1, eps=eps)
        for i in range(query.shape[-2])
    ]
    return torch.stack(rows, dim=-2).clamp(-1, 1)


@BANK.mistake
def short_lengths_count_as_one(query, key, eps=1e-8):
    """A length below eps counts as 1. It counts as eps."""
    lengths = [x.norm(dim=-1, keepdim=True) for x in (query, key)]
    q, k = (
        x / torch.where(n < eps, torch.ones_like(n), n)
        for x, n in zip((query, key), lengths, strict=True)
    )
    return q @ k.mT
