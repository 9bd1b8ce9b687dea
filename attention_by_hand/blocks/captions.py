"""Text that looks at a picture: attention to another width, and the layer around it."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention, _by_head, _Layer


class CrossAttention(nn.Module):
    """Attention to a memory of another width.

    Arguments, parts and errors are those of chapter 12's `CrossAttention`.
    """

    W_q: nn.Linear
    W_k: nn.Linear
    W_v: nn.Linear
    W_o: nn.Linear

    def __init__(self, d_model: int, d_encoder: int, num_heads: int):
        super().__init__()
        self.num_heads, rest = num_heads, d_model % num_heads
        if rest:
            raise ValueError(f"d_model = {d_model} is no multiple of num_heads = {num_heads}")
        widths = {"W_q": d_model, "W_k": d_encoder, "W_v": d_encoder, "W_o": d_model}
        for name, width in widths.items():
            self.add_module(name, nn.Linear(width, d_model))

    def forward(
        self,
        x: Float[Tensor, "batch n_q d_model"],
        memory: Float[Tensor, "batch n_k d_encoder"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "batch n_q d_model"], Float[Tensor, "batch num_heads n_q n_k"]]:
        """x `(B, n_q, d_model)`, memory `(B, n_k, d_encoder)` → output and weights.

        The output is `(B, n_q, d_model)`, the weights are `(B, num_heads, n_q, n_k)`. The mask is
        boolean, True = *may attend*, and broadcasts to `(B, 1, n_q, n_k)`; a query that may attend
        to nothing gets zeros.
        """
        parts = self.W_q(x), self.W_k(memory), self.W_v(memory)
        q, k, v = (_by_head(part, self.num_heads) for part in parts)
        logits = torch.einsum("bhqd,bhkd->bhqk", q, k).mul(q.size(-1) ** -0.5)
        if mask is None:
            weights = F.softmax(logits, -1)
            return self.W_o(weights.matmul(v).movedim(1, 2).flatten(-2)), weights
        mask = torch.broadcast_to(mask, (logits.size(0), 1, *logits.shape[-2:]))
        seen = mask.any(-1)  # (B, 1, n_q)
        weights = F.softmax(torch.where(mask | ~seen[..., None], logits, -torch.inf), -1)
        weights = torch.where(seen[..., None], weights, 0.0)
        out = self.W_o(weights.matmul(v).movedim(1, 2).flatten(-2))
        return torch.where(seen.mT, out, 0.0), weights


class CaptionLayer(_Layer):
    """A layer of BLIP's text side: an `EncoderLayer` with GELU that can look at a picture.

    Parameters: `self_attn` (`MultiHeadAttention`), `cross_attn` (`CrossAttention`), the linear
    layers `linear1` and `linear2`, the layer norms `norm1` (after self-attention), `norm2` (after
    cross-attention, left out with it) and `norm3`. `dropout` as in `EncoderLayer`.
    """

    self_attn: nn.Module
    cross_attn: nn.Module
    norm1: nn.Module
    norm2: nn.Module
    norm3: nn.Module

    norm_first = False

    def __init__(
        self, d_model: int, d_encoder: int, num_heads: int, d_ff: int, dropout: float = 0.0
    ):
        super().__init__()
        self.dropout, widths = dropout, {"linear1": (d_model, d_ff), "linear2": (d_ff, d_model)}
        self.add_module("self_attn", MultiHeadAttention(d_model, num_heads))
        self.add_module("cross_attn", CrossAttention(d_model, d_encoder, num_heads))
        for name, (fan_in, fan_out) in widths.items():
            self.add_module(name, nn.Linear(fan_in, fan_out))
        for i in (1, 2, 3):
            self.add_module(f"norm{i}", nn.LayerNorm([d_model]))

    def forward(
        self,
        x: Float[Tensor, "batch n d_model"],
        memory: Float[Tensor, "batch n_k d_encoder"] | None = None,
        self_mask: Bool[Tensor, "..."] | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "batch n d_model"]:
        """x `(B, n, d_model)` → the same shape; without a memory `(B, n_k, d_encoder)`, text alone.

        `self_mask` as in `MultiHeadAttention`, `memory_mask` as in `CrossAttention`.
        """
        x = self._through(x, lambda q: self.self_attn(q, q, q, self_mask)[0], self.norm1)
        if memory is None:
            return self._through(x, self._think, self.norm3)
        x = self._through(x, lambda q: self.cross_attn(q, memory, memory_mask)[0], self.norm2)
        return self._through(x, self._think, self.norm3)

    def _think(self, x: Tensor) -> Tensor:
        return self.linear2(self._drop(nn.functional.gelu(self.linear1(x))))
