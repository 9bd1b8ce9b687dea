"""Models that caption, and what writing with them must leave unchanged."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.student.authoring import Array, Draw, Recipe, tensor
from autograder.student.engine.runs import made_by

if TYPE_CHECKING:
    from torch import nn

ASKED_ON = "the model is called again although every caption has its eos"
ENCODED_AGAIN = "the pictures are encoded a second time"


def looker(*args: object, **kwargs: object) -> "nn.Module":
    """A model whose next token depends on the picture, on every token that it reads, and on their
    order.

    A picture's first pixel says of which kind it is. The logits `table` `(K, V)` are looked up by a
    number made of the tokens so far and the kind. With `ends` `(S,)`, a caption of a picture of
    kind s has its `eos_id` at position ends[s], never elsewhere. In training mode the memory is
    another one and the logits come out back to front, and so they do where gradients are recorded
    if it is `strict`; while its part `part` is in training mode, with the other sign. An
    `impatient` model that is called again when every caption has its eos raises `RuntimeError`, and
    so does one that encodes `once`, at the second time.
    """
    import torch
    from torch import nn

    class Looker(nn.Module):
        def __init__(
            self,
            table,
            pad_id=0,
            ends=None,
            eos_id=None,
            strict=False,
            impatient=False,
            once=False,
        ):
            super().__init__()
            self.table = nn.Parameter(table)
            self.pad_id, self.ends, self.eos_id = pad_id, ends, eos_id
            self.strict, self.impatient, self.once = strict, impatient, once
            self.part = nn.Dropout()
            self.unused = nn.Parameter(torch.zeros(1))  # so that there are two parameters

        def encode(self, images):
            if self.once is None:
                raise RuntimeError(ENCODED_AGAIN)
            self.once = None if self.once else self.once
            spoilt = self.training or (self.strict and torch.is_grad_enabled())
            return images.flatten(1)[..., None] + float(spoilt)  # (B, pixels, 1)

        def decode(self, ids, memory):
            if len(memory) != len(ids):
                raise ValueError(f"{len(memory)} pictures for {len(ids)} captions")
            if self.impatient and (ids == self.eos_id).any(1).all():
                raise RuntimeError(ASKED_ON)
            kind = memory[:, 0, 0].round().long()[:, None]
            place = torch.arange(1, ids.shape[1] + 1, device=ids.device)
            key = ((ids + 1) * (2 * place + 1)).cumsum(1) + place + 5 * kind  # (B, n)
            logits = self.table[key % len(self.table)]  # (B, n, V)
            if self.ends is not None:
                eos = torch.where(self.ends[kind] == place, 80.0, -80.0)[..., None]
                at = torch.arange(logits.shape[-1], device=ids.device) == self.eos_id
                logits = torch.where(at, eos, logits)
            logits = -logits if self.part.training else logits
            spoilt = self.training or (self.strict and torch.is_grad_enabled())
            return logits.flip(-1) if spoilt else logits

        def forward(self, images, ids):
            return self.decode(ids, self.encode(images))

    return Looker(*args, **kwargs)


def captioning(
    draw: Draw,
    ends: Sequence[int],
    *,
    vocab: int = 9,
    eos_id: int = 2,
    pad_id: int = 0,
    **kwargs: Any,
) -> tuple[Recipe, Array]:
    """A model and pictures of which number i has its eos at position ends[i], the prompt counted;
    99 is never. Whatever else it writes is neither eos nor padding, and not so likely that a draw
    would seldom differ from it."""
    table = draw.normal(53, vocab, scale=0.5)
    words = np.setdiff1d(np.arange(vocab), [eos_id, pad_id])
    table[np.arange(53), words[draw.integers(0, len(words) - 1, 53)]] += 3.0
    table[:, pad_id] -= 40.0  # no trained model writes padding
    times = tensor(np.array([99, *ends, 99]))
    settings: dict[str, Any] = {"pad_id": pad_id, "ends": times, "eos_id": eos_id} | kwargs
    model = made_by(looker, tensor(table, "float32"), **settings)
    images = draw.normal(len(ends), 1, 2, 3)
    images[:, 0, 0, 0] = np.arange(1, len(ends) + 1)
    return model, tensor(images, "float32")


def prompt(draw: Draw, p: int, vocab: int = 9) -> Array:
    """Ids that are neither eos (2) nor padding (0)."""
    return tensor(draw.integers(3, vocab - 1, p))
