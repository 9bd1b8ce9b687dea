"""`Residual`: a residual connection with a norm."""

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_by_hand.exercises.layer_dropout import read_in_training
from attention_by_hand.exercises.residual_layernorm.dropout import (
    P,
    drawn_calls,
    for_the_name,
    in_draws,
    parts_of_the_stairs,
    wrong_scale,
)
from attention_by_hand.exercises.residual_layernorm.shared import norm_state, tokens, wave
from attention_by_hand.exercises.shared import State, linear_state
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Run,
    StridedArray,
    Trial,
    as_argument,
    module,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.runs import made_by

if TYPE_CHECKING:
    from torch import Tensor, nn

EXERCISE = Declaration("Residual", "A residual connection with a norm", ("x",))


def linear(d_model: int) -> "nn.Module":
    """A sublayer without further arguments."""
    from torch import nn

    return nn.Linear(d_model, d_model)


def _state(draw: Draw, d: int, dtype: str = "float32") -> State:
    affine = norm_state(draw, d, dtype)
    return {f"norm.{name}": value for name, value in affine.items()}


def _around_linear(
    draw: Draw, d: int, *args: object, dtype: str = "float32", **kwargs: object
) -> Run:
    state = _state(draw, d, dtype) | linear_state(draw, "sublayer", d, d, dtype)
    return module(made_by(linear, d), d, *args, state=state, **kwargs)


@EXERCISE.equals("post-norm: norm(x + F(x))", 0.9)
def _post(draw: Draw, dtype: str = "float32") -> list[Run]:
    """The sublayer gets x as it is. Its output is added to x, and the sum is normalised."""
    state = _state(draw, 5, dtype) | linear_state(draw, "sublayer", 5, 5, dtype)
    named = module(sublayer=made_by(linear, 5), d_model=5, state=state)
    return [
        _around_linear(draw, 6, dtype=dtype).then(tokens(draw, 2, 4, 6, dtype=dtype)),
        named.then(x=tokens(draw, 1, 3, 5, dtype=dtype)),
        _around_linear(draw, 4, 0.0, False, dtype=dtype).then(tokens(draw, 3, 2, 4, dtype=dtype)),
    ]


@EXERCISE.equals("pre-norm: x + F(norm(x))", 0.9)
def _pre(draw: Draw, dtype: str = "float32") -> list[Run]:
    """With norm_first the sublayer gets the normalised x. Its output is added to x itself, not to
    the normalised x, and nothing is normalised afterwards."""
    kwargs: dict[str, Any] = {"norm_first": True, "dtype": dtype}
    return [
        _around_linear(draw, 6, **kwargs).then(tokens(draw, 2, 4, 6, dtype=dtype)),
        _around_linear(draw, 5, **kwargs).then(x=tokens(draw, 1, 3, 5, dtype=dtype)),
        _around_linear(draw, 4, 0.0, True, dtype=dtype).then(tokens(draw, 3, 2, 4, dtype=dtype)),
    ]


def attention(d_model: int, num_heads: int) -> "nn.Module":
    """A sublayer with further arguments: attention from x to a memory or to x itself."""
    from torch import nn

    from attention_by_hand.blocks import MultiHeadAttention

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = MultiHeadAttention(d_model, num_heads)

        def forward(self, x, memory=None, mask=None):
            memory = x if memory is None else memory
            return self.heads(x, memory, memory, mask=mask)[0]

    return Attention()


def _around_attention(
    draw: Draw, d: int, heads: int, *, norm_first: bool = False, dtype: str = "float32"
) -> Run:
    # Scores of about ±10: a softmax of larger ones makes rounding large where two are nearly equal.
    state = _state(draw, d, dtype)
    for name, scale in {"W_q": 0.05, "W_k": 0.05, "W_v": 1.0, "W_o": 1.0}.items():
        state |= linear_state(draw, f"sublayer.heads.{name}", d, d, dtype, scale=scale)
    return module(made_by(attention, d, heads), d, norm_first=norm_first, state=state)


@EXERCISE.equals("further arguments reach the sublayer", 0.6)
def _more(draw: Draw, dtype: str = "float32") -> list[Run]:
    """Pass args and kwargs on unchanged. Only x is normalised, never a memory that the sublayer
    attends to."""
    causal = tensor(np.tri(4, 4, dtype=bool))
    some = tensor(np.array([[True, False, True], [True, True, False]])[:, None, None, :])
    runs = []
    for first in (False, True):
        x, memory = tokens(draw, 2, 4, 6, dtype=dtype), tokens(draw, 2, 3, 6, dtype=dtype)
        layer = _around_attention(draw, 6, 2, norm_first=first, dtype=dtype)
        runs += [
            layer.then(x, mask=causal),
            layer.then(x, memory, some),
            layer.then(x, mask=some, memory=memory),
        ]
    return runs


def _around_function(draw: Draw, d: int, **kwargs: object) -> Run:
    return module(as_argument(wave), d, state=_state(draw, d), **kwargs)


@EXERCISE.equals("a function as the sublayer, and other shapes", 0.2)
def _shapes(draw: Draw) -> list[Run]:
    """The sublayer can be anything callable; the layer does not look at its shapes."""
    runs = []
    for first in (False, True):
        layer = _around_function(draw, 6, norm_first=first)
        runs += [
            layer.then(tokens(draw, 6), 0.3),
            _around_function(draw, 1, norm_first=first).then(tokens(draw, 3, 1)),
            layer.then(tokens(draw, 3, 6), 0.3, size=2.0),
            layer.then(StridedArray(tokens(draw, 2, 1, 3, 6)), size=0.5),
        ]
    return runs


EXERCISE.gradients(
    "gradients reach x, the norm and the sublayer",
    0.5,
    "Both paths carry gradient: through the sublayer and around it.",
    lambda draw: [*_post(draw, "float64"), *_pre(draw, "float64"), *_more(draw, "float64")[1::3]],
)


def _dropped(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    found = parts_of_the_stairs(x, outputs)
    if found is None:
        return "the results are not x plus the sublayer's output with some of it dropped"
    _, share, scale = found
    if share == 0.0:
        return f"in training mode with dropout {P}, nothing is dropped"
    if share != P:
        return f"share of the sublayer's output dropped: expected {P:.0%}, got {share:.0%}"
    return wrong_scale(scale, P)


def staircase(x: Value) -> Value:
    """A sublayer that returns 1, 2, 3, …, whatever it is given."""
    import torch

    return torch.zeros_like(x) + torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)


def _around_stairs(draw: Draw, n: int) -> list[tuple[Run, Array]]:
    """Residual layers around a `staircase`, each with an x."""
    d = 5
    state = {
        "norm.weight": tensor(np.ones(d), "float64"),
        "norm.bias": tensor(np.zeros(d), "float64"),
    }
    return [
        (
            module(as_argument(staircase), d, dropout=P, norm_first=first, state=state),
            draw.double(n, 3, d, scale=4.0),
        )
        for first in (False, True)
    ]


def _dropped_whole(draw: Draw) -> list[Run]:
    """With p = 1 nothing is left of the sublayer's output, and nothing is random."""
    runs = [
        _around_linear(draw, 5, dropout=1.0, norm_first=first).then(tokens(draw, 2, 3, 5))
        for first in (False, True)
    ]
    return [run.in_training() for run in runs]


@EXERCISE.aspect(
    "dropout on the sublayer's output, in training", 0.4, in_draws(_dropped), only_if_right=True
)
def _dropout(draw: Draw) -> list[Run]:
    """Dropout acts on F(…) before x is added: x itself always passes in full."""
    return [
        *(drawn_calls(run, draw, x, 2) for run, x in _around_stairs(draw, 12)),
        *(for_the_name(run, draw, "stairs", x) for run, x in _around_stairs(draw, 2)),
        *_dropped_whole(draw),
    ]


EXERCISE.draws_anew()


@EXERCISE.equals("the sublayer reads nothing that was dropped", 0.05, forgeable=True)
def _whole(draw: Draw) -> list[Run]:
    """Dropout acts on what the sublayer gives, not on what it reads: in training, too, that is x or
    what the norm gives, with every number."""
    return [
        read_in_training(
            _around_linear(draw, 5, dropout=0.5, norm_first=first), tokens(draw, 2, 3, 5)
        )
        for first in (False, True)
    ]


@EXERCISE.equals("no dropout in eval mode", 0.15)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    return [
        *(run.then(x) for run, x in _around_stairs(draw, 2)),
        *(replace(run, training=False) for run in _dropped_whole(draw)),
        _around_linear(draw, 5).in_training().then(tokens(draw, 2, 3, 5)),
    ]


def counting(numbers: "Tensor") -> "nn.Module":
    """A sublayer that adds another slope over the features at each call."""
    import torch
    from torch import nn

    calls = itertools.count()

    class Counting(nn.Module):
        def forward(self, x):
            slope = torch.arange(x.shape[-1], dtype=x.dtype, device=x.device)
            return 0.5 * x.flip(-1) + numbers[next(calls) % len(numbers)] * slope

    return Counting()


@EXERCISE.equals("the sublayer is called only once", 0.1)
def _counted(draw: Draw) -> list[Run]:
    """Keep the sublayer's output in a variable: calling it twice costs twice as much and, with
    dropout inside, gives two different outputs, as the sublayer of this check does."""
    # Each further call of the sublayer gives a different output.
    runs, shapes = [], ((2, 3), (1, 2))
    for first in (False, True):
        numbers = tensor(draw.permutation(8) + draw.uniform(1.0, 1.5, 8), "float32")
        layer = module(made_by(counting, numbers), 4, norm_first=first)
        # What is normalised has features far apart, so that rounding stays small.
        x = [tokens(draw, *n, 4) if first else draw.tensor(*n, 4, scale=0.3) for n in shapes]
        runs.append(layer.then(x[0]).then(x[1]))
    return runs


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 layer with float64 input gives float64, a float32 layer float32."""
    return [_post(draw, "float64")[0], _pre(draw, "float64")[0]]


def itself(x: Value) -> Value:
    """A sublayer that returns the tensor it is given, as nn.Identity does."""
    return x


def _around_nothing(draw: Draw) -> Run:
    return module(as_argument(itself), 5, state=_state(draw, 5)).then(tokens(draw, 2, 3, 5))


EXERCISE.leaves_inputs_alone(0.05, lambda d: [_post(d)[0], _pre(d)[0], _around_nothing(d)])


def _in_both_modes(draw: Draw) -> list[Run]:
    runs = [_post(draw)[1], _pre(draw)[1]]
    return [*runs, *(run.in_training() for run in runs)]


EXERCISE.leaves_state_alone(0.05, _in_both_modes, of_a_module=True)
EXERCISE.follows_its_inputs(_post, _pre, _dropout)
