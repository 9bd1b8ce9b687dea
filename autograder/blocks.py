"""What later chapters build on: attention that behaves like the course's own, but fast.

A chapter never depends on your answers to an earlier one; it imports these blocks instead. They
use torch's fused `scaled_dot_product_attention`. Source: Vaswani et al. (2017), section 3.
"""

from collections.abc import Callable
from functools import reduce

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from autograder.device import device

__all__ = [
    "DecoderLayer", "EncoderLayer", "MultiHeadAttention", "TokenEmbedding", "Transformer", "device",
    "sinusoidal_encoding",
]  # fmt: skip


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
        # With features before tokens, heads are neighbours: cut apart and joined without a copy.
        q, k, v = (x.mT.unflatten(-2, (self.num_heads, -1)).mT for x in inputs)
        drop = self.dropout if self.training else 0.0
        if need_weights:
            # Averaging the rows of the identity gives back the weights themselves.
            identity = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device)
            weights = fused_attention(q, k, identity, mask)
            heads = F.dropout(weights, drop) @ v
        else:
            by_head = mask is not None and mask.dim() > 2 and mask.shape[-3] > 1
            attend = fused_attention if by_head else _fused
            weights, heads = None, attend(q, k, v, mask, drop)
        if head_mask is not None:
            heads = heads * head_mask.to(heads)[:, None, None]
        out = self.W_o(heads.mT.flatten(-3, -2).mT)
        if mask is None:
            return out, weights
        nothing = _sees_nothing(mask)  # (..., H or 1, n_q or 1, 1)
        return out.masked_fill(nothing.all(-3) if mask.dim() > 2 else nothing, 0.0), weights


def fused_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, dropout: float = 0.0
) -> Tensor:
    """torch's fused attention, with zeros for a query that may attend to nothing.

    Shapes as in `torch.nn.functional.scaled_dot_product_attention`.
    """
    out = _fused(query, key, value, mask, dropout)
    return out if mask is None else out.masked_fill(_sees_nothing(mask), 0.0)


def _fused(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float
) -> Tensor:
    """torch's fused attention, in which a query that may attend to nothing attends to all keys.

    Some of torch's kernels give such a query NaN or an average of everything. What it gets here is
    finite, and must be dropped, so that neither it nor any gradient depends on the kernel.
    """
    value = value.expand(*key.shape[:-2], *value.shape[-2:])
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    if mask.dtype != torch.bool:
        raise TypeError(f"the mask must be boolean (True = may attend), not {mask.dtype}")
    seen = torch.atleast_2d(mask) | _sees_nothing(mask)
    return F.scaled_dot_product_attention(query, key, value, seen, dropout)


def _sees_nothing(mask: Tensor) -> Tensor:
    """The queries for which no key is left: `(..., n_q, 1)` of a mask `(..., n_q, n_k)`."""
    return ~torch.atleast_2d(mask).any(dim=-1, keepdim=True)


class _Layer(nn.Module):
    """What encoder and decoder layers share: attentions, two linear layers, and norms."""

    attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.dropout, self.norm_first = dropout, norm_first
        for name in self.attentions:
            self.add_module(name, MultiHeadAttention(d_model, num_heads))
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        for i in range(len(self.attentions) + 1):
            self.add_module(f"norm{i + 1}", nn.LayerNorm(d_model))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def _think(self, x: Tensor) -> Tensor:
        return self.linear2(self._drop(F.relu(self.linear1(x))))

    def _through(self, x: Tensor, *sublayers: Callable[[Tensor], Tensor]) -> Tensor:
        """Apply the sublayers in turn, the i-th with norm i before it or behind the sum."""
        for i, sublayer in enumerate(sublayers):
            norm = self.get_submodule(f"norm{i + 1}")
            before, behind = (norm, None) if self.norm_first else (None, norm)
            change = self._drop(sublayer(before(x) if before else x))
            x = behind(x + change) if behind else x + change
        return x


class EncoderLayer(_Layer):
    """One layer of a Transformer's encoder: self-attention, then a feed-forward network.

    Arguments: d_model, num_heads, d_ff, dropout=0.0, norm_first=False. Parameters: `self_attn`
    (`MultiHeadAttention`), the linear layers `linear1`, `linear2`, the layer norms `norm1`,
    `norm2`. `norm_first` puts each norm before its sublayer instead of behind the sum. `dropout`
    acts, in training, on what each sublayer adds and inside the feed-forward.
    """

    attentions = ("self_attn",)

    def forward(
        self, x: Float[Tensor, "*batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """x `(B, n, d_model)` → the same shape; `mask` as in `MultiHeadAttention`."""
        return self._through(x, lambda h: _attended(self.self_attn, h, h, mask), self._think)


class DecoderLayer(_Layer):
    """One layer of a Transformer's decoder: an `EncoderLayer` that also looks into a memory.

    Arguments as in `EncoderLayer`; parameters, too, and `cross_attn` and `norm3`. The norms are
    numbered in the order of self-attention, cross-attention, feed-forward.
    """

    attentions = ("self_attn", "cross_attn")

    def forward(
        self,
        x: Float[Tensor, "*batch n_q d_model"],
        memory: Float[Tensor, "*batch n_k d_model"],
        self_mask: Bool[Tensor, "..."] | None = None,
        cross_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch n_q d_model"]:
        """x `(B, n_q, d_model)`, memory `(B, n_k, d_model)` → the shape of x; masks as above."""
        return self._through(
            x,
            lambda h: _attended(self.self_attn, h, h, self_mask),
            lambda h: _attended(self.cross_attn, h, memory, cross_mask),
            self._think,
        )


def _attended(
    attention: MultiHeadAttention, query: Tensor, source: Tensor, mask: Tensor | None
) -> Tensor:
    return attention(query, source, source, mask=mask, need_weights=False)[0]


class TokenEmbedding(nn.Module):
    """Vectors for tokens, times √d_model, and with the same `weight` scores of tokens for vectors.

    One parameter, `weight` `(vocab_size, d_model)`.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """ids `(...)` → `(..., d_model)`."""
        return self.weight[ids].mul(self.weight.shape[-1] ** 0.5)

    def logits(self, h: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """h `(..., d_model)` → `(..., vocab_size)`."""
        return F.linear(h, self.weight)


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


class Transformer(nn.Module):
    """A Transformer to decode with: `model(source, target)` gives logits.

    Arguments and parameters are those of chapter 7's `Transformer`, always post-norm: the two
    `TokenEmbedding`s `source_embedding` and `target_embedding`, of which the latter makes the
    logits, `encoder_layers` and `decoder_layers`. No key that holds `pad_id` is attended to.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int = 512,
        num_heads: int = 8,
        num_layers: int = 6,
        d_ff: int = 2048,
        dropout: float = 0.1,
        pad_id: int = 0,
    ):
        super().__init__()
        sizes = (d_model, num_heads, d_ff, dropout)
        self.source_embedding = TokenEmbedding(source_vocab, d_model)
        self.target_embedding = TokenEmbedding(target_vocab, d_model)
        self.encoder_layers, self.decoder_layers = (
            nn.ModuleList(kind(*sizes) for _ in range(num_layers))
            for kind in (EncoderLayer, DecoderLayer)
        )
        self.dropout, self.pad_id = dropout, pad_id

    def forward(
        self, source: Int[Tensor, "batch n_s"], target: Int[Tensor, "batch n_t"]
    ) -> Float[Tensor, "batch n_t target_vocab"]:
        """source `(B, n_s)`, target `(B, n_t)` → logits `(B, n_t, target_vocab)`."""
        seen = source.ne(self.pad_id)[:, None, None]
        place = torch.arange(target.shape[1], device=target.device)
        past = place.ge(place[:, None]).mT & target.ne(self.pad_id)[:, None, None]
        memory, hidden = (
            F.dropout(table(ids) + _positions(ids, table.weight), self.dropout, self.training)
            for table, ids in ((self.source_embedding, source), (self.target_embedding, target))
        )
        memory = reduce(lambda x, encode: encode(x, seen), self.encoder_layers, memory)
        hidden = reduce(
            lambda y, decode: decode(y, memory, past, seen), self.decoder_layers, hidden
        )
        return hidden @ self.target_embedding.weight.T


def _positions(ids: Tensor, like: Tensor) -> Tensor:
    return sinusoidal_encoding(ids.shape[1], like.shape[1]).to(like)


# --- Stand-ins: an answer that calls another one is judged with these if that one is wrong --------


def softmax(scores: np.ndarray, axis: int = -1) -> np.ndarray:
    """torch's softmax on an array; where every score is −inf, zeros."""
    given = torch.as_tensor(scores)
    wide = given if given.is_floating_point() else given.double()
    return F.softmax(wide, dim=axis).nan_to_num(nan=0.0).numpy()


def gaussian_scores(query: np.ndarray, key: np.ndarray, w: float = 1.0) -> np.ndarray:
    """−½ of the squared distances in units of 1/w, by torch's table of distances."""
    points = (torch.as_tensor(x).double().reshape(-1, 1) for x in (query, key))
    distances = torch.cdist(*points, compute_mode="donot_use_mm_for_euclid_dist")
    return (-0.5 * (distances * w).square()).numpy().astype(np.result_type(query, key, 1.0))
