"""What later chapters build on: attention that behaves as the course's own does, made fast.

A chapter never depends on your answers to an earlier one; it imports these blocks instead. They
stand on torch's fused `scaled_dot_product_attention`. Source: Vaswani et al. (2017), section 3.2.2.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from autograder.device import device

__all__ = ["MultiHeadAttention", "device", "sinusoidal_encoding"]


class MultiHeadAttention(nn.Module):
    """Multi-head attention: MultiHead(Q, K, V) = Concat(head_1, …, head_H) W_o.

    Parameters: the linear layers `W_q`, `W_k`, `W_v` and `W_o`, each from d_model to d_model; head
    h works on the h-th slice of d_model / num_heads features of the first three. `dropout` acts on
    the weights, in training only. Raises `ValueError` where num_heads does not divide d_model.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"{num_heads} heads cannot share {d_model} features equally")
        self.num_heads, self.dropout = num_heads, dropout
        self.W_q, self.W_k, self.W_v, self.W_o = (
            nn.Linear(d_model, d_model, bias) for _ in range(4)
        )

    def forward(
        self,
        query: Float[Tensor, "*batch n_q d_model"],
        key: Float[Tensor, "*batch n_k d_model"],
        value: Float[Tensor, "*batch n_k d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Float[Tensor, "heads"] | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "*batch n_q d_model"], Float[Tensor, "*batch heads n_q n_k"] | None]:
        """Attend: `(output, weights)`, or `(output, None)`, and faster, without `need_weights`.

        Shapes: query `(B, n_q, d_model)`, key and value `(B, n_k, d_model)` → output
        `(B, n_q, d_model)`, weights `(B, num_heads, n_q, n_k)`, those before dropout.

        `mask` is boolean and broadcasts to the weights; True means *may attend*, and a query that
        may attend to nothing gets zero weights and a zero output, without the bias of W_o.
        `head_mask` `(num_heads,)` multiplies what each head contributes and leaves the returned
        weights alone. Raises `TypeError` for a mask that is not boolean.
        """
        inputs = (self.W_q(query), self.W_k(key), self.W_v(value))
        q, k, v = (torch.stack(x.chunk(self.num_heads, dim=-1), dim=-3) for x in inputs)
        drop = self.dropout if self.training else 0.0
        if need_weights:
            # Averaging the rows of the identity gives back the weights themselves.
            identity = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device)
            weights = fused_attention(q, k, identity, mask)
            heads = F.dropout(weights, drop) @ v
        else:
            weights, heads = None, fused_attention(q, k, v, mask, drop)
        if head_mask is not None:
            heads = heads * head_mask.to(heads)[:, None, None]
        out = self.W_o(torch.cat(heads.unbind(-3), dim=-1))
        if mask is None:
            return out, weights
        sees = mask.expand(torch.broadcast_shapes(mask.shape, (1, 1, 1))).any(-1)  # (..., H, n_q)
        return out.masked_fill(~sees.any(-2)[..., None], 0.0), weights


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """torch's fused attention, with zeros for a query that may attend to nothing.

    Shapes as in `torch.nn.functional.scaled_dot_product_attention`. Some of torch's kernels give
    such a query NaN or an average of everything; here it attends to all keys inside the kernel and
    its result is then dropped, so that neither it nor any gradient depends on the kernel.
    """
    value = value.expand(*key.shape[:-2], *value.shape[-2:])
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    if mask.dtype != torch.bool:
        raise TypeError(f"the mask must be boolean (True = may attend), not {mask.dtype}")
    mask = torch.atleast_2d(mask)
    nothing = ~mask.any(dim=-1, keepdim=True)
    out = F.scaled_dot_product_attention(query, key, value, mask | nothing, dropout)
    return out.masked_fill(nothing, 0.0)


def sinusoidal_encoding(
    max_len: int, d_model: int, base: float = 10000.0
) -> Float[Tensor, "max_len d_model"]:
    """Sinusoidal positions: sines in the even columns, cosines in the odd ones.

    Shape: `(max_len, d_model)`, float32. Each pair of columns is one hand of a clock, turning by
    base^(−2i/d_model) a position; an odd d_model leaves out the last cosine. Source: Vaswani et al.
    (2017), section 3.5.
    """
    hands = -(-d_model // 2)
    turn = torch.logspace(0, -2 * (hands - 1) / d_model, hands, base, dtype=torch.float64)
    angle = torch.outer(torch.arange(max_len).double(), turn)
    clock = torch.view_as_real(torch.polar(torch.ones_like(angle), angle))  # cosine, sine
    return clock.flip(-1).flatten(-2)[:, :d_model].float()
