"""Known answers to `noam_rate`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from solutions import transformer as right

BANK = Bank("noam_rate", right, globals())

BANK.changes("""
first_rate_repeated
    - return
    + step = max(step - 1, 1)
    + return
    The count begins at 0: steps 1 and 2 have the same rate, and all later ones lag by one.
one_step_ahead
    - return
    + step = step + 1
    + return
    1 is added to the step: the first rate is twice as large as it should be, and the peak comes one
    step early.
step_zero_allowed: + step = max(step, 1)
    A step below 1 is silently taken for the first one. It is an error in the caller's count and
    should raise a ValueError.
larger_of_the_two: min( → max(
    The larger of the two is taken instead of the smaller: the rate begins enormous, falls until the
    warm-up is over, and then climbs without end.
d_model_forgotten: d_model**-0.5 * min → min
    The factor d_model^−½ is missing: wider models need smaller steps.
times_the_root_of_d_model: d_model**-0.5 → d_model**0.5
    The rate is multiplied by √d_model instead of divided by it.
divided_by_d_model: d_model**-0.5 → 1 / d_model
    The rate is divided by d_model instead of its square root.
warmup_to_the_half: warmup**-1.5 → warmup**-0.5
    The exponent of warmup is −½. It should be −3/2, so that the two curves meet at step = warmup.
no_warmup: min(step**-0.5, step * warmup**-1.5) → step**-0.5
    There is no warm-up: the rate starts at its largest and only falls.
no_decay
    - return
    + step = min(step, warmup)
    + return
    After the warm-up the rate stays where it is; it should fall as 1/√step.
decay_in_a_line: min(step**-0.5 → min(warmup**0.5 / step
    After the warm-up the rate falls as 1/step instead of 1/√step.
always_4000: + warmup = 4000
    The warm-up takes 4000 steps whatever the argument says.
warmup_of_a_thousand: warmup=4000 → warmup=1000
    The default warm-up is 1000 steps; the paper's is 4000.
rate_as_a_tensor: > result = torch.tensor(result, dtype=torch.float64)
    The rate is a tensor. It should be a plain number, which optimisers and logs accept.
power_before_the_half: d_model**-0.5 → d_model**-1 / 2
    `d_model ** -1 / 2` is 1 / (2 d_model): the power is taken before the division. The exponent
    needs brackets, or `** -0.5`.
""")


@BANK.right
def noam_in_two_pieces(step, d_model, warmup=4000):
    if step < 1:
        raise ValueError("steps are counted from 1")
    peak = 1 / math.sqrt(d_model * warmup)
    return peak * step / warmup if step < warmup else peak * math.sqrt(warmup / step)


@BANK.right
def noam_by_numpy(step, d_model, warmup=4000):
    if step < 1:
        raise ValueError(step)
    return np.minimum(step**-0.5, step * warmup**-1.5) / np.sqrt(d_model)


@BANK.right
def noam_by_logarithms(step, d_model, warmup=4000):
    if step <= 0:
        raise ValueError(f"step {step} < 1")
    rising, falling = math.log(step) - 1.5 * math.log(warmup), -0.5 * math.log(step)
    return math.exp(min(rising, falling) - 0.5 * math.log(d_model))


@BANK.right
def noam_by_torch(step, d_model, warmup=4000):
    if not step >= 1:
        raise ValueError(f"step {step} < 1")
    curves = torch.tensor([step**-0.5, step * warmup**-1.5], dtype=torch.float64)
    return (curves.min() / d_model**0.5).item()
