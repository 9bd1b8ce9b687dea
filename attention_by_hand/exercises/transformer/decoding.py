"""Models to decode with, and what decoding must leave unchanged about them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_by_hand.exercises.shared import applied, itself
from attention_by_hand.exercises.transformer.parameters import model_state
from autograder.student.authoring import Array, Draw, Previous, Recipe, Run, tensor
from autograder.student.engine.runs import made_by

if TYPE_CHECKING:
    from torch import nn


def lookup(*args: object, **kwargs: object) -> "nn.Module":
    """A model that looks up the next token's logits in a table.

    `table` `(T, V, V)` holds the logits by position, previous token and next token; positions
    beyond T are as T − 1. `by_source` `(S, V)` is added for every token of the source. With `ends`
    `(S,)`, a row whose source begins with token s has its `eos_id` at position ends[s], never
    elsewhere. In training mode the logits come out back to front, and so they do where gradients
    are recorded if it is `unrecorded`; while its part `part` is in training mode, with the other
    sign. A `strict` model that is called again when every row has
    its eos raises `RuntimeError`, and gives other logits from then on.
    """
    import torch
    from torch import nn

    spoilt = []

    class Lookup(nn.Module):
        def __init__(
            self,
            table,
            by_source=None,
            pad_id=0,
            ends=None,
            eos_id=None,
            strict=False,
            unrecorded=False,
        ):
            super().__init__()
            self.unrecorded = unrecorded
            self.table = nn.Parameter(table)
            self.by_source, self.ends, self.eos_id = by_source, ends, eos_id
            self.pad_id, self.strict = pad_id, strict
            self.part = nn.Dropout()
            self.unused = nn.Parameter(torch.zeros(1))  # so that there are two parameters

        def forward(self, source, ids):
            if len(source) != len(ids):
                raise ValueError(f"{len(source)} sources for {len(ids)} targets")
            if self.strict and (ids[:, 1:] == self.eos_id).any(1).all():
                spoilt.append(ids)
                raise RuntimeError(ASKED_ON)
            place = torch.arange(ids.shape[1], device=ids.device)
            logits = self.table[place.clamp(max=len(self.table) - 1), ids]  # (B, n, V)
            if self.by_source is not None:
                logits = logits + self.by_source[source].sum(1, keepdim=True)
            if self.ends is not None:
                over = self.ends[source[:, :1]] == place  # (B, n)
                eos = torch.where(over, 50.0, -50.0)[..., None]
                at = torch.arange(logits.shape[-1], device=ids.device) == self.eos_id
                logits = torch.where(at, eos, logits)
            logits = -logits if self.part.training else logits
            recorded = self.unrecorded and torch.is_grad_enabled()
            logits = logits.roll(1, -1) if spoilt else logits
            return logits.flip(-1) if self.training or recorded else logits

    return Lookup(*args, **kwargs)


ASKED_ON = "the model is called again although every row has its eos"


def table_model(table: np.ndarray, **kwargs: Any) -> Recipe:
    return made_by(lookup, tensor(table, "float32"), **kwargs)


def called_again(model: Recipe, *args: Any, start: Callable = itself, **kwargs: object) -> Run:
    """Three steps: the model, the answer with it, and the model's logits for two tokens then."""
    run = applied(start, model).then(Previous(0), *args, **kwargs)
    return run.then_apply(Previous(0), *_two_tokens(*args))


def _two_tokens(source: Array, bos_id: int, *_: object) -> tuple[Array, Array]:
    return source, tensor(np.full((len(source.data), 2), bos_id))


def real_model(draw: Draw, dropout: float = 0.0) -> Recipe:
    """A small Transformer of the blocks that never writes pad, bos or eos (0, 1, 2).

    Its last norm gives every hidden vector the same first feature, which words are in favour of. A
    loud feed-forward without biases makes it choose anew at every token and position.
    """
    d, d_ff, layer = 12, 24, "decoder_layers.0"
    state = model_state(draw, 8, 9, d, 1, d_ff)
    for name, value in state.items():
        if name.endswith("bias"):
            state[name] = tensor(np.zeros_like(value.data))
    table = draw.normal(9, d)
    table[:, 0] = np.where(np.arange(9) < 3, -2.0, 2.0)
    spread, shift = np.ones(d), np.zeros(d)
    spread[0], shift[0] = 0.0, 12.0
    state["target_embedding.weight"] = tensor(table, "float32")
    state[f"{layer}.linear1.weight"] = draw.tensor(d_ff, d, scale=3.0)
    state[f"{layer}.linear2.weight"] = draw.tensor(d, d_ff, scale=3.0)
    state[f"{layer}.norm3.weight"] = tensor(spread, "float32")
    state[f"{layer}.norm3.bias"] = tensor(shift, "float32")
    return Recipe(
        "attention_by_hand.blocks:Transformer", (8, 9, d, 2, 1, d_ff, dropout, 0), {}, state
    )


PADDED = np.array([[3, 5, 7, 4], [6, 2, 0, 0], [1, 1, 5, 0]])
