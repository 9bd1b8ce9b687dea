"""`gelu`: the Gaussian error linear unit."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
)
from autograder.engine.runs import Draw, Exercise, Run, Strided, call, tensor


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
