"""Known answers to `PatchEmbedding`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from attention_by_hand import blocks
from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import vision_transformer as right

BANK = Bank("PatchEmbedding", right, globals())

BANK.changes("""
columns_before_rows: .flatten(2).mT → .mT.flatten(2).mT
    The patches come column by column. The convolution's last two axes are rows and columns, in this
    order, and are joined as they stand.
bare_reshape: .flatten(2).mT → .reshape(len(images), self.num_patches, -1)
    The shape is right, but reshape only cuts the numbers anew: each row mixes one feature of many
    patches. The axes have to be exchanged.
features_before_patches: .flatten(2).mT → .flatten(2)
    The features come before the patches. It should be (B, num_patches, d_model).
grid_kept: .flatten(2).mT → .permute(0, 2, 3, 1)
    The patches still have two axes, rows and columns. They should be one sequence.
patches_backwards: .flatten(2).mT → .flatten(2).mT.flip(1)
    The patches come in the opposite order, from the lower right.
mean_of_the_patches: .flatten(2).mT → .flatten(2).mT.mean(1, keepdim=True)
    The patches are averaged. Each of them should have a vector of its own.
images_turned_over: self.projection(images) → self.projection(images.mT)
    Height and width of the images are exchanged: the kernel reads every patch turned over.
stride_forgotten: stride=patch_size → stride=1
    The kernel moves on by one pixel: the patches overlap. The stride is patch_size, like the
    kernel.
stride_of_half: stride=patch_size → stride=max(patch_size // 2, 1)
    The kernel moves on by half a patch: the patches overlap. The stride is patch_size, like the
    kernel.
padded: stride=patch_size → stride=patch_size, padding=patch_size // 2
    The image is padded with zeros before it is cut, so the patches are shifted.
linear_instead
    - self.projection = nn.Conv2d(channels, d_model, patch_size, stride=patch_size)
    + self.projection = nn.Linear(channels * patch_size**2, d_model)
    - return self.projection(images).flatten(2).mT
    + p = height // int(self.num_patches**0.5)
    + return self.projection(F.unfold(images, p, stride=p).mT)
    The parameters of the projection are not those of an nn.Conv2d with a bias: it may be an
    nn.Linear, whose weight has another shape, or may have no bias.
normalised: > result = F.layer_norm(result, result.shape[-1:])
    The vectors are normalised. They should be what the projection gives.
activated: > result = F.gelu(result)
    There is an activation behind the projection. It should be linear.
scaled: > result = result * result.shape[-1] ** 0.5
    The vectors are multiplied by √d_model. They should be what the projection gives.
num_patches_of_a_row: (image_size // patch_size) ** 2 → image_size // patch_size
    num_patches is the number of patches in a row. It should be that of the whole image.
num_patches_is_a_float: (image_size // patch_size) ** 2 → (image_size / patch_size) ** 2
    num_patches is a float. It should be a whole number, since it says how many rows to make.
num_patches_with_the_class_token
    ~ (image_size // patch_size) ** 2 → (image_size // patch_size) ** 2 + 1
    num_patches counts one too many. The class token is no patch.
num_pixels: (image_size // patch_size) ** 2 → image_size**2
    num_patches is the number of pixels. It should be that of the patches.
num_patches_not_kept: self.num_patches = → self.n =
    There is no attribute num_patches, so a model cannot know how many positions it needs.
any_size_taken: if height != self.image_size or width != self.image_size: → if False:
    Images of any size are taken. A model has positions for image_size only: it should be a
    ValueError.
only_height_checked
    - if height != self.image_size or width != self.image_size:
    + if height != self.image_size:
    Only the height of the images is checked. The width may be wrong as well.
only_width_checked
    - if height != self.image_size or width != self.image_size:
    + if width != self.image_size:
    Only the width of the images is checked. The height may be wrong as well.
only_larger_refused
    - if height != self.image_size or width != self.image_size:
    + if max(height, width) > self.image_size:
    Images that are too small are taken. Any other size should be a ValueError.
both_must_be_wrong: height != self.image_size or width → height != self.image_size and width
    Images are refused only where both sides are wrong. One is enough.
area_checked
    - if height != self.image_size or width != self.image_size:
    + if height * width != self.image_size**2:
    Only the number of pixels is checked. An image of 4 × 9 has as many as one of 6 × 6.
only_divisibility_checked
    - if height != self.image_size or width != self.image_size:
    + p = self.projection.stride[0]
    + if height % p or width % p:
    It is only checked whether the patches fill the image. It should have the size that the module
    was built for.
cut_off: + images = images[..., : self.image_size, : self.image_size]
    Images that are too large are cut off without a word. It should be a ValueError.
resized: + images = F.interpolate(images, (self.image_size, self.image_size))
    Images of another size are stretched. It should be a ValueError.
names_no_numbers
    ~ f"{height} × {width} pixels, where each side has {self.image_size}" → "wrong size"
    The error does not say how large the image is, nor how large it should be.
another_kind_of_error: raise ValueError(f"{height} → raise TypeError(f"{height}
    The error for an image of another size is no ValueError.
built_all_the_same: if image_size % patch_size: → if False:
    A patch_size that does not divide image_size is taken: the right and lower edge of every image
    would never be read. It should be a ValueError when the module is built.
built_without_numbers
    ~ f"patches of {patch_size} do not fill an image of {image_size}" → "cannot be"
    The error that says that patch_size does not divide image_size names neither.
built_with_an_assertion: raise ValueError(f"patches → raise AssertionError(f"patches
    That patch_size does not divide image_size is an AssertionError. It should be a ValueError.
gradient_cut: self.projection(images) → self.projection(images.detach())
    The images are detached: no gradient reaches them.
projection_frozen
    + kernel, bias = self.projection.weight.detach(), self.projection.bias
    ~ self.projection(images) → F.conv2d(images, kernel, bias, self.projection.stride)
    The kernel is detached, so it does not learn.
rounded_to_single: > result = result.float()
    The result is float32 whatever the images are.
images_overwritten
    > result = result.clone()
    > images.data.zero_()
    The caller's images are set to 0.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The module changes torch's default dtype for the whole program.
""")


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


forgotten(BANK, "images")
