"""Known answers to `patchify`: mistakes, then right answers."""

import torch
import torch.nn.functional as F

from autograder.bank import Bank
from solutions import vision_transformer as right

BANK = Bank("patchify", right, globals())
BANK.read()


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
