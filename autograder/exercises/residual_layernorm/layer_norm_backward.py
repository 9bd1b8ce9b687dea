"""`layer_norm_backward`: layer normalisation, backwards."""

from collections.abc import Sequence
from typing import Any

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    inputs_untouched,
    no_side_effects,
)
from autograder.engine.runs import Array, Draw, Exercise, Run, Strided, call, tensor
from autograder.exercises.residual_layernorm.shared import READY_MADE_NORMS, from_here, tokens


def _slopes(draw: Draw, *shape: int, dtype: str = "float64") -> tuple[Array, Array, Array]:
    """grad_output, x and weight."""
    weight = tensor(draw.uniform(0.5, 2.0, shape[-1]), dtype)
    return draw.tensor(*shape, dtype=dtype), tokens(draw, *shape, dtype=dtype), weight


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
        call(*(from_here("inference_tensor", a) for a in _slopes(draw, *shape)))
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
    forbids=("torch.autograd*", "torch.*make_dual", *READY_MADE_NORMS),
)
