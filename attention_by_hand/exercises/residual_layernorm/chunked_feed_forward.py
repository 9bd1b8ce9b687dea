"""`chunked_feed_forward`: the feed-forward layer in chunks."""

import itertools
from typing import TYPE_CHECKING

from attention_by_hand.exercises.residual_layernorm.shared import feed_forward_state, wave
from attention_by_hand.exercises.shared import linear_state, used
from autograder.student.authoring import (
    Declaration,
    Draw,
    Previous,
    Recipe,
    Run,
    StridedArray,
    as_argument,
    call,
    tensor,
)
from autograder.student.engine.runs import made_by

if TYPE_CHECKING:
    from torch import Tensor, nn

EXERCISE = Declaration(
    "chunked_feed_forward", "The feed-forward layer in chunks", ("feed_forward", "x", "chunk_size")
)


def all_seeing(d_model: int, d_ff: int, numbers: "Tensor") -> "nn.Module":
    """A layer that is not position-wise: its output at a position depends on everything it is
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


def _all_seeing(draw: Draw, B: int, n: int, d: int, size: int) -> Run:
    numbers = tensor(draw.permutation(16) / 3, "float32")
    layer = made_by(all_seeing, d, 6, numbers, state=feed_forward_state(draw, d, 6))
    return call(layer, draw.tensor(B, n, d), size)


def wide_and_back(d_model: int, d_ff: int) -> "nn.Module":
    """A position-wise feed-forward layer."""
    from torch import nn

    class WideAndBack(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

        def forward(self, x):
            return self.linear2(self.linear1(x).sin())

    return WideAndBack()


def _layer(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> Recipe:
    return made_by(wide_and_back, d, d_ff, state=feed_forward_state(draw, d, d_ff, dtype))


def _runs(draw: Draw, dtype: str = "float32") -> list[Run]:
    named = {"chunk_size": 2, "x": draw.tensor(1, 6, 3, dtype=dtype)}
    return [
        call(_layer(draw, 4, 8, dtype), draw.tensor(2, 6, 4, dtype=dtype), 3),
        call(feed_forward=_layer(draw, 3, 5, dtype), **named),
        call(_layer(draw, 4, 6, dtype), draw.tensor(4, 4, 4, dtype=dtype), 1),
        call(_layer(draw, 5, 4, dtype), draw.tensor(3, 8, 5, dtype=dtype), 4),
    ]


@EXERCISE.equals("chunk by chunk, equal to a single pass", 0.7)
def _even(draw: Draw) -> list[Run]:
    """Cut x along axis 1, its positions, into pieces of chunk_size, call the layer on each, and
    join the results along the same axis, in order. What chunks save is memory inside the layer, so
    the layer itself must see chunks: all_seeing, which is not position-wise, shows in its result
    what it is called with."""
    sizes = ((2, 6, 4, 3), (1, 6, 3, 2), (4, 4, 4, 1), (3, 8, 5, 4))
    return [*_runs(draw)[:1], *(_all_seeing(draw, *size) for size in sizes)]


@EXERCISE.equals("a shorter last chunk", 0.3)
def _short(draw: Draw) -> list[Run]:
    """Where chunk_size does not divide n, the last chunk holds the remainder."""
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 7, 4), 3),
        call(_layer(draw, 3, 4), draw.tensor(1, 5, 3), 4),
        call(_layer(draw, 3, 4), draw.tensor(2, 9, 3), chunk_size=2),
    ]


@EXERCISE.equals("never more than chunk_size positions at a time", 0.2, only_if_right=True)
def _uneven(draw: Draw) -> list[Run]:
    """Each call gets chunk_size positions of all the sequences in the batch, and the last call the
    remainder. chunk_size counts positions, not chunks. all_seeing shows in its result what it is
    called with, and how often."""
    sizes = ((2, 7, 4, 3), (2, 5, 4, 0), (2, 4, 4, 9), (3, 5, 4, 2))
    return [_all_seeing(draw, *size) for size in sizes]


@EXERCISE.equals("chunk_size 0 means a single pass", 0.2, only_if_right=True)
def _whole(draw: Draw) -> list[Run]:
    """Handle 0 before you cut: it means all of x."""
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 5, 4), 0),
        call(_layer(draw, 3, 4), draw.tensor(1, 1, 3), chunk_size=0),
    ]


@EXERCISE.equals("chunks longer than the sequence", 0.1, only_if_right=True)
def _long(draw: Draw) -> list[Run]:
    """There is then a single chunk, shorter than chunk_size."""
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 5, 4), 5),
        call(_layer(draw, 3, 4), draw.tensor(3, 2, 3), 9),
    ]


EXERCISE.gradients(
    "gradients reach x",
    0.2,
    "Chunking changes the order of the work, not what can be learnt: no detach, no no_grad.",
    lambda draw: [*_runs(draw, "float64")[:2], *_short(draw)[:1], *_whole(draw)[:1]],
)


def reading_out(d_model: int, d_out: int) -> "nn.Module":
    """A position-wise layer whose output has another width than its input."""
    from torch import nn

    return nn.Linear(d_model, d_out)


@EXERCISE.equals("an output of another width", 0.1, only_if_right=True)
def _wider(draw: Draw) -> list[Run]:
    """What the layer returns for a chunk says how wide the result is, not x: a layer may read out
    a single number, or one for each word of a vocabulary."""
    runs = []
    for d, d_out, size in ((3, 7, 2), (4, 1, 3), (1, 2, 2)):
        state = {n.removeprefix("l."): a for n, a in linear_state(draw, "l", d_out, d).items()}
        runs.append(call(made_by(reading_out, d, d_out, state=state), draw.tensor(2, 5, d), size))
    return [*runs, call(as_argument(wave), tensor(1e-4 * draw.normal(1, 70, 1)), 66)]


def _function(draw: Draw) -> list[Run]:
    return [
        call(as_argument(wave), draw.tensor(2, 5, 3), 2),
        call(as_argument(wave), StridedArray(draw.tensor(2, 4, 3)), 3),
    ]


EXERCISE.equals(
    "any function as the layer, arguments by name",
    0.1,
    "The layer may be any function of x: call it, and rely on nothing else about it.",
    lambda draw: [*_function(draw), _runs(draw)[1]],
    only_if_right=True,
)


@EXERCISE.keeps_dtypes(0.05)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out."""
    return [
        _runs(draw, "float64")[0],
        call(_layer(draw, 4, 6, "float64"), draw.double(2, 3, 4), 0),
    ]


EXERCISE.leaves_inputs_alone(0.025, _runs, _short)


def _in_use(draw: Draw) -> list[Run]:
    layer = _layer(draw, 4, 6)
    sizes = (2, 0)
    return [
        run.then(Previous(0), draw.tensor(2, 5, 4), size)
        for size in sizes
        for run in used(Run(()), layer)
    ]


EXERCISE.leaves_state_alone(0.025, _runs, _whole, _in_use)
EXERCISE.follows_its_inputs(_runs, _short)
