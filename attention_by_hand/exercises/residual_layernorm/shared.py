"""Parameters and inputs that several exercises of the chapter share."""

from collections.abc import Callable

import numpy as np

from attention_by_hand.exercises.shared import State, linear_state
from autograder.student.authoring import Array, Draw, Record, Run, describe, plain, tensor
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of


def norm_state(draw: Draw, d: int, dtype: str = "float32") -> State:
    return {"weight": tensor(draw.uniform(0.5, 2.0, d), dtype), "bias": draw.tensor(d, dtype=dtype)}


def tokens(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    """Tokens with neither mean 0 nor variance 1, so large that ε does not show in float32."""
    stairs = np.linspace(-4.0, 4.0, shape[-1])
    rows = [stairs[draw.permutation(shape[-1])] for _ in range(int(np.prod(shape[:-1])))]
    data = np.reshape(rows, shape) + draw.normal(*shape, scale=0.5) + 1.5
    return tensor(data if dtype == "float64" else 25 * data, dtype)


def slopes(draw: Draw, *shape: int, dtype: str = "float64") -> tuple[Array, Array, Array]:
    """grad_output, x and weight."""
    weight = tensor(draw.uniform(0.5, 2.0, shape[-1]), dtype)
    return draw.tensor(*shape, dtype=dtype), tokens(draw, *shape, dtype=dtype), weight


def inference_tensor(tensor: Value) -> Value:
    """A copy of the tensor made in inference mode, which formulas can use and autograd cannot."""
    import torch

    with torch.inference_mode():
        return tensor.clone()


def feed_forward_state(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> State:
    return linear_state(draw, "linear1", d_ff, d, dtype) | linear_state(
        draw, "linear2", d, d_ff, dtype
    )


def wave(x: Value, shift: float = 0.0, *, size: float = 1.0) -> Value:
    """A sublayer that is a function."""
    return size * (2.0 * x + shift).sin()


def one_changed(draw: Draw, before: Array, token: tuple[int, int], scale: float) -> Array:
    """The same tokens, one of them changed."""
    after = before.data.copy()
    after[token] += draw.normal(before.data.shape[-1], scale=scale, dtype="float32")
    return tensor(after, "float32")


def token_by_token(least: float) -> Callable[[Run, Record], str | None]:
    """Between two calls, only tokens that changed may change their output, by `least` or more."""

    def problem(run: Run, record: Record) -> str | None:
        x, other = (numbers_of(step.args[0]) for step in run.steps)
        before, after = (plain(value) for value in record.values)
        if before is None or after is None or before.shape != x.shape or after.shape != x.shape:
            return f"the result: expected shape {x.shape}, got {describe(record.value)}"
        changed, moved = (other != x).any(-1), np.abs(after - before).max(-1)
        if not moved[~changed].max() <= 1e-6:
            return "changing one token changed the output of another"
        return (
            None if moved[changed].min() > least else "changing a token left its output unchanged"
        )

    return problem
