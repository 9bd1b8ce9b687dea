"""Known answers to `next_token_probabilities`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import language_model as right

BANK = Bank("next_token_probabilities", right, globals())
BANK.read()


def _checked(temperature, top_k, top_p):
    if temperature < 0:
        raise ValueError(f"temperature {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p {top_p}")


@BANK.right
def by_ranks(logits, temperature=1.0, top_k=None, top_p=None):
    """Every token's rank, and the sum of the tokens that rank before it."""
    _checked(temperature, top_k, top_p)
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    V = logits.shape[-1]
    place = torch.arange(V, device=logits.device)
    a, b = logits[..., :, None], logits[..., None, :]
    before = (b > a) | ((b == a) & (place < place[:, None]))  # (..., V, V): b comes before a
    k = V if top_k is None else top_k
    p = (logits / temperature).masked_fill(before.sum(-1) >= k, -torch.inf).softmax(-1)
    if top_p is not None:
        reached = (before * p[..., None, :]).sum(-1)
        p = torch.where((reached < top_p) | (top_p == 1), p, 0)
    return p / p.sum(-1, keepdim=True)


@BANK.right
def row_by_row(logits, temperature=1.0, top_k=None, top_p=None):
    _checked(temperature, top_k, top_p)
    V = logits.shape[-1]
    rows = []
    for row in logits.reshape(-1, V):
        numbers = row.tolist()
        ranked = sorted(range(V), key=lambda i, numbers=numbers: (-numbers[i], i))
        kept = ranked[: 1 if temperature == 0 else top_k]
        p = torch.zeros_like(row)
        p[kept] = (row[kept] / (temperature or 1.0)).softmax(-1)
        if top_p is not None and temperature > 0 and top_p < 1:
            total, few = 0.0, []
            for i in kept:
                if total >= top_p:
                    break
                few.append(i)
                total += p[i].item()
            q = torch.zeros_like(p)
            q[few] = p[few] / p[few].sum()
            p = q
        rows.append(p)
    return torch.stack(rows).reshape(logits.shape)


@BANK.right
def with_scores_of_minus_infinity(logits, temperature=1.0, top_k=None, top_p=None):
    """What may not come gets the logit −∞, and the softmax renormalises."""
    _checked(temperature, top_k, top_p)
    if temperature == 0:
        p = torch.zeros_like(logits)
        return p.scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    scores = logits / temperature
    if top_k is not None:
        order = scores.argsort(dim=-1, descending=True, stable=True)
        scores = scores.scatter(-1, order[..., top_k:], -torch.inf)
    if top_p is not None and top_p < 1:
        ranked, order = scores.sort(dim=-1, descending=True, stable=True)
        reached = F.pad(ranked.softmax(-1).cumsum(-1)[..., :-1], (1, 0))
        scores = scores.scatter(-1, order, ranked.masked_fill(reached >= top_p, -torch.inf))
    return scores.softmax(-1)


@BANK.right
def put_back_by_the_inverse_order(logits, temperature=1.0, top_k=None, top_p=None):
    _checked(temperature, top_k, top_p)
    if temperature == 0:
        best = logits.max(-1, keepdim=True).values == logits
        return (best & (best.cumsum(-1) == 1)).to(logits.dtype)
    order = torch.argsort(-logits, dim=-1, stable=True)
    p = torch.softmax(logits.gather(-1, order) / temperature, -1)
    place = torch.arange(p.shape[-1], device=p.device)
    if top_k is not None:
        p = F.normalize(p * (place < top_k), p=1.0, dim=-1)
    if top_p is not None:
        stays = 1 + (p.cumsum(-1)[..., :-1] < top_p).sum(-1, keepdim=True)
        p = F.normalize(p * (place < stays), p=1.0, dim=-1)
    return p.gather(-1, order.argsort(-1))


@BANK.right
def probabilities_of_the_blocks(logits, temperature=1.0, top_k=None, top_p=None):
    return blocks.next_token_probabilities(logits, temperature, top_k, top_p)


@BANK.right
def wide_inside(logits, temperature=1.0, top_k=None, top_p=None):
    p = with_scores_of_minus_infinity(logits.double(), temperature, top_k, top_p)
    return p.to(logits.dtype)
