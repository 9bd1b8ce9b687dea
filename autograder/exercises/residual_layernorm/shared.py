"""Parameters and inputs that several exercises of the chapter share."""

from typing import Any

import numpy as np

from autograder.engine.runs import Array, Draw, Recipe, tensor

_HERE = "autograder.exercises.residual_layernorm:"


def from_here(name: str, *args: Any) -> Recipe:
    """A function of this file, called with `args`, where there are any, to make an argument."""
    return Recipe(_HERE + name, args or None)


def norm_state(draw: Draw, d: int, dtype: str = "float32") -> dict[str, Array]:
    return {
        "weight": tensor(draw.uniform(0.5, 2.0, d), dtype),
        "bias": draw.tensor(d, dtype=dtype),
    }


def tokens(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    """Tokens whose mean is not 0 and whose spread is not 1: so large that no ε shows in float32."""
    stairs = np.linspace(-4.0, 4.0, shape[-1])
    rows = [stairs[draw.permutation(shape[-1])] for _ in range(int(np.prod(shape[:-1])))]
    data = np.reshape(rows, shape) + draw.normal(*shape, scale=0.5) + 1.5
    return tensor(data if dtype == "float64" else 25 * data, dtype)


READY_MADE_NORMS = tuple(
    f"torch.*{kind}_norm*" for kind in ("layer", "group", "instance", "batch", "rms")
)


def linear_state(
    draw: Draw, name: str, rows: int, columns: int, dtype: str = "float32"
) -> dict[str, Array]:
    return {
        f"{name}.weight": draw.tensor(rows, columns, scale=columns**-0.5, dtype=dtype),
        f"{name}.bias": draw.tensor(rows, scale=0.5, dtype=dtype),
    }


def feed_forward_state(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> dict[str, Array]:
    return linear_state(draw, "linear1", d_ff, d, dtype) | linear_state(
        draw, "linear2", d, d_ff, dtype
    )


def wave(x: Any, shift: float = 0.0, *, size: float = 1.0) -> Any:
    """A sublayer that is a function."""
    return size * (2.0 * x + shift).sin()
