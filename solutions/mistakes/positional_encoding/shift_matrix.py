"""Known answers to `shift_matrix`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from solutions import positional_encoding as right

BANK = Bank("shift_matrix", right, globals())

BANK.changes("""
turned_the_wrong_way: sin, -sin → -sin, sin
    The matrix is transposed: it moves by −offset. In sin(a + b) = sin a cos b + cos a sin b, the
    sine of the shift has a plus; the encodings put the sine first, so this is not the textbooks'
    rotation matrix.
both_signs_plus: -sin → sin
    Both sines in a block have a plus. cos(a + b) = cos a cos b − sin a sin b has a minus, without
    which the matrix stretches.
cosine_first: [cos, sin, -sin, cos] → [sin, cos, cos, -sin]
    Sine and cosine are swapped in the blocks: at offset 0 this is not the identity.
halves_for_interleaved
    > order = torch.cat([torch.arange(0, d_model, 2), torch.arange(1, d_model, 2)])
    > result = result[order][:, order]
    The matrix suits a table with all sines first and all cosines after them. Here they alternate,
    so the blocks are 2 × 2 along the diagonal.
one_frequency_for_all: + base = 1.0
    All pairs turn by the same angle. Pair i turns by offset / base^(2i/d_model).
inverted_frequency: -torch.arange → torch.arange
    The angles are offset · base^(2i/d_model) instead of offset / base^(2i/d_model): later pairs
    should turn more slowly.
exponent_doubled: -torch.arange → -2 * torch.arange
    The exponent is 4i/d_model: a loop with step 2 already has the factor 2.
exponent_halved: / d_model → / (2 * d_model)
    The exponent is i/d_model, without the 2.
always_one_step: + offset = 1
    The matrix always moves by one position, whatever the offset.
only_forwards: + offset = abs(offset)
    A negative offset is treated like its absolute value. It should turn the other way.
features_rolled: + return torch.eye(d_model).roll(offset, 0)
    This matrix moves features along the row. A shift in position moves no feature to another place:
    it turns each pair.
base_ignored: + base = 10000.0
    The base is always 10000, whatever value is passed.
blocks_not_assembled: torch.block_diag(*blocks) → blocks
    The result is a stack of 2 × 2 blocks, (d_model/2, 2, 2). They belong on the diagonal of a
    (d_model, d_model) matrix.
diagonal_alone: [cos, sin, -sin, cos] → [cos, 0 * sin, 0 * sin, cos]
    Only the cosines are there. Without the sines next to the diagonal, the new sine knows nothing
    of the old cosine.
float64_matrix: > result = result.double()
    The matrix is float64; the table that it will be multiplied with is float32.
single_pair_refused
    + if d_model == 2:
    +     raise ValueError("a single pair")
    d_model = 2 ends in an error, or in something other than the single 2 × 2 block.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    torch's default dtype, or another setting of the whole program, is left changed.
""")


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
