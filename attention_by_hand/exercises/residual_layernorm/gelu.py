"""`gelu`: the Gaussian error linear unit."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call, tensor

EXERCISE = Declaration("gelu", "The Gaussian error linear unit", ("x",), forbids=("gelu",))


@EXERCISE.equals("x times the standard normal CDF", 0.6)
def _runs(draw: Draw) -> list[Run]:
    """x · ½ (1 + erf(x / √2)), elementwise; torch.erf is the error function."""
    return [
        call(draw.tensor(4, 5)),
        call(x=draw.tensor(2, 3, 4, scale=2.0)),
        call(tensor([0.0, -1.0, 1.0, -2.0, 2.0, -3.0, 3.0], "float32")),
    ]


@EXERCISE.equals("exact, not an approximation", 0.4)
def _exact(draw: Draw) -> list[Run]:
    """The formulas with tanh or a sigmoid agree to about three digits and no more. Use erf."""
    # In float64, where no approximation passes.
    return [call(tensor(np.linspace(-4.0, 4.0, 33))), call(draw.double(3, 4))]


@EXERCISE.equals("x of ±10,000", 0.1)
def _large(draw: Draw) -> list[Run]:
    """Far to the right GELU is x, far to the left 0. Without exp, nothing overflows."""
    far = draw.uniform(20.0, 1e4, 6)
    return [call(tensor(np.concatenate([far, -far, [1e4, -1e4]]), "float32"))]


EXERCISE.gradients(
    "gradients reach x",
    0.2,
    "Stay in torch: no gradient passes through math.erf or NumPy.",
    _exact,
    _runs,
)


@EXERCISE.equals("any shape", 0.1)
def _shapes(draw: Draw) -> list[Run]:
    """A scalar, an empty tensor, five axes: each entry is treated on its own."""
    return [
        call(draw.tensor()),
        call(draw.tensor(0)),
        call(StridedArray(draw.tensor(3, 4))),
        call(draw.tensor(2, 1, 3, 1, 2)),
    ]


EXERCISE.keeps_dtypes(0.05, "float64 in, float64 out; float32 in, float32 out.", _exact)
EXERCISE.leaves_inputs_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs)
