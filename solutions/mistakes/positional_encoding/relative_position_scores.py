"""Known answers to `relative_position_scores`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import positional_encoding as right
from solutions.mistakes.positional_encoding import relative_positions as indices

BANK = Bank("relative_position_scores", right, globals())
BANK.read()


def _known(mode):
    if mode not in {"relative_key", "relative_key_query"}:
        raise ValueError(f"unknown mode: {mode}")
    return mode == "relative_key_query"


@BANK.right
def all_rows_first_then_gather(query, key, distance_embedding, mode):
    both = _known(mode)
    n_q, n_k = query.shape[-2], key.shape[-2]
    index = indices.by_minimum_and_maximum(n_q, n_k, len(distance_embedding) // 2).to(query.device)
    batch = query.shape[:-2]
    scores = (query @ distance_embedding.T).gather(-1, index.expand(*batch, n_q, n_k))
    if both:
        of_key = (key @ distance_embedding.T).gather(-1, index.T.expand(*batch, n_k, n_q))
        scores = scores + of_key.mT
    return scores


@BANK.right
def relative_pair_by_pair(query, key, distance_embedding, mode):
    both, far = _known(mode), len(distance_embedding) // 2
    n_q, n_k = query.shape[2], key.shape[2]
    rows = []
    for row in range(n_q):
        cells = []
        for j in range(n_k):
            a = distance_embedding[max(-far, min(far, row + n_k - n_q - j)) + far]
            with_whom = query[:, :, row] + key[:, :, j] if both else query[:, :, row]
            cells.append((with_whom * a).sum(-1))
        rows.append(torch.stack(cells, dim=-1))
    return torch.stack(rows, dim=-2)


@BANK.right
def by_multiplying_and_summing(query, key, distance_embedding, mode):
    others = query[..., :, None, :]
    if _known(mode):
        others = others + key[..., None, :, :]
    n_q, n_k, largest = query.shape[-2], key.shape[-2], (len(distance_embedding) - 1) // 2
    index = indices.last_rows_of_all(n_q, n_k, largest)
    return (others * distance_embedding[index.to(query.device)]).sum(dim=-1)


@BANK.right
def by_matmul(query, key, distance_embedding, mode):
    both = _known(mode)
    index = right.relative_positions(query.size(-2), key.size(-2), distance_embedding.size(0) // 2)
    a = F.embedding(index.to(query.device), distance_embedding)  # (n_q, n_k, d_k)
    scores = (a @ query.unsqueeze(-1)).squeeze(-1)
    if both:
        scores = scores + (a.transpose(0, 1) @ key.unsqueeze(-1)).squeeze(-1).transpose(-2, -1)
    return scores


@BANK.right
def by_one_hot_distances(query, key, distance_embedding, mode):
    weight = 1.0 if _known(mode) else 0.0
    rows = len(distance_embedding)
    index = indices.by_numpy(query.shape[-2], key.shape[-2], rows // 2)
    hot = F.one_hot(index, rows).to(query)
    table = torch.einsum("ijr,rd->ijd", hot, distance_embedding)
    of_key = torch.einsum("bhjd,ijd->bhij", key, table)
    return torch.einsum("bhid,ijd->bhij", query, table) + weight * of_key
