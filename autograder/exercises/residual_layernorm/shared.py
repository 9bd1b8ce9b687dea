"""Parameters and inputs that several exercises of the chapter share."""

from typing import Any

import numpy as np

from autograder.engine.runs import Array, Draw, tensor
from autograder.exercises.shared import State, linear_state


def norm_state(draw: Draw, d: int, dtype: str = "float32") -> State:
    return {"weight": tensor(draw.uniform(0.5, 2.0, d), dtype), "bias": draw.tensor(d, dtype=dtype)}


def tokens(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    """Tokens with neither mean 0 nor variance 1, so large that ε does not show in float32."""
    stairs = np.linspace(-4.0, 4.0, shape[-1])
    rows = [stairs[draw.permutation(shape[-1])] for _ in range(int(np.prod(shape[:-1])))]
    data = np.reshape(rows, shape) + draw.normal(*shape, scale=0.5) + 1.5
    return tensor(data if dtype == "float64" else 25 * data, dtype)


READY_MADE_NORMS = tuple(
    f"torch.*{kind}_norm*" for kind in ("layer", "group", "instance", "batch", "rms")
)


def feed_forward_state(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> State:
    return linear_state(draw, "linear1", d_ff, d, dtype) | linear_state(
        draw, "linear2", d, d_ff, dtype
    )


def wave(x: Any, shift: float = 0.0, *, size: float = 1.0) -> Any:
    """A sublayer that is a function."""
    return size * (2.0 * x + shift).sin()
