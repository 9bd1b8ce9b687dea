"""Short exercises, done in other ways: an answer that calls a wrong one is judged with these.

Shapes and errors are those of the exercises of these names.
"""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from attention_by_hand.blocks import fused_attention

# --- Chapter 1: NumPy, by way of torch ------------------------------------------------------------


def softmax(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """torch's softmax for arrays; zeros where every score is −inf."""
    given = torch.as_tensor(scores)
    wide = given if given.is_floating_point() else given.double()
    return F.softmax(wide, dim=axis).nan_to_num(nan=0.0).numpy()


def gaussian_scores(query: np.ndarray, key: np.ndarray, w: float = 1.0) -> np.ndarray:
    """−½ of the squared distances in units of 1/w, from torch's table of distances."""
    a, b = (torch.as_tensor(x).double().reshape(-1, 1) for x in (query, key))
    distances = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    return (-0.5 * (distances * w).square()).numpy().astype(np.result_type(query, key, 1.0))


def nadaraya_watson(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, w: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The Gaussian average of the values, and its weights."""
    weights = softmax(gaussian_scores(query, key, w))
    return np.einsum("qk,k...->q...", weights, value), weights


# --- Chapter 2 ------------------------------------------------------------------------------------


def simple_attention(
    query: np.ndarray, key: np.ndarray, value: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """torch's fused attention without its scale, for arrays."""
    dtype = torch.from_numpy(np.zeros(0, np.result_type(query, key, value, np.float32))).dtype
    q, k, v = (torch.as_tensor(x).to(dtype) for x in (query, key, value))
    identity = torch.eye(k.shape[-2], dtype=dtype).expand(*k.shape[:-1], k.shape[-2])
    attend = (F.scaled_dot_product_attention(q, k, x, scale=1.0) for x in (v, identity))
    output, weights = (x.numpy() for x in attend)
    return output, weights


def scaled_dot_product_attention(
    query: Tensor, key: Tensor, value: Tensor
) -> tuple[Tensor, Tensor]:
    """torch's fused attention, with its weights."""
    return _attended(query, key, value)


# --- Chapter 3 ------------------------------------------------------------------------------------


def split_heads(x: Tensor, num_heads: int) -> Tensor:
    """The features as an axis of heads and one of the rest, the heads moved to the front."""
    if x.shape[-1] % num_heads:
        raise ValueError(f"{num_heads} heads cannot share {x.shape[-1]} features equally")
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3)


def merge_heads(x: Tensor) -> Tensor:
    """The other way round."""
    return x.movedim(-3, -2).flatten(-2)


# --- Chapter 4 ------------------------------------------------------------------------------------


def padding_mask(lengths: Tensor, max_len: int | None = None) -> Tensor:
    """Positions before each length, by counting down from it."""
    most = int(lengths.max())
    places = most if max_len is None else max_len
    if most > places:
        raise ValueError(f"{most} tokens are more than {places}")
    left = lengths.reshape(-1, 1, 1, 1) - torch.arange(places, device=lengths.device)
    return left > 0


def causal_mask(
    n_q: int, n_k: int | None = None, device: torch.device | str | None = None
) -> Tensor:
    """Keys that are not later than the query, the last of both being at the same place."""
    if n_k is None:
        n_k = n_q
    key = torch.arange(n_k, device=device)
    return key <= torch.arange(n_k - n_q, n_k, device=device)[:, None]


def masked_softmax(scores: Tensor, mask: Tensor | None = None) -> Tensor:
    """The softmax of what may be attended to, as a difference to its logarithmic sum."""
    may = scores > float("-inf") if mask is None else mask & (scores > float("-inf"))
    nothing = ~may.any(dim=-1, keepdim=True)
    low = torch.finfo(scores.dtype).min
    kept = torch.where(may, scores, low)
    above = kept - kept.amax(dim=-1, keepdim=True).detach()
    return torch.where(may & ~nothing, F.softmax(above, dim=-1), 0.0)


def influence(function: Callable[[Tensor], Tensor], x: Tensor, other: Tensor) -> Tensor:
    """Rows chosen from x and other by a table of booleans, and distances from torch."""
    one = torch.eye(x.shape[0], dtype=torch.bool, device=x.device)[:, :, None]
    now = torch.stack([function(torch.where(row, other, x)) for row in one], dim=1)  # (m, n, p)
    return torch.linalg.vector_norm(now - function(x).unsqueeze(1), dim=2)


def additive_mask(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """0 where the mask is True, elsewhere the least number of the dtype. No exercise."""
    allowed = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return allowed.masked_fill(~mask, torch.finfo(dtype).min)


def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """The rate of "Attention is all you need", equation 3, from step 1 on. No exercise."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def masked_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The same, where the mask is True."""
    return _attended(query, key, value, mask)


def _attended(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """What torch's fused attention does to the identity are the weights."""
    identity = torch.eye(key.shape[-2], dtype=key.dtype, device=key.device)
    weights = fused_attention(query, key, identity, mask)
    return weights.matmul(value), weights


# --- Chapter 5 ------------------------------------------------------------------------------------


def relative_positions(n_q: int, n_k: int, max_distance: int) -> Tensor:
    """Windows over one row of numbers that fall by one, stopped at both ends."""
    steps = torch.arange(n_k - 1, -max(n_q, n_k), -1)  # from the farthest past to the future
    windows = steps.unfold(0, n_k, 1)  # those of the last position come first
    return windows[:n_q].flip(0).clamp(-max_distance, max_distance) + max_distance


def rotary_embedding(x: Tensor, base: float = 10000.0, offset: int = 0) -> Tensor:
    """Each pair as a complex number, times one of length 1."""
    n, d = x.shape[-2:]
    place = torch.arange(offset, offset + n, dtype=torch.float64, device=x.device)
    speed = torch.logspace(0, -1 + 2 / d, d // 2, base, dtype=torch.float64, device=x.device)
    angle = torch.outer(place, speed)
    turn = torch.polar(torch.ones_like(angle), angle)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(pairs * turn).flatten(-2).to(x.dtype)


# --- Chapter 6 ------------------------------------------------------------------------------------


def gelu(x: Tensor) -> Tensor:
    """torch's."""
    return F.gelu(x)


# --- Chapter 9 ------------------------------------------------------------------------------------


def next_token_loss(logits: Tensor, ids: Tensor, pad_id: int | None = None) -> Tensor:
    """torch's cross-entropy of each token and the logits one place before it."""
    labels = ids[:, 1:]
    counts = torch.ones_like(labels, dtype=logits.dtype) if pad_id is None else labels.ne(pad_id)
    known = labels.where(counts.bool(), 0)
    nats = F.cross_entropy(logits[:, :-1].movedim(-1, 1), known, reduction="none")
    return nats.where(counts.bool(), 0).sum().div(counts.sum().clamp(min=1))
