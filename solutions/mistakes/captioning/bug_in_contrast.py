"""Known answers to `bug_in_contrast`: mistakes, then right answers."""

import torch

from autograder.bank import Bank, counterexample
from solutions import captioning as right

BANK = Bank("bug_in_contrast", right, globals())
counterexample.add_to(BANK)

BANK.changes("""
texts_are_the_pictures: > result = result[0], (images, images)
    The texts of the second batch are its pictures. The table is symmetric, but every picture has
    its own text's direction.
all_alike: > result = result[0], (torch.ones(B, d), torch.ones(B, d))
    All vectors of the second batch have the same direction, and nobody can be told apart.
pictures_alike: > result = result[0], (images[:1].expand(B, d), mirrored)
    All pictures of the second batch have the same direction.
texts_alike: > result = result[0], (images, mirrored[:1].expand(B, d))
    All texts of the second batch have the same direction.
nothing_at_all: > result = result[0], (flat, flat)
    The vectors of the second batch are 0, and have no direction.
too_short: > result = (images * 0.01, astray), result[1]
    The first batch has vectors shorter than 0.1. Only directions count: make them longer.
too_long: > result = (images * 1e4, astray), result[1]
    The first batch has numbers larger than 1000. Only directions count: make them smaller.
shows_too_little
    > nearly = mirrored + 0.001 * astray
    > result = (images, nearly), result[1]
    On the first batch, right and wrong differ by next to nothing. Make the two questions differ
    more.
texts_left_out: > result = images, result[1]
    The first batch lacks its texts. A batch is a tuple (image_vectors, text_vectors).
sizes_exchanged: > result = (images.T, astray.T), result[1]
    The first batch has features as rows. It should have a row for each picture: (B, d).
""")


@BANK.right
def a_rotation_that_is_symmetric(B, d):
    """Texts are the pictures times a symmetric matrix: x_i·S x_j = x_j·S x_i."""
    torch.manual_seed(1)
    x = torch.randn(B, d, dtype=torch.float64)
    flip = torch.ones(d, dtype=torch.float64)
    flip[0] = -1.0
    around, crowd = torch.zeros(2, B, d, dtype=torch.float64)
    around[:, 0], around[:, 1] = torch.linspace(1, -1, B), 0.5
    crowd[:, 0], crowd[:, 1] = 1.0, 0.05 * torch.arange(B)
    return (around, crowd), (x, x * flip)


@BANK.right
def fans(B, d):
    turn = torch.linspace(0, 1, B)
    images, texts, narrow = torch.zeros(3, B, d)
    images[:, 0], images[:, 1] = torch.cos(turn), torch.sin(turn)
    texts[:, 0], texts[:, 1] = torch.cos(-turn), torch.sin(-turn)
    texts[:, 0] = -texts[:, 0]
    narrow[:, 0], narrow[:, 1] = torch.cos(3 * turn), torch.sin(3 * turn)
    return [images, narrow], [images, texts]


@BANK.right
def in_whole_numbers(B, d):
    i = torch.arange(B)
    images, texts, steep, one = torch.zeros(4, B, d, dtype=torch.long)
    images[:, 0], images[:, 1] = 3, 4 * i
    texts[:, 0], texts[:, 1] = 3, -4 * i
    steep[:, 0], steep[:, 1] = 1, 8 * i
    one[:, 0], one[:, 1] = 10, i
    texts[:, 0] = -3
    return (steep, one), (images, texts)


@BANK.right
def seeded_without_a_trace(B, d):
    drawn = torch.randn(B, d, generator=torch.Generator().manual_seed(0))
    drawn[:, 0] = torch.arange(B)
    drawn[:, 1] = 3.0
    signs = torch.ones(d).index_fill(0, torch.tensor([1]), -1.0)
    steep, favourite = torch.zeros(2, B, d)
    steep[:, 0], steep[:, 1] = 1.0, 8.0 * torch.arange(B)
    favourite[:, 0], favourite[:, 1] = 10.0, torch.arange(B)
    return (steep, favourite), (drawn, drawn * signs)
