"""Known answers to `patchify`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from autograder.bank.devices import LEFT_ON_THE_CPU, forgotten
from solutions import vision_transformer as right

BANK = Bank("patchify", right, globals())

BANK.changes("""
columns_before_rows: permute(0, 2, 4, 1, 3, 5) → permute(0, 4, 2, 1, 3, 5)
    The patches come column by column, from top to bottom. They should come row by row, from left to
    right.
pixels_column_by_column: permute(0, 2, 4, 1, 3, 5) → permute(0, 2, 4, 1, 5, 3)
    Within a patch, the pixels come column by column. They should come row by row.
both_column_by_column: permute(0, 2, 4, 1, 3, 5) → permute(0, 4, 2, 1, 5, 3)
    Patches, and the pixels within them, come column by column. Both should come row by row.
channels_last: permute(0, 2, 4, 1, 3, 5) → permute(0, 2, 4, 3, 5, 1)
    Within a patch, the channels come last: the numbers of a pixel stand together. It should be one
    channel after the other, as in a convolution's kernel.
channels_between: permute(0, 2, 4, 1, 3, 5) → permute(0, 2, 4, 3, 1, 5)
    Within a patch, each row holds all channels. It should be one channel after the other, with all
    of its rows.
channels_before_patches
    ~ .permute(0, 2, 4, 1, 3, 5) → .permute(0, 1, 2, 4, 3, 5)
    ~ .flatten(3).flatten(1, 2) → .reshape(B, height * width // p**2, C * p * p)
    The channels are left in front of the patches, so a row of the result mixes patches of one
    channel instead of holding one patch of all channels.
bare_reshape
    - cut = images.reshape(B, C, height // p, p, width // p, p)
    - return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
    + return images.reshape(B, (height // p) * (width // p), C * p * p)
    The shape is right, but reshape only cuts the numbers into rows as they lie: each row holds
    whole lines of the image instead of a patch. The axes have to be moved first.
channel_by_channel
    - cut = images.reshape(B, C, height // p, p, width // p, p)
    - return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
    + cut = images.reshape(B, C, (height // p) * (width // p), p * p)
    + return cut.transpose(1, 2).flatten(2)
    Each channel is cut into stretches of p·p numbers as they lie in memory, which are parts of
    lines and not squares. Rows and columns have to be cut apart.
axes_exchanged
    ~ (B, C, height // p, p, width // p, p) → (B, C, p, height // p, p, width // p)
    Of the two axes that height becomes, the first is taken for the pixels in a patch. So each patch
    holds pixels from all over the image. The first one says in which row of patches a pixel is.
height_for_width
    ~ (B, C, height // p, p, width // p, p) → (B, C, width // p, p, height // p, p)
    Height and width are exchanged, which a square image hides.
batch_with_patches: .flatten(3).flatten(1, 2) → .flatten(3).flatten(0, 2)
    Batch and patches are one axis: the images can no longer be told apart.
grid_kept: .flatten(3).flatten(1, 2) → .flatten(3)
    The patches still have two axes, rows and columns. They should be one sequence.
patches_not_flattened: .flatten(3).flatten(1, 2) → .flatten(1, 2)
    The patches are in the right order, but each is still a picture (C, p, p). It should be one row
    of numbers.
patches_last: .flatten(3).flatten(1, 2) → .flatten(3).flatten(1, 2).mT
    The numbers come before the patches, as F.unfold gives them. It should be (B, patches, numbers).
first_channel_only
    + images = images[:, :1]
    Only the first channel is used.
mean_over_channels
    > result = result.unflatten(-1, (C, -1)).double().mean(2).to(images.dtype)
    The channels are averaged. All of their numbers belong to the patch.
overlapping
    - cut = images.reshape(B, C, height // p, p, width // p, p)
    - return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
    + cut = images.unfold(2, p, 1).unfold(3, p, 1)
    + return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
    The patches overlap: one begins at every pixel. They should lie side by side, so that each pixel
    is in one patch.
half_overlapping
    - cut = images.reshape(B, C, height // p, p, width // p, p)
    - return cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2)
    + step = max(p // 2, 1)
    + cut = images.unfold(2, p, step).unfold(3, p, step)
    + return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
    The patches overlap by half. They should lie side by side, so that each pixel is in one patch.
number_of_patches: = images.shape, patch_size → = images.shape, images.shape[2] // patch_size
    patch_size is taken for the number of patches in a column. It is the length of a patch's side,
    in pixels.
upside_down: > result = result.flip(1)
    The patches come in the opposite order, from the lower right.
scaled: > result = result / 255 if result.is_floating_point() else result
    The numbers are divided by 255. They should stay as they are.
cut_off
    ~ if height % p or width % p: → if False:
    - cut = images.reshape
    + height, width = height // p * p, width // p * p
    + images = images[:, :, :height, :width]
    + cut = images.reshape
    What does not fill a patch is cut off without a word. It should be a ValueError.
filled_up
    ~ if height % p or width % p: → if False:
    - cut = images.reshape
    + images = F.pad(images, (0, -width % p, 0, -height % p))
    + height, width = images.shape[2:]
    + cut = images.reshape
    An image that the patches do not fill is filled up with zeros. It should be a ValueError.
reshape_complains: if height % p or width % p: → if False:
    Where the patches do not fill the image, reshape fails, with an error that says nothing of
    patches. It should be a ValueError that names the size and patch_size.
only_height_checked: if height % p or width % p: → if height % p:
    Only the height is checked. The width may be the one that patch_size does not divide.
only_width_checked: if height % p or width % p: → if width % p:
    Only the width is checked. The height may be the one that patch_size does not divide.
area_checked: if height % p or width % p: → if height * width % (p * p):
    It is checked that the patches have as many pixels as the image. That is not enough: each side
    has to be a multiple of patch_size.
names_no_numbers
    - raise ValueError(f"{height} × {width} pixels cannot be cut into patches of {p} × {p}")
    + raise ValueError("the patches do not fill the image")
    The error does not say how large the image is, nor how large a patch.
another_kind_of_error: raise ValueError( → raise TypeError(
    The error is no ValueError.
view_of_a_view: images.reshape(B → images.view(B, -1).view(B
    The numbers are right, but view needs memory in one piece: for images that are a view, such as
    a cut-out or one whose axes were exchanged, there is an error. reshape takes any.
always_float: > result = result.float()
    The result is float32 whatever the pixels are.
gradient_cut: > result = result.detach()
    The numbers are right, but no gradient reaches the images.
images_overwritten
    > result = result.clone()
    > images.data.zero_()
    The caller's images are set to 0.
switches_the_default: + torch.set_default_dtype(torch.float64)
    patchify changes torch's default dtype for the whole program.
""")

BANK.change("left_on_the_cpu", LEFT_ON_THE_CPU, after="result = result.cpu()")
forgotten(BANK, "images")


@BANK.right
def by_unfold(images, patch_size):
    height, width = images.shape[2:]
    if height % patch_size or width % patch_size:
        raise ValueError(f"{patch_size} does not divide both {height} and {width}")
    kind = images.dtype if images.is_floating_point() else torch.float32
    return F.unfold(images.to(kind), patch_size, stride=patch_size).mT.to(images.dtype)


@BANK.right
def by_two_unfolds(images, patch_size):
    B, C, *sides = images.shape
    for side in sides:
        if side % patch_size != 0:
            raise ValueError(f"a side of {side} with patches of {patch_size}")
    rows = images.unfold(2, patch_size, patch_size)
    patches = rows.unfold(3, patch_size, patch_size)  # (B, C, rows, columns, p, p)
    patches = patches.permute(0, 2, 3, 1, 4, 5).contiguous()
    return patches.view(B, -1, C * patch_size**2)


@BANK.right
def patch_by_patch(images, patch_size):
    p, (height, width) = patch_size, images.shape[-2:]
    if height % p != 0 or width % p != 0:
        raise ValueError(f"images of {height} × {width} cannot be cut into patches of {p}")
    found = []
    for top in range(0, height, p):
        for left in range(0, width, p):
            found.append(images[:, :, top : top + p, left : left + p].flatten(1))
    return torch.stack(found, dim=1)


@BANK.right
def by_einsum(images, patch_size):
    B, C, H, W = images.shape
    rows, rest = divmod(H, patch_size)
    columns, more = divmod(W, patch_size)
    if rest or more:
        raise ValueError(f"patch_size {patch_size} does not fit into {H} × {W}")
    x = torch.reshape(images, (B, C, rows, patch_size, columns, patch_size))
    x = torch.einsum("bchpwq->bhwcpq", x)
    return x.reshape(B, rows * columns, C * patch_size * patch_size)


@BANK.right
def by_a_convolution(images, patch_size):
    """Each kernel picks one pixel."""
    C, height, width = images.shape[1:]
    if height % patch_size + width % patch_size:
        raise ValueError(f"{height}, {width} and {patch_size}")
    kind = images.dtype if images.is_floating_point() else torch.float64
    numbers = C * patch_size**2
    picks = torch.eye(numbers, dtype=kind, device=images.device)
    picks = picks.reshape(numbers, C, patch_size, patch_size)
    out = F.conv2d(images.to(kind), picks, stride=patch_size)
    return out.flatten(2).transpose(1, 2).to(images.dtype)


@BANK.right
def by_pixel_unshuffle(images, patch_size):
    height, width = images.shape[-2:]
    if height % patch_size or width % patch_size:
        raise ValueError(f"image {height}x{width}, patch {patch_size}")
    return F.pixel_unshuffle(images, patch_size).flatten(2).mT


@BANK.right
def by_splitting(images, patch_size):
    if images.shape[2] % patch_size or images.shape[3] % patch_size:
        raise ValueError(f"{(*images.shape[2:],)} is no multiple of {patch_size}")
    rows = images.split(patch_size, dim=2)
    patches = [patch for row in rows for patch in row.split(patch_size, dim=3)]
    return torch.stack(patches, 1).flatten(2)
