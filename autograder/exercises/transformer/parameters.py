"""Parameters, tokens and masks for the chapter's modules."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.runs import Array, Draw, Run, Step, module, tensor

State = dict[str, Array]


def linear_state(draw: Draw, name: str, n_out: int, n_in: int, dtype: str) -> State:
    return {
        f"{name}.weight": draw.tensor(n_out, n_in, scale=1.2 * n_in**-0.5, dtype=dtype),
        f"{name}.bias": draw.tensor(n_out, scale=0.4, dtype=dtype),
    }


def norm_state(draw: Draw, name: str, d: int, dtype: str) -> State:
    return {
        f"{name}.weight": tensor(draw.uniform(0.5, 1.5, d), dtype),
        f"{name}.bias": draw.tensor(d, scale=0.4, dtype=dtype),
    }


def layer_state(
    draw: Draw, d: int, d_ff: int, attentions: Sequence[str], dtype: str = "float32"
) -> State:
    """Parameters of an encoder layer (one attention) or a decoder layer (two)."""
    state: State = {}
    for name in attentions:
        for part in ("W_q", "W_k", "W_v", "W_o"):
            state |= linear_state(draw, f"{name}.{part}", d, d, dtype)
    state |= linear_state(draw, "linear1", d_ff, d, dtype) | linear_state(
        draw, "linear2", d, d_ff, dtype
    )
    for i in range(len(attentions) + 1):
        state |= norm_state(draw, f"norm{i + 1}", d, dtype)
    return state


ENCODER, DECODER = ("self_attn",), ("self_attn", "cross_attn")


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


def random_mask(draw: Draw, *shape: int) -> Array:
    """A boolean mask with at least one True and one False in every row."""
    mask = draw.integers(0, 1, *shape).astype(bool)
    for row in mask.reshape(-1, shape[-1]):
        row[draw.permutation(shape[-1])[:2]] = [True, False]
    return tensor(mask)


def causal(n: int) -> Array:
    return tensor(np.tri(n, dtype=bool))


def training(run: Run) -> Run:
    return replace(run, training=True)


def then_method(run: Run, method: str, *args: Any, **kwargs: Any) -> Run:
    return replace(run, steps=(*run.steps, Step(args, kwargs, method)))


def model_state(
    draw: Draw,
    source_vocab: int,
    target_vocab: int,
    d: int,
    num_layers: int,
    d_ff: int,
    norm_first: bool = False,
    dtype: str = "float32",
) -> State:
    state: State = {}
    for name, vocab in (("source", source_vocab), ("target", target_vocab)):
        state[f"{name}_embedding.weight"] = draw.tensor(vocab, d, scale=d**-0.5, dtype=dtype)
    for name, attentions in (("encoder", ENCODER), ("decoder", DECODER)):
        for i in range(num_layers):
            layer = layer_state(draw, d, d_ff, attentions, dtype)
            state |= prefixed(f"{name}_layers.{i}", layer)
        if norm_first:
            state |= norm_state(draw, f"{name}_norm", d, dtype)
    return state


def token_ids(draw: Draw, B: int, n: int, vocab: int, low: int = 1) -> Array:
    """Random tokens, without pad as long as that is 0."""
    return tensor(draw.integers(low, vocab - 1, B, n))


def padded(draw: Draw, lengths: Sequence[int], vocab: int, pad_id: int = 0) -> Array:
    """Rows of random tokens other than pad, each filled up with pad behind its length."""
    others = np.array([token for token in range(vocab) if token != pad_id])
    ids = others[draw.integers(0, vocab - 2, len(lengths), max(lengths))]
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = pad_id
    return tensor(ids)
