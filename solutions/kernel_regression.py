"""Attention as kernel regression: an average of values, closest keys first.

Sources: E. A. Nadaraya, "On estimating regression" (1964); G. S. Watson, "Smooth
regression analysis" (1964); V. A. Epanechnikov (1969) for the kernel that bears his
name.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, Num
from torch import Tensor, nn


def softmax(scores: Num[np.ndarray, "..."], axis: int = -1) -> Float[np.ndarray, "..."]:
    """Turn scores into weights along `axis`: never negative, summing to 1.

    An entry of −inf gets exactly 0; where every score is −inf, all weights are 0.
    Shapes: any number of dimensions; the result has the same shape. Integers give
    float64; float32 stays float32. Scores as large as ±1e4 give finite weights.
    """
    ### BEGIN SOLUTION
    if not np.issubdtype(scores.dtype, np.floating):
        scores = scores.astype(np.float64)
    largest = scores.max(axis=axis, keepdims=True)
    largest = np.where(np.isneginf(largest), 0, largest)  # −inf − (−inf) would be NaN
    weights = np.exp(scores - largest)
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1, total)
    ### END SOLUTION


def gaussian_scores(
    query: Num[np.ndarray, "n_q"], key: Num[np.ndarray, "n_k"], w: float = 1.0
) -> Float[np.ndarray, "n_q n_k"]:
    """Score every key for every query: −½((x − x_i) w)².

    Shapes: query `(n_q,)`, key `(n_k,)` → `(n_q, n_k)`. `w` is the inverse
    bandwidth; its unit is that of 1/x. Integers give float64; float32 stays
    float32. Source: the exponent of the Gaussian kernel in Nadaraya (1964), Watson
    (1964).
    """
    ### BEGIN SOLUTION
    distance = query[:, None] - key[None, :]  # (n_q, n_k)
    return -0.5 * (distance * w) ** 2
    ### END SOLUTION


def bug_in_softmax(n: int) -> tuple[Float[np.ndarray, "n n"], Float[np.ndarray, "n n"]]:
    """Find two tables of scores for `wrong_softmax`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(n, n)`, n ≥ 2, with scores from −100 to 100. On
    `shows`, the right weights and the wrong ones differ by 0.01 or more somewhere; on
    `hides` they are equal, although in each row the scores differ by 0.1 or more.
    """
    ### BEGIN SOLUTION
    shows = np.zeros((n, n))
    shows[0, 0] = 5.0
    i = np.arange(n)
    hides = (i[:, None] + i) % n / n  # every row and every column holds the same scores
    return shows, hides
    ### END SOLUTION


def nadaraya_watson(
    query: Num[np.ndarray, "n_q"],
    key: Num[np.ndarray, "n_k"],
    value: Num[np.ndarray, "n_k *d_v"],
    w: float = 1.0,
) -> tuple[Float[np.ndarray, "n_q *d_v"], Float[np.ndarray, "n_q n_k"]]:
    """Predict, at each query, the average of the values under Gaussian weights.

    Shapes: query `(n_q,)`, key `(n_k,)`, value `(n_k,)` or `(n_k, d_v)` →
    `(prediction, weights)` of shapes `(n_q,)` or `(n_q, d_v)`, and `(n_q, n_k)`.
    Each row of the weights sums to 1, even for a query far from every key. Integers
    give float64; float32 stays float32. Source: Nadaraya (1964), Watson (1964).
    """
    ### BEGIN SOLUTION
    weights = softmax(gaussian_scores(query, key, w), axis=-1)  # (n_q, n_k)
    return weights @ value, weights
    ### END SOLUTION


def kernel_weights(
    query: Num[np.ndarray, "n_q"], key: Num[np.ndarray, "n_k"], kernel: str, w: float = 1.0
) -> Float[np.ndarray, "n_q n_k"]:
    """Weigh the keys for each query by a normalised kernel of u = (x − x_i) w.

    `kernel` is `"gaussian"` (exp(−½u²)), `"boxcar"` (1 where |u| ≤ 1, else 0) or
    `"epanechnikov"` (max(0, 1 − u²)). Each row is divided by its sum; a row in which
    no key has any weight stays all zeros. The Gaussian reaches every key: its rows
    sum to 1 even for a query far from every key. Integers give float64; float32
    stays float32. Raises `ValueError` for any other kernel. Shapes: query `(n_q,)`,
    key `(n_k,)` → `(n_q, n_k)`. Source: Watson (1964).
    """
    ### BEGIN SOLUTION
    u = (query[:, None] - key[None, :]) * float(w)  # (n_q, n_k)
    if kernel == "gaussian":
        return softmax(-0.5 * u**2, axis=-1)
    if kernel == "boxcar":
        support = (np.abs(u) <= 1).astype(u.dtype)
    elif kernel == "epanechnikov":
        support = np.maximum(0.0, 1 - u**2)
    else:
        raise ValueError(f"kernel must be gaussian, boxcar or epanechnikov, not {kernel!r}")
    total = support.sum(axis=-1, keepdims=True)
    return support / np.where(total == 0, 1, total)
    ### END SOLUTION


def attention_pool(
    query: Num[np.ndarray, "n_q *d_q"],
    key: Num[np.ndarray, "n_k *d_k"],
    value: Num[np.ndarray, "n_k *d_v"],
    score: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> tuple[Float[np.ndarray, "n_q *d_v"], Float[np.ndarray, "n_q n_k"]]:
    """Average the values, weighted by any score function: softmax(score) · value.

    `score(query, key)` returns scores of shape `(n_q, n_k)`, a new array that you
    may change; queries and keys may be numbers or vectors. Shapes: query
    `(n_q, …)`, key `(n_k, …)`, value `(n_k,)` or `(n_k, d_v)` → `(output, weights)`
    of shapes `(n_q,)` or `(n_q, d_v)`, and `(n_q, n_k)`. Scores of ±1e4 give finite
    weights; float32 stays float32.
    """
    ### BEGIN SOLUTION
    weights = softmax(score(query, key), axis=-1)  # (n_q, n_k)
    return weights @ value, weights
    ### END SOLUTION


def leave_one_out_mse(x: Num[np.ndarray, "n"], y: Num[np.ndarray, "n"], w: float) -> float:
    """Judge an inverse bandwidth by its leave-one-out mean squared error.

    Each y_i is predicted from all the other points, with the Gaussian kernel, even
    if all of them are far from x_i. Shapes: x `(n,)`, y `(n,)`, n ≥ 2 → a Python
    float, in the unit of y squared. Source: leave-one-out cross-validation, M. Stone
    (1974).
    """
    ### BEGIN SOLUTION
    scores = gaussian_scores(x, x, w)
    np.fill_diagonal(scores, -np.inf)  # nobody votes for themselves
    prediction = softmax(scores, axis=-1) @ y
    return float(np.mean((prediction - y) ** 2))
    ### END SOLUTION


class KernelRegression(nn.Module):
    """Kernel regression that learns its bandwidth: the smallest trained attention.

    The inverse bandwidth `w` is a parameter of shape `()`. Source: Nadaraya (1964),
    Watson (1964).
    """

    def __init__(self, w: float = 1.0):
        super().__init__()
        self.w = nn.Parameter(torch.tensor(float(w)))

    def forward(
        self,
        query: Float[Tensor, "n_q"],
        key: Float[Tensor, "n_k"],
        value: Float[Tensor, "n_k *d_v"],
        exclude_self: bool = False,
    ) -> Float[Tensor, "n_q *d_v"]:
        """Predict at each query; with `exclude_self`, pair (i, i) gets no weight.

        This also holds where n_q ≠ n_k, for every pair (i, i) that exists; a query
        that is left without any key predicts 0. The weights of any other sum to 1,
        even far from every key. Shapes: query `(n_q,)`, key `(n_k,)`, value `(n_k,)`
        or `(n_k, d_v)` → `(n_q,)` or `(n_q, d_v)`. Gradients reach `w`, so an optimiser
        can learn it.
        """
        ### BEGIN SOLUTION
        distance = query[:, None] - key[None, :]  # (n_q, n_k)
        scores = -0.5 * (distance * self.w) ** 2
        if not exclude_self:
            return torch.softmax(scores, dim=-1) @ value
        same = torch.eye(*scores.shape, dtype=torch.bool, device=scores.device)
        scores = scores.masked_fill(same, torch.finfo(scores.dtype).min)  # −inf alone gives NaN
        return torch.softmax(scores, dim=-1).masked_fill(same, 0.0) @ value
        ### END SOLUTION
