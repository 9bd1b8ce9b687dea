"""Inputs, parameters and properties that exercises of several chapters share."""

from typing import Any

import numpy as np

from autograder.engine.aspects import part, plain
from autograder.engine.runs import Array, Draw, Record, Run

State = dict[str, Array]

# --- inputs and parameters ----------------------------------------------------------------------


def qkv(
    draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    """Query, key and value, with scores of about ±√d_k."""
    shapes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    return tuple(draw.tensor(*batch, *shape, dtype=dtype) for shape in shapes)


def random_mask(draw: Draw, *shape: int) -> np.ndarray:
    """A boolean mask with at least one True and one False in every row."""
    mask = draw.integers(0, 1, *shape).astype(bool)
    for row in mask.reshape(-1, shape[-1]):
        row[draw.permutation(shape[-1])[:2]] = [True, False]
    return mask


def linear_state(
    draw: Draw,
    name: str,
    n_out: int,
    n_in: int,
    dtype: str = "float32",
    *,
    scale: float = 1.0,
    bias: float = 0.5,
) -> State:
    """Parameters of an `nn.Linear` called `name`."""
    return {
        f"{name}.weight": draw.tensor(n_out, n_in, scale=scale * n_in**-0.5, dtype=dtype),
        f"{name}.bias": draw.tensor(n_out, scale=bias, dtype=dtype),
    }


def itself(thing: Any) -> Any:
    """The argument itself: as a step, makes it a result that later steps can use again."""
    return thing


# --- properties ---------------------------------------------------------------------------------


def all_finite(run: Run, record: Record) -> str | None:
    """Output, weights and gradients are finite."""
    arrays = [plain(part(record.value, i)) for i in (0, 1)]
    arrays += map(plain, record.gradients.values())
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "an output, a weight or a gradient is missing or not finite"


_DROPPED = 1e-3  # a smaller share of a number counts as dropped


def wrong_share(ratio: np.ndarray, p: float, what: str, within: float) -> str | None:
    """What is wrong with the share that several calls in training mode drop, if anything.

    `ratio[i]` is what call i leaves of each number, divided by that number.
    """
    dropped = np.abs(ratio) < _DROPPED
    if not dropped.any():
        return f"in training mode with dropout {p}, no {what} is dropped"
    if (dropped[0] == dropped[1]).all():
        return f"two calls in training mode drop the same {what}s"
    share = float(dropped.mean())
    off = not abs(share - p) <= within
    return f"{what}s dropped: expected {p:.0%}, got {share:.0%}" if off else None


def wrong_factor(ratio: np.ndarray, p: float, what: str) -> str | None:
    """What is wrong with the factor by which the numbers that are kept grow, if anything."""
    kept, factor = ratio[~(np.abs(ratio) < _DROPPED)], 1 / (1 - p)
    if kept.size == 0:
        return f"in training mode every {what} is dropped"
    farthest = kept[np.argmax(np.abs(kept - factor))]
    if abs(farthest - factor) < 1e-3 * factor:
        return None
    wanted = f"1 / (1 − {p}) = {factor:.3g}"
    return f"the factor of a {what} that is kept: expected {wanted}, got {farthest:.3g}"
