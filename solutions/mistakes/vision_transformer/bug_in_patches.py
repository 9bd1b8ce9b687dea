"""Known answers to `bug_in_patches`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from solutions import vision_transformer as right

BANK = Bank("bug_in_patches", right, globals())
BANK.read()


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
