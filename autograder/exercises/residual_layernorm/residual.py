"""`Residual`: a residual connection with a norm."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    no_side_effects_of_a_module,
)
from autograder.engine.runs import (
    Array,
    Draw,
    Exercise,
    Recipe,
    Run,
    Strided,
    Trial,
    module,
    tensor,
)
from autograder.exercises.residual_layernorm.dropout import (
    P,
    drawn_calls,
    for_the_name,
    found_in_draws,
    parts_of_the_stairs,
    wrong_scale,
)
from autograder.exercises.residual_layernorm.shared import (
    from_here,
    linear_state,
    norm_state,
    tokens,
)

_HERE = "autograder.exercises.residual_layernorm:"


def linear(d_model: int) -> Any:
    """A sublayer without further arguments."""
    from torch import nn

    return nn.Linear(d_model, d_model)


def attention(d_model: int, num_heads: int) -> Any:
    """A sublayer with further arguments: attention from x to a memory, or to x itself."""
    from torch import nn

    from autograder.blocks import MultiHeadAttention

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.heads = MultiHeadAttention(d_model, num_heads)

        def forward(self, x, memory=None, mask=None):
            memory = x if memory is None else memory
            return self.heads(x, memory, memory, mask=mask)[0]

    return Attention()


def staircase(x: Any) -> Any:
    """A sublayer that answers 1, 2, 3, …, whatever it is given."""
    import torch

    return torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype).expand_as(x)


def counting(numbers: Any) -> Any:
    """A sublayer that adds another number at each of its calls."""
    from torch import nn

    calls = itertools.count()

    class Counting(nn.Module):
        def forward(self, x):
            return 0.5 * x.flip(-1) + numbers[next(calls) % len(numbers)]

    return Counting()


def _residual_state(draw: Draw, d: int, dtype: str = "float32") -> dict[str, Array]:
    affine = norm_state(draw, d, dtype)
    return {f"norm.{name}": value for name, value in affine.items()}


def _around_linear(draw: Draw, d: int, *args: Any, dtype: str = "float32", **kwargs: Any) -> Run:
    state = _residual_state(draw, d, dtype) | linear_state(draw, "sublayer", d, d, dtype)
    return module(from_here("linear", d), d, *args, state=state, **kwargs)


def _around_attention(
    draw: Draw, d: int, heads: int, *, norm_first: bool = False, dtype: str = "float32"
) -> Run:
    state = _residual_state(draw, d, dtype)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        state |= linear_state(draw, f"sublayer.heads.{name}", d, d, dtype)
    return module(from_here("attention", d, heads), d, norm_first=norm_first, state=state)


def _around_function(draw: Draw, d: int, **kwargs: Any) -> Run:
    return module(from_here("wave"), d, state=_residual_state(draw, d), **kwargs)


def _residual_post(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    state = _residual_state(draw, 5, dtype) | linear_state(draw, "sublayer", 5, 5, dtype)
    named = module(sublayer=from_here("linear", 5), d_model=5, state=state)
    return [
        _around_linear(draw, 6, dtype=dtype).then(tokens(draw, 2, 4, 6, dtype=dtype)),
        named.then(x=tokens(draw, 1, 3, 5, dtype=dtype)),
        _around_linear(draw, 4, 0.0, False, dtype=dtype).then(tokens(draw, 3, 2, 4, dtype=dtype)),
    ]


def _residual_pre(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    kwargs = {"norm_first": True, "dtype": dtype}
    return [
        _around_linear(draw, 6, **kwargs).then(tokens(draw, 2, 4, 6, dtype=dtype)),
        _around_linear(draw, 5, **kwargs).then(x=tokens(draw, 1, 3, 5, dtype=dtype)),
        _around_linear(draw, 4, 0.0, True, dtype=dtype).then(tokens(draw, 3, 2, 4, dtype=dtype)),
    ]


def _residual_more(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
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


def _residual_shapes(draw: Draw) -> Sequence[Run]:
    runs = []
    for first in (False, True):
        layer = _around_function(draw, 6, norm_first=first)
        runs += [
            layer.then(tokens(draw, 6), 0.3),
            layer.then(tokens(draw, 3, 6), 0.3, size=2.0),
            layer.then(Strided(tokens(draw, 2, 1, 3, 6)), size=0.5),
        ]
    return runs


def _around_stairs(draw: Draw, n: int) -> list[tuple[Run, Array]]:
    """Residual layers around a `staircase`, each with an x."""
    d = 5
    state = {
        "norm.weight": tensor(np.ones(d), "float64"),
        "norm.bias": tensor(np.zeros(d), "float64"),
    }
    return [
        (
            module(from_here("staircase"), d, dropout=P, norm_first=first, state=state),
            draw.tensor(n, 3, d, scale=4.0, dtype="float64"),
        )
        for first in (False, True)
    ]


def _residual_dropout(draw: Draw) -> Sequence[Run]:
    return [
        *(drawn_calls(run, draw, x, 2) for run, x in _around_stairs(draw, 12)),
        *(for_the_name(run, draw, "stairs", x) for run, x in _around_stairs(draw, 2)),
        *_residual_dropped_whole(draw),
    ]


def _residual_dropped_whole(draw: Draw) -> Sequence[Run]:
    """With dropout 1 nothing is left of the sublayer, and nothing is random."""
    runs = [
        _around_linear(draw, 5, dropout=1.0, norm_first=first).then(tokens(draw, 2, 3, 5))
        for first in (False, True)
    ]
    return [replace(run, training=True) for run in runs]


def _residual_dropped(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    found = parts_of_the_stairs(x, outputs)
    if found is None:
        return "no part of the sublayer's output was dropped before x was added"
    _, share, scale = found
    if share == 0.0:
        return f"in training mode with dropout {P}, nothing is dropped"
    if share != P:
        return f"about {share:.0%} of the sublayer's output is dropped; expected {P:.0%}"
    return wrong_scale(scale, P)


def _residual_evaluated(draw: Draw) -> Sequence[Run]:
    return [
        *(run.then(x) for run, x in _around_stairs(draw, 2)),
        *(replace(run, training=False) for run in _residual_dropped_whole(draw)),
    ]


def _residual_counted(draw: Draw) -> Sequence[Run]:
    """A second call of the sublayer gets another answer than the first, and so does the next."""
    runs = []
    for first in (False, True):
        numbers = tensor(draw.permutation(8) + 0.5 * draw.uniform(0.0, 1.0, 8), "float32")
        layer = module(Recipe(_HERE + "counting", (numbers,)), 4, norm_first=first)
        runs.append(layer.then(draw.tensor(2, 3, 4)).then(draw.tensor(1, 2, 4)))
    return runs


def _residual_double(draw: Draw) -> Sequence[Run]:
    return [_residual_post(draw, "float64")[0], _residual_pre(draw, "float64")[0]]


RESIDUAL = Exercise(
    "Residual",
    "A residual connection with a norm",
    ("x",),
    (
        equals_reference(
            "post-norm: norm(x + F(x))",
            0.9,
            "The sublayer gets x as it is. Its output is added to x, and the sum is normalised.",
            _residual_post,
        ),
        equals_reference(
            "pre-norm: x + F(norm(x))",
            0.9,
            "With norm_first the sublayer gets the normalised x. Its output is added to x itself, "
            "not to the normalised one, and nothing is normalised afterwards.",
            _residual_pre,
        ),
        equals_reference(
            "further arguments reach the sublayer",
            0.6,
            "forward(x, *args, **kwargs): hand args and kwargs on as they are. Only x is "
            "normalised, never a memory that the sublayer attends to.",
            _residual_more,
        ),
        equals_reference(
            "a function for a sublayer, and other shapes",
            0.2,
            "The sublayer is anything that can be called; the layer does not look at its shapes.",
            _residual_shapes,
        ),
        gradients_match(
            "gradients reach x, the norm and the sublayer",
            0.5,
            "Both ways carry gradient: through the sublayer and past it.",
            lambda draw: [
                *_residual_post(draw, "float64"),
                *_residual_pre(draw, "float64"),
                *_residual_more(draw, "float64")[1::3],
            ],
        ),
        found_in_draws(
            "dropout on the sublayer's output, in training",
            0.4,
            "Dropout acts on F(…), before x is added: x itself always arrives whole.",
            _residual_dropout,
            _residual_dropped,
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.2,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _residual_evaluated,
        ),
        equals_reference(
            "one call of the sublayer per call",
            0.1,
            "Keep the sublayer's output in a variable: calling it twice costs twice, and with "
            "dropout inside it gives two different answers. So does the sublayer of this test.",
            _residual_counted,
        ),
        dtypes_kept(0.1, "A float64 layer with float64 input gives float64.", _residual_double),
        inputs_untouched(0.05, lambda d: [_residual_post(d)[0], _residual_pre(d)[0]]),
        no_side_effects_of_a_module(0.05, lambda d: [_residual_post(d)[1], _residual_pre(d)[1]]),
    ),
)
