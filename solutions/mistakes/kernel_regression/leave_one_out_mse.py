"""Known answers to `leave_one_out_mse`: mistakes, then right answers."""

import numpy as np
import torch
from torch import nn

from autograder.bank import Bank
from solutions import kernel_regression as right
from solutions.mistakes.kernel_regression.softmax import _naive_softmax

BANK = Bank("leave_one_out_mse", right, globals())

BANK.changes("""
own_point_kept: - np.fill_diagonal(scores, -np.inf)
    Each point helps to predict itself. The narrower the kernel, the closer the prediction gets to
    the point's own value, and the error falls to 0 without anything being learnt. (A score of 0
    does not leave a point out: exp(0) is 1.)
diagonal_not_low_enough: -np.inf → -1000.0
    The diagonal is set to a number such as −1000. With a narrow kernel the other points have lower
    scores than that, and then a point's own vote counts after all.
weight_zeroed_after_softmax
    - np.fill_diagonal(scores, -np.inf)
    - prediction = softmax(scores, axis=-1) @ y
    + weights = softmax(scores, axis=-1)
    + np.fill_diagonal(weights, 0.0)
    + prediction = weights @ y
    The point's own weight is set to 0 after the softmax while the others stay as they are: they sum
    to less than 1, and every prediction is pulled towards 0.
every_equal_x_left_out: np.fill_diagonal(scores, -np.inf) → scores[np.equal.outer(x, x)] = -np.inf
    Every point with the same x is left out, not only the point itself: another measurement at the
    same place is the best evidence there is.
normalised_over_queries: axis=-1 → axis=0
    The softmax runs down the columns, so the weights that predict a point do not sum to 1. It has
    to run along each row.
max_not_subtracted: = softmax → = _naive_softmax
    With a narrow kernel, all the other points' exponentials vanish, and 0/0 gives NaN: exp was
    taken of the raw scores, or the point's own weight was set to 0 after the softmax and the rest
    normalised again.
sum_for_mean: np.mean → np.sum
    The squared errors are added up, not averaged: the result grows with the number of points.
divided_by_n_minus_1: np.mean((prediction - y) ** 2) → np.sum((prediction - y) ** 2) / (len(x) - 1)
    The sum of the squared errors is divided by n − 1. Each prediction uses n − 1 points, but there
    are n errors to average.
root_taken: np.mean((prediction - y) ** 2) → np.sqrt(np.mean((prediction - y) ** 2))
    The square root of the mean squared error is returned. Return the mean of the squares, in the
    unit of y squared.
absolute_errors: (prediction - y) ** 2 → np.abs(prediction - y)
    The absolute errors are averaged instead of their squares.
errors_not_squared: (prediction - y) ** 2 → (prediction - y)
    The errors are averaged with their signs, so that they cancel. Square them first.
mean_before_square: np.mean((prediction - y) ** 2) → np.mean(prediction - y) ** 2
    The errors are averaged before they are squared, so positive and negative ones cancel.
halved: > result = result / 2
    The result is half of the mean squared error: there is a factor ½ in front, as in some loss
    functions.
divided_by_w: x, x, w → x, x, 1 / w
    The distance is divided by w instead of multiplied. w is the inverse bandwidth.
w_not_squared: x, x, w → x, x, np.sqrt(w)
    w is outside the square: −½(x − x_i)² w. It multiplies the distance, so it is squared along with
    it.
one_error_per_point: float(np.mean((prediction - y) ** 2)) → (prediction - y) ** 2
    The squared error of every point is returned. Return their mean, a single number.
array_of_no_dimension: > result = np.asarray(result)
    The number is right, but it is returned as an array of shape `()`. Return a Python float.
sorts_x_in_place: > x.sort()
    The error is right, but the caller's x is changed: `x.sort()` sorts the array that was passed
    in.
last_point_never_predicted: ((prediction - y) ** 2) → (((prediction - y) ** 2)[:-1])
    The loop ends one point early: the last one is never predicted, and its error does not count.
""")


@BANK.right
def each_point_deleted_in_turn(x, y, w):
    total = 0.0
    for i in range(len(x)):
        rest = np.arange(len(x)) != i
        prediction, _ = right.nadaraya_watson(x[i : i + 1], x[rest], y[rest], w)
        total += (prediction[0] - y[i]) ** 2
    return total / len(x)


@BANK.right
def infinity_on_the_diagonal(x, y, w):
    scores = right.gaussian_scores(x, x, w) - np.diag(np.full(len(x), np.inf))
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.square(y - weights.dot(y)).mean()


@BANK.right
def a_table_of_the_others(x, y, w):
    n = len(x)
    others = np.array([[j for j in range(n) if j != i] for i in range(n)])  # (n, n - 1)
    weights = right.softmax(-0.5 * ((x[:, None] - x[others]) * w) ** 2)
    error = y - np.einsum("ij,ij->i", weights, y[others])
    return float(error @ error / n)


@BANK.right
def by_torch(x, y, w):
    x, y = torch.tensor(x, dtype=torch.float64), torch.tensor(y, dtype=torch.float64)
    scores = (x[:, None] - x).mul(w).square().mul(-0.5).fill_diagonal_(-torch.inf)
    return nn.functional.mse_loss(scores.softmax(dim=1) @ y, y).item()


@BANK.right
def in_plain_python(x, y, w):
    x, y, errors = [float(a) for a in x], [float(b) for b in y], []
    for i in range(len(x)):
        scores = {j: -0.5 * ((x[i] - x[j]) * w) ** 2 for j in range(len(x)) if j != i}
        kernel = {j: np.exp(s - max(scores.values())) for j, s in scores.items()}
        prediction = sum(kernel[j] * y[j] for j in kernel) / sum(kernel.values())
        errors.append((prediction - y[i]) ** 2)
    return float(sum(errors) / len(errors))
