"""Attention scoring: additive, dot-product, bilinear and cosine, and self-attention.

Sources: D. Bahdanau, K. Cho, Y. Bengio, "Neural machine translation by jointly learning to align
and translate" (2015); M.-T. Luong, H. Pham, C. D. Manning, "Effective approaches to attention-based
neural machine translation" (2015); A. Vaswani et al., "Attention is all you need" (2017).
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Num
from torch import Tensor, nn


def simple_attention(
    query: Num[np.ndarray, "*batch n_q d_k"],
    key: Num[np.ndarray, "*batch n_k d_k"],
    value: Num[np.ndarray, "*batch n_k d_v"],
) -> tuple[Float[np.ndarray, "*batch n_q d_v"], Float[np.ndarray, "*batch n_q n_k"]]:
    """Attend by dot products, unscaled: softmax(QKᵀ)V, in NumPy.

    Shapes: query `(..., n_q, d_k)`, key `(..., n_k, d_k)`, value
    `(..., n_k, d_v)` → `(output, weights)` of shapes `(..., n_q, d_v)` and
    `(..., n_q, n_k)`; each row of the weights sums to 1. Integers give float64;
    float32 stays float32. Scores of ±1e4 give finite weights. Source: Luong,
    Pham, Manning (2015), the score that they call "dot".
    """
    ### BEGIN SOLUTION
    scores = query @ key.swapaxes(-2, -1)  # (..., n_q, n_k)
    counts = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = counts / counts.sum(axis=-1, keepdims=True)
    return weights @ value, weights  # (..., n_q, d_v), (..., n_q, n_k)
    ### END SOLUTION


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch n_q d_k"],
    key: Float[Tensor, "*batch n_k d_k"],
    value: Float[Tensor, "*batch n_k d_v"],
) -> tuple[Float[Tensor, "*batch n_q d_v"], Float[Tensor, "*batch n_q n_k"]]:
    """Attend by scaled dot products: softmax(QKᵀ / √d_k)V, in torch.

    Shapes: query `(..., n_q, d_k)`, key `(..., n_k, d_k)`, value
    `(..., n_k, d_v)` → `(output, weights)` of shapes `(..., n_q, d_v)` and
    `(..., n_q, n_k)`. Scores of ±1e4 give finite weights. Source: Vaswani et
    al. (2017), equation 1.
    """
    ### BEGIN SOLUTION
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., n_q, n_k)
    weights = torch.softmax(scores, dim=-1)
    return weights @ value, weights  # (..., n_q, d_v), (..., n_q, n_k)
    ### END SOLUTION


def bug_in_scaling(d_k: int) -> tuple[tuple[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]]:
    """Find two inputs for `wrong_scale`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(query, key, value)` of shapes `(n_q, d_k)`,
    `(n_k, d_k)` and `(n_k, d_v)`; the other sizes are yours, from 1 to 64. On `shows`,
    the right output and the wrong one differ by 0.01 or more somewhere; on `hides` they
    are equal, although the scores of each query differ, and the values, by 0.1 or more.
    """
    ### BEGIN SOLUTION
    query, key = torch.full((1, d_k), 3.0), torch.eye(2, d_k)
    key[1] = 0.0
    shows, hides = torch.eye(2, 1), torch.eye(2, d_k)  # only the size of the values differs
    return (query, key, shows), (query, key, hides)
    ### END SOLUTION


class SelfAttention(nn.Module):
    """Self-attention: queries, keys and values are three linear views of one sequence.

    Parameters: the linear layers `W_q` and `W_k` (d_model to d_k) and `W_v`
    (d_model to d_v), none with a bias. The scores are divided by √d_k. Source:
    Vaswani et al. (2017), section 3.2.
    """

    def __init__(self, d_model: int, d_k: int, d_v: int):
        super().__init__()
        self.W_q = nn.Linear(d_model, d_k, bias=False)
        self.W_k = nn.Linear(d_model, d_k, bias=False)
        self.W_v = nn.Linear(d_model, d_v, bias=False)

    def forward(
        self, x: Float[Tensor, "B n d_model"]
    ) -> tuple[Float[Tensor, "B n d_v"], Float[Tensor, "B n n"]]:
        """Attend from every position of x to every position of x.

        Returns `(output, weights)`. Shapes: x `(B, n, d_model)` → output `(B, n, d_v)`, weights
        `(B, n, n)`.
        """
        ### BEGIN SOLUTION
        return scaled_dot_product_attention(self.W_q(x), self.W_k(x), self.W_v(x))
        ### END SOLUTION


class AdditiveAttention(nn.Module):
    """Additive attention: the score of a pair is w_vᵀ tanh(W_q q + W_k k).

    Queries and keys may differ in size. Parameters: the linear layers `W_q`
    (query_size to hidden_size), `W_k` (key_size to hidden_size) and `w_v`
    (hidden_size to 1), none with a bias. Source: Bahdanau, Cho, Bengio (2015),
    appendix A.1.2.
    """

    def __init__(self, query_size: int, key_size: int, hidden_size: int, dropout: float = 0.0):
        super().__init__()
        self.W_q = nn.Linear(query_size, hidden_size, bias=False)
        self.W_k = nn.Linear(key_size, hidden_size, bias=False)
        self.w_v = nn.Linear(hidden_size, 1, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        query: Float[Tensor, "B n_q query_size"],
        key: Float[Tensor, "B n_k key_size"],
        value: Float[Tensor, "B n_k d_v"],
    ) -> tuple[Float[Tensor, "B n_q d_v"], Float[Tensor, "B n_q n_k"]]:
        """Attend, and return `(output, weights)`.

        Shapes: query `(B, n_q, query_size)`, key `(B, n_k, key_size)`, value
        `(B, n_k, d_v)` → output `(B, n_q, d_v)`, weights `(B, n_q, n_k)`.
        Dropout acts on the weights; the returned ones are those before dropout.
        """
        ### BEGIN SOLUTION
        sums = self.W_q(query).unsqueeze(-2) + self.W_k(key).unsqueeze(-3)  # (B, n_q, n_k, h)
        scores = self.w_v(torch.tanh(sums)).squeeze(-1)  # (B, n_q, n_k)
        weights = torch.softmax(scores, dim=-1)
        return self.dropout(weights) @ value, weights  # (B, n_q, d_v), (B, n_q, n_k)
        ### END SOLUTION


class BilinearAttention(nn.Module):
    """Bilinear attention: the score of a pair is qᵀWk / (query_size · key_size)^¼.

    Queries and keys may differ in size. One parameter: the matrix `W`
    `(query_size, key_size)`, initialised as in Glorot and Bengio (2010), for
    which the divisor is chosen. Source: Luong, Pham, Manning (2015), the score
    that they call "general", without the divisor.
    """

    def __init__(self, query_size: int, key_size: int):
        super().__init__()
        self.W = nn.Parameter(torch.empty(query_size, key_size))
        nn.init.xavier_uniform_(self.W)

    def forward(
        self,
        query: Float[Tensor, "B n_q query_size"],
        key: Float[Tensor, "B n_k key_size"],
        value: Float[Tensor, "B n_k d_v"],
    ) -> tuple[Float[Tensor, "B n_q d_v"], Float[Tensor, "B n_q n_k"]]:
        """Attend, and return `(output, weights)`.

        Shapes: query `(B, n_q, query_size)`, key `(B, n_k, key_size)`, value
        `(B, n_k, d_v)` → output `(B, n_q, d_v)`, weights `(B, n_q, n_k)`.
        """
        ### BEGIN SOLUTION
        scores = query @ self.W @ key.transpose(-2, -1)  # (B, n_q, n_k)
        query_size, key_size = self.W.shape
        weights = torch.softmax(scores / (query_size * key_size) ** 0.25, dim=-1)
        return weights @ value, weights  # (B, n_q, d_v), (B, n_q, n_k)
        ### END SOLUTION


def cosine_scores(
    query: Float[Tensor, "*batch n_q d"], key: Float[Tensor, "*batch n_k d"], eps: float = 1e-8
) -> Float[Tensor, "*batch n_q n_k"]:
    """Score every pair by the cosine of the angle between the two: q·k / (‖q‖ ‖k‖).

    Shapes: query `(..., n_q, d)`, key `(..., n_k, d)` → `(..., n_q, n_k)`, in
    [−1, 1]. Each length counts as max(length, eps), so a zero vector scores 0 with
    every other.
    """
    ### BEGIN SOLUTION
    query = query / query.norm(dim=-1, keepdim=True).clamp_min(eps)
    key = key / key.norm(dim=-1, keepdim=True).clamp_min(eps)
    return (query @ key.transpose(-2, -1)).clamp(-1.0, 1.0)  # (..., n_q, n_k)
    ### END SOLUTION
