"""What later chapters build on: attention that behaves like the course's own, but fast.

A chapter never depends on your answers to an earlier one; it imports these blocks instead. Most of
them are exercises as well, so they compute the same things in other ways than the chapters suggest:
attention comes from torch's fused kernel instead of a softmax, weights are recovered from it by a
trick, both kinds of layer share one residual step, and the stand-ins for NumPy exercises use torch.
An answer that calls a block earns nothing where that block is the exercise.
Source: Vaswani et al. (2017), section 3.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from autograder.student.device import device

__all__ = [
    "GPT", "AttentionDecoder", "BertEmbeddings", "BertLayer", "CaptionLayer", "CrossAttention",
    "DecoderBlock", "DecoderLayer", "DropPath", "EncoderLayer", "GRUEncoder", "MultiHeadAttention",
    "PackedAttention", "PatchEmbedding", "TokenEmbedding", "Transformer", "ViTBlock",
    "VisionTransformer",
    "additive_mask", "causal_mask", "device", "fused_attention", "gaussian_scores", "gelu",
    "influence", "masked_attention", "masked_softmax", "merge_heads", "nadaraya_watson",
    "next_token_loss", "next_token_probabilities", "noam_rate", "padding_mask",
    "relative_positions", "rotary_embedding", "scaled_dot_product_attention", "simple_attention",
    "sinusoidal_encoding", "softmax", "split_heads",
]  # fmt: skip


class MultiHeadAttention(nn.Module):
    """Multi-head attention: MultiHead(Q, K, V) = Concat(head_0, …, head_{H-1}) W_o.

    Parameters: the linear layers `W_q`, `W_k`, `W_v` and `W_o`, each from d_model to d_model; head
    h works on the h-th slice of d_model / num_heads features of the first three. `dropout` acts on
    the weights, in training only. Raises `ValueError` if num_heads does not divide d_model.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True):
        super().__init__()
        if divmod(d_model, num_heads)[1]:
            raise ValueError(f"{num_heads} heads cannot share {d_model} features equally")
        self.num_heads, self.dropout = num_heads, dropout
        self.W_q = nn.Linear(d_model, d_model, bias)
        self.W_k = nn.Linear(d_model, d_model, bias)
        self.W_v = nn.Linear(d_model, d_model, bias)
        self.W_o = nn.Linear(d_model, d_model, bias)

    def forward(
        self,
        query: Float[Tensor, "*batch n_q d_model"],
        key: Float[Tensor, "*batch n_k d_model"],
        value: Float[Tensor, "*batch n_k d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        head_mask: Float[Tensor, "heads"] | None = None,
        need_weights: bool = True,
    ) -> tuple[Float[Tensor, "*batch n_q d_model"], Float[Tensor, "*batch heads n_q n_k"] | None]:
        """Attend, and return `(output, weights)`; without `need_weights`, faster, `(output, None)`.

        Shapes: query `(B, n_q, d_model)`, key and value `(B, n_k, d_model)` → output
        `(B, n_q, d_model)`, weights `(B, num_heads, n_q, n_k)`, those before dropout.

        `mask` is boolean and broadcasts to the weights; True means *may attend*, and a query that
        may attend to nothing gets zero weights and a zero output, without the bias of W_o.
        `head_mask` `(num_heads,)` multiplies what each head contributes and leaves the returned
        weights alone. Raises `TypeError` for a mask that is not boolean.
        """
        q = _by_head(self.W_q(query), self.num_heads)  # (B, H, n_q, d_k)
        k = _by_head(self.W_k(key), self.num_heads)  # (B, H, n_k, d_k)
        v = _by_head(self.W_v(value), self.num_heads)  # (B, H, n_k, d_k)
        drop = self.dropout if self.training else 0.0
        if need_weights:
            # Averaging the rows of the identity gives back the weights themselves.
            identity = torch.eye(k.shape[-2], dtype=k.dtype, device=k.device)
            weights = fused_attention(q, k, identity, mask)  # (B, H, n_q, n_k)
            heads = F.dropout(weights, drop) @ v
        else:
            weights = None
            # Where no head may attend, the output is zeroed below; a mask per head needs it here.
            mask_per_head = mask is not None and mask.dim() > 2 and mask.shape[-3] > 1
            attend = fused_attention if mask_per_head else _fused
            heads = attend(q, k, v, mask, drop)
        if head_mask is not None:
            heads = heads * head_mask.to(heads)[:, None, None]
        out = self.W_o(heads.movedim(-3, -2).flatten(-2))  # (B, n_q, d_model)
        if mask is None:
            return out, weights
        nothing = _sees_nothing(mask)  # (..., H or 1, n_q or 1, 1)
        nothing = nothing.all(dim=-3) if mask.dim() > 2 else nothing
        return out.masked_fill(nothing, 0.0), weights


def _by_head(x: Tensor, num_heads: int) -> Tensor:
    """Cut the features into heads: `(..., n, d_model)` → `(..., num_heads, n, d_k)`."""
    return x.unflatten(-1, (num_heads, -1)).movedim(-2, -3)


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

    torch's kernels differ in what they give such a query: some NaN, some an average of everything.
    Here it is always finite, and the caller must drop it, so that neither the output nor any
    gradient depends on the kernel.
    """
    value = value.expand(*key.shape[:-2], *value.shape[-2:])
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout)
    if mask.dtype != torch.bool:
        raise TypeError(f"the mask must be boolean (True = may attend), not {mask.dtype}")
    seen = torch.atleast_2d(mask) | _sees_nothing(mask)
    return F.scaled_dot_product_attention(query, key, value, seen, dropout)


def _sees_nothing(mask: Tensor) -> Tensor:
    """The queries that may attend to nothing: mask `(..., n_q, n_k)` → `(..., n_q, 1)`."""
    return ~torch.atleast_2d(mask).any(dim=-1, keepdim=True)


class _Layer(nn.Module):
    """What encoder and decoder layers share: the feed-forward network and the residual step."""

    linear1: nn.Linear
    linear2: nn.Linear
    dropout: float

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)

    def _think(self, x: Tensor) -> Tensor:
        return self.linear2(self._drop(F.relu(self.linear1(x))))

    def _through(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], norm: nn.Module) -> Tensor:
        """Add to x what the sublayer makes of it; the norm goes before that or after the sum."""
        change = self._drop(sublayer(norm(x) if self.norm_first else x))
        return x + change if self.norm_first else norm(x + change)


class EncoderLayer(_Layer):
    """One layer of a Transformer's encoder: self-attention, then a feed-forward network.

    Parameters: `self_attn` (`MultiHeadAttention`), the linear layers `linear1` and `linear2`, the
    layer norms `norm1` and `norm2`. `norm_first` puts each norm before its sublayer instead of
    after the sum. `dropout` acts, in training only, on what each sublayer adds and inside the
    feed-forward network.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.dropout = dropout
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "*batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """x `(B, n, d_model)` → the same shape; `mask` as in `MultiHeadAttention`."""
        x = self._through(x, lambda h: _attended(self.self_attn, h, h, mask), self.norm1)
        return self._through(x, self._think, self.norm2)


class DecoderLayer(_Layer):
    """One layer of a Transformer's decoder: an `EncoderLayer` that also attends to a memory.

    Arguments and parameters as in `EncoderLayer`; parameters also `cross_attn` and `norm3`. The
    norms are numbered in the order of self-attention, cross-attention, feed-forward network.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
    ):
        super().__init__()
        self.dropout = dropout
        self.norm_first = norm_first
        self.self_attn = MultiHeadAttention(d_model, num_heads)
        self.cross_attn = MultiHeadAttention(d_model, num_heads)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)

    def forward(
        self,
        x: Float[Tensor, "*batch n_q d_model"],
        memory: Float[Tensor, "*batch n_k d_model"],
        self_mask: Bool[Tensor, "..."] | None = None,
        cross_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "*batch n_q d_model"]:
        """x `(B, n_q, d_model)`, memory `(B, n_k, d_model)` → the shape of x; masks as above."""
        x = self._through(x, lambda h: _attended(self.self_attn, h, h, self_mask), self.norm1)
        x = self._through(
            x, lambda h: _attended(self.cross_attn, h, memory, cross_mask), self.norm2
        )
        return self._through(x, self._think, self.norm3)


def _attended(
    attention: MultiHeadAttention, query: Tensor, source: Tensor, mask: Tensor | None
) -> Tensor:
    return attention(query, source, source, mask=mask, need_weights=False)[0]


class TokenEmbedding(nn.Module):
    """A vector for each token, times √d_model, and from the same `weight` a score for each token.

    One parameter, `weight` `(vocab_size, d_model)`.
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)

    def forward(self, ids: Int[Tensor, "*batch"]) -> Float[Tensor, "*batch d_model"]:
        """ids `(...)` → `(..., d_model)`."""
        return self.weight[ids] * self.weight.shape[-1] ** 0.5

    def logits(self, h: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        """h `(..., d_model)` → `(..., vocab_size)`."""
        return F.linear(h, self.weight)


def sinusoidal_encoding(
    max_len: int, d_model: int, base: float = 10000.0
) -> Float[Tensor, "max_len d_model"]:
    """Sinusoidal positions: sines in the even columns, cosines in the odd ones.

    Shape: `(max_len, d_model)`, float32. Each pair of columns is one hand of a clock, turning by
    base^(−2i/d_model) per position; an odd d_model lacks the last cosine. Source: Vaswani et al.
    (2017), section 3.5.
    """
    turn = base ** -(torch.arange(0, d_model, 2).double() / d_model)  # one for each hand
    angle = torch.outer(torch.arange(max_len).double(), turn)  # (max_len, hands)
    clock = torch.stack([angle.sin(), angle.cos()], dim=-1)  # (max_len, hands, 2)
    return clock.flatten(-2)[:, :d_model].float()


class Transformer(nn.Module):
    """A Transformer to decode with: `model(source, target)` gives logits.

    Arguments and parameters are those of chapter 7's `Transformer`, always post-norm: the
    `TokenEmbedding`s `source_embedding` and `target_embedding`, of which the latter also computes
    the logits, `encoder_layers` and `decoder_layers`. No query attends to a key that is `pad_id`.
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
        self.encoder_layers = nn.ModuleList(EncoderLayer(*sizes) for _ in range(num_layers))
        self.decoder_layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(num_layers))
        self.dropout = dropout
        self.pad_id = pad_id

    def forward(
        self, source: Int[Tensor, "batch n_s"], target: Int[Tensor, "batch n_t"]
    ) -> Float[Tensor, "batch n_t target_vocab"]:
        """source `(B, n_s)`, target `(B, n_t)` → logits `(B, n_t, target_vocab)`."""
        source_keys = (source != self.pad_id)[:, None, None]  # (B, 1, 1, n_s)
        position = torch.arange(target.shape[1], device=target.device)
        past = position <= position[:, None]  # (n_t, n_t)
        target_keys = past & (target != self.pad_id)[:, None, None]  # (B, 1, n_t, n_t)
        memory = self._embedded(self.source_embedding, source)  # (B, n_s, d_model)
        output = self._embedded(self.target_embedding, target)  # (B, n_t, d_model)
        for encoder_layer in self.encoder_layers:
            memory = encoder_layer(memory, source_keys)
        for decoder_layer in self.decoder_layers:
            output = decoder_layer(output, memory, target_keys, source_keys)
        return self.target_embedding.logits(output)

    def _embedded(self, table: TokenEmbedding, ids: Tensor) -> Tensor:
        total = table(ids) + _positions(ids, table.weight)
        return F.dropout(total, self.dropout, self.training)


def _positions(ids: Tensor, like: Tensor) -> Tensor:
    return sinusoidal_encoding(ids.shape[1], like.shape[1]).to(like)


# What is made of the above, or of nothing here: last, since it imports this module.
from attention_by_hand.blocks.bidirectional import BertEmbeddings, BertLayer  # noqa: E402
from attention_by_hand.blocks.captions import CaptionLayer, CrossAttention  # noqa: E402
from attention_by_hand.blocks.language import GPT, DecoderBlock, next_token_probabilities  # noqa: E402
from attention_by_hand.blocks.recurrent import AttentionDecoder, GRUEncoder  # noqa: E402
from attention_by_hand.blocks.stand_ins import (  # noqa: E402
    additive_mask,
    causal_mask,
    gaussian_scores,
    gelu,
    influence,
    masked_attention,
    masked_softmax,
    merge_heads,
    nadaraya_watson,
    next_token_loss,
    noam_rate,
    padding_mask,
    relative_positions,
    rotary_embedding,
    scaled_dot_product_attention,
    simple_attention,
    softmax,
    split_heads,
)
from attention_by_hand.blocks.vision import (  # noqa: E402
    DropPath,
    PackedAttention,
    PatchEmbedding,
    VisionTransformer,
    ViTBlock,
)
