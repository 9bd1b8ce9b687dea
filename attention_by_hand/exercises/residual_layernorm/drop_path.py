"""`DropPath`: stochastic depth."""

import numpy as np

from attention_by_hand.exercises.residual_layernorm.dropout import (
    P,
    drawn_calls,
    for_the_name,
    in_draws,
    next_numbers,
    numbers_vary,
    pattern,
    wrong_scale,
)
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Run,
    StridedArray,
    Trial,
    as_argument,
    module,
    plain,
    tensor,
)

EXERCISE = Declaration("DropPath", "Stochastic depth", ("x",))


def _p(trial: Trial) -> float:
    return trial.run.constructor.kwargs.get("p", *trial.run.constructor.args)


def _whole(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    share, scale, varies = pattern(np.stack(outputs) / x)
    if share in (0.0, 1.0):
        fate = "nothing" if share == 0.0 else "everything"
        return f"in training mode with p = {_p(trial)}, {fate} is dropped"
    if any(varies[2:]):
        return "parts of a sample are dropped while other parts are kept"
    return (
        "samples are neither dropped nor scaled as a whole"
        if scale == "different numbers"
        else None
    )


def _samples(draw: Draw, *shape: int) -> Array:
    """Numbers from 1 to 2, from a small set."""
    return tensor(1 + draw.integers(0, 8, *shape) / 8, "float32")


def _chances(draw: Draw) -> list[float]:
    """Two drop probabilities, a small and a large one, neither near the other's complement."""
    return [draw.number(0.2, 0.35), draw.number(0.65, 0.75)]


def _two_paths(draw: Draw) -> list[Run]:
    small, large = _chances(draw)
    return [module(small), module(p=large)]


def _dropped_paths(draw: Draw) -> list[Run]:
    """So many calls that some drop and some keep, even if a batch shares one draw."""
    return [drawn_calls(run, draw, _samples(draw, 4, 2, 2), 64) for run in _two_paths(draw)]


def _named_paths(draw: Draw) -> list[Run]:
    """One probability near a quarter, one near three quarters: so are the shares."""
    x = _samples(draw, 8, 2, 3)
    runs = [module(0.25), module(p=0.75)]
    return [for_the_name(run, draw, "paths", x, 128) for run in runs]


EXERCISE.aspect(
    "whole samples are dropped, or kept",
    0.75,
    in_draws(_whole),
    "Draw once per sample: a tensor of shape (B, 1, …, 1) broadcasts over the rest.",
    _dropped_paths,
    _named_paths,
)


def _share(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    if any(pattern(output / x)[0] in (0.0, 1.0) for output in outputs):
        return "all samples of a batch are dropped or kept together"
    share, p = pattern(np.stack(outputs) / x)[0], _p(trial)
    return f"about {share:.0%} are dropped; expected {p:.0%}" if abs(share - p) > 0.085 else None


@EXERCISE.aspect("a share p of them is dropped", 0.35, in_draws(_share), only_if_right=True)
def _many_paths(draw: Draw) -> list[Run]:
    """p is the probability of being dropped, not of being kept."""
    return [drawn_calls(run, draw, _samples(draw, 512, 2), 3) for run in _two_paths(draw)]


def _scale(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    return wrong_scale(pattern(np.stack(outputs) / x)[1], _p(trial))


EXERCISE.aspect(
    "kept samples are divided by 1 − p",
    0.4,
    in_draws(_scale),
    "This makes the expected output x, in training as in inference.",
    _dropped_paths,
    only_if_right=True,
)


def _apart(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    calls, samples = pattern(np.stack(outputs) / x)[2][:2]
    if not calls:
        return "every call drops the same samples"
    return None if samples else "all samples of a batch are dropped or kept together"


def _each(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    """The number of samples dropped varies, too; in 64 calls it stays the same with p < 1e-15."""
    problem = _apart(trial, x, outputs)
    if problem is None and not numbers_vary(np.stack(outputs) / x):
        return "every call drops the same number of samples"
    return problem


EXERCISE.aspect(
    "each sample is drawn on its own, in each call",
    0.3,
    in_draws(_each),
    "The samples of a batch do not share a draw, nor do two calls; so how many are dropped varies.",
    _dropped_paths,
    only_if_right=True,
)
EXERCISE.draws_anew()


def _all(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    problems = _whole, _share, _scale, _apart
    return next(filter(None, (problem(trial, x, outputs) for problem in problems)), None)


@EXERCISE.aspect("any number of axes", 0.15, in_draws(_all))
def _shapes(draw: Draw) -> list[Run]:
    """The draws have as many axes of length 1 after B as x has further axes."""
    # One axis, two, four: any draws will do, as long as each sample is whole.
    shapes = (300,), (300, 3), (300, 2, 1, 2)
    return [
        drawn_calls(module(_chances(draw)[0]), draw, _samples(draw, *shape), 3) for shape in shapes
    ]


@EXERCISE.equals("unchanged in eval mode", 0.25, only_if_right=True)
def _evaluated(draw: Draw) -> list[Run]:
    """Look at self.training: in eval mode x is returned as it is, without any scaling."""
    return [
        *(run.then(_samples(draw, 8, 2, 3)) for run in _two_paths(draw)),
        module(P).then(draw.tensor(3, 2, 4)),
        module(P).then(draw.tensor(1, 3, scale=1e-4)),
        module(1.0).then(x=draw.tensor(4, 3)),
        module(0.5).then(StridedArray(draw.tensor(2, 3))),
    ]


@EXERCISE.equals("nothing is drawn in eval mode", 0.05, only_if_right=True)
def _undrawn(draw: Draw) -> list[Run]:
    """In eval mode, return x before anything is drawn: whoever has seeded torch's generator counts
    on its next numbers."""
    return [module(P).then(draw.tensor(3, 2, 4)).then_apply(as_argument(next_numbers))]


@EXERCISE.equals("unchanged for p = 0, and zero for p = 1", 0.1, only_if_right=True)
def _idle(draw: Draw) -> list[Run]:
    """With p = 0 nothing is ever dropped, with p = 1 everything: there, 1 − p divides nothing."""
    runs = [
        module().then(draw.tensor(3, 2, 4)),
        module(0.0).then(draw.tensor(2, 5)),
        module(p=0.0).then(draw.tensor(4)),
        module(1.0).then(draw.tensor(3, 2)),
    ]
    return [run.in_training() for run in runs]


def _gradient(trial: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    grad = plain(trial.record.gradients.get("0"))
    if grad is None or grad.shape != x.shape:
        return "no gradient reaches x"
    weights = np.cos(np.arange(x.size) * 0.7 + 0.3).reshape(x.shape)  # the probe's weights
    followed = np.allclose(grad, weights * outputs[0] / x, rtol=1e-4, atol=1e-4)
    return None if followed else "the gradient is not scaled like x"


@EXERCISE.aspect(
    "the gradient of a dropped sample is 0", 0.05, in_draws(_gradient), only_if_right=True
)
def _learns(draw: Draw) -> list[Run]:
    """Multiply x by the draws; the gradient then follows by itself."""
    runs = [drawn_calls(run, draw, _samples(draw, 40, 2, 3), 1) for run in _two_paths(draw)]
    named = module(1 - 1e-7).then(_samples(draw, 2, 3)).in_training()
    return [run.with_gradients() for run in (*runs, named)]


@EXERCISE.keeps_dtypes(0.05)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out, and float32 for float32; in training, too."""
    x = draw.double(8, 2, 3)
    training = module(P).in_training().at_random(draw)
    return [training.then(x), module(P).then(x)]


EXERCISE.leaves_inputs_alone(0.025, _double, _idle)
EXERCISE.leaves_state_alone(0.025, lambda d: _evaluated(d)[2:])
EXERCISE.follows_its_inputs(_two_paths, _evaluated)
