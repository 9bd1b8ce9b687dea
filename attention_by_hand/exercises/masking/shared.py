"""torch's dtypes as arguments."""

from typing import Any

from autograder.student.authoring import Recipe


def __getattr__(name: str) -> Any:
    """torch's dtypes by name; a message then says `dtype float16`."""
    if name not in ("float16", "bfloat16", "float32", "float64", "int64", "bool"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    return getattr(torch, name)


def torch_dtype(name: str) -> Recipe:
    return Recipe(f"{__name__}:{name}")
