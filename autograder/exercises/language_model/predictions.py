"""Predictions of the next token."""

import numpy as np

from autograder.engine.runs import Array, Draw, tensor


def sure(draw: Draw, B: int, n: int, vocab: int) -> tuple[Array, Array]:
    """Logits that give nearly everything to the token that comes, and ids: a loss below 0.001.

    In float64, since in float32 there are few digits left of so small a loss.
    """
    ids = draw.integers(0, vocab - 1, B, n)
    logits = draw.normal(B, n, vocab)
    np.put_along_axis(logits[:, :-1], ids[:, 1:, None], 14.0, axis=-1)
    return tensor(logits, "float64"), tensor(ids)
