"""Known answers to `sinusoidal_encoding`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("sinusoidal_encoding", right, globals())
BANK.read()


@BANK.right
def number_by_number(max_len, d_model, base=10000.0):
    table = torch.zeros(max_len, d_model)
    for pos in range(max_len):
        for column in range(d_model):
            angle = pos / base ** (2 * (column // 2) / d_model)
            table[pos, column] = math.cos(angle) if column % 2 else math.sin(angle)
    return table


@BANK.right
def with_exp_and_log(max_len, d_model, base=10000.0):
    position = torch.arange(max_len).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(base) / d_model))
    pe = torch.zeros(max_len, d_model)
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
    return pe


@BANK.right
def by_numpy_in_float64(max_len, d_model, base=10000.0):
    column = np.arange(d_model)
    angle = np.arange(max_len)[:, None] / np.power(float(base), column // 2 * 2 / d_model)
    return torch.from_numpy(np.where(column % 2, np.cos(angle), np.sin(angle)).astype(np.float32))


@BANK.right
def by_complex_numbers(max_len, d_model, base=10000.0):
    rate = base ** (-2 * torch.arange((d_model + 1) // 2, dtype=torch.float64) / d_model)
    angle = torch.outer(torch.arange(max_len, dtype=torch.float64), rate)
    turn = torch.view_as_real(torch.polar(torch.ones_like(angle), angle))  # cosine, sine
    return turn.flip(-1).flatten(1)[:, :d_model].float()


@BANK.right
def by_a_phase_of_a_quarter(max_len, d_model, base=10000.0):
    column = torch.arange(d_model, dtype=torch.float64)
    angle = torch.arange(max_len)[:, None] * base ** (-(column - column % 2) / d_model)
    return torch.sin(angle + column % 2 * math.pi / 2).float()


@BANK.right
def by_stacking(max_len, d_model, base=10000.0):
    i = torch.arange(0, d_model + 1, 2)
    angle = torch.arange(max_len).float()[:, None] / torch.pow(float(base), i / d_model)
    return torch.stack([angle.sin(), angle.cos()], dim=2).reshape(max_len, -1)[:, :d_model]
