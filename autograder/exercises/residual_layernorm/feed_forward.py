"""`FeedForward`: the position-wise feed-forward layer."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    describe,
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects_of_a_module,
    plain,
)
from autograder.engine.runs import (
    Array,
    Draw,
    Exercise,
    Recipe,
    Record,
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
    hidden_features,
    pattern,
    wrong_scale,
)
from autograder.exercises.residual_layernorm.shared import feed_forward_state, from_here

_HERE = "autograder.exercises.residual_layernorm:"


def _ff(draw: Draw, d: int, d_ff: int, *args: Any, dtype: str = "float32", **kwargs: Any) -> Run:
    return module(d, d_ff, *args, state=feed_forward_state(draw, d, d_ff, dtype), **kwargs)


def sine(x: Any) -> Any:
    """An activation that is no one's default."""
    return x.sin()


def square(x: Any) -> Any:
    """An activation that keeps 0 and 1, and nothing else."""
    return x * x


def activation_module() -> Any:
    """An activation that is a module."""
    from torch import nn

    return nn.ELU()


def _ff_runs(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    named = module(d_model=6, d_ff=10, state=feed_forward_state(draw, 6, 10, dtype))
    return [
        _ff(draw, 4, 12, dtype=dtype).then(draw.tensor(2, 5, 4, dtype=dtype)),
        named.then(x=draw.tensor(1, 3, 6, dtype=dtype)),
        _ff(draw, 5, 3, dtype=dtype).then(draw.tensor(3, 2, 5, dtype=dtype)),
        _ff(draw, 4, 4, dtype=dtype).then(draw.tensor(2, 4, 4, dtype=dtype)),
    ]


def _ff_activations(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    return [
        _ff(draw, 4, 7, 0.0, from_here("sine"), dtype=dtype).then(
            draw.tensor(2, 3, 4, dtype=dtype)
        ),
        _ff(draw, 5, 6, activation=Recipe(_HERE + "activation_module", ()), dtype=dtype).then(
            draw.tensor(1, 4, 5, dtype=dtype)
        ),
    ]


def _ff_shapes(draw: Draw) -> Sequence[Run]:
    return [
        _ff(draw, 4, 8).then(draw.tensor(4)),
        _ff(draw, 4, 8).then(draw.tensor(3, 4)),
        _ff(draw, 3, 6).then(draw.tensor(2, 3, 2, 3)),
        _ff(draw, 1, 2).then(draw.tensor(2, 3, 1)),
        _ff(draw, 4, 6).then(Strided(draw.tensor(2, 3, 4))),
    ]


def _ff_alone(draw: Draw) -> Sequence[Run]:
    before = draw.tensor(2, 5, 6)
    after = before.data.copy()
    after[1, 3] += draw.normal(6).astype("float32")
    return [_ff(draw, 6, 8).then(before).then(tensor(after, "float32"))]


def _ff_position_wise(run: Run, record: Record) -> str | None:
    before, after = (plain(value) for value in record.values)
    if before is None or after is None or before.shape != (2, 5, 6) or after.shape != (2, 5, 6):
        return f"the result is {describe(record.value)}"
    moved = np.abs(after - before).max(axis=-1)
    own = moved[1, 3]
    moved[1, 3] = 0.0
    if moved.max() > 1e-6:
        return "changing one token moved the output of another"
    return None if own > 1e-4 else "changing a token did not move its own output"


def _ff_showing(draw: Draw, n: int) -> list[tuple[Run, Array]]:
    """Layers that show their hidden features, each with an x."""
    d, d_ff = 13, 12
    adds_up = np.concatenate([np.eye(d_ff), np.ones((1, d_ff))])
    state = {
        "linear1.weight": tensor(np.full((d_ff, d), 1 / d), "float32"),
        "linear1.bias": tensor(np.zeros(d_ff), "float32"),
        "linear2.weight": tensor(adds_up, "float32"),
        "linear2.bias": tensor(np.zeros(d), "float32"),
    }
    x = tensor(np.ones((n, 4, d)), "float32")
    return [
        (module(d, d_ff, dropout=P, state=state), x),
        (module(d, d_ff, P, from_here("square"), state=state), x),
    ]


def _ff_dropout(draw: Draw) -> Sequence[Run]:
    runs = [drawn_calls(run, draw, x, 2) for run, x in _ff_showing(draw, 16)]
    named = [for_the_name(run, draw, "features", x) for run, x in _ff_showing(draw, 2)]
    return [*runs, *named]


def _ff_dropped(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    (_, scale, varies), adds_up = hidden_features(x, outputs)
    share = pattern(np.stack(outputs)[..., :-1])[0]
    if not adds_up:
        return "what is dropped is the output, or the input, not the hidden features"
    if share == 0.0:
        return f"in training mode with p = {P}, nothing is dropped"
    if scale == "different numbers":
        return "it is not features that are dropped or kept: what is left has different sizes"
    if not all(varies):
        return "the hidden features do not each have a draw of their own"
    if abs(share - P) > 0.1:
        return f"about {share:.0%} of the hidden features are dropped; expected {P:.0%}"
    return wrong_scale(scale, P)


def _ff_evaluated(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 3, 4)
    return [
        *(run.then(ones) for run, ones in _ff_showing(draw, 2)),
        _ff(draw, 4, 8, 0.5).then(x).then(x),
        _ff(draw, 4, 6, dropout=1.0).then(x),
    ]


FEED_FORWARD = Exercise(
    "FeedForward",
    "The position-wise feed-forward layer",
    ("x",),
    (
        equals_reference(
            "linear, ReLU, linear",
            0.8,
            "linear1 widens each token to d_ff features, the activation acts on these, and linear2 "
            "goes back to d_model. Nothing is added and nothing normalised here.",
            _ff_runs,
        ),
        equals_reference(
            "another activation",
            0.4,
            "Call self.activation, which may be any function or module.",
            _ff_activations,
        ),
        equals_reference(
            "a single token, more axes, a single feature",
            0.15,
            "nn.Linear acts on the last axis and takes any number before it: no reshape is needed.",
            _ff_shapes,
        ),
        has_property(
            "position by position",
            0.15,
            "Every token goes through the same network, and meets no other token there.",
            _ff_alone,
            _ff_position_wise,
            only_if_right=True,
        ),
        gradients_match(
            "gradients reach x and all four parameters",
            0.3,
            "Both layers take part, with their biases.",
            lambda d: [*_ff_runs(d, "float64"), *_ff_activations(d, "float64")],
        ),
        found_in_draws(
            "dropout in training, between the layers",
            0.4,
            "self.dropout acts on the hidden features, after the activation and before linear2.",
            _ff_dropout,
            _ff_dropped,
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.15,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _ff_evaluated,
        ),
        dtypes_kept(
            0.05,
            "A float64 layer with float64 input gives float64.",
            lambda draw: [
                _ff(draw, 4, 6, dtype="float64").then(draw.tensor(2, 3, 4, dtype="float64"))
            ],
        ),
        inputs_untouched(0.05, lambda draw: _ff_runs(draw)[:2]),
        no_side_effects_of_a_module(0.05, _ff_runs),
    ),
)
