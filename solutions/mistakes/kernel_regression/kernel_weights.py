"""Known answers to `kernel_weights`: mistakes, then right answers."""

import math

import numpy as np
import torch

from autograder.bank import Bank
from solutions import kernel_regression as right

BANK = Bank("kernel_weights", right, globals())

BANK.changes("""
normalised_over_queries: axis=-1 → axis=0 ×2
    The sum runs over the queries, so each column of the weights sums to 1. It has to run over the
    keys, so that each row does.
not_normalised
    - softmax(-0.5 * u**2, axis=-1)
    + np.exp(-0.5 * u**2)
    - support / np.where(total == 0, 1, total)
    + support
    The kernel is returned without being divided by its sum over the keys: the rows do not sum to 1.
softmax_of_the_kernel
    - softmax(-0.5 * u**2, axis=-1)
    + softmax(np.exp(-0.5 * u**2))
    - support / np.where(total == 0, 1, total)
    + softmax(support)
    The values of the kernel are put through a softmax, which gives weight even to keys out of
    reach. Only the Gaussian comes from an exponential; the others are divided by their sum.
divided_by_w: key[None, :]) * float(w) → key[None, :]) / w
    The distance is divided by w instead of multiplied: a larger w reaches more keys, where it
    should reach fewer. u is (x − x_i) w.
w_ignored: key[None, :]) * float(w) → key[None, :]) * 1.0
    The argument w is not used: the weights are those of w = 1.
gaussian_half_forgotten: -0.5 * u**2 → -(u**2)
    The Gaussian lacks its factor ½: exp(−u²) is narrower than exp(−½u²). The other two kernels are
    right.
absolute_value_forgotten: np.abs(u) <= 1 → u <= 1
    The boxcar tests u ≤ 1 without the absolute value: every key above the query counts as near,
    however far away it is.
edge_left_out: np.abs(u) <= 1 → np.abs(u) < 1
    The boxcar leaves out its edge: a key at exactly |u| = 1 should still count.
boxcar_half_as_wide: np.abs(u) <= 1 → np.abs(u) <= 0.5
    The boxcar ends at |u| = ½ and is 1 wide in all. It should end at |u| = 1; keys between the two
    get no weight.
negative_weights: np.maximum(0.0, 1 - u**2) → 1 - u**2
    The Epanechnikov kernel is not cut off at 0: beyond |u| = 1, 1 − u² is negative, and so are the
    weights of distant keys.
cut_off_after_dividing: np.maximum(0.0, 1 - u**2) → 1 - u**2 ; > result = np.maximum(0.0, result)
    The Epanechnikov weights are divided by their sum first and cut off at 0 afterwards: the
    negative ones are part of the sum, so the rows do not sum to 1.
triangle_for_epanechnikov: 1 - u**2 → 1 - np.abs(u)
    u is not squared in the Epanechnikov kernel: max(0, 1 − |u|) is a triangle, max(0, 1 − u²) a
    parabola.
empty_row_gives_nan: np.where(total == 0, 1, total) → total
    Right, except for a query with no key in reach: its weights and their sum are all 0, and 0/0 is
    NaN. Such a row should be all zeros.
empty_row_gives_uniform
    > result = np.where(result.any(axis=-1, keepdims=True), result, 1 / len(key))
    Right, except for a query with no key in reach: every key gets the same weight, where all its
    weights should be 0.
unknown_kernel_accepted
    - raise ValueError(f"kernel must be gaussian, boxcar or epanechnikov, not {kernel!r}")
    + support = np.maximum(0.0, 1 - u**2)
    A kernel of another name is silently taken for one of the three. It should raise a ValueError.
unknown_kernel_gives_none
    - raise ValueError(f"kernel must be gaussian, boxcar or epanechnikov, not {kernel!r}")
    + return None
    A kernel of another name falls through all the cases, and the function returns None. It should
    raise a ValueError.
unknown_kernel_raises_key_error
    - raise ValueError(f"kernel must be gaussian, boxcar or epanechnikov, not {kernel!r}")
    + raise KeyError(kernel)
    A kernel of another name raises the KeyError of a dictionary. It should raise a ValueError: what
    is wrong is the caller's argument.
gaussian_underflows
    - softmax(-0.5 * u**2, axis=-1)
    + (support := np.exp(-0.5 * u**2)) / support.sum(axis=-1, keepdims=True)
    Right, except for the Gaussian far from every key: all its exponentials vanish there, and 0/0 is
    NaN. A softmax subtracts the largest exponent first.
gaussian_far_away_is_zero
    - return softmax(-0.5 * u**2, axis=-1)
    + support = np.exp(-0.5 * u**2)
    - if kernel == "boxcar":
    + elif kernel == "boxcar":
    Right, except for the Gaussian far from every key: all its exponentials vanish, and the row is
    all zeros. The Gaussian reaches every key, so its rows sum to 1.
float32_widened: .astype(u.dtype) → .astype(np.float64)
    float32 queries and keys give float64 weights, with the boxcar at least: a comparison divided by
    whole numbers is float64. The weights have the dtype of the distances.
changes_query_in_place
    > if query.dtype.kind == "f":
    >     query *= w
    The weights are right, but the caller's query is changed: `*=` writes into the array that was
    passed in.
nearest_key_where_none_is_in_reach
    - total = support.sum(axis=-1, keepdims=True)
    + empty = support.sum(axis=-1) == 0
    + support[empty, np.abs(u).argmin(axis=-1)[empty]] = 1
    + total = support.sum(axis=-1, keepdims=True)
    A query with no key in reach gets its nearest key. The row should stay all zeros: the kernel
    says that no key has a say.
""")


def _kernels(u):
    """The three kernels of u, none of them divided by its sum, and the Gaussian's largest 1."""
    return {
        "gaussian": np.exp(-0.5 * (u**2 - (u**2).min(axis=-1, keepdims=True))),
        "boxcar": (np.abs(u) <= 1).astype(u.dtype),
        "epanechnikov": np.maximum(0.0, 1 - u**2),
    }


def _chosen(u, kernel, **otherwise):
    if kernel not in ("gaussian", "boxcar", "epanechnikov"):
        raise ValueError(kernel)
    return (_kernels(u) | otherwise)[kernel]


def _rows_of_one(weights, axis=-1):
    total = weights.sum(axis=axis, keepdims=True)
    return weights / np.where(total == 0, 1, total)


def _u(query, key, w):
    return np.subtract.outer(query, key) * float(w)


@BANK.right
def from_a_dictionary(query, key, kernel, w=1.0):
    if kernel not in (known := _kernels(_u(query, key, w))):
        raise ValueError("no such kernel")
    weights = known[kernel]
    return np.divide(
        weights,
        weights.sum(axis=1, keepdims=True),
        out=np.zeros_like(weights),
        where=weights.any(axis=1, keepdims=True),
    )


@BANK.right
def in_two_loops(query, key, kernel, w=1.0):
    weights = np.zeros((len(query), len(key)), _u(query, key, w).dtype)
    for i, x in enumerate(query):
        for j, x_i in enumerate(key):
            u = abs(x - x_i) * w
            if kernel == "gaussian":
                weights[i, j] = np.exp(-0.5 * (u * u - min((x - key) ** 2) * w**2))
            elif kernel == "boxcar":
                weights[i, j] = 1 if u <= 1 else 0
            elif kernel == "epanechnikov":
                weights[i, j] = 1 - u * u if u < 1 else 0
            else:
                raise ValueError(f"unknown kernel: {kernel}")
        if weights[i].sum() > 0:
            weights[i] /= weights[i].sum()
    return weights


@BANK.right
def densities(query, key, kernel, w=1.0):
    u = _u(query, key, w)
    if kernel == "gaussian":
        density = w * np.exp(-0.5 * (u**2 - (u**2).min(-1)[:, None])) / math.sqrt(2 * np.pi)
    elif kernel == "boxcar":
        density = np.where((u >= -1) & (u <= 1), w / 2, 0).astype(u.dtype)
    elif kernel == "epanechnikov":
        density = 0.75 * w * np.clip(1 - u**2, 0, None)
    else:
        raise ValueError
    total = density.sum(-1, keepdims=True)
    return np.where(total > 0, density / np.where(total > 0, total, 1), 0)


@BANK.right
def nan_replaced_at_the_end(query, key, kernel, w=1.0):
    weights = _chosen(_u(query, key, w), kernel)
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(weights / weights.sum(-1, keepdims=True))


@BANK.right
def by_torch(query, key, kernel, w=1.0):
    x, x_i = (torch.tensor(np.array(a), dtype=torch.float64) for a in (query, key))
    u = (x.unsqueeze(1) - x_i) * w
    match kernel:
        case "gaussian":
            return torch.softmax(-(u**2) / 2, 1).numpy().astype(_u(query, key, w).dtype)
        case "boxcar":
            weights = (u.abs() <= 1).double()
        case "epanechnikov":
            weights = torch.relu(1 - u**2)
        case _:
            raise ValueError(f"{kernel!r} is no kernel")
    weights = torch.nn.functional.normalize(weights, p=1, dim=1).numpy()
    return weights.astype(_u(query, key, w).dtype)
