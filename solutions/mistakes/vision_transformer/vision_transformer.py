"""Known answers to `VisionTransformer`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from attention_by_hand.blocks import ViTBlock
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import vision_transformer as right
from solutions.vision_transformer import PatchEmbedding

BANK = Bank("VisionTransformer", right, globals())

BANK.changes("""
class_token_last
    ~ [first, patches] → [patches, first]
    ~ self.norm(x[:, 0]) → self.norm(x[:, -1])
    The class token comes last. It comes first, and so does its position.
reads_the_last_token: self.norm(x[:, 0]) → self.norm(x[:, -1])
    The logits are made of the last patch. They should be made of the class token, which comes
    first.
class_token_put_last_but_read_first: [first, patches] → [patches, first]
    The class token is put behind the patches, so the logits are made of the first patch.
mean_for_the_class_token: self.norm(x[:, 0]) → self.norm(x.mean(1))
    The logits are made of the mean of all tokens. They should be made of the class token alone.
mean_of_the_patches: self.norm(x[:, 0]) → self.norm(x[:, 1:].mean(1))
    The logits are made of the mean of the patches. They should be made of the class token alone.
mean_of_the_normalised: self.norm(x[:, 0]) → self.norm(x).mean(1)
    The logits are made of the mean of all normalised tokens. They should be made of the class token
    alone.
largest_of_the_tokens: self.norm(x[:, 0]) → self.norm(x).amax(1)
    The logits are made of the largest numbers of all tokens. They should be made of the class token
    alone.
logits_of_every_token: self.norm(x[:, 0]) → self.norm(x)
    Every token gets logits. Only the class token should: (B, num_classes).
class_token_forgotten
    - x = self.dropout(torch.cat([first, patches], dim=1) + self.positions)
    + x = self.dropout(patches + self.positions[:, 1:])
    The class token is left out, and the logits are made of the first patch.
class_token_is_zero: self.cls_token.expand → (0 * self.cls_token).expand
    The class token begins as zeros, whatever cls_token holds.
class_token_detached: self.cls_token.expand → self.cls_token.detach().expand
    The class token is detached: it learns nothing.
class_token_a_buffer
    - self.cls_token = nn.Parameter(torch.zeros(1, 1, d_model))
    + self.register_buffer("cls_token", torch.zeros(1, 1, d_model))
    cls_token is a buffer: it is saved, but not learnt. It should be a parameter.
positions_a_buffer
    - self.positions = nn.Parameter(torch.zeros(1, 1 + self.patches.num_patches, d_model))
    + number = 1 + self.patches.num_patches
    + self.register_buffer("positions", torch.zeros(1, number, d_model))
    positions is a buffer: it is saved, but not learnt. It should be a parameter.
positions_not_on_the_class_token
    - x = self.dropout(torch.cat([first, patches], dim=1) + self.positions)
    + x = self.dropout(torch.cat([first, patches + self.positions[:, 1:]], dim=1))
    The class token gets no position. It has one of its own, the first.
class_position_last
    - x = self.dropout(torch.cat([first, patches], dim=1) + self.positions)
    + x = self.dropout(torch.cat([first, patches], dim=1) + self.positions.roll(-1, 1))
    Every token gets the position of the one after it: the last one is taken for the class token's.
    It is the first one.
positions_forgotten
    - torch.cat([first, patches], dim=1) + self.positions
    + torch.cat([first, patches], dim=1)
    No positions are added: the patches could lie anywhere.
positions_backwards: dim=1) + self.positions) → dim=1) + self.positions.flip(1))
    The positions run backwards: the class token gets the last one.
positions_multiplied: dim=1) + self.positions) → dim=1) * self.positions)
    The positions are multiplied with the tokens. They should be added.
positions_in_every_block
    ~ x = block(x) → x = block(x + self.positions)
    - x = self.dropout(torch.cat([first, patches], dim=1) + self.positions)
    + x = self.dropout(torch.cat([first, patches], dim=1))
    The positions are added before every block. They are added once, before the first.
positions_detached: dim=1) + self.positions) → dim=1) + self.positions.detach())
    The positions are detached: they learn nothing.
norm_forgotten: self.norm(x[:, 0]) → x[:, 0]
    norm exists but is not used: the last block's output is a sum that nothing has normalised.
norm_before_the_blocks
    - x = self.dropout(torch.cat([first, patches], dim=1) + self.positions)
    + x = self.norm(self.dropout(torch.cat([first, patches], dim=1) + self.positions))
    ~ self.norm(x[:, 0]) → x[:, 0]
    The norm comes before the first block. It should come after the last one.
norm_after_every_block
    ~ x = block(x) → x = self.norm(block(x))
    ~ self.norm(x[:, 0]) → x[:, 0]
    The norm is applied after every block instead of after the last one: it is inside the loop.
eps_of_torch: nn.LayerNorm(d_model, eps=1e-6) → nn.LayerNorm(d_model)
    norm has torch's eps, 1e-5. ViT's is 1e-6, and where the vectors are small, that shows.
head_forgotten: self.head(self.norm(x[:, 0])) → self.norm(x[:, 0])
    head is not used: the class token itself is returned.
head_without_a_bias: nn.Linear(d_model, num_classes) → nn.Linear(d_model, num_classes, bias=False)
    head has no bias. An nn.Linear has one unless it is told otherwise.
probabilities: > result = result.softmax(-1)
    forward returns probabilities instead of logits: the loss takes the softmax itself.
log_probabilities: > result = result.log_softmax(-1)
    forward returns log-probabilities instead of logits: the loss takes the softmax itself.
blocks_forgotten: x = block(x) → pass
    The blocks are built but never used.
every_block_from_the_beginning
    ~ for block in self.blocks: → for block in self.blocks[-1:]:
    Only the last block counts, and it gets the embedded patches.
blocks_in_reverse: in self.blocks: → in reversed(self.blocks):
    The blocks are gone through from the last to the first.
blocks_added: x = block(x) → x = x + block(x)
    What a block gives is added to x once more. Every block adds to x itself.
one_block_for_all: for block in self.blocks: → for block in [*self.blocks[:1]] * len(self.blocks):
    The first block is used again and again. Every layer has parameters of its own.
the_same_block_again
    - ViTBlock(d_model, num_heads, 4 * d_model, dropout) for _ in range(num_layers)
    + [ViTBlock(d_model, num_heads, 4 * d_model, dropout)] * num_layers
    All layers are one and the same block, with the same parameters: a list times a number repeats
    the object. Make a new ViTBlock for each layer.
d_ff_of_d_model: 4 * d_model → d_model
    The feed-forward of the blocks is as wide as the model. It should be four times as wide.
one_head_in_the_blocks: ViTBlock(d_model, num_heads, → ViTBlock(d_model, 1,
    The blocks have one head whatever num_heads is.
no_dropout_on_the_sum
    - self.dropout(torch.cat([first, patches], dim=1) + self.positions)
    + (torch.cat([first, patches], dim=1) + self.positions)
    There is no dropout on the sum with the positions.
no_dropout_in_the_blocks: 4 * d_model, dropout) → 4 * d_model)
    The blocks are built without dropout: only the sum with the positions is dropped.
no_dropout_at_all
    ~ nn.Dropout(dropout) → nn.Dropout(0.0)
    ~ 4 * d_model, dropout) → 4 * d_model)
    Nothing is ever dropped.
dropout_as_drop_path: 4 * d_model, dropout) → 4 * d_model, 0.0, dropout)
    The blocks take dropout for stochastic depth. It is their fourth argument, and drop_path the
    fifth.
dropout_in_eval
    - x = self.dropout(torch.cat([first, patches], dim=1) + self.positions)
    + x = torch.cat([first, patches], dim=1) + self.positions
    + x = F.dropout(x, self.dropout.p)
    Dropout goes on in eval mode. nn.Dropout knows the mode of its module; F.dropout has to be told.
whole_tokens_dropped: nn.Dropout(dropout) → nn.Dropout1d(dropout)
    Dropout takes the whole vector of a token at a time. It should take single numbers.
resized: + images = F.interpolate(images, (self.patches.image_size, self.patches.image_size))
    Images of another size are stretched. It should be a ValueError.
images_detached: self.patches(images) → self.patches(images).detach()
    The patches are detached: neither the projection nor the images get a gradient.
rounded_to_single: > result = result.float()
    The result is float32 whatever the model is.
images_normalised: + images = (images - images.mean()) / (images.std() + 1e-6)
    The images are normalised first, by what the whole batch has in common. They should go into
    patches as they are.
images_overwritten: > images.data.zero_()
    The caller's images are set to 0.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


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


forgotten(BANK, "images")
