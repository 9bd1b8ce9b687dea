"""`LayerNorm`: layer normalisation."""

import numpy as np

from attention_by_hand.exercises.residual_layernorm.shared import (
    norm_state,
    one_changed,
    token_by_token,
    tokens,
)
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Record,
    Run,
    StridedArray,
    Trial,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import TOLERANCE, compare

EXERCISE = Declaration("LayerNorm", "Layer normalisation", ("x",), forbids=("normalisation",))


def _norm(draw: Draw, d: int, *shape: int, dtype: str = "float32", **kwargs: object) -> Run:
    return module(d, state=norm_state(draw, d, dtype), **kwargs).then(
        tokens(draw, *shape, dtype=dtype)
    )


@EXERCISE.equals("each token is normalised over its features", 1.0)
def _runs(draw: Draw, dtype: str = "float32") -> list[Run]:
    """Do it as with the pencil. Which axis holds the numbers of one token? Each token needs a mean
    and a variance of its own, which must still stand beside its features when you subtract and
    divide. And what did you divide the squared deviations by?"""
    named = module(d_model=8, state=norm_state(draw, 8, dtype))
    return [
        _norm(draw, 6, 2, 5, 6, dtype=dtype),
        named.then(x=tokens(draw, 1, 3, 8, dtype=dtype)),
        _norm(draw, 3, 4, 2, 3, dtype=dtype),
        _norm(draw, 4, 4, 4, 4, dtype=dtype),
    ]


@EXERCISE.equals("a single token, more axes", 0.25)
def _shapes(draw: Draw) -> list[Run]:
    """Only the last axis matters. Count it from the end, and any number of axes may come before
    it."""
    return [
        _norm(draw, 5, 5),
        _norm(draw, 4, 3, 4),
        _norm(draw, 6, 2, 3, 1, 6),
        module(4, state=norm_state(draw, 4)).then(StridedArray(tokens(draw, 3, 2, 4))),
    ]


@EXERCISE.equals("ε inside the root", 0.4)
def _eps(draw: Draw) -> list[Run]:
    """Add eps to the variance before taking the root: √(σ² + ε). For features of ordinary size it
    hardly shows; for small ones, or with a large eps, it does."""
    small = tensor(draw.normal(2, 3, 6, scale=4e-3), "float32")
    state = norm_state(draw, 6)
    return [
        module(6, state=state).then(small),
        module(6, 900.0, state=state | {"bias": tensor(np.zeros(6), "float32")}).then(small),
        module(6, 0.5, state=state).then(draw.tensor(2, 3, 6, scale=2.0)),
        module(5, eps=0.04, state=norm_state(draw, 5)).then(draw.tensor(3, 5, scale=0.3)),
    ]


def _near_the_bias(trial: Trial) -> Finding:
    """As near as the rounding of x allows, which is divided by √ε: some right answers compute
    x · s − μ · s, and others a mean that is off in its last digit."""
    found = compare(trial.record.value, trial.expected.value)
    numbers, wanted = plain(trial.record.value), numbers_of(trial.expected.value)
    if found.passed or numbers is None or numbers.shape != wanted.shape:
        return found
    x, weight = numbers_of(trial.run.steps[0].args[0]), numbers_of(trial.run.parameters["weight"])
    rounding = 8 * 2.0**-24 * np.abs(x) * np.abs(weight) / np.sqrt(1e-5)
    relative, absolute = TOLERANCE["float32"]
    near = np.abs(numbers - wanted) <= absolute + relative * np.abs(wanted) + rounding
    return Finding(True, error=float(np.abs(numbers - wanted).max())) if near.all() else found


@EXERCISE.aspect("a token whose features are all equal", 0.2, _near_the_bias)
def _constant(draw: Draw) -> list[Run]:
    """Its deviations and its variance are 0. 0 / √(0 + ε) is 0, so the result is the bias."""
    # So small that the squares' rounding errors stay below ε.
    levels = np.array([0.0, 2.0, -0.7, draw.uniform(1.0, 3.0)])
    level = np.broadcast_to(levels[:, None], (2, 4, 5))
    alone = tensor(draw.uniform(-3.0, 3.0, 4, 1), "float32")  # a single feature equals itself
    return [
        module(5, state=norm_state(draw, 5)).then(tensor(level, "float32")),
        module(1, state=norm_state(draw, 1)).then(alone),
    ]


@EXERCISE.equals("a new layer neither scales nor shifts", 0.15)
def _fresh(draw: Draw) -> list[Run]:
    """The weight starts as ones and the bias as zeros."""
    return [module(6).then(tokens(draw, 2, 3, 6)), module(4).then(x=tokens(draw, 3, 4))]


@EXERCISE.holds("no token depends on another", 0.2, token_by_token(1e-3), only_if_right=True)
def _alone(draw: Draw) -> list[Run]:
    """If another token of the sequence, or of the batch, changes the result, statistics were taken
    over one axis too many, or carried over from the previous call."""
    before = tokens(draw, 3, 5, 6)
    after = one_changed(draw, before, (1, 2), 25.0)
    shared = module(6, state=norm_state(draw, 6)).then(before).then(after)
    return [shared, shared.in_training()]


EXERCISE.gradients(
    "gradients reach x, weight and bias",
    0.4,
    "Mean and variance depend on x, so the gradient flows through them, too.",
    lambda draw: [*_runs(draw, "float64")[1:], _norm(draw, 5, 3, 5, dtype="float64")],
)


def _is_standard(run: Run, record: Record) -> str | None:
    numbers, wanted = plain(record.value), numbers_of(run.steps[0].args[0])
    if numbers is None or numbers.shape != wanted.shape:
        return f"the result: expected shape {wanted.shape}, got {describe(record.value)}"
    if not np.isfinite(numbers).all():
        return "some results are not finite"
    mean, variance = numbers.mean(-1), numbers.var(-1)
    if np.abs(mean).max() > 0.01:
        farthest = mean.flat[np.abs(mean).argmax()]
        return f"the mean of a token's features: expected 0, got {farthest:.3g}"
    off = np.abs(variance - 1)
    if off.max() > 0.01:
        return (
            f"the variance of a token's features: expected 1, got {variance.flat[off.argmax()]:.3g}"
        )
    return None


@EXERCISE.holds("features far from zero", 0.2, _is_standard, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """Around 3,000, the mean of the squares and the square of the mean agree in almost all of
    float32's digits, and their difference is rounding error. Square the deviations instead."""
    # Without scale and shift, the features of each token must have mean 0 and variance 1.
    far = tensor(draw.normal(2, 3, 16) + 3e3, "float32")
    wide = tensor(draw.normal(2, 3, 16) * 1e4, "float32")
    return [module(16).then(far), module(16).then(wide)]


EXERCISE.keeps_dtypes(
    0.1,
    "A float64 layer with float64 input gives float64, a float32 layer float32.",
    lambda draw: [_norm(draw, 6, 2, 3, 6, dtype="float64")],
)
EXERCISE.leaves_inputs_alone(0.05, lambda draw: _runs(draw)[1:3])
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[2:3])
EXERCISE.follows_its_inputs(_runs, _fresh)
