"""`LayerNorm`: layer normalisation."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    describe,
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, Strided, module, tensor
from autograder.exercises.residual_layernorm.shared import READY_MADE_NORMS, norm_state, tokens


def _norm(draw: Draw, d: int, *shape: int, dtype: str = "float32", **kwargs: Any) -> Run:
    return module(d, state=norm_state(draw, d, dtype), **kwargs).then(
        tokens(draw, *shape, dtype=dtype)
    )


def _norm_runs(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    named = module(d_model=8, state=norm_state(draw, 8, dtype))
    return [
        _norm(draw, 6, 2, 5, 6, dtype=dtype),
        named.then(x=tokens(draw, 1, 3, 8, dtype=dtype)),
        _norm(draw, 3, 4, 2, 3, dtype=dtype),
        _norm(draw, 4, 4, 4, 4, dtype=dtype),
    ]


def _norm_shapes(draw: Draw) -> Sequence[Run]:
    return [
        _norm(draw, 5, 5),
        _norm(draw, 4, 3, 4),
        _norm(draw, 6, 2, 3, 1, 6),
        module(4, state=norm_state(draw, 4)).then(Strided(tokens(draw, 3, 2, 4))),
    ]


def _norm_eps(draw: Draw) -> Sequence[Run]:
    small = tensor(draw.normal(2, 3, 6, scale=4e-3), "float32")
    state = norm_state(draw, 6)
    return [
        module(6, state=state).then(small),
        module(6, 0.5, state=state).then(draw.tensor(2, 3, 6, scale=2.0)),
        module(5, eps=0.04, state=norm_state(draw, 5)).then(draw.tensor(3, 5, scale=0.3)),
    ]


def _norm_constant(draw: Draw) -> Sequence[Run]:
    """Of levels whose mean has no rounding error: it would be divided by √ε."""
    levels = np.array([0.0, 2.0, -0.5, draw.integer(3, 9)])
    level = np.broadcast_to(levels[:, None], (2, 4, 4))
    return [module(4, state=norm_state(draw, 4)).then(tensor(level, "float32"))]


def _norm_fresh(draw: Draw) -> Sequence[Run]:
    return [module(6).then(tokens(draw, 2, 3, 6)), module(4).then(x=tokens(draw, 3, 4))]


def _norm_alone(draw: Draw) -> Sequence[Run]:
    before = tokens(draw, 3, 5, 6)
    after = before.data.copy()
    after[1, 2] += draw.normal(6, scale=25.0, dtype="float32")
    shared = module(6, state=norm_state(draw, 6)).then(before).then(tensor(after, "float32"))
    return [shared, replace(shared, training=True)]


def _norm_stays_in_its_token(run: Run, record: Record) -> str | None:
    before, after = (plain(value) for value in record.values)
    if before is None or after is None or before.shape != (3, 5, 6) or after.shape != (3, 5, 6):
        return f"the result is {describe(record.value)}"
    moved = np.abs(after - before).max(axis=-1)
    own = moved[1, 2]
    moved[1, 2] = 0.0
    if moved.max() > 1e-6:
        return "changing one token moved the output of another"
    return None if own > 1e-3 else "changing a token did not move its own output"


def _norm_large(draw: Draw) -> Sequence[Run]:
    """Without scale and shift, the features of each token must have mean 0 and variance 1."""
    far = tensor(draw.normal(2, 3, 16) + 3e3, "float32")
    wide = tensor(draw.normal(2, 3, 16) * 1e4, "float32")
    return [module(16).then(far), module(16).then(wide)]


def _norm_is_standard(run: Run, record: Record) -> str | None:
    numbers, wanted = plain(record.value), plain(run.steps[0].args[0])
    if numbers is None or numbers.shape != wanted.shape:
        return f"the result is {describe(record.value)}"
    if not np.isfinite(numbers).all():
        return "some results are not finite"
    mean, variance = numbers.mean(-1), numbers.var(-1)
    if np.abs(mean).max() > 0.01:
        return f"the features of a token have mean {mean.flat[np.abs(mean).argmax()]:.3g}, not 0"
    off = np.abs(variance - 1)
    if off.max() > 0.01:
        return f"the features of a token have variance {variance.flat[off.argmax()]:.3g}, not 1"
    return None


LAYER_NORM = Exercise(
    "LayerNorm",
    "Layer normalisation",
    ("x",),
    (
        equals_reference(
            "each token is normalised over its features",
            1.0,
            "Mean and variance are taken over the last axis, with keepdim=True, so that each token "
            "has its own. The variance is the mean of the squared deviations: divide by d_model. "
            "Then multiply by the weight and add the bias, one number per feature.",
            _norm_runs,
        ),
        equals_reference(
            "a single token, more axes",
            0.25,
            "Only the last axis matters. Count from the end (-1), and any number of axes before it "
            "comes along.",
            _norm_shapes,
        ),
        equals_reference(
            "ε inside the root",
            0.4,
            "Add eps to the variance before the root is taken: √(σ² + ε). For features of ordinary "
            "size it hardly shows; for small ones, or with a large eps, it does.",
            _norm_eps,
        ),
        equals_reference(
            "a token whose features are all equal",
            0.2,
            "Its deviations and its variance are 0. 0 / √(0 + ε) is 0, so the bias comes out.",
            _norm_constant,
        ),
        equals_reference(
            "a new layer neither scales nor shifts",
            0.15,
            "The weight starts as ones and the bias as zeros.",
            _norm_fresh,
        ),
        has_property(
            "no token depends on another",
            0.2,
            "If another token of the sequence, or of the batch, moves the result, statistics were "
            "taken over an axis too many, or carried over from the call before.",
            _norm_alone,
            _norm_stays_in_its_token,
            only_if_right=True,
        ),
        gradients_match(
            "gradients of x, weight and bias",
            0.4,
            "Mean and variance depend on x, and the gradient flows through them, too.",
            lambda draw: [*_norm_runs(draw, "float64")[1:], _norm(draw, 5, 3, 5, dtype="float64")],
        ),
        has_property(
            "features far from zero",
            0.2,
            "Around 3,000, the mean of the squares and the square of the mean agree in almost all "
            "of float32's digits, and their difference is noise. Square the deviations instead.",
            _norm_large,
            _norm_is_standard,
            only_if_right=True,
        ),
        dtypes_kept(
            0.1,
            "A float64 layer with float64 input gives float64.",
            lambda draw: [_norm(draw, 6, 2, 3, 6, dtype="float64")],
        ),
        inputs_untouched(0.05, lambda draw: _norm_runs(draw)[1:3]),
        no_side_effects(0.05, lambda draw: _norm_runs(draw)[2:3]),
    ),
    forbids=READY_MADE_NORMS,
)
