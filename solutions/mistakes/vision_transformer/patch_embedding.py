"""Known answers to `PatchEmbedding`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from solutions import vision_transformer as right

BANK = Bank("PatchEmbedding", right, globals())
BANK.read()


@BANK.right
class embedding_of_the_blocks(blocks.PatchEmbedding):
    pass


@BANK.right
class in_other_words(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        if image_size % patch_size != 0:
            raise ValueError(f"image_size {image_size} must be a multiple of {patch_size}")
        grid = image_size // patch_size
        self.size = (image_size, image_size)
        self.num_patches = grid * grid
        self.projection = nn.Conv2d(
            channels, d_model, kernel_size=(patch_size, patch_size), stride=(patch_size, patch_size)
        )

    def forward(self, images):
        if tuple(images.shape[2:]) != self.size:
            raise ValueError(f"expected {self.size}, got {tuple(images.shape[2:])}")
        x = self.projection(images)
        return x.permute(0, 2, 3, 1).reshape(len(x), self.num_patches, -1)


@BANK.right
class by_patches_and_a_product(right.PatchEmbedding):
    def forward(self, images):
        B, C, height, width = images.shape
        p, kernel = self.projection.stride[0], self.projection.weight
        if (height, width) != (self.image_size, self.image_size):
            raise ValueError(f"{height} × {width} is not {self.image_size} × {self.image_size}")
        grid = height // p
        x = images.reshape(B, C, grid, p, grid, p).permute(0, 2, 4, 1, 3, 5)
        x = x.reshape(B, grid * grid, C * p * p)
        return F.linear(x, kernel.reshape(len(kernel), -1), self.projection.bias)


@BANK.right
class by_unfold(right.PatchEmbedding):
    def forward(self, images):
        for side in images.shape[-2:]:
            if side != self.image_size:
                raise ValueError(f"a side of {side} pixels, expected {self.image_size}")
        p = self.projection.kernel_size[0]
        rows = F.unfold(images, p, stride=p)
        out = self.projection.weight.flatten(1) @ rows + self.projection.bias[:, None]
        return torch.transpose(out, 1, 2)
