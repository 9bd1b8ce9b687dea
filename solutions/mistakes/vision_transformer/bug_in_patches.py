"""Known answers to `bug_in_patches`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import vision_transformer as right

BANK = Bank("bug_in_patches", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
constant: > result = result[0], torch.ones(1, 1, image_size, image_size)
    The second input is the same everywhere, so all patches have one mean, in whatever order they
    come. Let the means differ in every row and every column of patches.
symmetric_in_part
    > images = (rows + rows.T)[None, None].repeat(2, 1, 1, 1)
    > images[1, 0, 0, -1] += 100.0
    > result = result[0], images
    The second image of the second input shows the bug. Every image should hide it.
only_the_diagonal_differs
    > some = torch.zeros(image_size, image_size)
    > some[0, 0] = 100.0
    > result = result[0], some[None, None]
    Only the first patch of the second input differs from the others. In every row and every column
    of patches, two means should differ.
pixels_and_not_patches
    > stripes = (torch.arange(image_size) % 2).float()
    > result = result[0], (stripes[:, None] + stripes)[None, None]
    The pixels of the second input differ, and the means of its patches do not.
shows_too_little: > result = rows[None, None] * 1e-3, result[1]
    On the first input, right and wrong differ by next to nothing. Take larger numbers.
symmetric: > result = (rows + rows.T)[None, None] + 1.0, result[1]
    The first input is the same when rows and columns change their places, which hides the bug.
without_a_batch: > result = rows, rows + rows.T
    The inputs have two axes. There is a batch and there are channels in front:
    (B, C, image_size, image_size).
too_large: > result = rows[None, None] * 1e6, result[1]
    The numbers of the first input are larger than 1000.
patches_instead: > result = rows[None, None, ::2, ::2], result[1]
    The first input has a number for each patch. It should have one for each pixel.
""")


@BANK.right
def random_symmetric(image_size):
    generator = torch.Generator().manual_seed(5)
    shows = 10 * torch.randn(2, 3, image_size, image_size, generator=generator)
    hides = 10 * torch.randn(2, 3, image_size, image_size, generator=generator)
    return shows, hides + hides.mT


@BANK.right
def a_bright_diagonal(image_size):
    diagonal = torch.eye(image_size, dtype=torch.float64)[None, None]
    one_corner = torch.zeros(1, 1, image_size, image_size)
    one_corner[..., 0, -1] = 50.0
    return one_corner, diagonal


@BANK.right
def means_alone(image_size):
    """Symmetric in the means of the patches, but not in the pixels."""
    generator = torch.Generator().manual_seed(7)
    n = image_size // 2
    means = 30 * torch.rand(n, n, generator=generator)
    means = (means + means.T).repeat_interleave(2, 0).repeat_interleave(2, 1)
    texture = torch.tensor([[1.0, -1.0], [2.0, -2.0]]).repeat(n, n)
    ramp = torch.arange(float(image_size)).expand(image_size, -1)
    return [ramp[None, None], (means + texture)[None, None]]


@BANK.right
def in_whole_numbers(image_size):
    place = torch.arange(image_size) // 2
    product = place[:, None] * place + place[:, None] + place
    return (place * torch.ones(1, 2, image_size, 1, dtype=torch.long), product[None, None])
