"""The encoder alone: what BERT reads, and its layer."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention, _Layer


class BertEmbeddings(nn.Module):
    """Token, position and segment as one vector: norm(tokens + positions + segments), then dropout.

    Tables of `vocab_size`, `max_len` and `num_segments` rows, all `nn.Embedding`s that begin with a
    standard deviation of 0.02; the norm's eps is 1e-12. Source: Devlin et al. (2019), section 3.
    """

    tokens: nn.Embedding
    positions: nn.Embedding
    segments: nn.Embedding
    norm: nn.LayerNorm

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_len: int = 512,
        num_segments: int = 2,
        dropout: float = 0.0,
    ):
        super().__init__()
        rows = {"tokens": vocab_size, "positions": max_len, "segments": num_segments}
        for name, number in rows.items():
            weight = torch.empty(number, d_model).normal_(0.0, 0.02)
            self.add_module(name, nn.Embedding.from_pretrained(weight, freeze=False))
        self.add_module("norm", nn.LayerNorm([d_model], 1e-12))
        self.p = dropout

    def forward(
        self, ids: Int[Tensor, "batch n"], segment_ids: Int[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n d_model"]:
        """ids and segment_ids `(B, n)` → `(B, n, d_model)`; `ValueError` beyond max_len.

        The positions are 0 … n − 1; without segment_ids, every token is in segment 0.
        """
        length, room = ids.size(-1), len(self.positions.weight)
        if room < length:
            raise ValueError(f"there is room for {room} tokens, and here are {length}")
        x = F.embedding(ids, self.tokens.weight) + self.positions.weight[:length]
        x = x + self.segments.weight[0 if segment_ids is None else segment_ids]
        return F.dropout(self.norm(x), self.p, self.training)


class BertLayer(_Layer):
    """One layer of BERT: an `EncoderLayer` with GELU, which drops attention weights as well.

    Parameters: `attention` (`MultiHeadAttention`), the linear layers `linear1` and `linear2`, the
    layer norms `norm1` and `norm2`. `dropout` acts, in training only, on the attention weights and
    on what each sublayer adds. `chunk_size` is the number of positions that the feed-forward
    network works on at a time; 0 means all.
    """

    norm_first = False

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, chunk_size: int = 0
    ):
        super().__init__()
        self.dropout, self.chunk_size = dropout, chunk_size
        self.attention = MultiHeadAttention(d_model, num_heads, dropout=dropout)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = (nn.LayerNorm([d_model], 1e-12) for _ in range(2))

    def forward(
        self, x: Float[Tensor, "batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch n d_model"]:
        """x `(B, n, d_model)` → the same shape; `mask` as in `MultiHeadAttention`."""
        x = self._through(x, lambda q: self.attention(q, q, q, mask)[0], self.norm1)
        return self._through(x, self._think, self.norm2)

    def _think(self, x: Tensor) -> Tensor:
        size, made = self.chunk_size or x.size(1), []
        for start in range(0, x.size(1), size):
            wide = self.linear1(x.narrow(1, start, min(size, x.size(1) - start)))
            made.append(self.linear2(nn.functional.gelu(wide)))
        return torch.cat(made, dim=1)
