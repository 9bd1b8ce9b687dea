"""Facts about chapter 1's references: numbers worked by hand, and other ways to compute."""

import math
import subprocess
import sys
from decimal import Decimal, getcontext

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from torch.autograd import gradcheck
from torch.func import functional_call

from solutions.kernel_regression import (
    KernelRegression,
    attention_pool,
    gaussian_scores,
    kernel_weights,
    leave_one_out_mse,
    nadaraya_watson,
    softmax,
)

GENERATOR = np.random.default_rng(20)
QUERY, KEY, VALUE = (GENERATOR.normal(size=n) for n in (4, 6, 6))


def exact_softmax(row: list[float]) -> list[float]:
    """Softmax of one row with fifty digits."""
    getcontext().prec = 50
    powers = [Decimal(score).exp() for score in row]
    return [float(power / sum(powers)) for power in powers]


# --- softmax ------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 1e4, -1e4])
def test_softmax_agrees_with_fifty_digits(offset):
    scores = GENERATOR.normal(size=(3, 5), scale=3.0) + offset
    assert_allclose(softmax(scores), [exact_softmax(row) for row in scores.tolist()], rtol=1e-12)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_softmax_sums_to_1_along_its_axis_only_and_each_slice_stands_alone(axis):
    scores = GENERATOR.normal(size=(2, 3, 4))
    weights = softmax(scores, axis=axis)
    assert_allclose(weights.sum(axis=axis), np.ones_like(weights.sum(axis=axis)))
    slices = np.moveaxis(scores, axis, -1).reshape(-1, scores.shape[axis])
    expected = [exact_softmax(row) for row in slices.tolist()]
    assert_allclose(np.moveaxis(weights, axis, -1).reshape(slices.shape), expected)


def test_softmax_gives_minus_infinity_exactly_nothing():
    weights = softmax(np.array([[0.0, -np.inf, 0.0], [-np.inf, -np.inf, -1e4]]))
    assert_array_equal(weights, [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]])


def test_softmax_of_nothing_is_nothing_and_warns_of_nothing():
    with np.errstate(all="raise"):
        assert_array_equal(softmax(np.full((2, 3), -np.inf)), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("given", "returned"),
    [("float32", "float32"), ("float64", "float64"), ("int64", "float64"), ("uint8", "float64")],
)
def test_softmax_keeps_the_floating_dtype_and_makes_integers_float64(given, returned):
    scores = np.array([[0, 1, 3], [250, 2, 2]]).astype(given)
    weights = softmax(scores)
    assert weights.dtype == returned
    assert_allclose(weights, [exact_softmax(row) for row in scores.tolist()], rtol=1e-5, atol=1e-30)


# --- gaussian_scores and nadaraya_watson --------------------------------------------------------


def test_gaussian_scores_by_hand():
    scores = gaussian_scores(np.array([0, 2]), np.array([1, 3, 4]), 2)
    assert_array_equal(scores, [[-2.0, -18.0, -32.0], [-2.0, -2.0, -8.0]])
    assert_array_equal(gaussian_scores(np.array([0.0]), np.array([3.0])), [[-4.5]])


@pytest.mark.parametrize("w", [0.3, 1.0, 4.0])
def test_nadaraya_watson_is_the_gaussian_kernels_weighted_mean(w):
    prediction, weights = nadaraya_watson(QUERY, KEY, VALUE, w)
    for i, x in enumerate(QUERY):
        kernel = [math.exp(-((x - x_i) ** 2) / (2 * (1 / w) ** 2)) for x_i in KEY]
        mean = math.fsum(k * y for k, y in zip(kernel, VALUE, strict=True)) / math.fsum(kernel)
        assert_allclose(weights[i], [k / math.fsum(kernel) for k in kernel], rtol=1e-9)
        assert_allclose(prediction[i], mean, rtol=1e-9)


def test_a_query_far_from_every_key_is_answered_by_the_nearest():
    prediction, weights = nadaraya_watson(
        np.array([-1e4, 1e4]), np.array([0.0, 5.0]), np.array([7.0, 9.0]), 2.0
    )
    assert_array_equal(weights, [[1.0, 0.0], [0.0, 1.0]])
    assert_array_equal(prediction, [7.0, 9.0])


def test_vectors_of_values_are_averaged_column_by_column():
    values = GENERATOR.normal(size=(6, 3))
    together, _ = nadaraya_watson(QUERY, KEY, values, 1.5)
    alone = [nadaraya_watson(QUERY, KEY, values[:, d], 1.5)[0] for d in range(3)]
    assert_allclose(together, np.stack(alone, axis=1))


# --- kernel_weights -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kernel", "by_hand"),
    [
        ("boxcar", [[1 / 3, 1 / 3, 1 / 3, 0], [0, 1 / 3, 1 / 3, 1 / 3], [0, 0, 0, 0]]),
        ("epanechnikov", [[4 / 7, 3 / 7, 0, 0], [0, 0, 1 / 2, 1 / 2], [0, 0, 0, 0]]),
    ],
)
def test_kernels_with_an_end_by_hand(kernel, by_hand):
    """|u| is 0, ½, 1, 2 for the first query; 1½, 1, ½, ½ for the second; far for the third."""
    query, key = np.array([0.0, 3.0, 99.0]), np.array([0.0, 1.0, 2.0, 4.0])
    assert_allclose(kernel_weights(query, key, kernel, 0.5), by_hand)


@pytest.mark.parametrize("w", [0.4, 1.0, 2.5])
def test_kernel_weights_follow_their_formulas(w):
    formulas = {
        "gaussian": lambda u: math.exp(-u * u / 2),
        "boxcar": lambda u: 1.0 if -1 <= u <= 1 else 0.0,
        "epanechnikov": lambda u: 1 - u * u if -1 < u < 1 else 0.0,
    }
    for kernel, formula in formulas.items():
        for x, row in zip(QUERY, kernel_weights(QUERY, KEY, kernel, w), strict=True):
            values = [formula((x - x_i) * w) for x_i in KEY]
            assert_allclose(row, [v / (sum(values) or 1) for v in values], rtol=1e-9)


@pytest.mark.parametrize("kernel", ["triangle", "", "Gaussian", None])
def test_an_unknown_kernel_is_refused_by_name(kernel):
    with pytest.raises(ValueError, match=repr(kernel)):
        kernel_weights(QUERY, KEY, kernel)


# --- attention_pool -----------------------------------------------------------------------------


def test_attention_pool_with_a_dot_product_by_hand():
    """The example of chapter 2: scores 2, 4, 4 for the first query."""
    query = np.array([[1, 0, 2], [2, 2, 2], [2, 1, 3]])
    key = np.array([[0, 1, 1], [4, 4, 0], [2, 3, 1]])
    value = np.array([[1, 2, 3], [2, 8, 0], [2, 6, 3]])
    output, weights = attention_pool(query, key, value, lambda q, k: q @ k.T)
    small = 1 / (1 + 2 * math.e**2)
    large = (1 - small) / 2
    assert_allclose(weights[0], [small, large, large])
    assert_allclose(output[0], [1.937, 6.683, 1.595], atol=5e-4)


def test_attention_pool_asks_the_score_once_for_query_and_key():
    calls = []
    attention_pool(QUERY, KEY, VALUE, lambda *args: calls.append(args) or np.zeros((4, 6)))
    [(query, key)] = calls
    assert query is QUERY
    assert key is KEY


# --- leave_one_out_mse --------------------------------------------------------------------------


def test_leave_one_out_by_hand():
    """w = 0 predicts each of 0, 1, 4 by the mean of the two others: off by 2.5, 1 and 3.5."""
    x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 4.0])
    assert leave_one_out_mse(x, y, 0.0) == pytest.approx((6.25 + 1 + 12.25) / 3)
    assert leave_one_out_mse(x[:2], y[1:], 1000.0) == pytest.approx(9.0)


@pytest.mark.parametrize("w", [0.5, 3.0, 300.0])
def test_leave_one_out_is_the_loop_over_points(w):
    x, y = GENERATOR.uniform(0, 3, 8), GENERATOR.normal(size=8)
    x[5] = x[2]
    squares = []
    for i in range(8):
        others = [j for j in range(8) if j != i]
        nearest = min(abs(x[i] - x[j]) for j in others)
        kernel = [math.exp(-0.5 * w**2 * ((x[i] - x[j]) ** 2 - nearest**2)) for j in others]
        mean = sum(k * y[j] for k, j in zip(kernel, others, strict=True)) / sum(kernel)
        squares.append((mean - y[i]) ** 2)
    error = leave_one_out_mse(x, y, w)
    assert type(error) is float
    assert error == pytest.approx(sum(squares) / 8)


# --- KernelRegression ---------------------------------------------------------------------------


def test_the_module_computes_what_the_function_does():
    x, x_i, y = (torch.from_numpy(a) for a in (QUERY, KEY, VALUE))
    prediction = KernelRegression(1.7)(x, x_i, y).detach()
    assert prediction.dtype == torch.float64
    assert_allclose(prediction, nadaraya_watson(QUERY, KEY, VALUE, 1.7)[0], rtol=1e-6)


def test_the_modules_one_parameter_is_a_number():
    assert {k: v.shape for k, v in KernelRegression(2.0).state_dict().items()} == {"w": ()}
    assert KernelRegression(2).w.item() == 2.0


def test_exclude_self_is_leave_one_out():
    model = KernelRegression(1.5).double()
    x, y = torch.from_numpy(KEY), torch.from_numpy(VALUE)
    error = torch.mean((model(x, x, y, exclude_self=True) - y) ** 2)
    assert error.item() == pytest.approx(leave_one_out_mse(KEY, VALUE, 1.5))


@pytest.mark.parametrize("exclude_self", [False, True])
def test_gradients_are_those_of_finite_differences(exclude_self):
    model = KernelRegression().double()
    inputs = [torch.tensor(a, requires_grad=True) for a in (np.array(1.3), QUERY, KEY, VALUE)]

    def forward(w, query, key, value):
        return functional_call(model, {"w": w}, (query, key, value, exclude_self))

    assert gradcheck(forward, inputs)


def test_a_single_point_left_out_of_itself_predicts_zero_and_passes_no_nan_back():
    model, point = KernelRegression(2.0), torch.tensor([0.5], requires_grad=True)
    prediction = model(point, point, torch.tensor([3.0]), exclude_self=True)
    prediction.sum().backward()
    assert prediction.tolist() == [0.0]
    assert model.w.grad.item() == 0.0
    assert point.grad.tolist() == [0.0]


# --- shapes -------------------------------------------------------------------------------------

SHAPES = """
from jaxtyping import TypeCheckError, install_import_hook

with install_import_hook("solutions", "beartype.beartype"):
    from solutions.kernel_regression import *

x, x_i, y, table = np.ones(3), np.ones(5), np.ones(5), np.ones((5, 2))
t, t_i, u, wide = (torch.from_numpy(a) for a in (x, x_i, y, table))
softmax(np.ones((2, 3, 4), dtype=np.float32), axis=1)
softmax(np.arange(3))
gaussian_scores(x, x_i), gaussian_scores(np.arange(3), np.arange(5))
nadaraya_watson(x, x_i, y, 2.0), nadaraya_watson(x, x_i, table)
for kernel in ("gaussian", "boxcar", "epanechnikov"):
    kernel_weights(x, x_i, kernel)
attention_pool(np.ones((3, 2)), np.ones((5, 4)), table, lambda q, k: np.ones((3, 5)))
leave_one_out_mse(x_i, y, 1.0)
KernelRegression()(t, t_i, u), KernelRegression(2.0)(t, t_i, wide, exclude_self=True)

refused = 0
for call in (
    lambda: gaussian_scores(table, x_i),
    lambda: nadaraya_watson(x, x_i, np.ones(4)),
    lambda: leave_one_out_mse(x, y, 1.0),
    lambda: attention_pool(x, x_i, np.ones(4), gaussian_scores),
    lambda: KernelRegression()(t, t_i, t),
):
    try:
        call()
    except TypeCheckError:
        refused += 1
print(refused)
"""


@pytest.mark.share(0)
def test_the_shapes_in_the_signatures_hold():
    command = [sys.executable, "-c", SHAPES]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("5\n", "")
