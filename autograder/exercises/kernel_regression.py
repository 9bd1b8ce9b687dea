"""What chapter 1 asks: kernel regression in NumPy, and a module that learns its bandwidth."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    not_rows_of_one,
    part,
    plain,
    raises,
)
from autograder.engine.runs import (
    Draw,
    Exercise,
    Recipe,
    Record,
    Run,
    Strided,
    call,
    module,
    tensor,
)

# --- softmax ------------------------------------------------------------------------------------


def _softmax_random(draw: Draw) -> Sequence[Run]:
    return [call(draw.normal(3, 5, scale=2.0)), call(draw.normal(1, 4)), call(draw.normal(4, 1))]


def _softmax_axes(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(4)),
        call(draw.normal(2, 3, 4), axis=1),
        call(draw.normal(3, 4), 0),
        call(draw.normal(2, 3, 2, 5), axis=-2),
        call(Strided(draw.normal(4, 3))),
        call(scores=draw.normal(3, 3)).then(draw.normal(3, 3)),
        call(draw.integers(-3, 3, 3, 3), axis=0),
    ]


def _softmax_large(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.uniform(-1.0, 1.0, 3, 4) + 1e4),
        call(draw.uniform(-1.0, 1.0, 3, 4) - 1e4),
        call(draw.uniform(-1.0, 1.0, 3, 3) + np.array([[1e4], [0.0], [-1e4]])),
        call(draw.uniform(-1e4, 1e4, 4, 6)),
    ]


def _softmax_masked(draw: Draw) -> Sequence[Run]:
    scores = draw.normal(4, 5)
    scores[0, 1:3] = scores[2, 4] = -np.inf
    return [call(scores), call(scores - 600.0)]


def _softmax_nothing(draw: Draw) -> Sequence[Run]:
    scores = draw.normal(4, 5)
    scores[1] = -np.inf
    return [call(scores), call(np.full(3, -np.inf)), call(scores.T.copy(), axis=0)]


def _softmax_dtypes(draw: Draw) -> Sequence[Run]:
    return [call(draw.normal(3, 4, dtype="float32")), call(draw.integers(-3, 3, 2, 5))]


def _exact_zeros(run: Run, record: Record) -> str | None:
    scores, weights = plain(run.steps[0].args[0]), plain(record.value)
    if weights is None or weights.shape != scores.shape:
        return "the result has not the shape of the scores"
    there = weights[np.isneginf(scores)]
    if np.isnan(there).any():
        return "an entry of −inf gives NaN"
    if (there != 0).any():
        return f"an entry of −inf gives {there.max():.3g}, not exactly 0"
    return not_rows_of_one(weights)


_SOFTMAX = {"softmax": "autograder.blocks:softmax"}
_SCORES = {"gaussian_scores": "autograder.blocks:gaussian_scores"}

SOFTMAX = Exercise(
    "softmax",
    "Scores into weights",
    ("scores", "axis"),
    (
        equals_reference(
            "weights of random scores",
            1.0,
            "exp of each score, divided by the sum of exp over the last axis. Keep that axis in "
            "the sum (keepdims=True), so that every row is divided by its own sum.",
            _softmax_random,
        ),
        equals_reference(
            "any number of dimensions, any axis",
            0.5,
            "Sum along `axis`, which may be any, and let keepdims=True keep the shapes in line.",
            _softmax_axes,
        ),
        equals_reference(
            "scores of ±10,000",
            0.5,
            "exp(10000) is infinite, exp(−10000) is zero, and ∞/∞ and 0/0 are NaN. Subtract each "
            "row's largest score first: the weights stay the same, and the largest exp is 1.",
            _softmax_large,
        ),
        has_property(
            "−inf gets exactly 0",
            0.25,
            "A score of −inf is a key that must not be looked at. Its exp is 0; nothing may be "
            "added to it.",
            _softmax_masked,
            _exact_zeros,
        ),
        equals_reference(
            "a row of nothing but −inf",
            0.25,
            "Nothing to attend to gives all-zero weights. Its largest score is −inf, and "
            "−inf − (−inf) is NaN: put 0 there first, and divide by 1 where the sum is 0.",
            _softmax_nothing,
        ),
        dtypes_kept(
            0.25,
            "float32 stays float32 and integers become float64: build on the array you are given.",
            _softmax_dtypes,
        ),
        inputs_untouched(0.25, lambda draw: [*_softmax_random(draw), *_softmax_masked(draw)]),
    ),
)

# --- gaussian_scores ----------------------------------------------------------------------------


def _scores_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(3), draw.normal(5), draw.number(1.5, 3.0)),
        call(draw.normal(4), draw.normal(2), draw.number(0.2, 0.7)),
        call(key=draw.normal(4), query=draw.normal(3)),
        call(draw.normal(2), draw.normal(3), 300.0),
    ]


def _scores_square(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(4), draw.normal(4), draw.number(1.5, 3.0)),
        call(draw.normal(1), draw.normal(1), w=draw.number(1.5, 3.0)),
        call(Strided(draw.normal(5)), Strided(draw.normal(5)), draw.number(0.2, 0.7)),
    ]


def _scores_integers(draw: Draw) -> Sequence[Run]:
    query, key = draw.permutation(9)[:3] - 4, draw.permutation(9)[:5] - 4
    return [call(query, key, 3), call(query, key + 1)]


GAUSSIAN_SCORES = Exercise(
    "gaussian_scores",
    "A score for every query and key",
    ("query", "key", "w"),
    (
        equals_reference(
            "scores of random queries and keys",
            1.0,
            "Every query against every key, shape (n_q, n_k): query[:, None] and key[None, :] "
            "broadcast to it. Then −½((x − x_i) w)²: w multiplies the distance before the square.",
            _scores_runs,
        ),
        equals_reference(
            "as many queries as keys",
            0.5,
            "With n queries and n keys the scores are (n, n), not (n,): (n,) − (n,) pairs the i-th "
            "query with the i-th key only.",
            _scores_square,
        ),
        equals_reference(
            "whole numbers",
            0.3,
            "Integers give floating-point scores: −½ of an odd number is not an integer.",
            _scores_integers,
        ),
        inputs_untouched(0.2, _scores_runs),
    ),
)

# --- nadaraya_watson ----------------------------------------------------------------------------


def _nw_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5), draw.number(1.5, 3.0)),
        call(draw.normal(6), draw.normal(2), draw.normal(2), draw.number(0.3, 0.7)),
        call(draw.normal(4), draw.normal(4), draw.normal(4)),
        call(value=draw.normal(3), key=draw.normal(3), query=draw.normal(2), w=1.0),
        call(draw.integers(-3, 3, 3), draw.integers(-3, 3, 4), draw.integers(-9, 9, 4)),
    ]


def _nw_vectors(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5, 2), draw.number(1.5, 3.0)),
        call(draw.normal(2), draw.normal(3), draw.normal(3, 1)),
        call(draw.normal(1), draw.normal(3), draw.normal(3, 1)),
        call(draw.normal(4), draw.normal(4), draw.normal(4, 4)),
    ]


def _nw_far(draw: Draw) -> Sequence[Run]:
    far = np.array([-500.0, 400.0]) + draw.normal(2)
    key = draw.normal(4, scale=1e-3)  # so close together that more than one of them counts
    return [call(far, key, draw.normal(4), draw.number(1.5, 3.0))]


def _nw_rows(run: Run, record: Record) -> str | None:
    return not_rows_of_one(part(record.value, 1))


NADARAYA_WATSON = Exercise(
    "nadaraya_watson",
    "The kernel regression estimate",
    ("query", "key", "value", "w"),
    (
        equals_reference(
            "predictions and weights",
            1.25,
            "weights = softmax of the Gaussian scores along the keys (the last axis); "
            "prediction = weights @ value. Return both, prediction first.",
            _nw_runs,
        ),
        equals_reference(
            "values that are vectors",
            0.5,
            "`weights @ value` works for values of shape (n_k,) and (n_k, d_v) alike.",
            _nw_vectors,
        ),
        has_property(
            "each row of weights sums to 1",
            0.25,
            "Each query spreads a total weight of 1 over the keys: the sum runs over the keys.",
            _nw_runs,
            _nw_rows,
            only_if_right=True,
        ),
        equals_reference(
            "a query far from every key",
            0.75,
            "exp(−½·1000²) is 0 in floating point, and 0/0 is NaN. A softmax that subtracts the "
            "largest score gives the nearest key its due.",
            _nw_far,
        ),
        inputs_untouched(0.25, _nw_runs),
    ),
    given={**_SOFTMAX, **_SCORES},
)

# --- kernel_weights -----------------------------------------------------------------------------


def _kernel_runs(kernel: str):
    def runs(draw: Draw) -> Sequence[Run]:
        key = np.linspace(-1.2, 1.2, 6)[draw.permutation(6)] + draw.uniform(-0.2, 0.2, 6)
        query = key[[4, 0, 5, 1]] + draw.uniform(-0.2, 0.2, 4)  # each with a key in reach
        return [
            call(query, key, kernel, draw.number(1.6, 1.9)),
            call(query, key, kernel, draw.number(0.5, 0.7)),
            call(draw.uniform(-0.5, 0.5, 3), draw.uniform(-0.4, 0.4, 3), kernel),
            call(w=0.8, kernel=kernel, key=key[2:5], query=query[:1]),
        ]

    return runs


def _kernel_edge(draw: Draw) -> Sequence[Run]:
    key = draw.integer(-3, 3) + draw.permutation(7)  # whole numbers, some exactly 2 apart
    return [call(key[draw.permutation(7)[:3]], key, "boxcar", 0.5)]


def _kernel_nothing(draw: Draw) -> Sequence[Run]:
    """One query with a single key in reach, whose place is drawn, and one without any."""

    def run(kernel: str) -> Run:
        query = np.array([0.0, 40.0])[draw.permutation(2)] + draw.uniform(-0.2, 0.2, 2)
        key = np.array([0.0, 3.0, -4.0, 5.0, -7.0, 11.0])[draw.permutation(6)]
        return call(query, key + draw.uniform(-0.2, 0.2, 6), kernel)

    return [run("boxcar"), run("epanechnikov")]


def _kernel_unknown(draw: Draw) -> Sequence[Run]:
    return [call(draw.normal(2), draw.normal(3), name) for name in ("triangle", "box")]


KERNEL_WEIGHTS = Exercise(
    "kernel_weights",
    "Other kernels",
    ("query", "key", "kernel", "w"),
    (
        equals_reference(
            "gaussian",
            0.5,
            "exp(−½u²), each row divided by its sum over the keys; u = (x − x_i) w.",
            _kernel_runs("gaussian"),
        ),
        equals_reference(
            "boxcar",
            0.5,
            "1 where |u| ≤ 1, else 0; then each row divided by its sum. Mind the absolute value.",
            _kernel_runs("boxcar"),
        ),
        equals_reference(
            "epanechnikov",
            0.75,
            "max(0, 1 − u²), then each row divided by its sum. Without the max, far keys get "
            "negative weights.",
            _kernel_runs("epanechnikov"),
        ),
        equals_reference(
            "boxcar includes its edge",
            0.25,
            "At |u| = 1 exactly the boxcar is still 1: ≤, not <.",
            _kernel_edge,
        ),
        equals_reference(
            "a query without any key in reach",
            0.5,
            "All its weights are 0 and so is their sum: divide by 1 there instead of by 0.",
            _kernel_nothing,
        ),
        raises(
            "an unknown kernel",
            0.25,
            "Raise ValueError for any name but the three.",
            _kernel_unknown,
            ValueError,
        ),
        inputs_untouched(0.25, _kernel_runs("epanechnikov")),
    ),
    given=_SOFTMAX,
)

# --- attention_pool -----------------------------------------------------------------------------


def dot_product(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of vectors: the dot product of every query with every key."""
    return np.einsum("qd,kd->qk", query, key)


def signed_distance(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of numbers that change when query and key are swapped."""
    return np.sin(np.subtract.outer(query, 2 * key)) + np.multiply.outer(query, key)


def mixed_lengths(query: np.ndarray, key: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` for queries and keys of different length: product of their sums."""
    return np.multiply.outer(query.sum(-1), key.sum(-1))


def huge_scores(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """Scores `(n_q, n_k)` of about 1e4 for a positive query and −1e4 for a negative one.

    A scoring function may call its arguments what it likes, as this one does.
    """
    return 1e4 * np.sign(q)[:, None] + np.sin(np.add.outer(q, 3 * k))


_HERE = "autograder.exercises.kernel_regression:"


def _pool_numbers(draw: Draw) -> Sequence[Run]:
    score = Recipe(_HERE + "signed_distance")
    return [
        call(draw.normal(3), draw.normal(5), draw.normal(5), score),
        call(draw.normal(4), draw.normal(4), draw.normal(4), score),
        call(score=score, value=draw.normal(3), key=draw.normal(3), query=draw.normal(2)),
    ]


def _pool_vectors(draw: Draw) -> Sequence[Run]:
    return [
        call(
            draw.normal(3, 2), draw.normal(5, 2), draw.normal(5, 4), Recipe(_HERE + "dot_product")
        ),
        call(draw.normal(2, 3), draw.normal(4, 5), draw.normal(4), Recipe(_HERE + "mixed_lengths")),
        call(
            draw.normal(3, 3), draw.normal(3, 3), draw.normal(3, 3), Recipe(_HERE + "dot_product")
        ),
        call(
            draw.normal(1, 2), draw.normal(3, 2), draw.normal(3, 1), Recipe(_HERE + "dot_product")
        ),
    ]


def _pool_huge(draw: Draw) -> Sequence[Run]:
    query = draw.uniform(0.5, 1.5, 3) * np.array([1.0, -1.0, 1.0])
    return [call(query, draw.normal(4), draw.normal(4), Recipe(_HERE + "huge_scores"))]


ATTENTION_POOL = Exercise(
    "attention_pool",
    "Any scoring function",
    ("query", "key", "value", "score"),
    (
        equals_reference(
            "numbers for queries and keys",
            0.75,
            "weights = softmax of score(query, key) along the keys; output = weights @ value. The "
            "scoring function decides everything else, so use no other distance, and pass it the "
            "query first.",
            _pool_numbers,
        ),
        equals_reference(
            "vectors for queries, keys and values",
            0.75,
            "`score` already deals with vectors: pass it what you are given, without reshaping.",
            _pool_vectors,
        ),
        equals_reference(
            "scores of ±10,000",
            0.3,
            "The scores are whatever `score` returns: use a softmax that subtracts the largest.",
            _pool_huge,
        ),
        inputs_untouched(0.2, _pool_vectors),
    ),
    given=_SOFTMAX,
)

# --- leave_one_out_mse --------------------------------------------------------------------------


def _uneven(draw: Draw) -> np.ndarray:
    """Five points, for each of which one other is clearly the nearest."""
    return np.array([0.0, 1.0, 3.0, 6.0, 10.0]) + draw.uniform(-0.1, 0.1, 5)


def _loo_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.uniform(0.0, 3.0, 6), draw.normal(6), draw.number(1.5, 3.0)),
        call(draw.uniform(0.0, 3.0, 9), draw.normal(9), draw.number(0.3, 0.7)),
        call(w=1.0, y=draw.normal(4), x=draw.uniform(0.0, 3.0, 4)),
        call(draw.permutation(5), draw.integers(-5, 5, 5), 1),
    ]


def _loo_narrow(draw: Draw) -> Sequence[Run]:
    x = _uneven(draw)[draw.permutation(5)]
    return [call(x, draw.normal(5), 300.0), call(np.array([0.0, 1.0]), draw.normal(2), 100.0)]


def _loo_twins(draw: Draw) -> Sequence[Run]:
    x = draw.uniform(0.0, 3.0, 5)
    x[3] = x[1]
    return [call(x, draw.normal(5), draw.number(1.5, 3.0))]


LEAVE_ONE_OUT = Exercise(
    "leave_one_out_mse",
    "How good is a bandwidth?",
    ("x", "y", "w"),
    (
        equals_reference(
            "the mean squared error",
            1.5,
            "Predict each y_i from the other points: a score of −inf on the diagonal gives the "
            "point itself no weight, and the rest still sums to 1. Then the mean of the squares.",
            _loo_runs,
        ),
        equals_reference(
            "a bandwidth far too narrow",
            0.5,
            "With w = 300 every other point is out of the Gaussian's reach. Set the score to −inf "
            "before a stable softmax instead of setting a weight to 0 after it.",
            _loo_narrow,
        ),
        equals_reference(
            "two points at the same place",
            0.5,
            "Leave out point i, not every point whose x equals x_i.",
            _loo_twins,
        ),
        dtypes_kept(0.25, "Return a Python float: float(…) makes one.", _loo_runs),
        inputs_untouched(0.25, _loo_runs),
    ),
    given={**_SOFTMAX, **_SCORES},
)

# --- KernelRegression ---------------------------------------------------------------------------


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
    x = tensor(_uneven(draw), "float32")
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

EXERCISES = (
    SOFTMAX,
    GAUSSIAN_SCORES,
    NADARAYA_WATSON,
    KERNEL_WEIGHTS,
    ATTENTION_POOL,
    LEAVE_ONE_OUT,
    KERNEL_REGRESSION,
)
