"""What chapter 6 asks: layer normalisation and its backward pass, GELU, the feed-forward layer, the
residual connection, stochastic depth, and the feed-forward layer in chunks."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.exercises.aspects import (
    Runs,
    compare,
    describe,
    dtypes_kept,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    plain,
)
from autograder.exercises.declaration import (
    APPLY,
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


def _left_by_the_calls(run: Run, record: Record) -> str | None:
    """Building linear layers draws from torch's generator; nothing else may be different."""
    left = [effect for effect in record.side_effects if effect != "torch's random state"]
    return f"it changed {', '.join(left)}" if left else None


def _global_state(points: float, runs: Runs) -> Aspect:
    return has_property(
        "leaves global state alone",
        points,
        "A module must not switch global settings.",
        runs,
        _left_by_the_calls,
        only_if_right=True,
    )


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


def _mode(run: Run, name: str) -> Run:
    """The same run with a step that sets the mode and gives back the module, for later steps."""
    return replace(run, steps=(*run.steps, Step(method=name)), training=name == "train")


def _profiled(run: Run, profile: str, *args: Any, mode: str = "train", seed: int = 0) -> Run:
    """Many calls of the module, summed up by a function of this file so that no chance is left."""
    return replace(_mode(run, mode).then_apply(_given(profile), Previous(0), *args), seed=seed)


def pattern(factors: Any) -> tuple[float, str, tuple[bool, ...]]:
    """What became of entries that were 1: the share of zeros, what the others are, which vary.

    The share is rounded to quarters, so that many draws give the same. The last part says for each
    axis whether zeros and others stand side by side along it.
    """
    dropped = factors.abs() < 1e-6
    kept = factors[~dropped]
    low, high = (kept.min().item(), kept.max().item()) if kept.numel() else (0.0, 0.0)
    scale = f"{high:.3f}" if high - low < 1e-3 else "different numbers"
    varies = [bool((dropped.any(i) & ~dropped.all(i)).any()) for i in range(factors.dim())]
    return round(4 * dropped.double().mean().item()) / 4, scale, tuple(varies)


def _found(
    title: str,
    points: float,
    hint: str,
    runs: Runs,
    problem: Callable[..., str | None],
    *,
    asked: Callable[[Run], tuple] = lambda run: (),
    only_if_right: bool = False,
) -> Aspect:
    """`problem` says what is wrong with what a function of this file found in the last step, which
    is a line if it found nothing; a run without such a step compares with the reference. What
    `asked` takes out of the run is handed to `problem`, too."""

    def judge(trial: Trial) -> Finding:
        value = trial.record.value
        if trial.run.steps[-1].method != APPLY:
            return compare(value, trial.expected.value)
        line = value if isinstance(value, str) else problem(value, *asked(trial.run))
        return Finding(False, line) if line else Finding(True)

    return Aspect(title, points, hint, runs, each(judge), only_if_right)


def _of_shape(outputs: list, x: Any) -> bool:
    return all(getattr(y, "shape", None) == x.shape for y in outputs)


def feed_forward_pattern(module: Any, x: Any, calls: int) -> Any:
    """`pattern` of the hidden features, which all are 1 and each the output's entry in its place;
    the output's last entry is their sum, and whether it agrees is the second part."""
    import torch

    outputs = [module(x) for _ in range(calls)]
    if not _of_shape(outputs, x):
        return "the result has not the shape of x"
    stacked = torch.stack(outputs).detach()
    hidden, total = stacked[..., :-1], stacked[..., -1]
    return pattern(hidden), bool(((hidden.sum(-1) - total).abs() < 1e-3).all())


def _ff_dropout(draw: Draw, mode: str = "train") -> Sequence[Run]:
    d, d_ff = 13, 12
    adds_up = np.concatenate([np.eye(d_ff), np.ones((1, d_ff))])
    state = {
        "linear1.weight": tensor(np.full((d_ff, d), 1 / d), "float32"),
        "linear1.bias": tensor(np.zeros(d_ff), "float32"),
        "linear2.weight": tensor(adds_up, "float32"),
        "linear2.bias": tensor(np.zeros(d), "float32"),
    }
    x = tensor(np.ones((2, 4, d)), "float32")
    runs = [
        module(d, d_ff, dropout=_P, state=state),
        module(d, d_ff, _P, _given("square"), state=state),
    ]
    args = ("feed_forward_pattern", x, _CALLS)
    return [_profiled(run, *args, mode=mode, seed=draw.integer(0, 10**6)) for run in runs]


def _dropout_problem(
    found: Any, what: str = "feature", axes: tuple[bool, ...] | None = None
) -> str | None:
    """What is wrong with a `pattern` in training, or None. `axes`: along which it has to vary."""
    share, scale, varies = found
    wanted = f"{1 / (1 - _P):.3f}"
    if share == 0.0:
        return f"in training mode with p = {_P}, nothing is dropped"
    if scale == "different numbers":
        return f"it is not the {what} that is dropped or kept: what is left has different sizes"
    if axes is not None and tuple(varies) != axes:
        return f"the {what}s do not each have a draw of their own"
    if abs(share - _P) > 0.1:
        return f"about {share:.0%} of the {what}s are dropped; {_P:.0%} are asked"
    if scale != wanted:
        return f"a {what} that is kept is multiplied by {scale}; 1 / (1 − {_P}) = {wanted} is asked"
    return None


def _ff_dropped(value: Any) -> str | None:
    found, adds_up = value
    if not adds_up:
        return "what is dropped is the output, or the input, not the hidden features"
    return _dropout_problem(found, "hidden feature", (True, True, True, True))


def _ff_kept(value: Any) -> str | None:
    (share, scale, _), _ = value
    return None if share == 0.0 and scale == "1.000" else "in eval mode, something is dropped"


def _ff_evaluated(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 3, 4)
    return [
        *_ff_dropout(draw, "eval"),
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
        _found(
            "no dropout in eval mode",
            0.15,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _ff_evaluated,
            _ff_kept,
        ),
        dtypes_kept(
            0.05,
            "A float64 layer with float64 input gives float64.",
            lambda draw: [
                _ff(draw, 4, 6, dtype="float64").then(draw.tensor(2, 3, 4, dtype="float64"))
            ],
        ),
        inputs_untouched(0.05, lambda draw: _ff_runs(draw)[:2]),
        _global_state(0.05, _ff_runs),
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


def counting() -> Any:
    """A sublayer that counts its calls."""
    from torch import nn

    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            return 0.5 * x + 1.0

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


def residual_pattern(module: Any, x: Any, calls: int, p: float) -> Any:
    """Which share of a `staircase`'s answers was dropped, and what the others were multiplied by;
    or that no choice of what was dropped explains the outputs.

    Outputs before and after any normalisation of a token differ by a scale and a shift: they
    correlate fully.
    """
    import torch

    outputs = [module(x) for _ in range(calls)]
    if not _of_shape(outputs, x):
        return "the result has not the shape of x"
    y = torch.stack(outputs).detach().flatten(0, -2)  # (rows, d)
    start = torch.stack([x] * calls).detach().flatten(0, -2)
    d = x.shape[-1]
    stairs = torch.arange(1, d + 1, dtype=x.dtype, device=x.device)
    choices = torch.tensor([*itertools.product((0.0, 1.0), repeat=d)]).to(x)  # (2^d, d)
    for scale in (1 / (1 - p), 1.0, 1 / p):
        added = scale * choices * stairs
        exact = (start[:, None] + added - y[:, None]).abs().amax(-1)
        normed = 1 - _correlation(start[:, None] + added, y[:, None])
        for how, distance in (("added to x", exact), ("added to x, then normalised", normed)):
            least, chosen = distance.min(dim=1)
            if least.max() < 1e-8:
                share = 1 - choices[chosen].double().mean().item()
                return how, round(4 * share) / 4, f"{scale:.3f}"
    return "no part of the sublayer's output was dropped before x was added"


def _correlation(a: Any, b: Any) -> Any:
    a, b = a - a.mean(-1, keepdim=True), b - b.mean(-1, keepdim=True)
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def _residual_dropout(draw: Draw, mode: str = "train") -> Sequence[Run]:
    d = 5
    state = {
        "norm.weight": tensor(np.ones(d), "float64"),
        "norm.bias": tensor(np.zeros(d), "float64"),
    }
    runs = []
    for first in (False, True):
        x = draw.tensor(2, 3, d, scale=4.0, dtype="float64")
        layer = module(_given("staircase"), d, dropout=_P, norm_first=first, state=state)
        seed = draw.integer(0, 10**6)
        args = ("residual_pattern", x, _CALLS, _P)
        runs.append(_profiled(layer, *args, mode=mode, seed=seed))
    return runs


def _residual_dropped_whole(draw: Draw) -> Sequence[Run]:
    """With dropout 1 nothing is left of the sublayer, and nothing is random."""
    runs = [
        _around_linear(draw, 5, dropout=1.0, norm_first=first).then(_tokens(draw, 2, 3, 5))
        for first in (False, True)
    ]
    return [replace(run, training=True) for run in runs]


def _residual_dropped(value: Any) -> str | None:
    _, share, scale = value
    wanted = f"{1 / (1 - _P):.3f}"
    if share == 0.0:
        return f"in training mode with dropout {_P}, nothing is dropped"
    if share != _P:
        return f"about {share:.0%} of the sublayer's output is dropped; {_P:.0%} is asked"
    if scale != wanted:
        return f"what is kept is multiplied by {scale}; 1 / (1 − {_P}) = {wanted} is asked"
    return None


def _residual_kept(value: Any) -> str | None:
    _, share, scale = value
    return None if share == 0.0 and scale == "1.000" else "in eval mode, something is dropped"


def _residual_dropout_is_right(trial: Trial) -> Finding:
    value = trial.record.value
    if trial.run.init.kwargs["dropout"] == 1.0:
        return Finding(True)  # no marks hang on it, but the known mistakes differ there
    line = value if isinstance(value, str) else _residual_dropped(value)
    return Finding(False, line) if line else Finding(True)


def _residual_evaluated(draw: Draw) -> Sequence[Run]:
    return [
        *_residual_dropout(draw, "eval"),
        *(replace(run, training=False) for run in _residual_dropped_whole(draw)),
    ]


def _residual_counted(draw: Draw) -> Sequence[Run]:
    runs = []
    for first in (False, True):
        layer = module(Recipe(_HERE + "counting", ()), 4, norm_first=first)
        run = _mode(layer, "eval").then(draw.tensor(2, 3, 4)).then(draw.tensor(1, 2, 4))
        runs.append(run.then_apply(_given("calls_of_sublayer"), Previous(0)))
    return runs


def _residual_calls(calls: Any) -> str | None:
    return None if calls == 2 else f"two calls of the layer called the sublayer {calls} times"


def calls_of_sublayer(layer: Any) -> int:
    """How often a layer's sublayer, made by `counting`, was called."""
    return layer.sublayer.calls


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
        Aspect(
            "dropout on the sublayer's output, in training",
            0.4,
            "Dropout acts on F(…), before x is added: x itself always arrives whole.",
            lambda draw: [*_residual_dropout(draw), *_residual_dropped_whole(draw)],
            each(_residual_dropout_is_right),
            only_if_right=True,
        ),
        _found(
            "no dropout in eval mode",
            0.2,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _residual_evaluated,
            _residual_kept,
        ),
        _found(
            "one call of the sublayer per call",
            0.1,
            "Keep the sublayer's output in a variable: calling it twice costs twice, and with "
            "dropout inside it gives two different answers.",
            _residual_counted,
            _residual_calls,
        ),
        dtypes_kept(0.1, "A float64 layer with float64 input gives float64.", _residual_double),
        inputs_untouched(0.05, lambda d: [_residual_post(d)[0], _residual_pre(d)[0]]),
        _global_state(0.05, lambda d: [_residual_post(d)[1], _residual_pre(d)[1]]),
    ),
)

# --- DropPath -----------------------------------------------------------------------------------


def drop_path_pattern(module: Any, x: Any, calls: int, p: float) -> Any:
    """`pattern` of what x is multiplied by, its share p or 1 − p if it is near one of them; whether
    the gradient is multiplied by the same; and what becomes of x where it is kept."""
    import torch

    x = x.clone().requires_grad_()
    outputs = [module(x) for _ in range(calls)]
    if not _of_shape(outputs, x):
        return "the result has not the shape of x"
    followed = True
    for y in outputs[:8]:
        if not y.requires_grad:
            return "no gradient reaches x"
        (grad,) = torch.autograd.grad(y.sum(), x)
        followed &= torch.allclose(grad * x, y)
    x, made = x.detach(), torch.stack(outputs).detach()
    share, scale, varies = pattern(made / x)
    dropped = (made == 0).double().mean().item()
    near = min(p, 1 - p, key=lambda chance: abs(chance - dropped))
    share = near if abs(near - dropped) <= 0.125 else share
    kept = made.amax(0)  # x is positive
    kept = torch.where(kept == 0, (made / x).max() * x, kept)  # a sample that no call has kept
    return (share, scale, varies), followed, kept


def _chances(draw: Draw) -> list[float]:
    """Two chances to be dropped, a small one and a large one, far from each other's complement."""
    return [draw.number(0.2, 0.35), draw.number(0.65, 0.75)]


def _dropped_path(run: Run, p: float, x: Array, draw: Draw, mode: str = "train") -> Run:
    seed = draw.integer(0, 10**6)
    return _profiled(run, "drop_path_pattern", x, 128, p, mode=mode, seed=seed)


def _dropped_paths(draw: Draw, mode: str = "train") -> Sequence[Run]:
    small, large = _chances(draw)
    x = tensor(draw.uniform(1.0, 2.0, 8, 2, 3), "float32")
    return [
        _dropped_path(module(small), small, x, draw, mode),
        _dropped_path(module(p=large), large, x, draw, mode),
    ]


def _path_asked(run: Run) -> tuple[np.ndarray, float]:
    """x and p of a run."""
    *_, x, _, p = run.steps[-1].args
    return plain(x), p


def _path_whole(found: Any, x: np.ndarray, p: float) -> str | None:
    (share, scale, varies), _, kept = found
    if share in (0.0, 1.0):
        fate = "nothing" if share == 0.0 else "everything"
        return f"in training mode with p = {p}, {fate} is dropped"
    if varies[2] or varies[3]:
        return "parts of a sample are dropped, and other parts of it are kept"
    factors = plain(kept) / x
    if scale == "different numbers" or np.ptp(factors) > 1e-3:
        return "samples are not dropped or kept as they are"
    return None


def _path_share(found: Any, _: np.ndarray, p: float) -> str | None:
    share = found[0][0]
    return None if share == p else f"about {share:.0%} are dropped; {p:.0%} are asked"


def _path_scale(found: Any, _: np.ndarray, p: float) -> str | None:
    scale, wanted = found[0][1], f"{1 / (1 - p):.3f}"
    if scale == wanted:
        return None
    return f"what is kept is multiplied by {scale}; 1 / (1 − {p}) = {wanted} is asked"


def _path_apart(found: Any, *_: Any) -> str | None:
    calls, samples = found[0][2][:2]
    if not calls:
        return "every call drops the same samples"
    return None if samples else "all samples of a batch are dropped or kept together"


def _path_gradient(found: Any, *_: Any) -> str | None:
    return None if found[1] else "the gradient is not multiplied by what x is multiplied by"


def _path_all(found: Any, x: np.ndarray, p: float) -> str | None:
    if any(found[0][2][2:]):
        return "parts of a sample are dropped, and other parts of it are kept"
    return _path_share(found, x, p) or _path_scale(found, x, p) or _path_apart(found)


def _path_kept(found: Any, *_: Any) -> str | None:
    share, scale, _ = found[0]
    if share > 0.0:
        return "in eval mode, something is dropped"
    return None if scale == "1.000" else f"in eval mode, x is multiplied by {scale}"


def _path_evaluated(draw: Draw) -> Sequence[Run]:
    return [
        *_dropped_paths(draw, "eval"),
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
    """One axis, two, four: nothing is asked of the numbers but that each sample is whole."""
    runs = []
    for shape in ((8,), (8, 3), (8, 2, 1, 2)):
        x = tensor(draw.uniform(1.0, 2.0, *shape), "float32")
        p, _ = _chances(draw)
        runs.append(_dropped_path(module(p), p, x, draw))
    return runs


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
            _dropped_paths,
            _path_whole,
            asked=_path_asked,
        ),
        _found(
            "a share p of them is dropped",
            0.35,
            "p is the chance to be dropped, not the chance to be kept.",
            _dropped_paths,
            _path_share,
            asked=_path_asked,
            only_if_right=True,
        ),
        _found(
            "those that are kept are divided by 1 − p",
            0.4,
            "So that the average over many draws is x again, in training as in use.",
            _dropped_paths,
            _path_scale,
            asked=_path_asked,
            only_if_right=True,
        ),
        _found(
            "each sample has a draw of its own, in each call",
            0.3,
            "The samples of a batch do not share their fate, nor do two calls.",
            _dropped_paths,
            _path_apart,
            asked=_path_asked,
            only_if_right=True,
        ),
        _found(
            "one axis, two, four",
            0.15,
            "As many ones after B as x has further axes: x.dim() − 1.",
            _path_shapes,
            _path_all,
            asked=_path_asked,
        ),
        _found(
            "as it is in eval mode",
            0.3,
            "Look at self.training: in eval mode x comes back as it is, not scaled either.",
            _path_evaluated,
            _path_kept,
            asked=_path_asked,
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
            _dropped_paths,
            _path_gradient,
            asked=_path_asked,
            only_if_right=True,
        ),
        dtypes_kept(0.05, "float64 in, float64 out, in training, too.", _path_double),
        inputs_untouched(0.025, lambda d: [*_path_double(d), *_path_idle(d)]),
        no_side_effects(0.025, lambda d: _path_evaluated(d)[2:]),
    ),
)

# --- chunked_feed_forward -----------------------------------------------------------------------


def wide_and_back(d_model: int, d_ff: int) -> Any:
    """A position-wise feed-forward layer that keeps, in `sizes`, the shapes it was called with."""
    from torch import nn

    class WideAndBack(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
            self.sizes = []

        def forward(self, x):
            self.sizes.append(tuple(x.shape))
            return self.linear2(self.linear1(x).sin())

    return WideAndBack()


def itself(thing: Any) -> Any:
    """The thing: makes a recipe a step's result, so that later steps can look at it again."""
    return thing


def sizes_of(layer: Any) -> tuple[tuple[int, ...], ...]:
    """The shapes that a layer made by `wide_and_back` was called with."""
    return tuple(layer.sizes)


def _layer(draw: Draw, d: int, d_ff: int, dtype: str = "float32") -> Recipe:
    return Recipe(_HERE + "wide_and_back", (d, d_ff), None, _ff_state(draw, d, d_ff, dtype))


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


def _watched(draw: Draw, B: int, n: int, d: int, size: int) -> Run:
    """The layer (step 0), the call (step 1), and the shapes that the layer saw (step 2)."""
    keep, look = _given("itself"), _given("sizes_of")
    kept = (
        Run(()).then_apply(keep, _layer(draw, d, 6)).then(Previous(0), draw.tensor(B, n, d), size)
    )
    return kept.then_apply(look, Previous(0))


def _chunk_even(draw: Draw) -> Sequence[Run]:
    sizes = ((2, 6, 4, 3), (1, 6, 3, 2), (4, 4, 4, 1), (3, 8, 5, 4))
    return [_watched(draw, *size) for size in sizes]


def _chunk_uneven(draw: Draw) -> Sequence[Run]:
    sizes = ((2, 7, 4, 3), (2, 5, 4, 0), (2, 4, 4, 9), (3, 5, 4, 2))
    return [_watched(draw, *size) for size in sizes]


def _chunk_sizes(run: Run, record: Record) -> str | None:
    x, size = run.steps[1].args[1:]
    B, n, d = x.data.shape
    seen = [tuple(shape) for shape in record.value]
    wanted = [(B, min(size or n, n - start), d) for start in range(0, n, size or n)]
    if seen == wanted:
        return None
    asked = ", ".join(map(str, wanted))
    return f"the layer was called with {', '.join(map(str, seen)) or 'nothing'}; {asked} is asked"


def _chunk_is_right(trial: Trial) -> Finding:
    """The result first, then what the layer saw."""
    found = compare(trial.record.values[1], trial.expected.values[1])
    line = _chunk_sizes(trial.run, trial.record) if found.passed else None
    return Finding(False, line) if line else found


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
        Aspect(
            "chunk by chunk, equal to one go",
            0.8,
            "Cut x along axis 1, its positions, into pieces of chunk_size; call the layer on each; "
            "put the results together along the same axis, in their order. What is saved is "
            "memory inside the layer, so the layer itself must see chunks.",
            _chunk_even,
            each(_chunk_is_right),
        ),
        equals_reference(
            "a last chunk that is shorter",
            0.3,
            "Where chunk_size does not divide n, the last chunk holds what is left.",
            _chunk_short,
        ),
        has_property(
            "never more than chunk_size positions at a time",
            0.2,
            "chunk_size positions in each call, in all the sequences of the batch, and what is "
            "left in the last. chunk_size counts positions, not chunks.",
            _chunk_uneven,
            _chunk_sizes,
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
