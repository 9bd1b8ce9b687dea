"""`DropPath`: stochastic depth."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    inputs_untouched,
    no_side_effects,
    plain,
)
from autograder.engine.runs import Array, Draw, Exercise, Run, Strided, Trial, module, tensor
from autograder.exercises.residual_layernorm.dropout import (
    P,
    drawn_calls,
    for_the_name,
    found_in_draws,
    pattern,
    wrong_scale,
)


def _chances(draw: Draw) -> list[float]:
    """Two chances to be dropped, a small one and a large one, far from each other's complement."""
    return [draw.number(0.2, 0.35), draw.number(0.65, 0.75)]


def _samples(draw: Draw, *shape: int) -> Array:
    """Numbers from 1 to 2, few different ones."""
    return tensor(1 + draw.integers(0, 8, *shape) / 8, "float32")


def _two_paths(draw: Draw) -> list[Run]:
    small, large = _chances(draw)
    return [module(small), module(p=large)]


def _dropped_paths(draw: Draw) -> Sequence[Run]:
    """So many calls that some are dropped and some kept even where a batch has one draw."""
    return [drawn_calls(run, draw, _samples(draw, 4, 2, 2), 64) for run in _two_paths(draw)]


def _named_paths(draw: Draw) -> Sequence[Run]:
    """Of the two chances, one is near a quarter, one near three: so is the share of each."""
    x = _samples(draw, 8, 2, 3)
    runs = [module(0.25), module(p=0.75)]
    return [for_the_name(run, draw, "paths", x, 128) for run in runs]


def _many_paths(draw: Draw) -> Sequence[Run]:
    return [drawn_calls(run, draw, _samples(draw, 512, 2), 3) for run in _two_paths(draw)]


def _path_learns(draw: Draw) -> Sequence[Run]:
    runs = [drawn_calls(run, draw, _samples(draw, 40, 2, 3), 1) for run in _two_paths(draw)]
    named = replace(module(1 - 1e-7).then(_samples(draw, 2, 3)), training=True)
    return [run.with_gradients() for run in (*runs, named)]


def _path_p(trial: Trial) -> float:
    return trial.run.init.kwargs.get("p", *trial.run.init.args)


def _path_whole(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    share, scale, varies = pattern(np.stack(outputs) / x)
    if share in (0.0, 1.0):
        fate = "nothing" if share == 0.0 else "everything"
        return f"in training mode with p = {_path_p(trial)}, {fate} is dropped"
    if any(varies[2:]):
        return "parts of a sample are dropped, and other parts of it are kept"
    return "samples are not dropped or kept as they are" if scale == "different numbers" else None


def _path_share(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    if any(pattern(output / x)[0] in (0.0, 1.0) for output in outputs):
        return "all samples of a batch are dropped or kept together"
    share, p = pattern(np.stack(outputs) / x)[0], _path_p(trial)
    return f"about {share:.0%} are dropped; expected {p:.0%}" if abs(share - p) > 0.085 else None


def _path_scale(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    return wrong_scale(pattern(np.stack(outputs) / x)[1], _path_p(trial))


def _path_apart(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    calls, samples = pattern(np.stack(outputs) / x)[2][:2]
    if not calls:
        return "every call drops the same samples"
    return None if samples else "all samples of a batch are dropped or kept together"


def _path_gradient(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    grad = plain(trial.record.gradients.get("0"))
    if grad is None or grad.shape != x.shape:
        return "no gradient reaches x"
    weights = np.cos(np.arange(x.size) * 0.7 + 0.3).reshape(x.shape)  # the probe's
    followed = np.allclose(grad, weights * outputs[0] / x, rtol=1e-4, atol=1e-4)
    return None if followed else "the gradient is not multiplied by what x is multiplied by"


def _path_all(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    problems = _path_whole, _path_share, _path_scale, _path_apart
    return next(filter(None, (problem(trial, x, outputs) for problem in problems)), None)


def _path_evaluated(draw: Draw) -> Sequence[Run]:
    return [
        *(run.then(_samples(draw, 8, 2, 3)) for run in _two_paths(draw)),
        module(P).then(draw.tensor(3, 2, 4)),
        module(1.0).then(x=draw.tensor(4, 3)),
        module(0.5).then(Strided(draw.tensor(2, 3))),
    ]


def _path_idle(draw: Draw) -> Sequence[Run]:
    runs = [
        module().then(draw.tensor(3, 2, 4)),
        module(0.0).then(draw.tensor(2, 5)),
        module(p=0.0).then(draw.tensor(4)),
    ]
    return [replace(run, training=True) for run in runs]


def _path_shapes(draw: Draw) -> Sequence[Run]:
    """One axis, two, four: the numbers may be anything, as long as each sample is whole."""
    shapes = (300,), (300, 3), (300, 2, 1, 2)
    return [
        drawn_calls(module(_chances(draw)[0]), draw, _samples(draw, *shape), 3) for shape in shapes
    ]


def _path_double(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(8, 2, 3, dtype="float64")
    training = replace(module(P), training=True, random=True, seed=draw.integer(0, 10**6))
    return [training.then(x), module(P).then(x)]


DROP_PATH = Exercise(
    "DropPath",
    "Stochastic depth",
    ("x",),
    (
        found_in_draws(
            "whole samples are dropped, or kept",
            0.75,
            "One draw per sample: a tensor of shape (B, 1, …, 1) broadcasts over the rest.",
            lambda draw: [*_dropped_paths(draw), *_named_paths(draw)],
            _path_whole,
        ),
        found_in_draws(
            "a share p of them is dropped",
            0.35,
            "p is the chance to be dropped, not the chance to be kept.",
            _many_paths,
            _path_share,
            only_if_right=True,
        ),
        found_in_draws(
            "those that are kept are divided by 1 − p",
            0.4,
            "So that the average over many draws is x again, in training as in use.",
            _dropped_paths,
            _path_scale,
            only_if_right=True,
        ),
        found_in_draws(
            "each sample has a draw of its own, in each call",
            0.3,
            "The samples of a batch do not share their fate, nor do two calls.",
            _dropped_paths,
            _path_apart,
            only_if_right=True,
        ),
        found_in_draws(
            "one axis, two, four",
            0.15,
            "As many ones after B as x has further axes: x.dim() − 1.",
            _path_shapes,
            _path_all,
        ),
        replace(
            equals_reference(
                "as it is in eval mode",
                0.3,
                "Look at self.training: in eval mode x comes back as it is, not scaled either.",
                _path_evaluated,
            ),
            only_if_right=True,
        ),
        replace(
            equals_reference(
                "as it is for p = 0", 0.1, "With p = 0 nothing is ever dropped.", _path_idle
            ),
            only_if_right=True,
        ),
        found_in_draws(
            "the gradient of a dropped sample is 0",
            0.05,
            "Multiply x by the draws; the gradient then follows by itself.",
            _path_learns,
            _path_gradient,
            only_if_right=True,
        ),
        dtypes_kept(0.05, "float64 in, float64 out, in training, too.", _path_double),
        inputs_untouched(0.025, lambda d: [*_path_double(d), *_path_idle(d)]),
        no_side_effects(0.025, lambda d: _path_evaluated(d)[2:]),
    ),
)
