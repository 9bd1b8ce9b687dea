"""Modules and inputs that several exercises of the chapter share."""

from collections.abc import Mapping
from typing import Any

from autograder.engine.runs import Array, Draw, Recipe
from autograder.exercises.shared import State


def attention_state(draw: Draw, d: int, bias: bool = True, dtype: str = "float32") -> State:
    """Random parameters for the four linear layers."""
    state = {f"W_{x}.weight": draw.tensor(d, d, scale=d**-0.5, dtype=dtype) for x in "qkvo"}
    biases = {f"W_{x}.bias": draw.tensor(d, dtype=dtype) for x in "qkvo"} if bias else {}
    return state | biases


def qkv_inputs(draw: Draw, B: int, n_q: int, n_k: int, d: int, **kwargs: Any) -> tuple:
    return tuple(draw.tensor(B, n, d, **kwargs) for n in (n_q, n_k, n_k))


def our_attention(d: int, num_heads: int, state: Mapping[str, Array], bias: bool = True) -> Recipe:
    kwargs = {"bias": bias}
    return Recipe("autograder.blocks:MultiHeadAttention", (d, num_heads), kwargs, dict(state))
