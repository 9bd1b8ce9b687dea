"""Known answers to `leave_one_out_mse`: mistakes, then right answers."""

import numpy as np
import torch
from torch import nn

from autograder.bank import Bank
from solutions import kernel_regression as right
from solutions.mistakes.kernel_regression.softmax import _naive_softmax

BANK = Bank("leave_one_out_mse", right, globals())
BANK.read()


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
