"""`FeedForward`: the position-wise feed-forward layer."""

from typing import TYPE_CHECKING

import numpy as np

from attention_by_hand.exercises.residual_layernorm.dropout import (
    P,
    drawn_calls,
    for_the_name,
    hidden_features,
    in_draws,
    pattern,
    wrong_scale,
)
from attention_by_hand.exercises.residual_layernorm.shared import (
    feed_forward_state,
    one_changed,
    token_by_token,
)
from attention_by_hand.exercises.shared import State
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
    from torch import nn

EXERCISE = Declaration("FeedForward", "The position-wise feed-forward layer", ("x",))


def _ff(
    draw: Draw, d: int, d_ff: int, *args: object, dtype: str = "float32", **kwargs: object
) -> Run:
    return module(d, d_ff, *args, state=feed_forward_state(draw, d, d_ff, dtype), **kwargs)


@EXERCISE.equals("linear, ReLU, linear", 0.8)
def _runs(draw: Draw, dtype: str = "float32") -> list[Run]:
    """linear1 widens each token to d_ff features, the activation acts on these, and linear2 maps
    them back to d_model. Nothing is added and nothing normalised here."""
    named = module(d_model=6, d_ff=10, state=feed_forward_state(draw, 6, 10, dtype))
    return [
        _ff(draw, 4, 12, dtype=dtype).then(draw.tensor(2, 5, 4, dtype=dtype)),
        named.then(x=draw.tensor(1, 3, 6, dtype=dtype)),
        _ff(draw, 5, 3, dtype=dtype).then(draw.tensor(3, 2, 5, dtype=dtype)),
        _ff(draw, 4, 4, dtype=dtype).then(draw.tensor(2, 4, 4, dtype=dtype)),
    ]


def sine(x: Value) -> Value:
    """An activation that nobody has as a default."""
    return x.sin()


def activation_module() -> "nn.Module":
    """An activation that is a module."""
    from torch import nn

    return nn.ELU()


@EXERCISE.equals("another activation", 0.4)
def _activations(draw: Draw, dtype: str = "float32") -> list[Run]:
    """Call self.activation, which may be any function or module."""
    return [
        _ff(draw, 4, 7, 0.0, as_argument(sine), dtype=dtype).then(
            draw.tensor(2, 3, 4, dtype=dtype)
        ),
        _ff(draw, 5, 6, activation=made_by(activation_module), dtype=dtype).then(
            draw.tensor(1, 4, 5, dtype=dtype)
        ),
    ]


def _faint(draw: Draw) -> State:
    """Parameters that make small numbers."""
    small = draw.tensor(3, scale=2e-4), draw.tensor(3, 4, scale=2e-4)
    return feed_forward_state(draw, 3, 4) | dict(
        zip(("linear2.bias", "linear2.weight"), small, strict=True)
    )


@EXERCISE.equals("a single token, more axes, a single feature", 0.15)
def _shapes(draw: Draw) -> list[Run]:
    """nn.Linear acts on the last axis and takes any number of axes before it: no reshape is
    needed."""
    return [
        _ff(draw, 4, 8).then(draw.tensor(4)),
        _ff(draw, 4, 8).then(draw.tensor(3, 4)),
        _ff(draw, 3, 6).then(draw.tensor(2, 3, 2, 3)),
        _ff(draw, 1, 2).then(draw.tensor(2, 3, 1)),
        _ff(draw, 2, 1).then(draw.tensor(1, 70, 2)),
        module(3, 4, state=_faint(draw)).then(draw.tensor(2, 3, 3)),
        _ff(draw, 4, 6).then(StridedArray(draw.tensor(2, 3, 4))),
    ]


@EXERCISE.holds("position-wise", 0.15, token_by_token(1e-4), only_if_right=True)
def _alone(draw: Draw) -> list[Run]:
    """Every token goes through the same network, independently of all others."""
    # So many hidden features that some of them are above 0, where a changed token shows.
    before = draw.tensor(2, 5, 6)
    after = one_changed(draw, before, (1, 3), 1.0)
    return [_ff(draw, 6, 40).then(before).then(after)]


EXERCISE.gradients(
    "gradients reach x and all four parameters",
    0.3,
    "Both layers contribute, with their biases.",
    lambda d: [*_runs(d, "float64"), *_activations(d, "float64")],
)


def _dropped(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    (_, scale, varies), adds_up = hidden_features(x, outputs)
    share = pattern(np.stack(outputs)[..., :-1])[0]
    if not adds_up:
        return "the output or the input is dropped, not the hidden features"
    if share == 0.0:
        return f"in training mode with p = {P}, nothing is dropped"
    if scale == "different numbers":
        return "features are not dropped or kept as a whole: those left differ in size"
    if not all(varies):
        return "the hidden features are not drawn independently"
    if abs(share - P) > 0.1:
        return f"hidden features dropped: expected {P:.0%}, got {share:.0%}"
    return wrong_scale(scale, P)


def square(x: Value) -> Value:
    """An activation that leaves 0 and 1 unchanged, and nothing else."""
    return x * x


def _showing(draw: Draw, n: int) -> list[tuple[Run, Array]]:
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
        (module(d, d_ff, P, as_argument(square), state=state), x),
    ]


@EXERCISE.aspect(
    "dropout in training, between the layers", 0.4, in_draws(_dropped), only_if_right=True
)
def _dropout(draw: Draw) -> list[Run]:
    """Dropout acts on the hidden features, after the activation and before linear2."""
    runs = [drawn_calls(run, draw, x, 2) for run, x in _showing(draw, 16)]
    named = [for_the_name(run, draw, "features", x) for run, x in _showing(draw, 2)]
    return [*runs, *named]


EXERCISE.draws_anew()


@EXERCISE.equals("no dropout in eval mode", 0.15)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    x = draw.tensor(2, 3, 4)
    return [
        *(run.then(ones) for run, ones in _showing(draw, 2)),
        _ff(draw, 4, 8, 0.5).then(x).then(x),
        _ff(draw, 4, 6, dropout=1.0).then(x),
        _ff(draw, 4, 6).in_training().then(x),
    ]


EXERCISE.keeps_dtypes(
    0.05,
    "A float64 layer with float64 input gives float64, a float32 layer float32.",
    lambda draw: [_ff(draw, 4, 6, dtype="float64").then(draw.double(2, 3, 4))],
)
EXERCISE.leaves_inputs_alone(0.05, lambda draw: _runs(draw)[:2])
EXERCISE.leaves_state_alone(0.05, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _dropout)
