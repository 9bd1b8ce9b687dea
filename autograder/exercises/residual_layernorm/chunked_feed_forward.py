"""`chunked_feed_forward`: the feed-forward layer in chunks."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    no_side_effects,
)
from autograder.engine.runs import Draw, Exercise, Recipe, Run, Strided, call, tensor
from autograder.exercises.residual_layernorm.shared import feed_forward_state, from_here

_HERE = "autograder.exercises.residual_layernorm:"


def wide_and_back(d_model: int, d_ff: int) -> Any:
    """A position-wise feed-forward layer."""
    from torch import nn

    class WideAndBack(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

        def forward(self, x):
            return self.linear2(self.linear1(x).sin())

    return WideAndBack()


def all_seeing(d_model: int, d_ff: int, numbers: Any) -> Any:
    """A layer that is not position-wise: what it makes of a position depends on all that it is
    called with, and on how often it was called before."""
    from torch import nn

    calls = itertools.count()

    class AllSeeing(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

        def forward(self, x):
            hidden = self.linear1(x)
            hidden = hidden + hidden.sum((0, 1)) + numbers[next(calls) % len(numbers)]
            return self.linear2(hidden.sin())

    return AllSeeing()


def _layer(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> Recipe:
    return Recipe(
        _HERE + "wide_and_back", (d, d_ff), None, feed_forward_state(draw, d, d_ff, dtype)
    )


def _all_seeing(draw: Draw, B: int, n: int, d: int, size: int) -> Run:
    numbers = tensor(draw.permutation(16) / 3, "float32")
    layer = Recipe(_HERE + "all_seeing", (d, 6, numbers), None, feed_forward_state(draw, d, 6))
    return call(layer, draw.tensor(B, n, d), size)


def _chunk_runs(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    named = {"chunk_size": 2, "x": draw.tensor(1, 6, 3, dtype=dtype)}
    return [
        call(_layer(draw, 4, 8, dtype), draw.tensor(2, 6, 4, dtype=dtype), 3),
        call(feed_forward=_layer(draw, 3, 5, dtype), **named),
        call(_layer(draw, 4, 6, dtype), draw.tensor(4, 4, 4, dtype=dtype), 1),
        call(_layer(draw, 5, 4, dtype), draw.tensor(3, 8, 5, dtype=dtype), 4),
    ]


def _chunk_short(draw: Draw) -> Sequence[Run]:
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 7, 4), 3),
        call(_layer(draw, 3, 4), draw.tensor(1, 5, 3), 4),
        call(_layer(draw, 3, 4), draw.tensor(2, 9, 3), chunk_size=2),
    ]


def _chunk_whole(draw: Draw) -> Sequence[Run]:
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 5, 4), 0),
        call(_layer(draw, 3, 4), draw.tensor(1, 1, 3), chunk_size=0),
    ]


def _chunk_long(draw: Draw) -> Sequence[Run]:
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 5, 4), 5),
        call(_layer(draw, 3, 4), draw.tensor(3, 2, 3), 9),
    ]


def _chunk_even(draw: Draw) -> Sequence[Run]:
    sizes = ((2, 6, 4, 3), (1, 6, 3, 2), (4, 4, 4, 1), (3, 8, 5, 4))
    return [*_chunk_runs(draw)[:1], *(_all_seeing(draw, *size) for size in sizes)]


def _chunk_uneven(draw: Draw) -> Sequence[Run]:
    sizes = ((2, 7, 4, 3), (2, 5, 4, 0), (2, 4, 4, 9), (3, 5, 4, 2))
    return [_all_seeing(draw, *size) for size in sizes]


def _chunk_function(draw: Draw) -> Sequence[Run]:
    return [
        call(from_here("wave"), draw.tensor(2, 5, 3), 2),
        call(from_here("wave"), Strided(draw.tensor(2, 4, 3)), 3),
    ]


CHUNKED_FEED_FORWARD = Exercise(
    "chunked_feed_forward",
    "The feed-forward layer in chunks",
    ("feed_forward", "x", "chunk_size"),
    (
        equals_reference(
            "chunk by chunk, equal to one go",
            0.8,
            "Cut x along axis 1, its positions, into pieces of chunk_size; call the layer on each; "
            "put the results together along the same axis, in their order. What is saved is "
            "memory inside the layer, so the layer itself must see chunks: all_seeing, which is "
            "not position-wise, shows by its result what it is called with.",
            _chunk_even,
        ),
        equals_reference(
            "a last chunk that is shorter",
            0.3,
            "Where chunk_size does not divide n, the last chunk holds what is left.",
            _chunk_short,
        ),
        replace(
            equals_reference(
                "never more than chunk_size positions at a time",
                0.2,
                "chunk_size positions in each call, in all the sequences of the batch, and what is "
                "left in the last. chunk_size counts positions, not chunks. all_seeing shows by "
                "its result what it is called with, and how often.",
                _chunk_uneven,
            ),
            only_if_right=True,
        ),
        replace(
            equals_reference(
                "chunk_size 0 is one go",
                0.2,
                "Treat 0 before you cut: it means all of x.",
                _chunk_whole,
            ),
            only_if_right=True,
        ),
        replace(
            equals_reference(
                "chunks longer than the sequence",
                0.1,
                "There is then a single chunk, shorter than chunk_size.",
                _chunk_long,
            ),
            only_if_right=True,
        ),
        gradients_match(
            "gradients reach x",
            0.2,
            "Chunks change the order of the work, not what can be learnt: no detach, no no_grad.",
            lambda draw: [*_chunk_runs(draw, "float64")[:2], *_chunk_short(draw)[:1]],
        ),
        replace(
            equals_reference(
                "any function for a layer, arguments by name",
                0.1,
                "The layer may be any function of x: call it, and nothing else of it.",
                lambda draw: [*_chunk_function(draw), _chunk_runs(draw)[1]],
            ),
            only_if_right=True,
        ),
        dtypes_kept(0.05, "float64 in, float64 out.", lambda d: _chunk_runs(d, "float64")[:1]),
        inputs_untouched(0.025, lambda d: [*_chunk_runs(d), *_chunk_short(d)]),
        no_side_effects(0.025, lambda d: [*_chunk_runs(d), *_chunk_whole(d)]),
    ),
)
