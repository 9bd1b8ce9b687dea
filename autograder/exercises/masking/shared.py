"""Masks and dtypes that several exercises of the chapter share."""

from typing import Any

import numpy as np

from autograder.engine.runs import Draw, Recipe

_HERE = "autograder.exercises.masking:"


def __getattr__(name: str) -> Any:
    """torch's dtypes by name, for recipes: a message then says `dtype float16`."""
    if name not in ("float16", "bfloat16", "float32", "float64", "int64", "bool"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    return getattr(torch, name)


def torch_dtype(name: str) -> Recipe:
    return Recipe(_HERE + name)


def random_mask(draw: Draw, *shape: int) -> np.ndarray:
    """A boolean mask with at least one True and one False in every row."""
    mask = draw.integers(0, 1, *shape).astype(bool)
    for row in mask.reshape(-1, shape[-1]):
        row[draw.permutation(shape[-1])[:2]] = [True, False]
    return mask
