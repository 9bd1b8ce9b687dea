"""Multi-head attention: several heads attend at once, each in its own slice of the features.

Source: A. Vaswani et al., "Attention is all you need" (2017), section 3.2.2. Head masks and head
importance after P. Michel, O. Levy, G. Neubig, "Are sixteen heads really better than one?" (2019).
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from attention_by_hand.blocks import merge_heads


def split_heads(
    x: Num[Tensor, "B n d_model"],
    num_heads: int,
) -> Num[Tensor, "B num_heads n d_k"]:
    """Give each head its slice of the features, with the heads as a batch axis.

    Shapes: x `(B, n, d_model)` → `(B, H, n, d_k)` with d_k = d_model / H: head h
    gets the features h·d_k … (h + 1)·d_k − 1 of every position. Raises a
    `ValueError` that names d_model and the number of heads if the former is not
    divisible by the latter.
    """
    ### BEGIN SOLUTION
    d_model = x.shape[-1]
    if d_model % num_heads != 0:
        raise ValueError(f"d_model = {d_model} cannot be split into {num_heads} equal heads")
    x = x.reshape(*x.shape[:-1], num_heads, d_model // num_heads)  # (B, n, H, d_k)
    return x.transpose(-3, -2)  # (B, H, n, d_k)
    ### END SOLUTION


def bug_in_splitting(
    num_heads: int, d_k: int
) -> tuple[Num[Tensor, "B n d_model"], Num[Tensor, "B n d_model"]]:
    """Find two inputs for `wrong_split`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(B, n, num_heads * d_k)`, with two heads or more
    and d_k ≥ 2; B and n are yours, from 1 to 64. On `shows`, the right heads and the
    wrong ones differ by 0.01 or more somewhere; on `hides` they are equal, although n
    is at least 2 and no sequence holds one and the same number throughout.
    """
    ### BEGIN SOLUTION
    shows = torch.arange(2.0 * num_heads * d_k).reshape(1, 2, -1)
    hides = torch.arange(d_k).repeat(1, 2, num_heads)  # the same d_k numbers, again and again
    return shows, hides
    ### END SOLUTION


def multi_head_numpy(
    query: Num[np.ndarray, "n_q d_model"],
    key: Num[np.ndarray, "n_k d_model"],
    value: Num[np.ndarray, "n_k d_model"],
    num_heads: int,
) -> Float[np.ndarray, "n_q d_model"]:
    """Scaled dot-product attention in each head's slice, concatenated.

    No projections: head h uses features h·d_k … (h + 1)·d_k − 1 of query, key and
    value, divides its scores by √d_k with d_k = d_model / H, and writes its output
    into the same columns of the result. Shapes: query `(n_q, d_model)`, key and
    value `(n_k, d_model)` → `(n_q, d_model)`. Scores as large as ±1e4 give finite
    results; float32 stays float32, integers give float64.
    """
    ### BEGIN SOLUTION
    n_q, d_model = query.shape
    d_k = d_model // num_heads
    q, k, v = (x.reshape(-1, num_heads, d_k).swapaxes(0, 1) for x in (query, key, value))
    scores = q @ k.swapaxes(1, 2) / math.sqrt(d_k)  # (H, n_q, n_k)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return (weights @ v).swapaxes(0, 1).reshape(n_q, d_model)
    ### END SOLUTION


class MultiHeadAttention(nn.Module):
    """Multi-head attention: MultiHead(Q, K, V) = Concat(head_0, …, head_{H-1}) W_o.

    head_h is scaled dot-product attention on the h-th slice of d_k = d_model / H
    features of the projected queries, keys and values. Parameters: the linear
    layers `W_q`, `W_k`, `W_v`, `W_o`, each from d_model to d_model, with a bias if
    `bias`. The number of heads is stored as `num_heads`. Raises a `ValueError` that
    names both numbers if d_model is not divisible by num_heads. Source: Vaswani et
    al. (2017), section 3.2.2.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads != 0:
            raise ValueError(f"d_model = {d_model} is not divisible by num_heads = {num_heads}")
        self.num_heads = num_heads
        self.W_q = nn.Linear(d_model, d_model, bias=bias)
        self.W_k = nn.Linear(d_model, d_model, bias=bias)
        self.W_v = nn.Linear(d_model, d_model, bias=bias)
        self.W_o = nn.Linear(d_model, d_model, bias=bias)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(
        self,
        query: Float[Tensor, "B n_q d_model"],
        key: Float[Tensor, "B n_k d_model"],
        value: Float[Tensor, "B n_k d_model"],
        head_mask: Num[Tensor, "num_heads"] | None = None,
    ) -> tuple[Float[Tensor, "B n_q d_model"], Float[Tensor, "B num_heads n_q n_k"]]:
        """Attend with every head, and return `(output, weights)`.

        Shapes: query `(B, n_q, d_model)`, key and value `(B, n_k, d_model)` →
        output `(B, n_q, d_model)`, weights `(B, num_heads, n_q, n_k)`. Dropout acts
        on the weights; the returned ones are those before dropout. `head_mask`
        `(num_heads,)` holds one factor per head; it multiplies the weights that are
        applied to the values, and leaves the returned ones as they are.
        """
        ### BEGIN SOLUTION
        q = split_heads(self.W_q(query), self.num_heads)  # (B, H, n_q, d_k)
        k = split_heads(self.W_k(key), self.num_heads)  # (B, H, n_k, d_k)
        v = split_heads(self.W_v(value), self.num_heads)  # (B, H, n_k, d_k)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # (B, H, n_q, n_k)
        weights = torch.softmax(scores, dim=-1)
        applied = self.dropout(weights)
        if head_mask is not None:
            applied = applied * head_mask[:, None, None]
        return self.W_o(merge_heads(applied @ v)), weights
        ### END SOLUTION


def load_torch_weights(attention: nn.Module, torch_attention: nn.MultiheadAttention) -> nn.Module:
    """Copy the parameters of torch's module into ours, and return ours.

    Afterwards both give the same outputs, and share no memory. `attention` has the
    linear layers `W_q`, `W_k`, `W_v`, `W_o`. torch packs its three input
    projections into `in_proj_weight` `(3·d_model, d_model)` and `in_proj_bias`
    `(3·d_model,)`, in the order query, key, value; its output projection is the
    linear layer `out_proj`. Where torch's module has no biases (`in_proj_bias` and
    `out_proj.bias` are None), ours has none either.
    """
    ### BEGIN SOLUTION
    packed = (attention.W_q, attention.W_k, attention.W_v)
    with torch.no_grad():
        for ours, weight in zip(packed, torch_attention.in_proj_weight.chunk(3), strict=True):
            ours.weight.copy_(weight)  # (d_model, d_model)
        attention.W_o.weight.copy_(torch_attention.out_proj.weight)
        if torch_attention.in_proj_bias is not None:
            for ours, bias in zip(packed, torch_attention.in_proj_bias.chunk(3), strict=True):
                ours.bias.copy_(bias)  # (d_model,)
            attention.W_o.bias.copy_(torch_attention.out_proj.bias)
    return attention
    ### END SOLUTION


def head_importance(
    attention: nn.Module, x: Float[Tensor, "B n d_model"]
) -> Float[Tensor, "num_heads"]:
    """How far self-attention's output moves, on average, when a head is masked.

    For head h, (full output − output with head h masked) is a vector at every
    position: take its Euclidean length, averaged over batch and positions. Shapes:
    x `(B, n, d_model)` → `(num_heads,)`. `attention` has `num_heads` and is called
    like your `MultiHeadAttention`, with `head_mask` as a keyword; leave it as it
    was, the train/eval mode of each of its modules included. Only in eval mode do
    the numbers count: in training mode, dropout makes them random. The result has
    the dtype of x. Source: Michel, Levy, Neubig (2019), who measure the loss
    instead.
    """
    ### BEGIN SOLUTION
    with torch.no_grad():
        full, _ = attention(x, x, x)  # (B, n, d_model)
        all_but_one = 1 - torch.eye(attention.num_heads, dtype=x.dtype, device=x.device)
        masked = [attention(x, x, x, head_mask=mask)[0] for mask in all_but_one]
        return torch.stack([(full - out).norm(dim=-1).mean() for out in masked])  # (H,)
    ### END SOLUTION
