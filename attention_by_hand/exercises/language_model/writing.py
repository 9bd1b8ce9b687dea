"""Models to write with, and generators to draw with."""

from typing import TYPE_CHECKING, Any

import numpy as np

from attention_by_hand.exercises.language_model.gpt import gpt_state
from autograder.student.authoring import Draw, Recipe, tensor
from autograder.student.engine.runs import made_by

if TYPE_CHECKING:
    from torch import Generator, nn


def continuation(*args: object, **kwargs: object) -> "nn.Module":
    """A model whose next token depends on every token that it reads, and on their order.

    The logits `table` `(K, V)` are looked up by a number made of the tokens so far. More tokens
    than `context_size` raise `ValueError`. In training mode the logits come out back to front, and
    so they do where gradients are recorded if it is `strict`; while its part `part` is in training
    mode, with the other sign.
    """
    import torch
    from torch import nn

    class Continuation(nn.Module):
        def __init__(self, table, context_size, strict=False):
            super().__init__()
            self.table = nn.Parameter(table)
            self.context_size, self.strict = context_size, strict
            self.part = nn.Dropout()
            self.unused = nn.Parameter(torch.zeros(1))  # so that there are two parameters

        def forward(self, ids):
            n = ids.shape[1]
            if self.context_size < n:
                raise ValueError(f"{n} tokens, and a context of {self.context_size}")
            place = torch.arange(1, n + 1, device=ids.device)
            key = ((ids + 1) * (2 * place + 1)).cumsum(1) + place  # (B, n)
            logits = self.table[key % len(self.table)]  # (B, n, V)
            logits = -logits if self.part.training else logits
            spoilt = self.training or (self.strict and torch.is_grad_enabled())
            return logits.flip(-1) if spoilt else logits

    return Continuation(*args, **kwargs)


def sure_model(draw: Draw, vocab: int = 17, context: int = 8, **kwargs: Any) -> Recipe:
    """A model that is sure of its next token, whatever it is: nothing is left to chance."""
    table = draw.normal(53, vocab, scale=0.5)
    table[np.arange(53), draw.integers(0, vocab - 1, 53)] += 60.0
    return made_by(continuation, tensor(table, "float32"), context, **kwargs)


def torn_model(draw: Draw, vocab: int = 17, context: int = 8) -> Recipe:
    """A model that finds many tokens likely, one of them by a little more than the others."""
    table = draw.normal(53, vocab, scale=0.3)
    table[np.arange(53), draw.integers(0, vocab - 1, 53)] = table.max(1) + 0.6
    return made_by(continuation, tensor(table, "float32"), context)


def same_chances(draw: Draw, chances: np.ndarray) -> Recipe:
    """A model with the same chances for the next token always, up to a constant in the logits."""
    logits = np.log(chances) + draw.normal(1)
    return made_by(continuation, tensor(logits[None], "float32"), 4)


def real_model(draw: Draw, dropout: float = 0.0) -> Recipe:
    """A small GPT of the blocks: what it finds likeliest varies, by a little more than the rest."""
    vocab, context, d = 9, 6, 8
    state = gpt_state(draw, vocab, context, d, 2)
    for name in ("tokens", "positions"):
        state[f"{name}.weight"] = draw.tensor(*state[f"{name}.weight"].data.shape, scale=2.0)
    for name in ("norm.weight", "norm.bias"):
        state[name] = tensor(0.1 * state[name].data, "float32")
    return Recipe("attention_by_hand.blocks:GPT", (vocab, context, d, 2, 2, dropout), {}, state)


def with_generator(model: "nn.Module", seed: int) -> tuple["nn.Module", "Generator"]:
    """The model, and a generator on its device."""
    import torch

    device = next(model.parameters()).device
    return model, torch.Generator(device=device).manual_seed(seed)
