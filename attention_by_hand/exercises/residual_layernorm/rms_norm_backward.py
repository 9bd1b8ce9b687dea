"""`rms_norm_backward`: a cheaper norm, backwards, by a formula that students derive."""

from attention_by_hand.exercises.residual_layernorm.shared import inference_tensor, slopes
from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call, tensor
from autograder.student.engine.runs import made_by

EXERCISE = Declaration(
    "rms_norm_backward",
    "RMSNorm, backwards",
    ("grad_output", "x", "weight", "eps"),
    forbids=("autograd", "normalisation"),
    returns=("grad_x", "grad_weight"),
)


@EXERCISE.equals("grad_x", 1.0, part=0)
def _runs(draw: Draw, dtype: str = "float64") -> list[Run]:
    """Two paths lead from feature i to output j: through x_j itself where i = j, and through the
    size, which every feature has a share in. What does each contribute, and what does the weight do
    to the gradient before both? Try d_model = 2, x = (3, 4) on paper."""
    grad, x, weight = slopes(draw, 1, 3, 8, dtype=dtype)
    return [
        call(*slopes(draw, 2, 3, 5, dtype=dtype)),
        call(weight=weight, x=x, grad_output=grad),
        call(*slopes(draw, 3, 3, 3, dtype=dtype)),
        call(*slopes(draw, 4, 6, dtype=dtype)),
    ]


EXERCISE.equals(
    "grad_weight",
    0.5,
    "What does the weight of a feature multiply, and in how many tokens?",
    _runs,
    part=1,
)


@EXERCISE.equals("a single token, a single feature, more axes", 0.25)
def _shapes(draw: Draw) -> list[Run]:
    """Any number of axes may come before the last: the mean of squares is over the last alone, the
    sum for the weight over all the others."""
    grad, x, weight = slopes(draw, 3, 2, 4)
    return [
        call(*slopes(draw, 5)),
        call(*slopes(draw, 2, 3, 1, 6)),
        call(*slopes(draw, 3, 1)),
        call(StridedArray(grad), StridedArray(x), StridedArray(weight)),
    ]


@EXERCISE.equals("eps", 0.25)
def _eps(draw: Draw) -> list[Run]:
    """ε is added to the mean of the squares, under the root, as in the forward pass. It is 1e-6
    unless another one is given."""
    grad, x, weight = slopes(draw, 2, 3, 6)
    return [
        call(grad, tensor(x.data * 1e-3), weight),
        call(grad, x, weight, 0.5),
        call(*slopes(draw, 4, 5), eps=0.04),
    ]


@EXERCISE.equals("a token of zeros, and one of 10,000", 0.15)
def _extremes(draw: Draw) -> list[Run]:
    """Where x is 0, ε alone stands under the root. Do not divide by x or by its size."""
    grad, x, weight = slopes(draw, 2, 4, 6)
    data = x.data.copy()
    data[0, 1], data[1, 3] = 0.0, 1e4
    return [call(grad, tensor(data), weight), call(tensor(grad.data * 1e4), x, weight)]


@EXERCISE.equals("by a formula, without autograd", 0.15)
def _inference(draw: Draw) -> list[Run]:
    """These tensors were made in inference mode, where autograd records nothing. A formula works on
    them as on any others."""
    return [
        call(*(made_by(inference_tensor, a) for a in slopes(draw, *shape)))
        for shape in ((2, 3, 5), (4, 6))
    ]


EXERCISE.keeps_dtypes(
    0.1,
    "float64 in, float64 out; float32 in, float32 out.",
    lambda draw: [_runs(draw)[1], _runs(draw, "float32")[2]],
)
EXERCISE.leaves_inputs_alone(0.05, lambda draw: _runs(draw)[:1])
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[:1])
EXERCISE.follows_its_inputs(_runs)
