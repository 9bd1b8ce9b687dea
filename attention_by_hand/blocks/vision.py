"""Pictures as sequences: ViT's parts and the whole, also without its head, and its maps."""

from collections.abc import Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from attention_by_hand.blocks import _by_head, fused_attention


class DropPath(nn.Module):
    """Stochastic depth: in training, each sample of a branch is dropped with probability p.

    The others are divided by 1 − p; in eval mode nothing happens.
    """

    def __init__(self, p: float = 0.0):
        super().__init__()
        self.p = p

    def forward(self, x: Float[Tensor, "batch *rest"]) -> Float[Tensor, "batch *rest"]:
        """x `(B, ...)` → the same shape, each x[b] as a whole."""
        channels = x.reshape(1, len(x), -1)  # each sample is one, which dropout1d drops as a whole
        return F.dropout1d(channels, self.p, self.training).reshape(x.shape)


class PatchEmbedding(nn.Module):
    """Each patch of a square image as one vector.

    Arguments, parts, attributes and errors are those of chapter 11's `PatchEmbedding`.
    """

    projection: nn.Conv2d

    def __init__(self, image_size: int, patch_size: int, channels: int, d_model: int):
        super().__init__()
        self.grid, rest = divmod(image_size, patch_size)
        if rest:
            raise ValueError(f"{image_size} pixels a side are no multiple of {patch_size}")
        self.size, self.num_patches = image_size, self.grid * self.grid
        sizes = channels, d_model, patch_size, patch_size
        self.add_module("projection", nn.Conv2d(*sizes))

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_patches d_model"]:
        """images `(B, C, image_size, image_size)` → `(B, num_patches, d_model)`."""
        sides = {*images.shape[2:]}
        if sides != {self.size}:
            raise ValueError(f"each side has {self.size} pixels here, and not {sides}")
        (kernel, bias), step = self.projection.parameters(), self.projection.stride[0]
        # A product with the kernels, spread out: what a convolution with this stride is.
        seen = F.unfold(images, step, stride=step)  # (B, C·p·p, num_patches)
        return torch.einsum("bkn,dk->bnd", seen, kernel.flatten(1)) + bias


class PackedAttention(nn.Module):
    """Self-attention with one projection for queries, keys and values.

    Arguments, parts and errors are those of chapter 11's `PackedAttention`.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        qkv_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ):
        super().__init__()
        if divmod(d_model, num_heads)[1]:
            raise ValueError(f"{d_model} features are no multiple of {num_heads} heads")
        self.num_heads, self.on_weights, self.on_output = num_heads, attention_dropout, dropout
        self.qkv, self.proj = nn.Linear(d_model, 3 * d_model, qkv_bias), nn.Linear(d_model, d_model)

    def forward(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch n d_model"]:
        """x `(B, n, d_model)` → the same shape."""
        drop = self.on_weights if self.training else 0.0
        q, k, v = self._parts(x)
        gathered = fused_attention(q, k, v, None, drop)
        made = self.proj(gathered.movedim(1, 2).flatten(-2))
        return F.dropout(made, self.on_output, self.training)

    def weights(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch heads n n"]:
        """Who looks at whom: x `(B, n, d_model)` → `(B, num_heads, n, n)`, without dropout."""
        query, key, _ = self._parts(x)
        identity = torch.eye(x.shape[1], dtype=x.dtype, device=x.device)
        return fused_attention(query, key, identity)

    def _parts(self, x: Tensor) -> list[Tensor]:
        """Queries, keys and values, `(B, num_heads, n, d_k)` each."""
        return [_by_head(part, self.num_heads) for part in self.qkv(x).chunk(3, dim=-1)]


class ViTBlock(nn.Module):
    """One layer of ViT: both sublayers behind a norm, both branches under stochastic depth.

    Parts: `norm1` and `norm2` (eps 1e-6), `attn` (`PackedAttention`), `linear1`, `linear2` and
    `drop_path` (`DropPath`). `dropout` acts on what `attn` gives and behind each linear layer.
    """

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, drop_path: float = 0.0
    ):
        super().__init__()
        self.p = dropout
        self.attn = PackedAttention(d_model, num_heads, True, 0.0, dropout)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = (nn.LayerNorm([d_model], 1e-6) for _ in range(2))
        self.drop_path = DropPath(drop_path)

    def forward(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch n d_model"]:
        """x `(B, n, d_model)` → the same shape."""
        for branch, norm in ((self.attn, self.norm1), (self._think, self.norm2)):
            x = torch.add(x, self.drop_path(branch(norm(x))))
        return x

    def _think(self, x: Tensor) -> Tensor:
        for layer, activation in (
            (self.linear1, nn.functional.gelu),
            (self.linear2, nn.Identity()),
        ):
            x = F.dropout(activation(layer(x)), self.p, self.training)
        return x


class VisionTransformer(nn.Module):
    """ViT: `model(images)` gives logits, `model.encode(images)` what it makes of all tokens.

    Arguments and parts are those of chapter 11's `VisionTransformer`; the class token comes first.
    """

    patches: PatchEmbedding
    cls_token: nn.Parameter
    positions: nn.Parameter
    blocks: Iterable[ViTBlock]

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        channels: int,
        num_classes: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        dropout: float = 0.0,
    ):
        super().__init__()
        cut = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.add_module("patches", cut)
        for name, rows in {"cls_token": 1, "positions": 1 + cut.num_patches}.items():
            self.register_parameter(name, nn.Parameter(0.02 * torch.randn(1, rows, d_model)))
        sizes = d_model, num_heads, 4 * d_model, dropout
        self.add_module("blocks", nn.ModuleList([ViTBlock(*sizes) for _ in range(num_layers)]))
        self.norm, self.head = nn.LayerNorm([d_model], 1e-6), nn.Linear(d_model, num_classes)
        self.p = dropout

    def forward(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch num_classes"]:
        """images `(B, C, image_size, image_size)` → logits `(B, num_classes)`."""
        return self.head(self.encode(images)[:, 0])

    def encode(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> Float[Tensor, "batch tokens d_model"]:
        """What comes out of `norm`, for the class token and each patch: images
        `(B, C, image_size, image_size)` → `(B, 1 + num_patches, d_model)`."""
        x = self._embedded(images)
        for layer in self.blocks:
            x = layer(x)
        return self.norm(x)

    def maps(
        self, images: Float[Tensor, "batch channels height width"]
    ) -> list[Float[Tensor, "batch heads tokens tokens"]]:
        """The attention weights of each block, first block first: images
        `(B, C, image_size, image_size)` → `(B, num_heads, 1 + num_patches, 1 + num_patches)`."""
        x, found = self._embedded(images), []
        for layer in self.blocks:
            found.append(layer.attn.weights(layer.norm1(x)))
            x = layer(x)
        return found

    def _embedded(self, images: Tensor) -> Tensor:
        """The class token and the patches, with their positions."""
        found = self.patches(images)
        where = self.positions
        parts = [(self.cls_token + where[:, :1]).repeat(len(found), 1, 1), found + where[:, 1:]]
        return F.dropout(torch.cat(parts, dim=1), self.p, self.training)
