"""Positional encoding: how attention, which knows no order, learns where a token stands.

Sources: A. Vaswani et al., "Attention is all you need" (2017), section 3.5, for sinusoids;
P. Shaw et al. (2018) and Z. Huang et al. (2020) for relative positions; J. Su et al. (2021) for
rotary embeddings.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def permutation_gap(
    attention: Callable[[Tensor], Tensor],
    x: Float[Tensor, "batch n d_model"],
    permutation: Int[Tensor, "n"],
) -> float:
    """Measure how much the order of the positions matters to `attention`; 0: not at all.

    Compare the output for the permuted input with the permuted output: the
    largest absolute difference, max |attention(x[:, p]) − attention(x)[:, p]|.
    Shapes: x `(B, n, d_model)`; `attention(x)` is a tensor `(B, n, …)`;
    permutation `(n,)`, the numbers 0 … n − 1 in some order → a Python float. The
    module's train/eval mode and torch's grad mode stay as they are.
    """
    ### BEGIN SOLUTION
    with torch.no_grad():
        gap = attention(x[:, permutation]) - attention(x)[:, permutation]  # (B, n, …)
    return gap.abs().max().item()
    ### END SOLUTION


def sinusoidal_encoding(
    max_len: int, d_model: int, base: float = 10000.0
) -> Float[Tensor, "max_len d_model"]:
    """Compute the Transformer's table: one row per position, alternating sine and cosine.

    PE[pos, 2i]     = sin(pos / base^(2i/d_model))
    PE[pos, 2i + 1] = cos(pos / base^(2i/d_model))

    Shapes: → `(max_len, d_model)`, float32; an odd d_model has one more sine than
    cosines. Source: Vaswani et al. (2017), section 3.5.
    """
    ### BEGIN SOLUTION
    position = torch.arange(max_len, dtype=torch.float64)[:, None]  # (max_len, 1)
    rate = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    table = torch.empty(max_len, d_model, dtype=torch.float32)
    table[:, 0::2] = torch.sin(position * rate)
    table[:, 1::2] = torch.cos(position * rate[: d_model // 2])
    return table
    ### END SOLUTION


class PositionalEncoding(nn.Module):
    """Add the sinusoidal encoding of its position to each token, then apply dropout.

    The buffer `pe` `(max_len, d_model)` holds the table: saved and moved with the
    module, but not trained. There are no parameters. `dropout` acts on the sum, in
    training only. Source: Vaswani et al. (2017), sections 3.5 and 5.4.
    """

    def __init__(self, d_model: int, max_len: int = 512, dropout: float = 0.0):
        ### BEGIN SOLUTION
        super().__init__()
        self.register_buffer("pe", sinusoidal_encoding(max_len, d_model))
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(
        self, x: Float[Tensor, "batch n d_model"], offset: int = 0
    ) -> Float[Tensor, "batch n d_model"]:
        """Add the rows offset … offset + n − 1 of the table to every sequence.

        Shapes: x `(B, n, d_model)` → the same. Raises a `ValueError` that names
        both numbers if offset + n exceeds max_len.
        """
        ### BEGIN SOLUTION
        max_len, end = len(self.pe), offset + x.shape[-2]
        if end > max_len:
            raise ValueError(f"{end} positions are needed, and max_len is {max_len}")
        return self.dropout(x + self.pe[offset:end].to(x.dtype))  # (B, n, d) + (n, d)
        ### END SOLUTION


def shift_matrix(
    offset: int, d_model: int, base: float = 10000.0
) -> Float[Tensor, "d_model d_model"]:
    """Find the matrix that moves any position's encoding by `offset` positions.

    It is the M with PE[p + offset] = M @ PE[p] for every position p, where PE is
    the sinusoidal encoding with this base. `offset` may be negative; d_model is
    even. Shapes: → `(d_model, d_model)`, float32. Source: Vaswani et al. (2017),
    section 3.5, which states that such a matrix exists.
    """
    ### BEGIN SOLUTION
    rate = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    cos, sin = torch.cos(offset * rate), torch.sin(offset * rate)  # (d/2,) each
    blocks = torch.stack([cos, sin, -sin, cos], dim=-1).reshape(-1, 2, 2)
    return torch.block_diag(*blocks).float()
    ### END SOLUTION


def relative_positions(
    n_q: int,
    n_k: int,
    max_distance: int,
) -> Int[Tensor, "n_q n_k"]:
    """Number the distances from each query to each key, as rows of a table.

    The distance i − j of a query at position i from a key at position j is clipped
    to −max_distance … max_distance; max_distance is then added, so that the numbers
    start at 0. The last query is at the last key's position. Shapes: → long
    `(n_q, n_k)`, values from 0 to 2·max_distance. Source: Shaw et al. (2018),
    section 3.2, whose sign is the opposite.
    """
    ### BEGIN SOLUTION
    i = torch.arange(n_k - n_q, n_k)[:, None]  # (n_q, 1)
    j = torch.arange(n_k)
    return (i - j).clamp(-max_distance, max_distance) + max_distance
    ### END SOLUTION


def relative_position_scores(
    query: Float[Tensor, "batch heads n_q d_k"],
    key: Float[Tensor, "batch heads n_k d_k"],
    distance_embedding: Float[Tensor, "distances d_k"],
    mode: str,
) -> Float[Tensor, "batch heads n_q n_k"]:
    """Score each key by its distance from the query, unscaled, to be added to QKᵀ.

    Let a_{i−j} be the table's row for the distance i − j, as numbered by
    `relative_positions`. The mode "relative_key" gives q_i·a_{i−j}, and
    "relative_key_query" gives q_i·a_{i−j} + k_j·a_{i−j}. Shapes: query
    `(B, H, n_q, d_k)`, key `(B, H, n_k, d_k)`, distance_embedding
    `(2·max_distance + 1, d_k)` → `(B, H, n_q, n_k)`. Raises `ValueError` for any
    other mode. Sources: Shaw et al. (2018), equation 5; Huang et al. (2020),
    method 4.
    """
    ### BEGIN SOLUTION
    if mode not in ("relative_key", "relative_key_query"):
        raise ValueError(f"mode {mode!r} is neither 'relative_key' nor 'relative_key_query'")
    max_distance = len(distance_embedding) // 2
    distance = relative_positions(query.shape[-2], key.shape[-2], max_distance)
    a = distance_embedding[distance.to(query.device)]  # (n_q, n_k, d_k)
    scores = torch.einsum("...id,ijd->...ij", query, a)
    if mode == "relative_key_query":
        scores = scores + torch.einsum("...jd,ijd->...ij", key, a)
    return scores
    ### END SOLUTION


def rotary_embedding(
    x: Float[Tensor, "*batch n d"], base: float = 10000.0, offset: int = 0
) -> Float[Tensor, "*batch n d"]:
    """Rotate each pair of features by an angle that grows with the position.

    Features 2i and 2i + 1 at position p are the coordinates of a point in the
    plane; rotate it counter-clockwise by the angle (p + offset) · base^(−2i/d).
    Shapes: x `(..., n, d)`, d even → the same, with the same dtype. Meant for
    queries and keys, not for values. Source: Su et al. (2021), section 3.2.2.
    """
    ### BEGIN SOLUTION
    n, d = x.shape[-2:]
    position = torch.arange(offset, offset + n, dtype=torch.float64, device=x.device)
    rate = base ** (-torch.arange(0, d, 2, dtype=torch.float64, device=x.device) / d)
    angle = position[:, None] * rate  # (n, d/2)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    even, odd = x[..., 0::2], x[..., 1::2]  # (..., n, d/2) each
    turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    return turned.flatten(-2)  # (..., n, d)
    ### END SOLUTION


def rotary_attention(
    query: Float[Tensor, "*batch n_q d_k"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    base: float = 10000.0,
) -> tuple[Float[Tensor, "*batch n_q d_v"], Float[Tensor, "*batch n_q n_k"]]:
    """Attend by content and distance, with rotated queries and rotated keys.

    Key j is at position j, and the last query at the last key's position; if n_q > n_k,
    the first queries are at negative positions. Values are not rotated. Shapes: query
    `(..., n_q, d_k)`, key `(..., n_k, d_k)`, value `(..., n_k, d_v)` → `(output, weights)`
    of shapes `(..., n_q, d_v)` and `(..., n_q, n_k)`; d_k is even.
    Source: Su et al. (2021), section 3.2.2.
    """
    ### BEGIN SOLUTION
    q = rotary_embedding(query, base, offset=key.shape[-2] - query.shape[-2])
    k = rotary_embedding(key, base)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (..., n_q, n_k)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights
    ### END SOLUTION


def bug_in_distances(
    n_k: int,
) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Find two inputs for `wrong_distances`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(query, key, value)` of shapes `(n_q, d_k)`,
    `(n_k, d_k)` and `(n_k, d_v)`, n_k ≥ 3; the other sizes are yours, from 1 to 64, with
    n_q ≤ n_k. The last query is at the last key's position. On `shows`, the right output
    and the wrong one differ by 0.01 or more somewhere; on `hides` they are equal,
    although the values differ by 0.1 or more.
    """
    ### BEGIN SOLUTION
    query, key = torch.zeros(n_k, 1), torch.zeros(n_k, 1)
    value = torch.eye(n_k)
    return (query[:1], key, value), (query, key, value)
    ### END SOLUTION
