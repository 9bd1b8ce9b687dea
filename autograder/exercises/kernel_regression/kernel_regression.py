"""`KernelRegression`: a bandwidth that learns."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    no_side_effects,
)
from autograder.engine.runs import Draw, Exercise, Run, module, tensor
from autograder.exercises.kernel_regression.shared import uneven_points


def _model_arguments(draw: Draw, n_q: int, n_k: int, *d_v: int, dtype: str = "float32"):
    return (
        draw.tensor(n_q, dtype=dtype),
        draw.tensor(n_k, dtype=dtype),
        draw.tensor(n_k, *d_v, dtype=dtype),
    )


def _model_runs(draw: Draw) -> Sequence[Run]:
    return [
        module(draw.number(1.5, 3.0)).then(*_model_arguments(draw, 3, 5)),
        module(draw.number(0.3, 0.7)).then(*_model_arguments(draw, 4, 4)),
        module().then(*_model_arguments(draw, 2, 6)),
        module(w=1.5).then(value=draw.tensor(3), key=draw.tensor(3), query=draw.tensor(1)),
    ]


def _model_vectors(draw: Draw) -> Sequence[Run]:
    return [
        module(draw.number(1.5, 3.0)).then(*_model_arguments(draw, 2, 6, 3)),
        module().then(*_model_arguments(draw, 4, 4, 1)),
        module().then(*_model_arguments(draw, 3, 3, 3)),
    ]


def _model_loaded(draw: Draw) -> Sequence[Run]:
    state = {"w": tensor(draw.number(1.5, 3.0), "float32")}
    first, second = _model_arguments(draw, 4, 5), _model_arguments(draw, 4, 5)
    return [module(state=state).then(*first).then(*second)]


def _model_exclude(draw: Draw) -> Sequence[Run]:
    x, y = draw.tensor(5), draw.tensor(5)
    twins = tensor([0.0, 1.0, 0.0, 2.0], "float32")
    return [
        module(draw.number(1.5, 3.0)).then(x, x, y, exclude_self=True).then(x, x, y),
        module(draw.number(0.3, 0.7)).then(*_model_arguments(draw, 6, 4), exclude_self=True),
        module()
        .then(*_model_arguments(draw, 4, 4), exclude_self=True)
        .then(*_model_arguments(draw, 3, 5), True),
        module(draw.number(0.3, 0.7)).then(twins, twins, draw.tensor(4), exclude_self=True),
    ]


def _model_far(draw: Draw) -> Sequence[Run]:
    x = tensor(uneven_points(draw), "float32")
    far = tensor([-500.0, 400.0], "float32")
    key = tensor(np.array([-3.0, 3.0, 0.0, 1.0]) + draw.uniform(-0.2, 0.2, 4), "float32")
    return [
        module(200.0).then(x, x, draw.tensor(5), exclude_self=True),
        module(draw.number(1.5, 3.0)).then(far, key, draw.tensor(4)),
    ]


def _model_double(draw: Draw) -> Sequence[Run]:
    return [module(2.0).then(*_model_arguments(draw, 3, 4, dtype="float64"))]


KERNEL_REGRESSION = Exercise(
    "KernelRegression",
    "A bandwidth that learns",
    ("query", "key", "value", "exclude_self"),
    (
        equals_reference(
            "predictions",
            1.0,
            "Scores −½((x − x_i) w)² of shape (n_q, n_k), softmax over the keys (dim=-1), times "
            "the values.",
            _model_runs,
        ),
        equals_reference(
            "values that are vectors",
            0.25,
            "`weights @ value` works for values of shape (n_k,) and (n_k, d_v) alike.",
            _model_vectors,
        ),
        equals_reference(
            "uses the parameter w",
            0.5,
            "`forward` must read self.w, the parameter that the optimiser changes.",
            _model_loaded,
        ),
        equals_reference(
            "exclude_self",
            1.0,
            "With exclude_self, put −inf on the diagonal of the scores before the softmax, so that "
            "the remaining weights of each row still sum to 1.",
            _model_exclude,
        ),
        gradients_match(
            "gradients reach w and the inputs",
            0.5,
            "Stay in torch from w to the result: .item(), .detach(), .data, float() and NumPy cut "
            "the gradient, and so does writing over self.w.",
            _model_runs,
        ),
        gradients_match(
            "gradients with exclude_self",
            0.25,
            "−inf among the scores is fine for torch.softmax, forwards and backwards; 0 · ∞ and "
            "∞ − ∞ on the way give NaN gradients.",
            _model_exclude,
        ),
        equals_reference(
            "far queries and narrow kernels",
            0.25,
            "torch.softmax subtracts the largest score for you; exp and a division do not.",
            _model_far,
        ),
        dtypes_kept(0.1, "float64 inputs give a float64 prediction.", _model_double),
        inputs_untouched(0.1, _model_exclude),
        no_side_effects(0.05, _model_runs),
    ),
)
