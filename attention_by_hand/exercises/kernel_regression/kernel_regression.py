"""`KernelRegression`: a bandwidth that learns."""

import numpy as np

from attention_by_hand.exercises.kernel_regression.shared import uneven_points
from autograder.student.authoring import Declaration, Draw, Run, module, tensor

EXERCISE = Declaration(
    "KernelRegression", "A bandwidth that learns", ("query", "key", "value", "exclude_self")
)


def _arguments(draw: Draw, n_q: int, n_k: int, *d_v: int, dtype: str = "float32"):
    return (
        draw.tensor(n_q, dtype=dtype),
        draw.tensor(n_k, dtype=dtype),
        draw.tensor(n_k, *d_v, dtype=dtype),
    )


@EXERCISE.equals("predictions", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Scores −½((x − x_i) w)² of shape (n_q, n_k), a softmax over the keys, then the weighted sum
    of the values."""
    return [
        module(draw.number(1.5, 3.0)).then(*_arguments(draw, 3, 5)),
        module(draw.number(0.3, 0.7)).then(*_arguments(draw, 4, 4)),
        module().then(*_arguments(draw, 2, 6)),
        module(w=1.5).then(value=draw.tensor(3), key=draw.tensor(3), query=draw.tensor(1)),
        module().then(*_arguments(draw, 70, 2)).then(*_arguments(draw, 2, 70)),
        module().then(*_arguments(draw, 3, 1)),
    ]


@EXERCISE.equals("values that are vectors", 0.25)
def _vectors(draw: Draw) -> list[Run]:
    """Matrix multiplication works for values of shape (n_k,) and (n_k, d_v) alike."""
    return [
        module(draw.number(1.5, 3.0)).then(*_arguments(draw, 2, 6, 3)),
        module().then(*_arguments(draw, 4, 4, 1)),
        module().then(*_arguments(draw, 3, 3, 3)),
        module(0.7).then(*_arguments(draw, 4, 3, 2)).as_views(),
        module().then(draw.tensor(3), draw.tensor(4), draw.tensor(4, 2, scale=1e-3)),
    ]


@EXERCISE.equals("uses the parameter w", 0.5)
def _loaded(draw: Draw) -> list[Run]:
    """`forward` must read self.w, the parameter that the optimiser updates."""
    state = {"w": tensor(draw.number(1.5, 3.0), "float32")}
    first, second = _arguments(draw, 4, 5), _arguments(draw, 4, 5)
    return [module(state=state).then(*first).then(*second)]


@EXERCISE.equals("exclude_self", 0.9)
def _exclude(draw: Draw) -> list[Run]:
    """With exclude_self, put −inf on the diagonal of the scores before the softmax, so that the
    remaining weights of each row still sum to 1."""
    x, y = draw.tensor(5), draw.tensor(5)
    twins = tensor([0.0, 1.0, 0.0, 2.0], "float32")
    return [
        module(draw.number(1.5, 3.0)).then(x, x, y, exclude_self=True).then(x, x, y),
        module(draw.number(0.3, 0.7)).then(*_arguments(draw, 6, 4), exclude_self=True),
        module()
        .then(*_arguments(draw, 4, 4), exclude_self=True)
        .then(*_arguments(draw, 3, 5), True),
        module(draw.number(0.3, 0.7)).then(twins, twins, draw.tensor(4), exclude_self=True),
    ]


@EXERCISE.equals("a single point, excluded from itself", 0.1)
def _alone(draw: Draw) -> list[Run]:
    """A query that no key is left for predicts 0: its scores are all −inf, of which torch.softmax
    makes NaN."""
    return [
        module(1.5).then(*_arguments(draw, 1, 1), exclude_self=True),
        module(0.5).then(*_arguments(draw, 3, 1, 2), exclude_self=True),
    ]


EXERCISE.gradients(
    "gradients reach w and the inputs",
    0.5,
    "Stay in torch from w to the result: .item(), .detach(), .data, float() and NumPy cut the "
    "gradient, and so does overwriting self.w.",
    _runs,
)
EXERCISE.gradients(
    "gradients with exclude_self",
    0.25,
    "With exclude_self, too, w and the inputs get their gradients from the pairs that are left.",
    _exclude,
    if_nan="−inf among the scores is fine for torch.softmax, forward and backward; 0 · ∞ and ∞ − ∞ "
    "on the way give NaN gradients.",
)


@EXERCISE.equals("distant queries and narrow kernels", 0.25)
def _far(draw: Draw) -> list[Run]:
    """torch.softmax subtracts the largest score for you; a plain exp and division do not."""
    x = tensor(uneven_points(draw), "float32")
    far = tensor([-500.0, 400.0], "float32")
    key = tensor(np.array([-3.0, 3.0, 0.0, 1.0]) + draw.uniform(-0.2, 0.2, 4), "float32")
    return [
        module(200.0).then(x, x, draw.tensor(5), exclude_self=True),
        module(draw.number(1.5, 3.0)).then(far, key, draw.tensor(4)),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 inputs give a float64 prediction, float32 inputs a float32 one."""
    query, key, value = _arguments(draw, 3, 4, dtype="float64")
    same = tensor(np.full(4, draw.number(1.0, 2.0)), "float64")  # so that no key is missed here
    return [
        module(2.0).then(query, key, value),
        module(2.0).then(query, key, same, exclude_self=True),
    ]


EXERCISE.leaves_inputs_alone(0.1, _exclude)
EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _exclude)
