"""Pictures as sequences, ViT: patches, attention in one packed projection, what moves its answers,
and what it looks at.

Sources: the model after A. Dosovitskiy et al., "An image is worth 16×16 words" (2021); rollout
after S. Abnar, W. Zuidema, "Quantifying attention flow in transformers" (2020). The layers,
`ViTBlock`, come from `blocks`.
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Num
from torch import Tensor, nn

from attention_by_hand.blocks import ViTBlock


def patchify(
    images: Num[Tensor, "B C height width"], patch_size: int
) -> Num[Tensor, "B patches numbers"]:
    """Cut images into square patches, each of them a row of the images' own numbers.

    Integers stay integers, and booleans booleans.

    Shapes: images `(B, C, height, width)` → `(B, height/p · width/p, C·p·p)`, with
    p = patch_size. The patches come row by row, from the upper left. Within a patch, the
    channels come one after the other, in each channel the rows, in each row the columns:
    the order of a convolution's kernel. Raises a `ValueError` that names the size and the
    patch if p does not divide height or width. Source: Dosovitskiy et al. (2021),
    section 3.1.
    """
    ### BEGIN SOLUTION
    (B, C, height, width), p = images.shape, patch_size
    if height % p or width % p:
        raise ValueError(f"{height} × {width} pixels cannot be cut into patches of {p} × {p}")
    cut = images.reshape(B, C, height // p, p, width // p, p)
    return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)  # (B, patches, C·p·p)
    ### END SOLUTION


class PatchEmbedding(nn.Module):
    """What ViT's first layer reads: each patch of a square image as one vector.

    Part: `projection` (`nn.Conv2d` from channels to d_model, with a bias, whose kernel
    and stride are both patch_size), so that it sees each patch once. Attribute:
    `num_patches`. Raises a `ValueError` that names both numbers if patch_size does not
    divide image_size. Source: Dosovitskiy et al. (2021), equation 1.
    """

    def __init__(self, image_size: int, patch_size: int, channels: int, d_model: int):
        ### BEGIN SOLUTION
        super().__init__()
        if image_size % patch_size:
            raise ValueError(f"patches of {patch_size} do not fill an image of {image_size}")
        self.image_size = image_size
        self.num_patches = (image_size // patch_size) ** 2
        self.projection = nn.Conv2d(channels, d_model, patch_size, stride=patch_size)
        ### END SOLUTION

    def forward(
        self, images: Float[Tensor, "B C height width"]
    ) -> Float[Tensor, "B num_patches d_model"]:
        """Make a vector of each patch, the patches row by row.

        Shapes: images `(B, C, image_size, image_size)` → `(B, num_patches, d_model)`.
        Raises a `ValueError` for images of another size, which names that size and
        image_size.
        """
        ### BEGIN SOLUTION
        height, width = images.shape[-2:]
        if height != self.image_size or width != self.image_size:
            raise ValueError(f"{height} × {width} pixels, where each side has {self.image_size}")
        return self.projection(images).flatten(2).mT  # (B, num_patches, d_model)
        ### END SOLUTION


class PackedAttention(nn.Module):
    """Self-attention with one projection for queries, keys and values, as ViT's paper writes it.

    Parts: `qkv` (`nn.Linear` from d_model to 3·d_model, whose outputs are all queries, then
    all keys, then all values, and in each of the three head after head), `proj` (`nn.Linear`
    from d_model to d_model, with a bias). `qkv_bias` says whether `qkv` has one. In training,
    `attention_dropout` acts on the weights and `dropout` on what `proj` gives. Raises a
    `ValueError` that names both numbers if num_heads does not divide d_model. Source:
    Dosovitskiy et al. (2021), appendix A.
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        qkv_bias: bool = True,
        attention_dropout: float = 0.0,
        dropout: float = 0.0,
    ):
        ### BEGIN SOLUTION
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model}, which {num_heads} heads do not divide")
        self.num_heads = num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=qkv_bias)
        self.proj = nn.Linear(d_model, d_model)
        self.attention_dropout = nn.Dropout(attention_dropout)
        self.dropout = nn.Dropout(dropout)
        ### END SOLUTION

    def forward(self, x: Float[Tensor, "B n d_model"]) -> Float[Tensor, "B n d_model"]:
        """Let every position gather from all positions.

        Shapes: x `(B, n, d_model)` → the same, the output alone. With
        d_k = d_model / num_heads, the scores are divided by √d_k.
        """
        ### BEGIN SOLUTION
        packed = self.qkv(x).unflatten(-1, (3, self.num_heads, -1))  # (B, n, 3, H, d_k)
        query, key, value = packed.permute(2, 0, 3, 1, 4)  # each (B, H, n, d_k)
        scores = query @ key.mT / math.sqrt(query.shape[-1])  # (B, H, n, n)
        weights = self.attention_dropout(scores.softmax(dim=-1))
        heads = (weights @ value).transpose(1, 2).flatten(2)  # (B, n, d_model)
        return self.dropout(self.proj(heads))
        ### END SOLUTION


class VisionTransformer(nn.Module):
    """ViT: an encoder that reads patches, and one token more that collects what they say.

    The class token comes first, then the patches; the positions are added to all of them,
    with dropout on the sum; then come the blocks, and `norm`; `head` scores the classes
    from the class token alone. Parts: `patches` (`PatchEmbedding`), `cls_token`
    (`nn.Parameter` `(1, 1, d_model)`), `positions` (`nn.Parameter`
    `(1, 1 + num_patches, d_model)`), `blocks` (`nn.ModuleList` of num_layers times
    `blocks.ViTBlock(d_model, num_heads, d_ff, dropout)`, with d_ff = 4·d_model and the same
    dropout), `norm` (`nn.LayerNorm`, with eps 1e-6), `head` (`nn.Linear` from d_model to
    num_classes). Source: Dosovitskiy et al. (2021), section 3.1; the two parameters begin
    with standard deviation 0.02.
    """

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
        ### BEGIN SOLUTION
        super().__init__()
        self.patches = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.positions = nn.Parameter(torch.zeros(1, 1 + self.patches.num_patches, d_model))
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.ModuleList(
            ViTBlock(d_model, num_heads, 4 * d_model, dropout) for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(d_model, eps=1e-6)
        self.head = nn.Linear(d_model, num_classes)
        ### END SOLUTION
        nn.init.normal_(self.cls_token, std=0.02)
        nn.init.normal_(self.positions, std=0.02)

    def forward(self, images: Float[Tensor, "B C height width"]) -> Float[Tensor, "B num_classes"]:
        """Score every class, for each image.

        Shapes: images `(B, C, image_size, image_size)` → logits `(B, num_classes)`. Raises
        a `ValueError` for images of another size, as `patches` does.
        """
        ### BEGIN SOLUTION
        patches = self.patches(images)  # (B, num_patches, d_model)
        first = self.cls_token.expand(len(patches), -1, -1)  # (B, 1, d_model)
        x = self.dropout(torch.cat([first, patches], dim=1) + self.positions)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x[:, 0]))  # (B, num_classes)
        ### END SOLUTION


def equivariance_gap(
    model: nn.Module,
    images: Float[Tensor, "B C height width"],
    changes: Sequence[tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]],
) -> Float[Tensor, "changes"]:
    """Measure how far answers go astray when the images are changed; 0: not at all.

    Each change is a pair of functions (g, h): g changes a batch of images, and h does to a batch
    of answers what g should do to them (where they should stay, nothing). With f the model, x_i
    the images, and ‖·‖ the Euclidean length of all numbers of one answer,

        gap² = mean_i ‖f(g(x_i)) − h(f(x_i))‖² / mean_{i ≠ j} ‖f(x_i) − f(x_j)‖²,

    so 1 is as far as the answers to two different images of the batch. Where nothing goes astray,
    the gap is 0, even if all answers are equal; where something does and they are, it is ∞.

    Shapes: images `(B, C, height, width)`; answers `(B, …)`, a shape that h keeps; changes, one or
    more → `(changes,)`, with the dtype of the answers. Raises a `ValueError` that names B if there
    are fewer than two images. The model is measured in eval mode, whatever mode it comes in;
    afterwards each of its parts is in the mode in which it came. The result has no gradient.
    """
    ### BEGIN SOLUTION
    B = len(images)
    if B < 2:
        raise ValueError(f"{B} images: there is no other answer to compare the gap with")
    modes = [(part, part.training) for part in model.modules()]
    model.eval()
    with torch.no_grad():
        answers = model(images)  # (B, …)
        apart = answers[:, None] - answers  # (B, B, …)
        astray = torch.stack([model(g(images)) - h(answers) for g, h in changes])  # (changes, B, …)
        pairs = apart.square().sum() / (B * (B - 1))
        found = astray.square().flatten(1).sum(dim=1) / B  # (changes,)
        gaps = torch.where(found > 0, (found / pairs).sqrt(), 0)
    for part, training in modes:
        part.training = training
    return gaps
    ### END SOLUTION


def attention_rollout(weights: Sequence[Float[Tensor, "B H n n"]]) -> Float[Tensor, "B n n"]:
    """Follow the attention back through all layers to the patches.

    Each layer's weights are averaged over the heads, which gives A; half of what a position
    carries on is itself: ½A + ½I. The result is the product of these matrices, with the last
    layer's leftmost. Nothing is renormalised: the rows sum to 1 where those of the weights
    do. Shapes: a list of weights, first layer first, all `(B, H, n, n)` → `(B, n, n)`: row i
    says what position i has drawn from each of the first layer's. It is to be looked at, so it
    need not have gradients. Source: Abnar, Zuidema (2020), section 3.
    """
    ### BEGIN SOLUTION
    n = weights[0].shape[-1]
    itself = torch.eye(n, dtype=weights[0].dtype, device=weights[0].device)
    rollout = itself.repeat(len(weights[0]), 1, 1)  # (B, n, n)
    for weight in weights:
        rollout = (0.5 * weight.mean(dim=1) + 0.5 * itself) @ rollout
    return rollout
    ### END SOLUTION


def bug_in_patches(image_size: int) -> tuple[Tensor, Tensor]:
    """Find two batches of images for `wrong_patch_means`: one shows its bug, one hides it.

    Shapes: → `(shows, hides)`, each `(B, C, image_size, image_size)`; image_size is even, and
    4 or more; B and C are yours, from 1 to 64. The numbers lie between −1000 and 1000, and
    the patches are 2 × 2. On `shows`, the right means and the wrong ones differ by 0.01 or
    more somewhere; on `hides` they are equal, although in every image and channel, each row
    of patches and each column of them holds two whose means differ by 0.1 or more.
    """
    ### BEGIN SOLUTION
    grid = torch.arange(image_size) // 2  # of each pixel, the row or the column of its patch
    rows = grid[:, None].expand(image_size, image_size).float()
    return rows[None, None], (rows + rows.T)[None, None]
    ### END SOLUTION
