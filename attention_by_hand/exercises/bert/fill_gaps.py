"""`fill_gaps`: several gaps, the surest first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from attention_by_hand.exercises.shared import used
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Recipe,
    Run,
    StridedArray,
    call,
    tensor,
)
from autograder.student.engine.runs import made_by

if TYPE_CHECKING:
    from torch import Tensor, nn

EXERCISE = Declaration(
    "fill_gaps", "Several gaps, the surest first", ("model", "ids", "mask_id", "steps")
)

_TEXTS = 29  # that the model tells apart
_MASK = 4


def reader(table: "Tensor") -> "nn.Module":
    """A model whose logits depend on every token that it reads, and on the place.

    The logits `table` `(K, n, V)` of a row are looked up by a number made of its tokens.
    """
    import torch
    from torch import nn

    class Reader(nn.Module):
        def __init__(self, table):
            super().__init__()
            self.table = nn.Parameter(table)
            self.part = nn.Dropout()
            self.unused = nn.Parameter(torch.zeros(1))  # so that there are two parameters

        def forward(self, ids):
            place = torch.arange(ids.shape[1], device=ids.device)
            key = ((ids + 1) * (2 * place + 1)).sum(1) % len(self.table)  # (B,)
            return self.table[key][:, : ids.shape[1]]  # (B, n, V)

    return Reader(table)


def _model(
    draw: Draw,
    n: int,
    vocab: int = 9,
    mask: int = _MASK,
    loud: bool = False,
    dtype: str = "float32",
) -> Recipe:
    """In every text, each place has a likeliest token, no two of them equally likely. `loud` is a
    model that often finds `mask` likely, too."""
    words = [token for token in range(vocab) if token != mask]
    random, places, orders, numbers = draw.random, [], [], []
    for _ in range(_TEXTS):
        places.append(draw.permutation(n))
        for _ in range(n):  # by NumPy's own calls: `Draw`'s would take most of the time here
            random.shuffle(order := [*words])
            orders.append(order)
            coin, chances = random.randint(2), random.random_sample(len(words) - 2)
            numbers.append((coin, *chances, random.random_sample(), random.standard_normal()))
    coin, *drawn, own, level = np.array(numbers).T[..., None]  # (texts · n, 1) each
    low = 0.3 if vocab > 6 else 0.6
    p = np.tile(np.linspace(low, low + 0.25, n), _TEXTS)[:, None]
    second = np.where(coin, np.minimum(0.95 * (1 - p), 0.9 * p), 0.05 * (1 - p))
    rest = 0.5 + np.concatenate(drawn, axis=1)
    rest = rest / rest.sum(axis=1, keepdims=True) * (1 - p - second)
    logits = np.empty((_TEXTS * n, vocab))
    np.put_along_axis(logits, np.array(orders), np.log(np.hstack([p, second, rest])), axis=1)
    logits[:, mask, None] = -2.0 + 3.5 * own if loud else -9.0 + 2.0 * own
    logits += 2.0 * level  # which changes no probability
    table = np.empty((_TEXTS, n, vocab))
    table[np.arange(_TEXTS)[:, None], places] = logits.reshape(table.shape)
    return made_by(reader, tensor(table, dtype))


def _text(draw: Draw, n: int, gaps: Sequence[int], vocab: int = 9, mask: int = _MASK) -> Array:
    """Rows of n tokens, with so many gaps each."""
    ids = draw.integers(0, vocab - 2, len(gaps), n)
    ids += ids >= mask
    for row, number in zip(ids, gaps, strict=True):
        row[draw.permutation(n)[:number]] = mask
    return tensor(ids)


@EXERCISE.equals("a single round", 0.6)
def _once(draw: Draw) -> list[Run]:
    """With steps = 1 all gaps are filled side by side, each with its likeliest token. Where there
    was no gap, the token stays, whatever the model would say there."""
    return [
        call(_model(draw, 6), _text(draw, 6, [3, 3]), _MASK, 1),
        call(_model(draw, 5), _text(draw, 5, [1, 4, 2]), _MASK, 1),
    ]


@EXERCISE.equals("the surest first", 1.2)
def _rounds(draw: Draw) -> list[Run]:
    """In each round, call the model on what is written so far. Of the gaps that are left, fill
    those whose likeliest token has the highest probability; the others wait, and may get another
    token than they would have got now."""
    return [
        call(_model(draw, 7), _text(draw, 7, [4, 4, 4]), _MASK, 2),
        call(model=_model(draw, 8), ids=_text(draw, 8, [6]), mask_id=_MASK, steps=3),
        call(_model(draw, 5), _text(draw, 5, [3, 3, 3]), _MASK, 3),
        call(_model(draw, 8), _text(draw, 8, [6, 6, 6]), _MASK, 2),
    ]


@EXERCISE.equals("gaps that cannot be shared evenly", 0.75)
def _uneven(draw: Draw) -> list[Run]:
    """A round fills ⌈gaps left / rounds left⌉ of a row's gaps, both counted anew in each round: 5
    gaps in 3 rounds are 2, 2, 1, and 2 gaps in 6 rounds are 1, 1 and then none."""
    return [
        call(_model(draw, 7), _text(draw, 7, [5, 5, 5]), _MASK, 3),
        call(_model(draw, 9), _text(draw, 9, [7, 7, 7]), _MASK, 3),
        call(_model(draw, 7), _text(draw, 7, [5, 5]), _MASK, 4),
        call(_model(draw, 10), _text(draw, 10, [8, 8, 8]), _MASK, 5),
        call(_model(draw, 6), _text(draw, 6, [2, 2, 2]), _MASK, 6),
        call(_model(draw, 6), _text(draw, 6, [4, 4, 4]), _MASK, 9),
    ]


@EXERCISE.equals("rows that differ in their number of gaps", 0.5)
def _rows(draw: Draw) -> list[Run]:
    """Each row is a text of its own: count its gaps and rank them within the row. A row without
    gaps stays as it is."""
    return [
        call(_model(draw, 7), _text(draw, 7, [1, 6, 3, 4]), _MASK, 2),
        call(_model(draw, 8), _text(draw, 8, [0, 7, 2, 4]), _MASK, 3),
        call(_model(draw, 6), _text(draw, 6, [5, 0]), _MASK, 4),
    ]


@EXERCISE.equals("a model that would write mask_id", 0.4)
def _loud(draw: Draw) -> list[Run]:
    """A gap filled with mask_id is a gap still. Set its logit to −∞ before the softmax: then it is
    never the likeliest token, and takes nothing from the probabilities of the others."""
    return [
        call(_model(draw, 6, loud=True), _text(draw, 6, [3, 5]), _MASK, 1),
        call(_model(draw, 7, loud=True), _text(draw, 7, [1, 6, 6]), _MASK, 3),
        call(_model(draw, 8, loud=True), _text(draw, 8, [6, 4, 7, 6]), _MASK, 2),
    ]


@EXERCISE.equals("one token, nothing but gaps, another mask_id, many of all", 0.25)
def _ends(draw: Draw) -> list[Run]:
    """mask_id may be any id, 0 and the last one included, and all of a row may be gaps."""
    return [
        call(_model(draw, 1), _text(draw, 1, [1, 1]), _MASK, 2),
        call(_model(draw, 4), _text(draw, 4, [4, 4]), _MASK, 2),
        call(_model(draw, 5, 6, 0), _text(draw, 5, [3, 4], 6, 0), 0, 2),
        call(_model(draw, 5, 6, 5), _text(draw, 5, [4, 3], 6, 5), 5, 2),
        call(_model(draw, 6, 4, 2), _text(draw, 6, [5, 5], 4, 2), 2, 2),
        call(_model(draw, 66), _text(draw, 66, [33], 9), _MASK, 4),
        call(_model(draw, 4), _text(draw, 4, [2] * 66), _MASK, 2),
        call(_model(draw, 6, dtype="float64"), StridedArray(_text(draw, 6, [4, 4])), _MASK, 2),
    ]


EXERCISE.keeps_dtypes(0.1, "Token ids are long.", _rounds)
EXERCISE.leaves_inputs_alone(0.1, _rounds)


def _in_use(draw: Draw) -> list[Run]:
    ids = _text(draw, 5, [3, 3])
    return [run.then(Previous(0), ids, _MASK, 2) for run in used(Run(()), _model(draw, 5))]


EXERCISE.leaves_state_alone(0.1, _in_use)
EXERCISE.follows_its_inputs(_rounds, _uneven)
