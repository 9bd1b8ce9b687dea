"""Known answers to `additive_mask`: mistakes, then right answers."""

import torch

from autograder.bank import Bank
from autograder.bank.devices import forgotten
from solutions import masking as right

BANK = Bank("additive_mask", right, globals())
INF = float("inf")

BANK.changes("""
polarity_inverted: ~mask → mask
    The large negative number is where the mask is True. True means may attend: there, nothing is
    added.
minus_infinity: torch.finfo(dtype).min → -INF
    −∞ is used where the mask is False. It hides well, but a row with nothing else is NaN after the
    softmax. torch.finfo(dtype).min is the least finite number.
zero_times_infinity
    - allowed.masked_fill(~mask, torch.finfo(dtype).min)
    + (~mask).to(dtype) * -INF
    The mask is multiplied by −∞. Where it is 0 that gives 0 · (−∞), NaN: allowed keys get NaN.
minus_hundred: torch.finfo(dtype).min → -100.0
    −100 is used where the mask is False, in every dtype. A fixed number is too small for large
    scores or too large for float16; torch.finfo(dtype).min is the limit of the given dtype.
minus_ten_thousand: torch.finfo(dtype).min → -1e4
    −10000 is used where the mask is False, in every dtype. A fixed number is too small for large
    scores or too large for float16; torch.finfo(dtype).min is the limit of the given dtype.
minus_1e9
    ~ dtype=dtype → dtype=torch.float64
    ~ torch.finfo(dtype).min → -1e9
    > result = result.to(dtype)
    −1e+09 is used where the mask is False, in every dtype. A fixed number is too small for large
    scores or too large for float16; torch.finfo(dtype).min is the limit of the given dtype.
minus_1e30
    ~ dtype=dtype → dtype=torch.float64
    ~ torch.finfo(dtype).min → -1e30
    > result = result.to(dtype)
    −1e+30 is used where the mask is False, in every dtype. A fixed number is too small for large
    scores or too large for float16; torch.finfo(dtype).min is the limit of the given dtype.
least_of_float32_in_every_dtype
    ~ dtype=dtype → dtype=torch.float64
    ~ finfo(dtype) → finfo(torch.float32)
    > result = result.to(dtype)
    The least float32 is used for every dtype: in float16 it is −∞, and in float64 a moderate
    number.
nothing_added: torch.finfo(dtype).min → 0.0
    Where the mask is False the result is 0, or close to it, and hides nothing. Perhaps the result
    of masked_fill was lost: it returns a new tensor. Or tiny, the smallest positive number, or eps
    was mistaken for torch.finfo(dtype).min, the least number, far below 0.
half_of_the_least: torch.finfo(dtype).min → torch.finfo(dtype).min / 2
    torch.finfo(dtype).min / 2 is used where the mask is False: two of these can be added, but a
    third gives −∞. Use the least number itself.
largest_number: torch.finfo(dtype).min → torch.finfo(dtype).max
    The largest number is used where the mask is False: added to a score, it makes the forbidden key
    win. The minus sign is missing.
one_where_true: torch.zeros → torch.ones
    The result is 1 where the mask is True. It is added to the scores, so what is allowed must get
    0; adding 1 changes every score.
mask_only_converted: allowed.masked_fill(~mask, torch.finfo(dtype).min) → mask.to(dtype)
    The mask's True and False have become 1 and 0. Added to the scores these hide nothing.
dtype_ignored: dtype=dtype → dtype=torch.float32 ; finfo(dtype) → finfo(torch.float32)
    The result is float32 whatever `dtype` says. Added to float16 scores it makes float32 ones, and
    its least number is not theirs.
integers_allowed
    - raise TypeError(f"an additive mask needs a floating-point dtype, not {dtype}")
    + return additive_mask(mask).to(dtype)
    An integer or boolean dtype gives a mask instead of a TypeError. Scores are floating-point
    numbers, and there is no such mask in whole numbers.
value_error_for_type_error: TypeError → ValueError
    An unsuitable dtype raises a ValueError. What is wrong is a type: TypeError.
least_in_float32_then_narrowed: mask.shape, dtype=dtype → mask.shape
    The least number of the dtype is right, but the result is float32: torch.zeros was not told the
    dtype.
mask_changed_in_place: > mask.logical_not_()
    The result is right, but the caller's mask is inverted: logical_not_ writes into it.
boolean_until_the_end
    - allowed = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    - return allowed.masked_fill(~mask, torch.finfo(dtype).min)
    + return torch.zeros_like(mask).masked_fill(~mask, torch.finfo(dtype).min).to(dtype)
    zeros_like(mask) is boolean, as mask is: the very negative number becomes True there, and 1 in
    the end. Give the zeros their dtype at once.
""")


def _checked_dtype(dtype):
    if not dtype.is_floating_point:
        raise TypeError(f"{dtype} is not a floating-point dtype")


@BANK.right
def by_where(mask, dtype=torch.float32):
    least = torch.tensor(torch.finfo(dtype).min, dtype=dtype)  # finfo raises TypeError itself
    return torch.where(mask, torch.zeros((), dtype=dtype), least)


@BANK.right
def by_multiplying(mask, dtype=torch.float32):
    _checked_dtype(dtype)
    return (1 - mask.to(dtype)) * torch.finfo(dtype).min


@BANK.right
def the_other_way_round(mask, dtype=torch.float32):
    result = torch.full(mask.shape, -torch.finfo(dtype).max, dtype=dtype, device=mask.device)
    result[mask] = 0
    return result


@BANK.right
def by_lists(mask, dtype=torch.float32):
    least = torch.finfo(dtype).min
    flat = [0.0 if allowed else least for allowed in mask.flatten().tolist()]
    return torch.tensor(flat, dtype=torch.float64).to(mask.device, dtype).reshape(mask.shape)


@BANK.right
def by_looking_up(mask, dtype=torch.float32):
    if dtype not in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        raise TypeError(str(dtype))
    both = torch.tensor([torch.finfo(dtype).min, 0.0], dtype=dtype, device=mask.device)
    return both[mask.long()]


forgotten(BANK, "mask", numpy=True, result=True)
