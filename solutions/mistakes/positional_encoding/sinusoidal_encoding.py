"""Known answers to `sinusoidal_encoding`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("sinusoidal_encoding", right, globals())

BANK.changes("""
cosine_exponent_2i_plus_1
    - rate[: d_model // 2]
    + base ** (-torch.arange(1, d_model, 2, dtype=torch.float64) / d_model)
    The cosines have an exponent of their own, (2i + 1)/d_model. Sine and cosine of a pair share the
    exponent 2i/d_model; otherwise they are not two coordinates of one point on a circle, and a
    shift is no rotation.
exponent_doubled: -torch.arange → -2 * torch.arange
    The exponent is 4i/d_model: a loop with step 2 runs over 0, 2, 4, …, which is already 2i, and
    the formula's 2 doubles it again. The frequencies fall twice as fast.
exponent_halved: / d_model → / (2 * d_model)
    The exponent is i/d_model, without the 2: the slowest pair turns about √base times too fast, and
    distant positions look alike.
column_taken_for_pair
    ~ -torch.arange → -2 * torch.arange
    - rate[: d_model // 2]
    + base ** (-2 * torch.arange(1, d_model, 2, dtype=torch.float64) / d_model)
    The i in the exponent 2i/d_model counts columns: each column has its own frequency, and they
    fall twice as fast. It should count pairs, two columns each.
inverted_frequency: -torch.arange → torch.arange
    The position is multiplied by base^(2i/d_model) instead of divided: later pairs turn faster and
    faster, by thousands of radians per step, which is noise.
halves_for_interleaved: > result = torch.cat([result[:, 0::2], result[:, 1::2]], dim=1)
    All sines come first, then all cosines. In the paper's table they alternate. (Some code uses
    halves; a trained model needs the order that it was trained with.)
sine_and_cosine_swapped
    ~ torch.sin(position * rate) → torch.cos(position * rate)
    ~ torch.cos(position * rate[ → torch.sin(position * rate[
    The even columns hold cosines and the odd ones sines. Row 0 should be 0, 1, 0, 1, …
sines_only: torch.cos → torch.sin
    Every column is a sine. Without the cosine, an angle is known only up to a reflection, and no
    matrix can shift it.
positions_from_one: torch.arange(max_len → torch.arange(1, max_len + 1
    Positions are counted from 1. They should count from 0, so that row 0 is 0, 1, 0, 1, …
base_ignored: + base = 10000.0
    The base is always 10000, whatever value is passed.
scaled_to_max_len: [:, None] → [:, None] / max(1, max_len)
    Positions are divided by max_len. The same position then gets a different encoding in a longer
    table, and the longer the table, the closer the neighbours.
slowest_is_exactly_the_base: / d_model → / 2 / max(1, (d_model + 1) // 2 - 1)
    The exponent is i/(d_model/2 − 1): it runs from 0 to exactly 1. The paper's 2i/d_model stops one
    step short of 1. (The paper's own code did the same as yours.)
odd_size_rounded_up_in_the_exponent: / d_model → / (d_model + d_model % 2)
    For an odd d_model, the table of the next even size is cut. The number of columns is right, but
    the exponent divides by d_model + 1.
odd_size_cut: > result = result[:, : d_model // 2 * 2]
    An odd d_model loses its last column. It has one more sine than cosines.
odd_size_refused
    + if d_model % 2:
    +     raise RuntimeError("the cosines do not fit")
    An odd d_model ends in an error: there are fewer odd columns than even ones, so the cosines must
    be cut to fit.
last_sine_left_at_zero
    > if d_model % 2:
    >     result[:, -1] = 0.0
    For an odd d_model the last column stays 0. It is the sine of a pair whose cosine is gone.
positions_as_columns: > result = result.T
    The table is transposed, (d_model, max_len). There should be one row per position.
float64_table: > result = result.double()
    The table is float64. It may be computed in float64, but it should be returned as float32:
    otherwise it widens everything it is added to.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    torch's default dtype, or another setting of the whole program, is left changed.
single_row_squeezed: > result = result.squeeze()
    A table with a single row loses an axis: it should be (1, d_model), not (d_model,). squeeze()
    removes every axis of length 1.
cosine_exponent_2i_plus_1_and_odd_size_refused of cosine_exponent_2i_plus_1
    + if d_model % 2:
    +     raise RuntimeError("the cosines do not fit")
    The cosines have an exponent of their own, (2i + 1)/d_model. Sine and cosine of a pair share the
    exponent 2i/d_model; otherwise they are not two coordinates of one point on a circle, and a
    shift is no rotation. (And an odd d_model ends in an error.)
exponent_doubled_and_odd_size_refused of exponent_doubled
    + if d_model % 2:
    +     raise IndexError("the cosines do not fit")
    The exponent is 4i/d_model: a loop with step 2 runs over 0, 2, 4, …, which is already 2i, and
    the formula's 2 doubles it again. The frequencies fall twice as fast. (And an odd d_model ends
    in an error.)
column_taken_for_pair_and_odd_size_refused of column_taken_for_pair
    + if d_model % 2:
    +     raise IndexError("the cosines do not fit")
    The i in the exponent 2i/d_model counts columns: each column has its own frequency, and they
    fall twice as fast. It should count pairs, two columns each. (And an odd d_model ends in an
    error.)
brackets_around_the_exponent_forgotten
    - rate = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    + rate = base ** -torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    In `base ** i / d_model` the power is taken before the division. The exponent i/d_model needs
    brackets.
whole_numbers_in_the_exponent
    - rate = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    + rate = base ** -(torch.arange(0, d_model, 2) // d_model).double()
    The exponent is divided by // and is 0 for every feature, so all of them turn at the same speed.
""")


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
