"""Parameters, tokens and masks for layers and models, of several chapters."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attention_by_hand.exercises.shared import State, linear_state
from autograder.student.authoring import Array, Draw, Run, module, tensor


def norm_state(draw: Draw, name: str, d: int, dtype: str) -> State:
    return {
        f"{name}.weight": tensor(draw.uniform(0.5, 1.5, d), dtype),
        f"{name}.bias": draw.tensor(d, scale=0.4, dtype=dtype),
    }


def layer_state(
    draw: Draw, d: int, d_ff: int, attentions: Sequence[str], dtype: str = "float32"
) -> State:
    """Parameters of a layer with one attention or several, each with a norm, and a feed-forward."""
    sizes = {f"{name}.W_{x}": (d, d) for name in attentions for x in "qkvo"}
    sizes |= {"linear1": (d_ff, d), "linear2": (d, d_ff)}
    state: State = {}
    for name, (n_out, n_in) in sizes.items():
        state |= linear_state(draw, name, n_out, n_in, dtype, scale=1.2, bias=0.4)
    for i in range(len(attentions) + 1):
        state |= norm_state(draw, f"norm{i + 1}", d, dtype)
    return state


def layer_run(
    draw: Draw,
    attentions: Sequence[str],
    d: int,
    num_heads: int,
    d_ff: int,
    dtype: str = "float32",
    **kwargs: Any,
) -> Run:
    state = layer_state(draw, d, d_ff, attentions, dtype)
    return module(d, num_heads, d_ff, state=state, **kwargs)


def prefixed(prefix: str, state: State) -> State:
    return {f"{prefix}.{name}": value for name, value in state.items()}


def causal(n: int) -> Array:
    return tensor(np.tri(n, dtype=bool))


def token_ids(draw: Draw, B: int, n: int, vocab: int, low: int = 1) -> Array:
    """Random tokens, without pad if that is 0."""
    return tensor(draw.integers(low, vocab - 1, B, n))


def padded(draw: Draw, lengths: Sequence[int], vocab: int, pad_id: int = 0) -> Array:
    """Rows of random tokens other than pad, each padded after its length."""
    others = np.array([token for token in range(vocab) if token != pad_id])
    ids = others[draw.integers(0, vocab - 2, len(lengths), max(lengths))]
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = pad_id
    return tensor(ids)
