"""The decoder alone: GPT-2's layer and model, also token by token, and what the next one may be."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attention_by_hand.blocks import MultiHeadAttention, _by_head, _Layer, fused_attention

Cache = list[tuple[Tensor, Tensor]]  # the keys and values of each block, (B, H, T, d_k) each


class DecoderBlock(_Layer):
    """One layer of GPT-2: an `EncoderLayer` with `norm_first` and GELU.

    Parameters: `attn` (`MultiHeadAttention`), the linear layers `linear1` and `linear2`, the layer
    norms `norm1` and `norm2`. `dropout` as in `EncoderLayer`.
    """

    norm_first = True

    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = dropout
        self.attn = MultiHeadAttention(d_model, num_heads, 0.0)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(
        self, x: Float[Tensor, "*batch n d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*batch n d_model"]:
        """x `(B, n, d_model)` → the same shape; `mask` as in `MultiHeadAttention`."""
        x = self._through(x, lambda q: self.attn(q, q, q, mask, None, False)[0], self.norm1)
        return self._through(x, self._think, self.norm2)

    def _think(self, x: Tensor) -> Tensor:
        wide = nn.functional.gelu(self.linear1(x))
        return self.linear2(self._drop(wide))

    def step(
        self, x: Tensor, cache: tuple[Tensor, Tensor] | None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Positions that come after those in the cache: x `(B, t, d_model)` → the same, and all
        keys and values `(B, H, T + t, d_k)`."""
        new = self.norm1(x)
        parts = [self.attn.W_q(new), self.attn.W_k(new), self.attn.W_v(new)]
        query, *new_ones = (_by_head(part, self.attn.num_heads) for part in parts)
        both = new_ones if cache is None else map(_appended, cache, new_ones)
        key, value = both
        after = key.shape[-2] - query.shape[-2]
        heads = fused_attention(query, key, value, _past(query.shape[-2], after, x.device))
        x = x + self.attn.W_o(heads.movedim(-3, -2).flatten(-2))
        return self._through(x, self._think, self.norm2), (key, value)


class GPT(nn.Module):
    """A decoder alone: `model(ids)` gives logits, `model.step(ids, cache)` those of new tokens.

    Arguments and parameters are those of chapter 9's `GPT`. No position sees a later one.
    """

    blocks: Iterable[DecoderBlock]

    def __init__(
        self,
        vocab_size: int,
        context_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.context_size, self.dropout = context_size, dropout
        table, sizes = nn.Embedding, (d_model, num_heads, 4 * d_model, dropout)
        self.tokens, self.positions = table(vocab_size, d_model), table(context_size, d_model)
        self.add_module("blocks", nn.ModuleList([DecoderBlock(*sizes) for _ in range(num_layers)]))
        self.norm = nn.LayerNorm([d_model])
        for parameter in (self.tokens.weight, self.positions.weight):
            nn.init.normal_(parameter, 0.0, 0.02)

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch n vocab_size"]:
        """ids `(B, n)` → logits `(B, n, vocab_size)`; `ValueError` beyond `context_size`."""
        x = self._embedded(ids, 0)
        past = _past(x.shape[1], 0, x.device)
        for layer in self.blocks:
            x = layer(x, mask=past)
        return F.linear(self.norm(x), self.tokens.weight)

    def step(
        self, ids: Int[Tensor, "batch t"], cache: Cache | None = None
    ) -> tuple[Float[Tensor, "batch t vocab_size"], Cache]:
        """Logits of t new tokens, given the cache of those before, and the cache of all.

        ids `(B, t)` → logits `(B, t, vocab_size)`, those that `forward` has at these places, and a
        new list with keys and values `(B, num_heads, T + t, d_k)` for each block. In eval mode:
        nothing is dropped from the attention's output. `ValueError` where T + t is beyond
        `context_size`.
        """
        x, new = self._embedded(ids, cache[0][0].shape[-2] if cache else 0), []
        for i, layer in enumerate(self.blocks):
            x, kept = layer.step(x, cache[i] if cache else None)
            new.append(kept)
        return F.linear(self.norm(x), self.tokens.weight), new

    def _embedded(self, ids: Tensor, offset: int) -> Tensor:
        end = offset + ids.shape[1]
        if end > self.context_size:
            raise ValueError(f"there is room for {self.context_size} tokens, and here are {end}")
        total = self.tokens(ids) + self.positions.weight[offset:end]
        return F.dropout(total, self.dropout, self.training)


def _appended(old: Tensor, new: Tensor) -> Tensor:
    return torch.cat([old, new], dim=-2)


def _past(n: int, after: int, device: torch.device) -> Tensor:
    """The keys that each of n queries may see, the first of which has `after` keys before it."""
    key = torch.arange(after + n, device=device)
    return key <= key[after:, None]  # (n, after + n)


def next_token_probabilities(
    logits: Float[Tensor, "*batch V"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "*batch V"]:
    """logits `(..., V)` → the probabilities from which the next token is drawn, `(..., V)`.

    Arguments and errors are those of chapter 9's `next_token_probabilities`.
    """
    refused = {
        f"temperature = {temperature}": temperature < 0,
        f"top_k = {top_k}": top_k is not None and top_k < 1,
        f"top_p = {top_p}": top_p is not None and not 0 < top_p <= 1,
    }
    for what, cannot_be in refused.items():
        if cannot_be:
            raise ValueError(f"there is no distribution for {what}")
    places = logits.argsort(dim=-1, descending=True, stable=True).argsort(dim=-1)
    if not temperature:
        return places.eq(0).to(logits.dtype)
    most = logits.shape[-1] if top_k is None else top_k
    shares = F.softmax(logits.div(temperature).masked_fill(places >= most, -torch.inf), dim=-1)
    if top_p in (None, 1):
        return shares
    # From the least likely upwards: what may go, as long as the rest reaches top_p.
    upwards = shares.flip(-1).sort(dim=-1, stable=True)
    goes = torch.cumsum(upwards.values, dim=-1) <= 1 - top_p
    goes[..., -1] = False
    gone = torch.empty_like(goes).scatter_(-1, upwards.indices, goes).flip(-1)
    return F.normalize(shares.masked_fill(gone, 0.0), p=1, dim=-1)
