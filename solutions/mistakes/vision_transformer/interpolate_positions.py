"""Known answers to `interpolate_positions`: mistakes, then right answers."""

import torch
import torch.nn.functional as F
from torch import nn

from autograder.bank import Bank
from autograder.bank.devices import LEFT_ON_THE_CPU, forgotten
from solutions import vision_transformer as right

BANK = Bank("interpolate_positions", right, globals())

BANK.changes("""
by_scale_factors
    ~ size=tuple(new_grid) → scale_factor=(new_grid[0] / g, new_grid[1] / g)
    The new size is given as a factor. Rounding can make such a product a little less than the
    whole number, as with 11 · (15 / 11), and then a row is missing: give `size`.
bilinear: mode="bicubic" → mode="bilinear"
    The interpolation is bilinear. It should be bicubic.
nearest: mode="bicubic", align_corners=False → mode="nearest"
    Each new position is a copy of the nearest old one. It should be bicubic interpolation.
corners_aligned: align_corners=False → align_corners=True
    The corners of the grids are put upon each other: align_corners=True. It should be False, where
    a position stands for the whole of its patch.
antialiased: align_corners=False → align_corners=False, antialias=True
    The positions are smoothed where the grid gets smaller. There should be no antialiasing.
height_and_width_exchanged: tuple(new_grid) → tuple(new_grid)[::-1]
    Rows and columns of the new grid are exchanged, which a square one hides.
columns_before_rows: grid.flatten(2).mT → grid.mT.flatten(2).mT
    The new positions come column by column. They should come row by row.
old_grid_column_by_column: .permute(0, 3, 1, 2) → .permute(0, 3, 2, 1)
    The old positions are read column by column: the picture is turned over. They stand row by row.
bare_reshape
    - positions[:, 1:].unflatten(1, (g, g)).permute(0, 3, 1, 2)
    + positions[:, 1:].reshape(1, -1, g, g)
    The rows are cut anew into a picture instead of exchanging axes: every channel mixes features.
bare_reshape_in_the_end: grid.flatten(2).mT → grid.reshape(1, -1, positions.shape[-1])
    The picture is cut anew into rows instead of exchanging axes: every row mixes positions.
class_row_interpolated_too
    - grid = F.interpolate(grid, size=tuple(new_grid), mode="bicubic", align_corners=False)
    + grid = grid + 0 * positions[0, 0, 0]
    + first = positions[:, :1].mT[..., None].expand(-1, -1, g, g)
    + both = [F.interpolate(x, size=tuple(new_grid), mode="bicubic") for x in (first - grid, grid)]
    + grid = both[1]
    ~ [positions[:, :1], → [both[0].mean((2, 3))[:, None],
    The class token's row takes part in the interpolation. It has no place in the grid, and should
    stay as it is.
class_row_last: [positions[:, :1], grid.flatten(2).mT] → [grid.flatten(2).mT, positions[:, :1]]
    The class token's row comes last. It should come first, as in the positions passed in.
class_row_forgotten: torch.cat([positions[:, :1], grid.flatten(2).mT], dim=1) → grid.flatten(2).mT
    The class token's row is missing.
class_row_taken_from_the_end
    - positions[:, 1:].unflatten
    + positions[:, :-1].unflatten
    ~ [positions[:, :1], → [positions[:, -1:],
    The last row is taken for the class token's. It is the first one.
class_row_is_zero: [positions[:, :1], → [0 * positions[:, :1],
    The class token's row becomes 0. It should stay as it is.
class_row_is_the_mean: [positions[:, :1], → [positions.mean(1, keepdim=True),
    The class token's row becomes the mean of all rows. It should stay as it is.
first_patch_twice: positions[:, 1:].unflatten(1, (g, g)) → positions[:, :-1].unflatten(1, (g, g))
    The class token's row is taken for the first patch, and the last patch is left out.
along_the_sequence
    - grid = positions[:, 1:].unflatten(1, (g, g)).permute(0, 3, 1, 2)
    - grid = F.interpolate(grid, size=tuple(new_grid), mode="bicubic", align_corners=False)
    + size = new_grid[0] * new_grid[1]
    + grid = positions[:, 1:].mT[:, :, None]
    + grid = F.interpolate(grid, size=(1, size), mode="bicubic", align_corners=False)
    The patches are interpolated as one long row. They are a grid: the patch below is as near as the
    one to the right.
columns_not_read: tuple(new_grid) → (new_grid[0], new_grid[0])
    The new grid is taken to be square: its number of columns is not read.
scaled_by_the_sizes: > result = result * g / new_grid[0]
    The positions are scaled by the ratio of the sizes. They keep theirs.
old_grid_repeated
    - grid = F.interpolate(grid, size=tuple(new_grid), mode="bicubic", align_corners=False)
    + rows = torch.arange(new_grid[0], device=grid.device) % g
    + columns = torch.arange(new_grid[1], device=grid.device) % g
    + grid = grid[:, :, rows][:, :, :, columns]
    The old grid is repeated like a tile. It should be stretched.
cut_or_padded
    - grid = F.interpolate(grid, size=tuple(new_grid), mode="bicubic", align_corners=False)
    + grid = F.pad(grid, (0, new_grid[1] - g, 0, new_grid[0] - g))
    The grid is cut, or padded with zeros. It should be stretched.
same_grid_skipped_by_number
    + if new_grid[0] * new_grid[1] == positions.shape[1] - 1:
    +     return positions.clone()
    A new grid with as many patches as the old one is taken for the same, whatever its shape.
rounded_root
    ~ if g * g != number: → if False:
    ~ positions[:, 1:].unflatten → positions[:, 1 : 1 + g * g].unflatten
    Patches that form no square are cut off without a word. It should be a ValueError.
not_checked: if g * g != number: → if False:
    Patches that form no square are not refused: what follows fails, or does something else. It
    should be a ValueError of its own.
another_kind_of_error: raise ValueError( → raise TypeError(
    The error is no ValueError.
gradient_cut: > result = result.detach()
    The result is detached: stretched positions cannot pass on what they learn.
class_row_detached: [positions[:, :1], → [positions[:, :1].detach(),
    The class token's row is detached, so it is never learnt through this.
rounded_to_single: > result = result.float()
    The result is float32 whatever the positions are.
through_half
    ~ F.interpolate(grid, → F.interpolate(grid.bfloat16(),
    ~ grid.flatten(2).mT → grid.flatten(2).mT.to(positions.dtype)
    The interpolation is computed in bfloat16, which keeps two or three digits.
positions_overwritten
    > result = result.clone()
    > positions.data.zero_()
    The caller's positions are set to 0.
switches_the_default: + torch.set_default_dtype(torch.float64)
    The function changes torch's default dtype for the whole program.
""")
BANK.change("left_on_the_cpu", LEFT_ON_THE_CPU, after="result = result.cpu()")
forgotten(BANK, "positions")


@BANK.right
def by_upsample(positions, new_grid):
    first, rest = positions.split([1, positions.shape[1] - 1], dim=1)
    g = round(rest.shape[1] ** 0.5)
    if g**2 != rest.shape[1]:
        raise ValueError(f"{rest.shape[1]} is no square")
    h, w = new_grid
    picture = rest.transpose(1, 2).reshape(1, -1, g, g)
    picture = nn.Upsample((h, w), mode="bicubic", align_corners=False)(picture)
    return torch.cat((first, picture.reshape(1, -1, h * w).transpose(1, 2)), 1)


@BANK.right
def same_grid_at_once(positions, new_grid):
    n = positions.shape[1] - 1
    side = int(n**0.5 + 0.5)
    if side * side != n:
        raise ValueError(f"a grid of {n} patches is not square")
    if (side, side) == tuple(new_grid):
        return positions.clone()
    d = positions.shape[-1]
    grid = positions[0, 1:].view(side, side, d).permute(2, 0, 1).unsqueeze(0)
    grid = F.interpolate(grid, tuple(new_grid), mode="bicubic")
    return torch.cat([positions[:, :1], grid.permute(0, 2, 3, 1).reshape(1, -1, d)], dim=1)


def _spread(old, new):
    """A matrix `(new, old)` that interpolates along one axis: Keys' kernel, with a = −3/4."""
    made = torch.zeros(new, old, dtype=torch.float64)
    for i in range(new):
        place = (i + 0.5) * old / new - 0.5
        start = int(place // 1)
        t = place - start
        for step in (-1, 0, 1, 2):
            x, a = abs(t - step), -0.75
            near = (a + 2) * x**3 - (a + 3) * x**2 + 1
            far = a * x**3 - 5 * a * x**2 + 8 * a * x - 4 * a
            made[i, min(max(start + step, 0), old - 1)] += near if x <= 1 else far
    return made


@BANK.right
def by_matrices(positions, new_grid):
    """The kernel written out, along rows and then along columns."""
    g = int(round((positions.shape[1] - 1) ** 0.5))
    if g * g + 1 != positions.shape[1]:
        raise ValueError(f"{positions.shape[1] - 1} patches")
    grid = positions[0, 1:].unflatten(0, (g, g))
    rows, columns = (_spread(g, n).to(positions) for n in new_grid)
    grid = torch.einsum("hi,wj,ijd->hwd", rows, columns, grid)
    return torch.cat([positions[0, :1], grid.flatten(0, 1)])[None]


@BANK.right
def feature_by_feature(positions, new_grid):
    number = positions[:, 1:].size(1)
    g = next((g for g in range(number + 1) if g * g >= number), 0)
    if g * g > number:
        raise ValueError(f"not a square: {number}")
    channels = []
    for i in range(positions.size(2)):
        one = positions[:, 1:, i].reshape(1, 1, g, g)
        one = F.interpolate(one, size=[*new_grid], mode="bicubic", align_corners=False)
        channels.append(torch.cat([positions[:, :1, i], one.flatten(1)], dim=1))
    return torch.stack(channels, dim=-1)
