"""Known answers to `VisionTransformer`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from attention_by_hand.blocks import ViTBlock
from autograder.bank import Bank
from solutions import vision_transformer as right
from solutions.vision_transformer import PatchEmbedding

BANK = Bank("VisionTransformer", right, globals())
BANK.read()


@BANK.right
class vit_of_the_blocks(blocks.VisionTransformer):
    pass


@BANK.right
class token_and_positions_apart(right.VisionTransformer):
    def forward(self, images):
        patches = self.patches(images) + self.positions[:, 1:]
        first = (self.cls_token + self.positions[:, :1]).repeat(patches.shape[0], 1, 1)
        x = self.dropout(torch.cat((first, patches), dim=-2))
        for i in range(len(self.blocks)):
            x = self.blocks[i](x)
        return self.head(self.norm(x)[:, 0])


@BANK.right
class in_other_parts(nn.Module):
    def __init__(
        self,
        image_size,
        patch_size,
        channels,
        num_classes,
        d_model,
        num_heads,
        num_layers,
        dropout=0.0,
    ):
        super().__init__()
        self.head = nn.Linear(d_model, num_classes)
        self.norm = nn.LayerNorm(d_model, 1e-6)
        layers = [
            ViTBlock(d_model, num_heads, d_ff=d_model * 4, dropout=dropout)
            for _ in range(num_layers)
        ]
        self.blocks = nn.Sequential(*layers)
        self.patches = PatchEmbedding(image_size, patch_size, channels, d_model)
        n = self.patches.num_patches + 1
        self.cls_token = nn.Parameter(0.02 * torch.randn(1, 1, d_model))
        self.positions = nn.Parameter(0.02 * torch.randn(1, n, d_model))
        self.p = dropout

    def forward(self, images):
        x = self.patches(images)
        x = F.pad(x, (0, 0, 1, 0)) + self.positions
        first = torch.zeros_like(x)
        first[:, 0] = 1.0
        x = F.dropout(x + first * self.cls_token, self.p, self.training)
        return self.head(self.norm(self.blocks(x)).select(1, 0))


@BANK.right
class with_convolution_and_norm_in_place(right.VisionTransformer):
    def forward(self, images):
        B = images.size(0)
        tokens = [self.cls_token.expand(B, 1, -1), self.patches(images)]
        x = torch.cat(tokens, 1).add(self.positions.expand(B, -1, -1))
        x = self.dropout(x)
        for block in self.blocks.children():
            x = block(x)
        first, _ = x.split([1, x.shape[1] - 1], dim=1)
        return self.head(self.norm(first)).squeeze(1)
