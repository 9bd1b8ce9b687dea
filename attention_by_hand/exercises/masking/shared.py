"""torch's dtypes as arguments."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import dtype


def __getattr__(name: str) -> "dtype":
    """torch's dtypes by name; a message then says `dtype float16`."""
    if name not in ("float16", "bfloat16", "float32", "float64", "int64", "bool"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    return getattr(torch, name)
