"""Known answers to `moving_average`: mistakes, then right answers."""

import numpy as np

from autograder.bank import Bank
from solutions import averages as right

BANK = Bank("moving_average", right, globals())
BANK.read()


@BANK.mistake
def padded_with_zeros(values, width):
    """There are as many means as values: at the ends, zeros count that are not there."""
    if not 1 <= width <= len(values):
        raise ValueError(f"width must be from 1 to {len(values)}, got {width}")
    return np.convolve(values, np.full(width, 1 / width), mode="same").astype(values.mean().dtype)


def _checked(values, width):
    if not 1 <= width <= len(values):
        raise ValueError(f"not {width}")


@BANK.right
def in_a_loop(values, width):
    _checked(values, width)
    return np.array([values[i : i + width].mean() for i in range(len(values) - width + 1)])


@BANK.right
def by_convolution(values, width):
    _checked(values, width)
    ones = np.ones(width, values.dtype)
    return np.convolve(values, ones, mode="valid") / values.mean().dtype.type(width)


@BANK.right
def by_shifted_copies(values, width):
    _checked(values, width)
    last = len(values) - width + 1
    return np.stack([values[i : i + last] for i in range(width)]).mean(axis=0)


@BANK.right
def by_a_table_of_places(values, width):
    _checked(values, width)
    places = np.arange(len(values) - width + 1)[:, None] + np.arange(width)
    return values[places].sum(axis=1) / values.mean().dtype.type(width)
