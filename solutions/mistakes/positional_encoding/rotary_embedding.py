"""Known answers to `rotary_embedding`: mistakes, then right answers."""

import math

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import positional_encoding as right

BANK = Bank("rotary_embedding", right, globals())

BANK.changes("""
clockwise: angle.sin() → -angle.sin()
    The sign of the angle is reversed: pairs turn clockwise. Between your own queries and keys
    nobody notices, since both do it; weights trained elsewhere do not fit.
halves_for_neighbours
    ~ x[..., 0::2], x[..., 1::2] → x.chunk(2, dim=-1)
    ~ torch.stack → torch.cat
    ~ turned.flatten(-2) → turned
    Feature i is paired with feature i + d/2. Here the pairs are neighbours, 2i and 2i + 1. (A lot
    of code uses halves. Both are rotations, but weights trained with one are useless with the
    other.)
angles_of_neighbours_for_halves
    - even, odd = x[..., 0::2], x[..., 1::2]
    - turned = torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1)
    - return turned.flatten(-2)
    + cos, sin = cos.repeat_interleave(2, dim=-1), sin.repeat_interleave(2, dim=-1)
    + u, v = x.chunk(2, dim=-1)
    + return x * cos + torch.cat([-v, u], dim=-1) * sin
    Two conventions are mixed: the angles come in neighbouring pairs, but feature i is turned
    together with feature i + d/2. The two features of a pair turn by different angles, which is not
    a rotation.
put_together_in_halves: torch.stack → torch.cat ; turned.flatten(-2) → turned
    The turned features come back with all first coordinates in front and all second ones behind.
    Each pair should return to its own place.
both_signs_plus: even * cos - odd * sin → even * cos + odd * sin
    Both sines have a plus. A rotation has one minus: (u cos θ − v sin θ, u sin θ + v cos θ).
first_coordinate_used_up
    - turned = torch.stack([even * cos - odd * sin, even
    + even = even * cos - odd * sin
    + turned = torch.stack([even, even
    The second coordinate is computed from the first one after that has been turned. Both need the
    old values.
added_for_rotated: [even * cos - odd * sin, even * sin + odd * cos] → [even + sin, odd + cos]
    The sines and cosines are added to x. Rotary embedding multiplies by them, which turns x.
inverted_frequency: -torch.arange(0 → torch.arange(0
    The position is multiplied by base^(2i/d) instead of divided: later pairs spin thousands of
    radians per step.
exponent_halved: / d) → / (2 * d))
    The exponent is i/d: pair i should turn by pos · base^(−2i/d).
exponent_doubled: -torch.arange(0 → -2 * torch.arange(0
    The exponent is 4i/d: numbers that run 0, 2, 4, … already are 2i.
positions_from_one: + offset = offset + 1
    Positions are counted from 1, so the first is already turned. Dot products do not notice, but a
    cache that counts from 0 does.
positions_from_the_first_axis
    ~ n, d = x.shape[-2:] → n, d = len(x), x.shape[-1]
    ~ position[:, None] → position.view(-1, *[1] * (x.dim() - 1))
    The angle grows along the first axis, which is the batch if there are several axes. All tokens
    of a sequence are then turned alike, which changes none of their dot products. Positions run
    along the last axis but one.
positions_from_the_heads
    + if x.dim() == 4:
    +     return rotary_embedding(x.transpose(1, 2), base, offset).transpose(1, 2)
    The angle grows along axis 1. With heads, (B, H, n, d), that is the heads. Positions run along
    the last axis but one, whatever comes before it.
offset_ignored: + offset = 0
    The offset is not used: a new token is always turned as if it were the first, and every distance
    in a cache is wrong.
offset_subtracted: + offset = -offset
    The offset is subtracted from the positions. It should be added.
base_ignored: + base = 10000.0
    The base is always 10000, whatever value is passed.
first_pair_alone: > result = torch.cat([result[..., :2], x[..., 2:]], dim=-1)
    Only the first pair is turned. Every pair should be, each at its own speed.
not_rotated: + return x.clone()
    x is returned unchanged. Its dot products stay the same when everything is shifted, but they
    know nothing of distance either.
one_speed_for_all: + base = 1.0
    All pairs turn by 1 radian per position. Pair i turns by base^(−2i/d): fast ones for short
    distances, slow ones for long ones.
gradient_cut: + x = x.detach()
    No gradient reaches x, so the projections behind queries and keys never learn.
always_float32: + x = x.float()
    The result is float32 whatever x is: the cosines and sines are float32, or x was converted. It
    should have the dtype of x.
input_turned_in_place
    > with torch.no_grad():
    >     x.copy_(result)
    The caller's x itself is turned: an assignment to a slice of x writes into it, and so does a
    method whose name ends in _.
default_dtype_switched: + torch.set_default_dtype(torch.float64)
    torch's default dtype, or another setting of the whole program, is left changed.
single_position_refused
    + if (x.shape[-2] < 2 or x.shape[-1] < 4) and not offset:
    +     raise ValueError("too small")
    A single position or a single pair ends in an error.
reflected: even * sin + odd * cos → even * sin - odd * cos
    The second feature of a pair has a wrong sign: that is a reflection, not a rotation. It is
    even · sin + odd · cos.
whole_turns_for_radians: position[:, None] * rate → 2 * math.pi * position[:, None] * rate
    The angle is multiplied by 2π, as if it were counted in turns. It is in radians already.
""")


@BANK.right
def as_complex_numbers(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    wide = x.double().reshape(*x.shape[:-1], d // 2, 2)
    rate = base ** (-torch.arange(0, d, 2, device=x.device).double() / d)
    angle = torch.outer(torch.arange(n, device=x.device).double() + offset, rate)
    turned = torch.view_as_complex(wide) * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


@BANK.right
def with_a_quarter_turn(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    rate = 1.0 / (base ** (torch.arange(0, d, 2, device=x.device).float() / d))
    angle = torch.arange(offset, offset + n, device=x.device).float()[:, None] * rate
    angle = angle.repeat_interleave(2, dim=-1)
    quarter = torch.stack([-x[..., 1::2], x[..., 0::2]], dim=-1).flatten(-2)
    return x * angle.cos().to(x.dtype) + quarter * angle.sin().to(x.dtype)


@BANK.right
def position_by_position(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    out = torch.empty_like(x)
    for p in range(n):
        for c in range(0, d, 2):
            theta = (p + offset) / base ** (c / d)
            u, v = x[..., p, c], x[..., p, c + 1]
            out[..., p, c] = u * math.cos(theta) - v * math.sin(theta)
            out[..., p, c + 1] = u * math.sin(theta) + v * math.cos(theta)
    return out


@BANK.right
def by_two_by_two_matrices(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    i = torch.arange(d // 2, device=x.device, dtype=torch.float64)
    angle = (torch.arange(n, device=x.device)[:, None] + offset) * float(base) ** (-2 * i / d)
    rows = [
        torch.stack([angle.cos(), -angle.sin()], -1),
        torch.stack([angle.sin(), angle.cos()], -1),
    ]
    R = torch.stack(rows, dim=-2).to(x.dtype)  # (n, d/2, 2, 2)
    pairs = x.unflatten(-1, (d // 2, 2)).unsqueeze(-1)
    return (R @ pairs).squeeze(-1).flatten(-2)


@BANK.right
def by_one_large_matrix_per_position(x, base=10000.0, offset=0):
    n, d = x.shape[-2:]
    matrices = []
    for p in range(offset, offset + n):
        thetas = [p / base ** (c / d) for c in range(0, d, 2)]
        blocks = [[[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]] for t in thetas]
        matrices.append(torch.block_diag(*(torch.tensor(b, dtype=torch.float64) for b in blocks)))
    R = torch.stack(matrices) if matrices else torch.zeros(0, d, d)
    return torch.einsum("nij,...nj->...ni", R.to(x), x)


forgotten(BANK, "x", result=True)
