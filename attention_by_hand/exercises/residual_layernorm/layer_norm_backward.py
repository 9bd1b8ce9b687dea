"""`layer_norm_backward`: layer normalisation, backwards."""

from attention_by_hand.exercises.residual_layernorm.shared import inference_tensor, slopes
from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call, tensor
from autograder.student.engine.runs import made_by

EXERCISE = Declaration(
    "layer_norm_backward",
    "Layer normalisation, backwards",
    ("grad_output", "x", "weight", "eps"),
    forbids=("autograd", "normalisation"),
    returns=("grad_x", "grad_weight", "grad_bias"),
)


@EXERCISE.equals("grad_x", 1.5, part=0)
def _runs(draw: Draw, dtype: str = "float64") -> list[Run]:
    """Let g be grad_output times weight, and x̂ the normalised x. Two things are subtracted from g
    before it is divided by √(σ² + ε): its mean over the features, since the mean of x depends on
    every feature; and x̂ times the mean of g · x̂, since the variance does, too."""
    grad, x, weight = slopes(draw, 1, 3, 8, dtype=dtype)
    return [
        call(*slopes(draw, 2, 3, 5, dtype=dtype)),
        call(weight=weight, x=x, grad_output=grad),
        call(*slopes(draw, 3, 3, 3, dtype=dtype)),
        call(*slopes(draw, 4, 6, dtype=dtype)),
    ]


EXERCISE.equals(
    "grad_weight",
    0.75,
    "The weight multiplies x̂ in every token: sum grad_output · x̂ over all tokens, that is, "
    "over every axis but the last.",
    _runs,
    part=1,
)
EXERCISE.equals(
    "grad_bias",
    0.5,
    "The bias is added in every token: sum grad_output over every axis but the last.",
    _runs,
    part=2,
)


@EXERCISE.equals("a single token, more axes", 0.25)
def _shapes(draw: Draw) -> list[Run]:
    """Any number of axes may come before the last: flatten them into a single axis of tokens before
    you sum over it."""
    grad, x, weight = slopes(draw, 3, 2, 4)
    return [
        call(*slopes(draw, 5)),
        call(*slopes(draw, 2, 3, 1, 6)),
        call(*slopes(draw, 3, 1)),
        call(StridedArray(grad), StridedArray(x), StridedArray(weight)),
    ]


@EXERCISE.equals("eps", 0.25)
def _eps(draw: Draw) -> list[Run]:
    """The same ε as in the forward pass, added to the variance under the root."""
    grad, x, weight = slopes(draw, 2, 3, 6)
    small = tensor(x.data * 4e-3)
    return [
        call(grad, small, weight),
        call(grad, x, weight, 0.5),
        call(*slopes(draw, 4, 5), eps=0.04),
    ]


@EXERCISE.equals("a token whose features are all equal", 0.15)
def _constant(draw: Draw) -> list[Run]:
    """x̂ is 0 there, and dividing by √(0 + ε) is no problem. Do not divide by x̂ or by σ."""
    grad, x, weight = slopes(draw, 2, 4, 6)
    data = x.data.copy()
    data[0, 1], data[1, 3] = 0.0, 2.0
    return [call(grad, tensor(data), weight)]


@EXERCISE.equals("by the formula, without autograd", 0.3)
def _inference(draw: Draw) -> list[Run]:
    """These tensors were made in inference mode, where autograd records nothing. A formula works on
    them as on any others."""
    return [
        call(*(made_by(inference_tensor, a) for a in slopes(draw, *shape)))
        for shape in ((2, 3, 5), (4, 6))
    ]


@EXERCISE.equals("x and gradients of 10,000 and more", 0.1)
def _large(draw: Draw) -> list[Run]:
    """Square the deviations from the mean; the difference of two large squares loses digits."""
    grad, x, weight = slopes(draw, 2, 3, 6)
    return [
        call(grad, tensor(x.data * 1e4), weight),
        call(tensor(grad.data * 1e4), x, weight),
        call(grad, tensor(x.data + 1e5), weight),
    ]


EXERCISE.keeps_dtypes(
    0.1,
    "float64 in, float64 out; float32 in, float32 out.",
    lambda draw: [_runs(draw)[1], _runs(draw, "float32")[2]],
)
EXERCISE.leaves_inputs_alone(0.05, lambda draw: _runs(draw)[:1])
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[:1])
EXERCISE.follows_its_inputs(_runs)
