"""`permutation_gap`: does it know order?"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    inputs_untouched,
    no_side_effects,
)
from autograder.engine.runs import (
    Array,
    Draw,
    Exercise,
    Previous,
    Recipe,
    Run,
    Strided,
    call,
    tensor,
)
from autograder.exercises.positional_encoding.shared import float64_tensor

_HERE = "autograder.exercises.positional_encoding:"


def attends(scale: float) -> Callable:
    """softmax(scale · XXᵀ) X, which does not care about order."""
    return lambda x: (scale * x @ x.mT).softmax(-1) @ x


def numbered(places: Any) -> Callable:
    """The same, once each position has had its row of `places` added."""
    return lambda x: attends(0.5)(x + places[: x.shape[1]])


def running_mean() -> Callable:
    """The mean of each position and those before it."""
    return lambda x: x.cumsum(1) / (1.0 + x.new_ones(x.shape[1]).cumsum(0))[:, None]


def climbing() -> Callable:
    """x, raised at each step from one position to the next, the more the larger the sequence is."""
    return lambda x: x + x.abs().sum((1, 2), True) * x.new_ones(x.shape[1]).cumsum(0)[:, None]


def token_by_token(weight: Any) -> Callable:
    """Something that looks at each token alone; its output has a size of its own."""
    return lambda x: (x @ weight).tanh()


def in_heads(places: Any) -> Callable:
    """`numbered`, with the features split in two: the output is (B, n, 2, d/2)."""
    return lambda x: numbered(places)(x).unflatten(-1, (2, -1))


def attention_in_training(places: Any) -> Any:
    """`numbered` as a module in training mode."""
    from torch import nn

    class Numbered(nn.Module):
        def forward(self, x: Any) -> Any:
            return numbered(places)(x)

    return Numbered().train()


def _order(draw: Draw, n: int) -> Array:
    """A permutation that is not its own inverse: one that turns three places at least in a ring."""
    while True:
        p = draw.permutation(n)
        if (p[p] != np.arange(n)).any():
            return tensor(p)


def _ring(n: int) -> Array:
    """Each position takes the place before it, the first one the last: the largest gap that
    `climbing` has with it is a negative difference."""
    return tensor(np.roll(np.arange(n), 1))


def _growing(draw: Draw, *shape: int) -> Array:
    """Sequences of which the last is by far the largest."""
    return tensor(draw.normal(*shape) * (1.0 + np.arange(shape[0])[:, None, None]) ** 2)


def _gap_runs(draw: Draw) -> Sequence[Run]:
    def aware(n: int, d: int) -> Recipe:
        return Recipe(_HERE + "numbered", (float64_tensor(draw, n, d),))

    x = float64_tensor(draw, 1, 6, 3)
    return [
        call(aware(7, 4), float64_tensor(draw, 2, 5, 4), _order(draw, 5)),
        call(aware(4, 4), float64_tensor(draw, 5, 4, 4), _order(draw, 4)),
        call(Recipe(_HERE + "running_mean", ()), float64_tensor(draw, 4, 3, 5), _order(draw, 3)),
        call(permutation=_order(draw, 6), x=x, attention=aware(6, 3)),
        call(Recipe(_HERE + "climbing", ()), _growing(draw, 2, 6, 3), _ring(6)),
    ]


def _gap_none(draw: Draw) -> Sequence[Run]:
    same = Recipe(_HERE + "attends", (0.7,))
    alone = Recipe(_HERE + "token_by_token", (float64_tensor(draw, 4, 3),))
    return [
        call(same, float64_tensor(draw, 2, 5, 4), _order(draw, 5)),
        call(alone, float64_tensor(draw, 3, 6, 4), _order(draw, 6)),
        call(
            Recipe(_HERE + "running_mean", ()), float64_tensor(draw, 2, 4, 3), tensor(np.arange(4))
        ),
    ]


def _gap_shapes(draw: Draw) -> Sequence[Run]:
    split = Recipe(_HERE + "in_heads", (float64_tensor(draw, 5, 6),))
    climb = Recipe(_HERE + "climbing", ())
    return [
        call(split, float64_tensor(draw, 2, 5, 6), _order(draw, 5)),
        call(climb, Strided(_growing(draw, 3, 9, 2)), _ring(9)),
    ]


def _gap_training(draw: Draw) -> Sequence[Run]:
    make = Recipe(_HERE + "attention_in_training")
    run = Run(()).then_apply(make, float64_tensor(draw, 5, 4))
    return [run.then(Previous(0), float64_tensor(draw, 2, 5, 4), _order(draw, 5))]


PERMUTATION_GAP = Exercise(
    "permutation_gap",
    "Does it know order?",
    ("attention", "x", "permutation"),
    (
        equals_reference(
            "attention that cares about order",
            0.95,
            "Permute the positions (axis 1) of the input and run; run and permute the positions of "
            "the output in the same way. The gap is the largest absolute difference of the two.",
            _gap_runs,
        ),
        equals_reference(
            "attention that does not",
            0.35,
            "What treats all positions alike has a gap of 0: the permuted input gives the "
            "permuted output.",
            _gap_none,
        ),
        equals_reference(
            "outputs of any shape (B, n, …)",
            0.25,
            "Only axis 1 is the positions'; what comes after it can be anything.",
            _gap_shapes,
        ),
        dtypes_kept(0.25, "Return a Python number: a tensor's .item().", _gap_runs),
        inputs_untouched(0.1, lambda draw: [*_gap_runs(draw), *_gap_none(draw)]),
        no_side_effects(0.1, lambda draw: [*_gap_runs(draw), *_gap_training(draw)]),
    ),
)
