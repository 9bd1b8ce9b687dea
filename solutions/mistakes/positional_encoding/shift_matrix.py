"""Known answers to `shift_matrix`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("shift_matrix", right, globals())
BANK.read()


@BANK.right
def entry_by_entry(offset, d_model, base=10000.0):
    M = torch.zeros(d_model, d_model)
    for c in range(0, d_model, 2):
        angle = offset / base ** (c / d_model)
        M[c, c] = M[c + 1, c + 1] = math.cos(angle)
        M[c, c + 1], M[c + 1, c] = math.sin(angle), -math.sin(angle)
    return M


@BANK.right
def as_an_exponential(offset, d_model, base=10000.0):
    turn = torch.zeros(d_model, d_model, dtype=torch.float64)
    even = torch.arange(0, d_model, 2)
    turn[even, even + 1] = float(base) ** (-even.double() / d_model)
    return torch.matrix_exp(offset * (turn - turn.T)).float()


@BANK.right
def as_steps_of_one(offset, d_model, base=10000.0):
    one = torch.eye(d_model, dtype=torch.float64)
    for c in range(0, d_model, 2):
        a = 1.0 / base ** (c / d_model)
        one[c : c + 2, c : c + 2] = torch.tensor(
            [[math.cos(a), math.sin(a)], [-math.sin(a), math.cos(a)]]
        )
    return torch.linalg.matrix_power(one if offset >= 0 else one.T, abs(offset)).float()


@BANK.right
def by_diagonals(offset, d_model, base=10000.0):
    angle = offset * float(base) ** (-torch.arange(0, d_model, 2) / d_model)
    beside = torch.stack([angle.sin(), torch.zeros_like(angle)], dim=1).flatten()[:-1]
    along = angle.cos().repeat_interleave(2)
    return torch.diag(along) + torch.diag(beside, 1) - torch.diag(beside, -1)


@BANK.right
def by_kronecker_products(offset, d_model, base=10000.0):
    angle = offset / np.power(float(base), np.arange(0, d_model, 2) / d_model)
    M = np.kron(np.diag(np.cos(angle)), np.eye(2))
    M += np.kron(np.diag(np.sin(angle)), np.array([[0, 1], [-1, 0]]))
    return torch.tensor(M, dtype=torch.float32)
