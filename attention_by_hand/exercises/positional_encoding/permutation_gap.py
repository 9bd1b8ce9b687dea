"""`permutation_gap`: does it know order?"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from attention_by_hand.exercises.shared import small_layer, used
from autograder.student.authoring import (
    Array,
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

EXERCISE = Declaration("permutation_gap", "Does it know order?", ("attention", "x", "permutation"))


def attends(scale: float) -> Callable:
    """softmax(scale · XXᵀ) X, which does not depend on the order."""
    return lambda x: (scale * x @ x.mT).softmax(-1) @ x


def numbered(places: "Tensor") -> Callable:
    """The same after adding a row of `places` to each position."""
    return lambda x: attends(0.5)(x + places[: x.shape[1]])


def running_mean() -> Callable:
    """The mean over each position and those before it."""
    return lambda x: x.cumsum(1) / (1.0 + x.new_ones(x.shape[1]).cumsum(0))[:, None]


def climbing() -> Callable:
    """x, raised from each position to the next by a step that grows with the entries of x."""
    return lambda x: x + x.abs().sum((1, 2), True) * x.new_ones(x.shape[1]).cumsum(0)[:, None]


def _order(draw: Draw, n: int) -> Array:
    """A permutation that is not its own inverse: it has a cycle of at least three positions."""
    while True:
        p = draw.permutation(n)
        if (p[p] != np.arange(n)).any():
            return tensor(p)


def _ring(n: int) -> Array:
    """A cyclic shift by one, under which the largest gap of `climbing` is a negative difference."""
    return tensor(np.roll(np.arange(n), 1))


def _growing(draw: Draw, *shape: int) -> Array:
    """Sequences, the last of which is by far the largest."""
    return tensor(draw.normal(*shape) * (1.0 + np.arange(shape[0])[:, None, None]) ** 2)


@EXERCISE.equals("attention that depends on the order", 0.95)
def _runs(draw: Draw) -> list[Run]:
    """Permute the positions (axis 1) of the input, then run; and run, then permute the positions of
    the output in the same way. The gap is the largest absolute difference between the two."""

    def aware(n: int, d: int) -> Recipe:
        return made_by(numbered, draw.double(n, d))

    x = draw.double(1, 6, 3)
    return [
        call(aware(7, 4), draw.double(2, 5, 4), _order(draw, 5)),
        call(aware(4, 4), draw.double(5, 4, 4), _order(draw, 4)),
        call(made_by(running_mean), draw.double(4, 3, 5), _order(draw, 3)),
        call(permutation=_order(draw, 6), x=x, attention=aware(6, 3)),
        call(made_by(climbing), _growing(draw, 2, 6, 3), _ring(6)),
    ]


def token_by_token(weight: "Tensor") -> Callable:
    """A function of each token alone, whose output has a feature size of its own."""
    return lambda x: (x @ weight).tanh()


@EXERCISE.equals("attention that does not depend on the order", 0.35)
def _none(draw: Draw) -> list[Run]:
    """What treats all positions alike has a gap of 0: the permuted input gives the permuted
    output."""
    same = made_by(attends, 0.7)
    alone = made_by(token_by_token, draw.double(4, 3))
    return [
        call(same, draw.double(2, 5, 4), _order(draw, 5)),
        call(alone, draw.double(3, 6, 4), _order(draw, 6)),
        call(made_by(running_mean), draw.double(2, 4, 3), tensor(np.arange(4))),
        call(made_by(running_mean), draw.double(2, 1, 3), tensor([0])),
    ]


def in_heads(places: "Tensor") -> Callable:
    """`numbered`, with the features split in two: the output is (B, n, 2, d/2)."""
    return lambda x: numbered(places)(x).unflatten(-1, (2, -1))


@EXERCISE.equals("outputs of any shape (B, n, …)", 0.25)
def _shapes(draw: Draw) -> list[Run]:
    """Only axis 1 holds positions; whatever comes after it may have any shape."""
    split = made_by(in_heads, draw.double(5, 6))
    climb = made_by(climbing)
    return [
        call(split, draw.double(2, 5, 6), _order(draw, 5)),
        call(climb, StridedArray(_growing(draw, 3, 9, 2)), StridedArray(_ring(9))),
        call(climb, _growing(draw, 1, 70, 1), _ring(70)),
        call(climb, tensor(1e-5 * _growing(draw, 2, 4, 2).data), _ring(4)),
    ]


EXERCISE.keeps_dtypes(0.25, "Return a Python number, not a tensor.", _runs)
EXERCISE.leaves_inputs_alone(0.1, _runs, _none)


def attention_in_training(places: "Tensor") -> "nn.Module":
    """`numbered` as a module in training mode."""
    from torch import nn

    class Numbered(nn.Module):
        def forward(self, x: "Tensor") -> "Tensor":
            return numbered(places)(x)

    return Numbered().train()


def _training(draw: Draw) -> list[Run]:
    make = as_argument(attention_in_training)
    run = Run(()).then_apply(make, draw.double(5, 4))
    return [run.then(Previous(0), draw.double(2, 5, 4), _order(draw, 5))]


def _in_use(draw: Draw) -> list[Run]:
    state = {"0.weight": draw.tensor(4, 4), "0.bias": draw.tensor(4)}
    runs = used(Run(()), made_by(small_layer, 4, state=state))
    return [run.then(Previous(0), draw.tensor(2, 5, 4), _order(draw, 5)) for run in runs]


EXERCISE.leaves_state_alone(0.1, _runs, _training, _in_use)
EXERCISE.follows_its_inputs(_runs)
