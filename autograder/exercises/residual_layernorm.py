"""What chapter 6 asks: layer normalisation and its backward pass, GELU, the feed-forward layer, the
residual connection, stochastic depth, and the feed-forward layer in chunks."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    Runs,
    describe,
    dtypes_kept,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    no_side_effects_of_a_module,
    plain,
)
from autograder.engine.runs import (
    Array,
    Aspect,
    Draw,
    Exercise,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Step,
    Strided,
    Trial,
    call,
    module,
    tensor,
)

_HERE = "autograder.exercises.residual_layernorm:"


def _given(name: str, *args: Any) -> Recipe:
    """A function of this file, called with `args`, where there are any, to make an argument."""
    return Recipe(_HERE + name, args or None)


# --- LayerNorm ----------------------------------------------------------------------------------


def _affine(draw: Draw, d: int, dtype: str = "float32") -> dict[str, Array]:
    return {
        "weight": tensor(draw.uniform(0.5, 2.0, d), dtype),
        "bias": draw.tensor(d, dtype=dtype),
    }


def _tokens(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    """Tokens whose mean is not 0 and whose spread is not 1: so large that no ε shows in float32."""
    stairs = np.linspace(-4.0, 4.0, shape[-1])
    rows = [stairs[draw.permutation(shape[-1])] for _ in range(int(np.prod(shape[:-1])))]
    data = np.reshape(rows, shape) + draw.normal(*shape, scale=0.5) + 1.5
    return tensor(data if dtype == "float64" else 25 * data, dtype)


def _norm(draw: Draw, d: int, *shape: int, dtype: str = "float32", **kwargs: Any) -> Run:
    return module(d, state=_affine(draw, d, dtype), **kwargs).then(
        _tokens(draw, *shape, dtype=dtype)
    )


def _norm_runs(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    named = module(d_model=8, state=_affine(draw, 8, dtype))
    return [
        _norm(draw, 6, 2, 5, 6, dtype=dtype),
        named.then(x=_tokens(draw, 1, 3, 8, dtype=dtype)),
        _norm(draw, 3, 4, 2, 3, dtype=dtype),
        _norm(draw, 4, 4, 4, 4, dtype=dtype),
    ]


def _norm_shapes(draw: Draw) -> Sequence[Run]:
    return [
        _norm(draw, 5, 5),
        _norm(draw, 4, 3, 4),
        _norm(draw, 6, 2, 3, 1, 6),
        module(4, state=_affine(draw, 4)).then(Strided(_tokens(draw, 3, 2, 4))),
    ]


def _norm_eps(draw: Draw) -> Sequence[Run]:
    small = tensor(draw.normal(2, 3, 6, scale=4e-3), "float32")
    state = _affine(draw, 6)
    return [
        module(6, state=state).then(small),
        module(6, 0.5, state=state).then(draw.tensor(2, 3, 6, scale=2.0)),
        module(5, eps=0.04, state=_affine(draw, 5)).then(draw.tensor(3, 5, scale=0.3)),
    ]


def _norm_constant(draw: Draw) -> Sequence[Run]:
    """Of levels whose mean has no rounding error: it would be divided by √ε."""
    levels = np.array([0.0, 2.0, -0.5, draw.integer(3, 9)])
    level = np.broadcast_to(levels[:, None], (2, 4, 4))
    return [module(4, state=_affine(draw, 4)).then(tensor(level, "float32"))]


def _norm_fresh(draw: Draw) -> Sequence[Run]:
    return [module(6).then(_tokens(draw, 2, 3, 6)), module(4).then(x=_tokens(draw, 3, 4))]


def _norm_alone(draw: Draw) -> Sequence[Run]:
    before = _tokens(draw, 3, 5, 6)
    after = before.data.copy()
    after[1, 2] += draw.normal(6, scale=25.0, dtype="float32")
    shared = module(6, state=_affine(draw, 6)).then(before).then(tensor(after, "float32"))
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


_NORMS = tuple(f"torch.*{kind}_norm*" for kind in ("layer", "group", "instance", "batch", "rms"))

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
    forbids=_NORMS,
)

# --- layer_norm_backward ------------------------------------------------------------------------


def _slopes(draw: Draw, *shape: int, dtype: str = "float64") -> tuple[Array, Array, Array]:
    """grad_output, x and weight."""
    weight = tensor(draw.uniform(0.5, 2.0, shape[-1]), dtype)
    return draw.tensor(*shape, dtype=dtype), _tokens(draw, *shape, dtype=dtype), weight


def _backward_runs(draw: Draw, dtype: str = "float64") -> Sequence[Run]:
    grad, x, weight = _slopes(draw, 1, 3, 8, dtype=dtype)
    return [
        call(*_slopes(draw, 2, 3, 5, dtype=dtype)),
        call(weight=weight, x=x, grad_output=grad),
        call(*_slopes(draw, 3, 3, 3, dtype=dtype)),
        call(*_slopes(draw, 4, 6, dtype=dtype)),
    ]


def _backward_shapes(draw: Draw) -> Sequence[Run]:
    grad, x, weight = _slopes(draw, 3, 2, 4)
    return [
        call(*_slopes(draw, 5)),
        call(*_slopes(draw, 2, 3, 1, 6)),
        call(Strided(grad), Strided(x), Strided(weight)),
    ]


def _backward_eps(draw: Draw) -> Sequence[Run]:
    grad, x, weight = _slopes(draw, 2, 3, 6)
    small = tensor(x.data * 4e-3)
    return [
        call(grad, small, weight),
        call(grad, x, weight, 0.5),
        call(*_slopes(draw, 4, 5), eps=0.04),
    ]


def _backward_constant(draw: Draw) -> Sequence[Run]:
    grad, x, weight = _slopes(draw, 2, 4, 6)
    data = x.data.copy()
    data[0, 1], data[1, 3] = 0.0, 2.0
    return [call(grad, tensor(data), weight)]


def inference_tensor(tensor: Any) -> Any:
    """The tensor, made in inference mode: formulas can use it, autograd cannot."""
    import torch

    with torch.inference_mode():
        return tensor.clone()


def _backward_inference(draw: Draw) -> Sequence[Run]:
    return [
        call(*(_given("inference_tensor", a) for a in _slopes(draw, *shape)))
        for shape in ((2, 3, 5), (4, 6))
    ]


def _backward_large(draw: Draw) -> Sequence[Run]:
    grad, x, weight = _slopes(draw, 2, 3, 6)
    return [
        call(grad, tensor(x.data * 1e4), weight),
        call(tensor(grad.data * 1e4), x, weight),
        call(grad, tensor(x.data + 1e5), weight),
    ]


LAYER_NORM_BACKWARD = Exercise(
    "layer_norm_backward",
    "Layer normalisation, backwards",
    ("grad_output", "x", "weight", "eps"),
    (
        equals_reference(
            "grad_x",
            1.5,
            "Write g for grad_output times weight, x̂ for the normalised x. Two things are taken "
            "from g before it is divided by √(σ² + ε): its mean over the features, since the mean "
            "of x depends on every feature; and x̂ times the mean of g · x̂, since the variance "
            "does, too.",
            _backward_runs,
            part=0,
        ),
        equals_reference(
            "grad_weight",
            0.75,
            "The weight multiplies x̂ in every token: sum grad_output · x̂ over all tokens, that is, "
            "over every axis but the last.",
            _backward_runs,
            part=1,
        ),
        equals_reference(
            "grad_bias",
            0.5,
            "The bias is added in every token: sum grad_output over every axis but the last.",
            _backward_runs,
            part=2,
        ),
        equals_reference(
            "a single token, more axes",
            0.25,
            "Any number of axes may stand before the last: bring the tokens into one row each, "
            "reshape(-1, d_model), before you sum over them.",
            _backward_shapes,
        ),
        equals_reference(
            "eps",
            0.25,
            "The same ε as forward, added to the variance under the root.",
            _backward_eps,
        ),
        equals_reference(
            "a token whose features are all equal",
            0.15,
            "x̂ is 0 there, and dividing by √(0 + ε) is no problem. Do not divide by x̂ or by σ.",
            _backward_constant,
        ),
        equals_reference(
            "by its formula, without autograd",
            0.3,
            "These tensors were made in inference mode, where autograd records nothing. A formula "
            "works on them as on any others.",
            _backward_inference,
        ),
        equals_reference(
            "x and gradients of 10,000 and more",
            0.1,
            "Square deviations from the mean; the difference of two large squares loses digits.",
            _backward_large,
        ),
        dtypes_kept(
            0.1,
            "float64 in, float64 out; float32 in, float32 out.",
            lambda draw: [_backward_runs(draw)[1], _backward_runs(draw, "float32")[2]],
        ),
        inputs_untouched(0.05, lambda draw: _backward_runs(draw)[:1]),
        no_side_effects(0.05, lambda draw: _backward_runs(draw)[:1]),
    ),
    forbids=("torch.autograd*", "torch.*make_dual", *_NORMS),
)

# --- gelu ---------------------------------------------------------------------------------------


def _gelu_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(4, 5)),
        call(x=draw.tensor(2, 3, 4, scale=2.0)),
        call(tensor([0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0], "float32")),
    ]


def _gelu_exact(draw: Draw) -> Sequence[Run]:
    """In float64, where no approximation passes."""
    return [
        call(tensor(np.linspace(-4.0, 4.0, 33))),
        call(draw.tensor(3, 4, dtype="float64")),
    ]


def _gelu_large(draw: Draw) -> Sequence[Run]:
    far = draw.uniform(20.0, 1e4, 6)
    return [call(tensor(np.concatenate([far, -far, [1e4, -1e4]]), "float32"))]


def _gelu_shapes(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor()),
        call(draw.tensor(0)),
        call(Strided(draw.tensor(3, 4))),
        call(draw.tensor(2, 1, 3, 1, 2)),
    ]


GELU = Exercise(
    "gelu",
    "The Gaussian error linear unit",
    ("x",),
    (
        equals_reference(
            "x times the chance that a normal number is smaller",
            0.6,
            "x · ½ (1 + erf(x / √2)), number by number; torch.erf is the error function.",
            _gelu_runs,
        ),
        equals_reference(
            "exact, not an approximation",
            0.4,
            "The formulas with tanh or with a sigmoid come close and no closer than three digits. "
            "Use erf.",
            _gelu_exact,
        ),
        equals_reference(
            "x of ±10,000",
            0.1,
            "Far to the right GELU is x, far to the left 0. Without an exp, nothing overflows.",
            _gelu_large,
        ),
        gradients_match(
            "gradients",
            0.2,
            "Stay in torch: math.erf and NumPy know nothing of gradients.",
            lambda draw: [*_gelu_exact(draw), *_gelu_runs(draw)],
        ),
        equals_reference(
            "any shape",
            0.1,
            "A number alone, nothing at all, five axes: each entry is treated by itself.",
            _gelu_shapes,
        ),
        dtypes_kept(0.05, "float64 in, float64 out.", _gelu_exact),
        inputs_untouched(0.05, _gelu_runs),
    ),
    forbids=("torch.*gelu*", "torch.*GELU*"),
)

# --- FeedForward --------------------------------------------------------------------------------


def _linear(
    draw: Draw, name: str, rows: int, columns: int, dtype: str = "float32"
) -> dict[str, Array]:
    return {
        f"{name}.weight": draw.tensor(rows, columns, scale=columns**-0.5, dtype=dtype),
        f"{name}.bias": draw.tensor(rows, scale=0.5, dtype=dtype),
    }


def _ff_state(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> dict[str, Array]:
    return _linear(draw, "linear1", d_ff, d, dtype) | _linear(draw, "linear2", d, d_ff, dtype)


def _ff(draw: Draw, d: int, d_ff: int, *args: Any, dtype: str = "float32", **kwargs: Any) -> Run:
    return module(d, d_ff, *args, state=_ff_state(draw, d, d_ff, dtype), **kwargs)


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
    named = module(d_model=6, d_ff=10, state=_ff_state(draw, 6, 10, dtype))
    return [
        _ff(draw, 4, 12, dtype=dtype).then(draw.tensor(2, 5, 4, dtype=dtype)),
        named.then(x=draw.tensor(1, 3, 6, dtype=dtype)),
        _ff(draw, 5, 3, dtype=dtype).then(draw.tensor(3, 2, 5, dtype=dtype)),
        _ff(draw, 4, 4, dtype=dtype).then(draw.tensor(2, 4, 4, dtype=dtype)),
    ]


def _ff_activations(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    return [
        _ff(draw, 4, 7, 0.0, _given("sine"), dtype=dtype).then(draw.tensor(2, 3, 4, dtype=dtype)),
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


_P = 0.25  # the chance to be dropped in the runs below
_CALLS = 24


def pattern(factors: np.ndarray) -> tuple[float, str, tuple[bool, ...]]:
    """What became of entries that were 1: the share of zeros, what the others are, which vary.

    The last part says for each axis whether zeros and others stand side by side along it.
    """
    dropped = np.abs(factors) < 1e-6
    kept = factors[~dropped]
    low, high = (float(kept.min()), float(kept.max())) if kept.size else (0.0, 0.0)
    scale = f"{high:.3f}" if high - low < 1e-3 else "different numbers"
    varies = [bool((dropped.any(i) & ~dropped.all(i)).any()) for i in range(dropped.ndim)]
    return float(dropped.mean()), scale, tuple(varies)


def _quarters(share: float) -> float:
    return round(4 * share) / 4


def summed_up(module: Any, summary: str, x: Any, calls: int) -> Any:
    """A summary of many calls that leaves nothing to chance, so that known mistakes can be told
    from each other. No marks hang on it: it is made where the answer runs."""
    outputs = [plain(module(x)) for _ in range(calls)]
    return _SUMMARIES[summary](plain(x), outputs) if _fit(outputs, plain(x)) else _NO_SHAPE


_NO_SHAPE = "the result has not the shape of x"


def _fit(outputs: Sequence[np.ndarray | None], x: np.ndarray) -> bool:
    return all(y is not None and y.shape == x.shape for y in outputs)


def _drawn(run: Run, draw: Draw, x: Array, calls: int) -> Run:
    """Calls in training mode, whose results are judged by what all right ones have in common."""
    for _ in range(calls):
        run = run.then(x)
    return replace(run, training=True, random=True, seed=draw.integer(0, 10**6))


def _for_the_name(run: Run, draw: Draw, summary: str, x: Array, calls: int = _CALLS) -> Run:
    """The same in a summary that two answers can have in common, to name a known mistake by."""
    modules = replace(run, steps=(Step(method="train"),), training=True)
    summed = modules.then_apply(_given("summed_up"), Previous(0), summary, x, calls)
    return replace(summed, seed=draw.integer(0, 10**6))


def _found(
    title: str,
    points: float,
    hint: str,
    runs: Runs,
    problem: Callable[[Trial, np.ndarray, list[np.ndarray]], str | None],
    *,
    only_if_right: bool = False,
) -> Aspect:
    """`problem(trial, x, outputs)` says what is wrong with the results of a random run."""

    def judge(trial: Trial) -> Finding:
        if not trial.run.random:  # no marks hang on it, but the known mistakes differ there
            return Finding(True)
        x, outputs = plain(trial.run.steps[0].args[0]), [plain(y) for y in trial.record.values]
        line = problem(trial, x, outputs) if _fit(outputs, x) else _NO_SHAPE
        return Finding(False, line) if line else Finding(True)

    return Aspect(title, points, hint, runs, each(judge), only_if_right)


def _hidden_features(_: np.ndarray, outputs: Sequence[np.ndarray]) -> tuple:
    """`pattern` of the hidden features, which all are 1 and each the output's entry in its place;
    the output's last entry is their sum, and whether it agrees is the second part."""
    stacked = np.stack(outputs)
    hidden, total = stacked[..., :-1], stacked[..., -1]
    share, *others = pattern(hidden)
    return (_quarters(share), *others), bool((np.abs(hidden.sum(-1) - total) < 1e-3).all())


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
        (module(d, d_ff, dropout=_P, state=state), x),
        (module(d, d_ff, _P, _given("square"), state=state), x),
    ]


def _ff_dropout(draw: Draw) -> Sequence[Run]:
    runs = [_drawn(run, draw, x, 2) for run, x in _ff_showing(draw, 16)]
    named = [_for_the_name(run, draw, "features", x) for run, x in _ff_showing(draw, 2)]
    return [*runs, *named]


def _ff_dropped(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    (_, scale, varies), adds_up = _hidden_features(x, outputs)
    share = pattern(np.stack(outputs)[..., :-1])[0]
    if not adds_up:
        return "what is dropped is the output, or the input, not the hidden features"
    if share == 0.0:
        return f"in training mode with p = {_P}, nothing is dropped"
    if scale == "different numbers":
        return "it is not features that are dropped or kept: what is left has different sizes"
    if not all(varies):
        return "the hidden features do not each have a draw of their own"
    if abs(share - _P) > 0.1:
        return f"about {share:.0%} of the hidden features are dropped; expected {_P:.0%}"
    return _wrong_scale(scale, _P)


def _wrong_scale(scale: str, p: float) -> str | None:
    wanted = f"{1 / (1 - p):.3f}"
    if scale == wanted:
        return None
    return f"what is kept is multiplied by {scale}; expected 1 / (1 − {p}) = {wanted}"


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
        _found(
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

# --- Residual -----------------------------------------------------------------------------------


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


def wave(x: Any, shift: float = 0.0, *, size: float = 1.0) -> Any:
    """A sublayer that is a function."""
    return size * (2.0 * x + shift).sin()


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
    affine = _affine(draw, d, dtype)
    return {f"norm.{name}": value for name, value in affine.items()}


def _around_linear(draw: Draw, d: int, *args: Any, dtype: str = "float32", **kwargs: Any) -> Run:
    state = _residual_state(draw, d, dtype) | _linear(draw, "sublayer", d, d, dtype)
    return module(_given("linear", d), d, *args, state=state, **kwargs)


def _around_attention(
    draw: Draw, d: int, heads: int, *, norm_first: bool = False, dtype: str = "float32"
) -> Run:
    state = _residual_state(draw, d, dtype)
    for name in ("W_q", "W_k", "W_v", "W_o"):
        state |= _linear(draw, f"sublayer.heads.{name}", d, d, dtype)
    return module(_given("attention", d, heads), d, norm_first=norm_first, state=state)


def _around_function(draw: Draw, d: int, **kwargs: Any) -> Run:
    return module(_given("wave"), d, state=_residual_state(draw, d), **kwargs)


def _residual_post(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    state = _residual_state(draw, 5, dtype) | _linear(draw, "sublayer", 5, 5, dtype)
    named = module(sublayer=_given("linear", 5), d_model=5, state=state)
    return [
        _around_linear(draw, 6, dtype=dtype).then(_tokens(draw, 2, 4, 6, dtype=dtype)),
        named.then(x=_tokens(draw, 1, 3, 5, dtype=dtype)),
        _around_linear(draw, 4, 0.0, False, dtype=dtype).then(_tokens(draw, 3, 2, 4, dtype=dtype)),
    ]


def _residual_pre(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    kwargs = {"norm_first": True, "dtype": dtype}
    return [
        _around_linear(draw, 6, **kwargs).then(_tokens(draw, 2, 4, 6, dtype=dtype)),
        _around_linear(draw, 5, **kwargs).then(x=_tokens(draw, 1, 3, 5, dtype=dtype)),
        _around_linear(draw, 4, 0.0, True, dtype=dtype).then(_tokens(draw, 3, 2, 4, dtype=dtype)),
    ]


def _residual_more(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    causal = tensor(np.tri(4, 4, dtype=bool))
    some = tensor(np.array([[True, False, True], [True, True, False]])[:, None, None, :])
    runs = []
    for first in (False, True):
        x, memory = _tokens(draw, 2, 4, 6, dtype=dtype), _tokens(draw, 2, 3, 6, dtype=dtype)
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
            layer.then(_tokens(draw, 6), 0.3),
            layer.then(_tokens(draw, 3, 6), 0.3, size=2.0),
            layer.then(Strided(_tokens(draw, 2, 1, 3, 6)), size=0.5),
        ]
    return runs


def _parts_of_the_stairs(x: np.ndarray, outputs: Sequence[np.ndarray]) -> tuple | None:
    """Where the dropout stands, which share of a `staircase`'s answers it dropped and what the
    others were multiplied by; None if no choice of what was dropped explains the outputs.

    Outputs before and after any normalisation of a token differ by a scale and a shift: they
    correlate fully.
    """
    d = x.shape[-1]
    y = np.stack(outputs).reshape(-1, 1, d)
    start = np.stack([x] * len(outputs)).reshape(-1, 1, d)
    choices = np.array([*itertools.product((0.0, 1.0), repeat=d)])  # (2^d, d)
    for scale in (1 / (1 - _P), 1.0, 1 / _P):
        candidates = start + scale * choices * np.arange(1.0, d + 1)
        exact = np.abs(candidates - y).max(-1)
        normed = 1 - _correlation(candidates, y)
        for how, distance in (("added to x", exact), ("added to x, then normalised", normed)):
            if distance.min(1).max() < 1e-8:
                share = 1 - float(choices[distance.argmin(1)].mean())
                return how, _quarters(share), f"{scale:.3f}"
    return None


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(-1) / np.where(lengths > 0, lengths, 1.0)


def _around_stairs(draw: Draw, n: int) -> list[tuple[Run, Array]]:
    """Residual layers around a `staircase`, each with an x."""
    d = 5
    state = {
        "norm.weight": tensor(np.ones(d), "float64"),
        "norm.bias": tensor(np.zeros(d), "float64"),
    }
    return [
        (
            module(_given("staircase"), d, dropout=_P, norm_first=first, state=state),
            draw.tensor(n, 3, d, scale=4.0, dtype="float64"),
        )
        for first in (False, True)
    ]


def _residual_dropout(draw: Draw) -> Sequence[Run]:
    return [
        *(_drawn(run, draw, x, 2) for run, x in _around_stairs(draw, 12)),
        *(_for_the_name(run, draw, "stairs", x) for run, x in _around_stairs(draw, 2)),
        *_residual_dropped_whole(draw),
    ]


def _residual_dropped_whole(draw: Draw) -> Sequence[Run]:
    """With dropout 1 nothing is left of the sublayer, and nothing is random."""
    runs = [
        _around_linear(draw, 5, dropout=1.0, norm_first=first).then(_tokens(draw, 2, 3, 5))
        for first in (False, True)
    ]
    return [replace(run, training=True) for run in runs]


def _residual_dropped(_: Trial, x: np.ndarray, outputs: list[np.ndarray]) -> str | None:
    found = _parts_of_the_stairs(x, outputs)
    if found is None:
        return "no part of the sublayer's output was dropped before x was added"
    _, share, scale = found
    if share == 0.0:
        return f"in training mode with dropout {_P}, nothing is dropped"
    if share != _P:
        return f"about {share:.0%} of the sublayer's output is dropped; expected {_P:.0%}"
    return _wrong_scale(scale, _P)


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
        _found(
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

# --- DropPath -----------------------------------------------------------------------------------


def _paths(x: np.ndarray, outputs: Sequence[np.ndarray]) -> tuple:
    """`pattern` of what x is multiplied by, and what becomes of x where it is kept."""
    made = np.stack(outputs)
    share, *others = pattern(made / x)
    kept = made.max(0)  # x is positive
    kept = np.where(kept == 0, (made / x).max() * x, kept)  # a sample that no call has kept
    return (_quarters(share), *others), np.float32(kept)


_SUMMARIES = {"features": _hidden_features, "stairs": _parts_of_the_stairs, "paths": _paths}


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
    return [_drawn(run, draw, _samples(draw, 4, 2, 2), 64) for run in _two_paths(draw)]


def _named_paths(draw: Draw) -> Sequence[Run]:
    """Of the two chances, one is near a quarter, one near three: so is the share of each."""
    x = _samples(draw, 8, 2, 3)
    runs = [module(0.25), module(p=0.75)]
    return [_for_the_name(run, draw, "paths", x, 128) for run in runs]


def _many_paths(draw: Draw) -> Sequence[Run]:
    return [_drawn(run, draw, _samples(draw, 512, 2), 3) for run in _two_paths(draw)]


def _path_learns(draw: Draw) -> Sequence[Run]:
    runs = [_drawn(run, draw, _samples(draw, 40, 2, 3), 1) for run in _two_paths(draw)]
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
    return _wrong_scale(pattern(np.stack(outputs) / x)[1], _path_p(trial))


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
        module(_P).then(draw.tensor(3, 2, 4)),
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
    return [_drawn(module(_chances(draw)[0]), draw, _samples(draw, *shape), 3) for shape in shapes]


def _path_double(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(8, 2, 3, dtype="float64")
    training = replace(module(_P), training=True, random=True, seed=draw.integer(0, 10**6))
    return [training.then(x), module(_P).then(x)]


DROP_PATH = Exercise(
    "DropPath",
    "Stochastic depth",
    ("x",),
    (
        _found(
            "whole samples are dropped, or kept",
            0.75,
            "One draw per sample: a tensor of shape (B, 1, …, 1) broadcasts over the rest.",
            lambda draw: [*_dropped_paths(draw), *_named_paths(draw)],
            _path_whole,
        ),
        _found(
            "a share p of them is dropped",
            0.35,
            "p is the chance to be dropped, not the chance to be kept.",
            _many_paths,
            _path_share,
            only_if_right=True,
        ),
        _found(
            "those that are kept are divided by 1 − p",
            0.4,
            "So that the average over many draws is x again, in training as in use.",
            _dropped_paths,
            _path_scale,
            only_if_right=True,
        ),
        _found(
            "each sample has a draw of its own, in each call",
            0.3,
            "The samples of a batch do not share their fate, nor do two calls.",
            _dropped_paths,
            _path_apart,
            only_if_right=True,
        ),
        _found(
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
        _found(
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

# --- chunked_feed_forward -----------------------------------------------------------------------


def wide_and_back(d_model: int, d_ff: int) -> Any:
    """A position-wise feed-forward layer."""
    from torch import nn

    class WideAndBack(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

        def forward(self, x):
            return self.linear2(self.linear1(x).sin())

    return WideAndBack()


def all_seeing(d_model: int, d_ff: int, numbers: Any) -> Any:
    """A layer that is not position-wise: what it makes of a position depends on all that it is
    called with, and on how often it was called before."""
    from torch import nn

    calls = itertools.count()

    class AllSeeing(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

        def forward(self, x):
            hidden = self.linear1(x)
            hidden = hidden + hidden.sum((0, 1)) + numbers[next(calls) % len(numbers)]
            return self.linear2(hidden.sin())

    return AllSeeing()


def _layer(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> Recipe:
    return Recipe(_HERE + "wide_and_back", (d, d_ff), None, _ff_state(draw, d, d_ff, dtype))


def _all_seeing(draw: Draw, B: int, n: int, d: int, size: int) -> Run:
    numbers = tensor(draw.permutation(16) / 3, "float32")
    layer = Recipe(_HERE + "all_seeing", (d, 6, numbers), None, _ff_state(draw, d, 6))
    return call(layer, draw.tensor(B, n, d), size)


def _chunk_runs(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    named = {"chunk_size": 2, "x": draw.tensor(1, 6, 3, dtype=dtype)}
    return [
        call(_layer(draw, 4, 8, dtype), draw.tensor(2, 6, 4, dtype=dtype), 3),
        call(feed_forward=_layer(draw, 3, 5, dtype), **named),
        call(_layer(draw, 4, 6, dtype), draw.tensor(4, 4, 4, dtype=dtype), 1),
        call(_layer(draw, 5, 4, dtype), draw.tensor(3, 8, 5, dtype=dtype), 4),
    ]


def _chunk_short(draw: Draw) -> Sequence[Run]:
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 7, 4), 3),
        call(_layer(draw, 3, 4), draw.tensor(1, 5, 3), 4),
        call(_layer(draw, 3, 4), draw.tensor(2, 9, 3), chunk_size=2),
    ]


def _chunk_whole(draw: Draw) -> Sequence[Run]:
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 5, 4), 0),
        call(_layer(draw, 3, 4), draw.tensor(1, 1, 3), chunk_size=0),
    ]


def _chunk_long(draw: Draw) -> Sequence[Run]:
    return [
        call(_layer(draw, 4, 8), draw.tensor(2, 5, 4), 5),
        call(_layer(draw, 3, 4), draw.tensor(3, 2, 3), 9),
    ]


def _chunk_even(draw: Draw) -> Sequence[Run]:
    sizes = ((2, 6, 4, 3), (1, 6, 3, 2), (4, 4, 4, 1), (3, 8, 5, 4))
    return [*_chunk_runs(draw)[:1], *(_all_seeing(draw, *size) for size in sizes)]


def _chunk_uneven(draw: Draw) -> Sequence[Run]:
    sizes = ((2, 7, 4, 3), (2, 5, 4, 0), (2, 4, 4, 9), (3, 5, 4, 2))
    return [_all_seeing(draw, *size) for size in sizes]


def _chunk_function(draw: Draw) -> Sequence[Run]:
    return [
        call(_given("wave"), draw.tensor(2, 5, 3), 2),
        call(_given("wave"), Strided(draw.tensor(2, 4, 3)), 3),
    ]


CHUNKED_FEED_FORWARD = Exercise(
    "chunked_feed_forward",
    "The feed-forward layer in chunks",
    ("feed_forward", "x", "chunk_size"),
    (
        equals_reference(
            "chunk by chunk, equal to one go",
            0.8,
            "Cut x along axis 1, its positions, into pieces of chunk_size; call the layer on each; "
            "put the results together along the same axis, in their order. What is saved is "
            "memory inside the layer, so the layer itself must see chunks: all_seeing, which is "
            "not position-wise, shows by its result what it is called with.",
            _chunk_even,
        ),
        equals_reference(
            "a last chunk that is shorter",
            0.3,
            "Where chunk_size does not divide n, the last chunk holds what is left.",
            _chunk_short,
        ),
        replace(
            equals_reference(
                "never more than chunk_size positions at a time",
                0.2,
                "chunk_size positions in each call, in all the sequences of the batch, and what is "
                "left in the last. chunk_size counts positions, not chunks. all_seeing shows by "
                "its result what it is called with, and how often.",
                _chunk_uneven,
            ),
            only_if_right=True,
        ),
        replace(
            equals_reference(
                "chunk_size 0 is one go",
                0.2,
                "Treat 0 before you cut: it means all of x.",
                _chunk_whole,
            ),
            only_if_right=True,
        ),
        replace(
            equals_reference(
                "chunks longer than the sequence",
                0.1,
                "There is then a single chunk, shorter than chunk_size.",
                _chunk_long,
            ),
            only_if_right=True,
        ),
        gradients_match(
            "gradients reach x",
            0.2,
            "Chunks change the order of the work, not what can be learnt: no detach, no no_grad.",
            lambda draw: [*_chunk_runs(draw, "float64")[:2], *_chunk_short(draw)[:1]],
        ),
        replace(
            equals_reference(
                "any function for a layer, arguments by name",
                0.1,
                "The layer may be any function of x: call it, and nothing else of it.",
                lambda draw: [*_chunk_function(draw), _chunk_runs(draw)[1]],
            ),
            only_if_right=True,
        ),
        dtypes_kept(0.05, "float64 in, float64 out.", lambda d: _chunk_runs(d, "float64")[:1]),
        inputs_untouched(0.025, lambda d: [*_chunk_runs(d), *_chunk_short(d)]),
        no_side_effects(0.025, lambda d: [*_chunk_runs(d), *_chunk_whole(d)]),
    ),
)

EXERCISES = (
    LAYER_NORM,
    LAYER_NORM_BACKWARD,
    GELU,
    FEED_FORWARD,
    RESIDUAL,
    DROP_PATH,
    CHUNKED_FEED_FORWARD,
)
