"""Masking: what a query may see, in training and while a sequence is written token by token.

Sources: A. Vaswani et al., "Attention is all you need" (2017), sections 3.2.1 and 3.2.3 for the
mask and its −∞; N. Shazeer, "Fast Transformer Decoding" (2019) for decoding with a cache.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


def padding_mask(
    lengths: Int[Tensor, "batch"], max_len: int | None = None
) -> Bool[Tensor, "batch 1 1 max_len"]:
    """Mark the positions of a padded batch that hold a token: True up to each length, then False.

    Shapes: lengths `(B,)`, integers ≥ 0 → boolean `(B, 1, 1, max_len)`, which broadcasts over heads
    and queries. `max_len` defaults to the longest length. Raises a `ValueError` that names both
    numbers if a length exceeds `max_len`.
    """
    ### BEGIN SOLUTION
    longest = int(lengths.max())
    max_len = longest if max_len is None else max_len
    if longest > max_len:
        raise ValueError(f"a sequence of length {longest} does not fit into max_len {max_len}")
    position = torch.arange(max_len, device=lengths.device)  # (max_len,)
    return (position < lengths[:, None])[:, None, None, :]  # (B, 1, 1, max_len)
    ### END SOLUTION


def causal_mask(
    n_q: int, n_k: int | None = None, device: torch.device | str | None = None
) -> Bool[Tensor, "n_q n_k"]:
    """Let each query see the keys up to its own position, the last query all of them.

    Shapes: → boolean `(n_q, n_k)` on `device`; `n_k` defaults to `n_q`, and may be 0. The queries
    are the last `n_q` of the `n_k` positions: query i is at position i + n_k − n_q. If there are
    more queries than keys, the first n_q − n_k see nothing. Source: Vaswani et al. (2017),
    section 3.2.3.
    """
    ### BEGIN SOLUTION
    n_k = n_q if n_k is None else n_k
    everything = torch.ones(n_q, n_k, dtype=torch.bool, device=device)
    return everything.tril(diagonal=n_k - n_q)
    ### END SOLUTION


def pack(
    sequences: Sequence[Int[Tensor, "_"]], length: int, causal: bool = False
) -> tuple[
    Int[Tensor, "rows length"],
    Int[Tensor, "rows length"],
    Bool[Tensor, "rows 1 length length"],
    Int[Tensor, "n 2"],
]:
    """Lay sequences one behind another, each in one piece, into rows of `length` tokens.

    One after the other, in the given order, each goes into the first row that still has room for
    it, behind what is there; if none has, it begins a new row. An empty sequence takes no room.

    Shapes: sequences, one or more, `(n_0,)`, `(n_1,)`, …, integers of one dtype, on one device →
    `(tokens, positions, mask, places)`. Tokens `(rows, length)`, of the sequences' dtype: 0 at
    padding, which is what remains at the end of a row; a 0 may also be a token. Positions
    `(rows, length)`, long: counted from 0 in each sequence; 0 at padding. Mask
    `(rows, 1, length, length)`, boolean, True = *may attend*: a token to all of its own sequence,
    with `causal` only to itself and to what is before it; padding neither sees nor is seen. Places
    `(n, 2)`, long: the row and the column where each sequence begins, as they were given. Raises a
    `ValueError` that names both numbers if a sequence is longer than `length`.
    """
    ### BEGIN SOLUTION
    taken, places = [], []  # of each row; of each sequence
    for sequence in sequences:
        n = len(sequence)
        if n > length:
            raise ValueError(f"a sequence of {n} tokens does not fit into a row of {length}")
        row = next((r for r, used in enumerate(taken) if used + n <= length), len(taken))
        if row == len(taken):
            taken.append(0)
        places.append((row, taken[row]))
        taken[row] += n

    device = sequences[0].device
    tokens = sequences[0].new_zeros(len(taken), length)
    positions = torch.zeros(len(taken), length, dtype=torch.long, device=device)
    owner = torch.full((len(taken), length), -1, device=device)  # the sequence's number
    for i, (sequence, (row, start)) in enumerate(zip(sequences, places, strict=True)):
        end = start + len(sequence)
        tokens[row, start:end] = sequence
        positions[row, start:end] = torch.arange(len(sequence), device=device)
        owner[row, start:end] = i

    mask = (owner[:, :, None] == owner[:, None, :]) & (owner[:, :, None] >= 0)
    if causal:
        mask = mask & causal_mask(length, device=device)
    return tokens, positions, mask[:, None], torch.tensor(places, device=device)
    ### END SOLUTION


def masked_softmax(
    scores: Float[Tensor, "*batch n_k"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch n_k"]:
    """Turn scores into weights over the last axis; what the mask forbids gets exactly 0.

    Shapes: scores `(..., n_k)` → the same. The mask is boolean, True = *may attend*, and broadcasts
    to the scores. A row that may attend to nothing is all zeros, and gradients are finite
    everywhere. Scores of ±1e4 and −inf give finite weights, as long as a row may attend to some
    finite score. The dtype is kept, float16 as well. Source: Vaswani et al. (2017), section 3.2.3.
    """
    ### BEGIN SOLUTION
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    nothing = scores.isneginf().all(dim=-1, keepdim=True)  # (..., 1)
    weights = torch.softmax(scores.masked_fill(nothing, 0.0), dim=-1)
    return weights.masked_fill(nothing, 0.0)
    ### END SOLUTION


def bug_in_masking(
    mask: Bool[Tensor, "n_q n_k"],
) -> tuple[Float[Tensor, "n_q n_k"], Float[Tensor, "n_q n_k"]]:
    """Find two tables of scores for `wrong_masking`: one shows its bug, one hides it.

    Shapes: mask `(n_q, n_k)`, boolean, True = *may attend*, both in every row →
    `(shows, hides)`, each `(n_q, n_k)`, with scores from −1000 to 1000. On `shows`, the
    right weights and the wrong ones differ by 0.01 or more somewhere; on `hides` they
    are equal.
    """
    ### BEGIN SOLUTION
    shows = torch.zeros(mask.shape)
    hides = torch.full(mask.shape, 50.0)  # exp(0) is nothing beside exp(50)
    return shows, hides
    ### END SOLUTION


def masked_attention(
    query: Float[Tensor, "*batch n_q d_k"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
    mask: Bool[Tensor, "..."] | None = None,
) -> tuple[Float[Tensor, "*batch n_q d_v"], Float[Tensor, "*batch n_q n_k"]]:
    """Let each query attend to the keys that its mask allows: softmax(QKᵀ / √d_k, masked) V.

    Shapes: query `(..., n_q, d_k)`, key `(..., n_k, d_k)`, value `(..., n_k, d_v)` →
    `(output, weights)` of shapes `(..., n_q, d_v)` and `(..., n_q, n_k)`. The mask is boolean, True
    = *may attend*, and broadcasts to the weights. A query that may attend to nothing gets zero
    weights and a zero output. Source: Vaswani et al. (2017), equation 1.
    """
    ### BEGIN SOLUTION
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., n_q, n_k)
    weights = masked_softmax(scores, mask)
    return weights @ value, weights  # (..., n_q, d_v), (..., n_q, n_k)
    ### END SOLUTION


def influence(
    function: Callable[[Float[Tensor, "n d"]], Float[Tensor, "m p"]],
    x: Float[Tensor, "n d"],
    other: Float[Tensor, "n d"],
) -> Float[Tensor, "m n"]:
    """Measure how far each row of a function's output moves when one row of its input is replaced.

    Shapes: x, other `(n, d)` → `(m, n)`. `function` turns `(n, d)` into `(m, p)`, and gives the
    same for the same input. Entry (i, j) is the length, over the p features, of the change of
    output i when row j of x is replaced by row j of other and all other rows of x stay as they
    are. x and other are left unchanged; the dtype is that of x. The result need not have
    gradients.
    """
    ### BEGIN SOLUTION
    before = function(x)  # (m, p)
    columns = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = other[j]
        columns.append((function(changed) - before).norm(dim=-1))  # (m,)
    return torch.stack(columns, dim=-1)
    ### END SOLUTION


def attend_with_cache(
    attention: nn.Module,
    x: Float[Tensor, "batch t d_model"],
    cache: tuple[Float[Tensor, "batch heads past d_k"], ...] | None = None,
) -> tuple[Float[Tensor, "batch t d_model"], tuple[Float[Tensor, "batch heads total d_k"], ...]]:
    """Attend from t new positions to all so far; return the keys and values for the next call, too.

    `attention` is a `blocks.MultiHeadAttention`: linear layers `W_q`, `W_k`, `W_v`, `W_o`, and
    `num_heads`. Shapes: x `(B, t, d_model)`, t ≥ 1; cache `(k, v)`, each `(B, H, T, d_k)`, or None
    at the start → `(output, new_cache)`: `(B, t, d_model)` and `(k, v)`, each `(B, H, T + t, d_k)`.
    Apart from dropout, the outputs are those of one causal pass over all T + t positions. The cache
    passed in is left unchanged. Source: Shazeer (2019), "Fast Transformer Decoding".
    """
    ### BEGIN SOLUTION
    projections = (attention.W_q(x), attention.W_k(x), attention.W_v(x))
    split = (p.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2) for p in projections)
    q, k, v = split  # each (B, H, t, d_k)
    if cache is not None:
        k = torch.cat([cache[0], k], dim=2)  # (B, H, T + t, d_k)
        v = torch.cat([cache[1], v], dim=2)  # (B, H, T + t, d_k)
    heads, _ = masked_attention(q, k, v, causal_mask(q.shape[2], k.shape[2], x.device))
    return attention.W_o(heads.transpose(1, 2).flatten(2)), (k, v)  # (B, t, d_model)
    ### END SOLUTION
