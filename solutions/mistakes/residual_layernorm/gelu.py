"""Known answers to `gelu`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import residual_layernorm as right

BANK = Bank("gelu", right, globals())

BANK.changes("""
tanh_gelu: + return F.gelu(x, approximate="tanh")
    This is the approximation with tanh, which is off by up to half a thousandth. The exact function
    uses erf.
sigmoid_gelu: + return x * torch.sigmoid(1.702 * x)
    This is the approximation x · sigmoid(1.702 x), which is off by up to two hundredths. The exact
    function uses erf.
silu: + return F.silu(x)
    This is SiLU, x · sigmoid(x), a close relative. GELU is x · Φ(x), with the normal Φ.
relu: + return F.relu(x)
    This is ReLU: zero for all negative numbers. GELU is smooth, and slightly negative there.
root_of_two_forgotten: x / math.sqrt(2.0) → x
    erf is taken of x instead of x / √2. Φ(x) = ½ (1 + erf(x / √2)).
multiplied_by_root_of_two: x / math.sqrt(2.0) → x * math.sqrt(2.0)
    erf is taken of x · √2 instead of x / √2.
divided_by_two_inside: x / math.sqrt(2.0) → x / 2
    erf is taken of x / 2 instead of x / √2.
half_forgotten: 0.5 * x → x
    The factor ½ is missing: for large x the result is 2x.
one_forgotten: 1.0 + torch.erf → torch.erf
    ½ · erf(x / √2) is used for Φ(x); the 1 is missing, and negative numbers come out positive.
one_outside_the_bracket: 0.5 * x * (1.0 → x * (0.5
    ½ multiplies the 1 alone: ½ + erf(x / √2) instead of ½ (1 + erf(x / √2)).
chance_to_be_larger: 1.0 + torch.erf → 1.0 - torch.erf
    x is multiplied by 1 − Φ(x), the probability that a normal variable is larger: large x give 0.
x_forgotten: 0.5 * x → 0.5
    This is Φ(x) alone: x itself is missing as a factor.
density_for_chance: + return x * torch.exp(-0.5 * x**2) / math.sqrt(2 * math.pi)
    x is multiplied by the normal density at x. It should be multiplied by Φ(x), the area to the
    left of x.
""")


@BANK.mistake
def by_numpy(x):
    """No gradient reaches x: the result is cut off from the graph, by math.erf, NumPy,
    torch.no_grad or .detach(), say."""
    phi = np.vectorize(lambda v: 0.5 * (1 + math.erf(v / math.sqrt(2))), otypes=[float])
    numbers = x.detach().cpu().double().numpy()
    made = torch.from_numpy(np.asarray(numbers * phi(numbers))) if x.numel() else x.detach() * 1
    return made.to(x)


BANK.changes("""
always_float32: + return F.gelu(x.float())
    The result is always float32: a float64 x loses half of its digits.
changed_in_place
    > if not x.requires_grad:
    >     x.copy_(result)
    The result is right, but it is written into x (by methods whose names end in _, or *=), which
    the caller still needs.
made_a_list: + x = torch.atleast_1d(x)
    The result always has an axis, even if x is a single number without one.
exp_overflows
    + wide = x * torch.exp(x.abs() / 8)
    + return torch.erf(x / math.sqrt(2)) * wide / torch.exp(x.abs() / 8) * 0.5 + 0.5 * x
    For large numbers the result is NaN: exp overflows, and ∞ / ∞ or ∞ · 0 is not a number. erf
    needs no exp.
root_of_two_outside_erf: torch.erf(x / math.sqrt(2.0)) → torch.erf(x) / math.sqrt(2.0)
    erf(x) is divided by √2, instead of x within it.
""")


@BANK.right
def by_erfc(x):
    return x * torch.erfc(-x * math.sqrt(0.5)) / 2


@BANK.right
def by_ndtr(x):
    return x * torch.special.ndtr(x)


@BANK.right
def by_the_normal_distribution(x):
    normal = torch.distributions.Normal(
        torch.zeros_like(x), torch.ones_like(x), validate_args=False
    )
    return x * normal.cdf(x)


@BANK.right
def number_by_number(x):
    parts = [0.5 * v * (1 + torch.erf(v / 2**0.5)) for v in x.reshape(-1)]
    return torch.stack(parts).reshape(x.shape) if parts else x * 1


forgotten(BANK, "x", result=True)
