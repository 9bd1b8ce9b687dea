"""What dropout leaves of numbers that are known, without what is up to chance."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import plain
from autograder.engine.runs import Draw, Previous, Run, Step, as_argument

_CALLS = 12


def how_dropped(factors: np.ndarray) -> dict[str, Any]:
    """The share of numbers dropped, in tenths; the factor of the others; how much of a token, the
    last axis, goes at a time. `factors` are results divided by what they are without dropout."""
    gone = np.abs(factors) < 1e-3
    kept = factors[~gone]
    low, high = (float(kept.min()), float(kept.max())) if kept.size else (0.0, 0.0)
    whole, mixed = bool(gone.all(-1).any()), bool((gone.any(-1) & ~gone.all(-1)).any())
    return {
        "share": round(10 * float(gone.mean())),
        "factor": f"{high:.2f}" if high - low < 0.02 * high else "several",
        "tokens": "whole" if whole and not mixed else "in part" if mixed else "",
        "calls": bool((gone != gone[:1]).any()),
    }


def summed_up(module: Any, ratio: Callable[[Any], np.ndarray], x: Any) -> Any:
    """`how_dropped` of many calls, so that known mistakes can be told apart. It carries no marks,
    since it is made where the answer runs."""
    try:
        return how_dropped(np.stack([ratio(plain(module(x))) for _ in range(_CALLS)]))
    except Exception as error:  # noqa: BLE001  (an answer that cannot do this is judged elsewhere)
        return type(error).__name__


def named(run: Run, draw: Draw, ratio: Any, x: Any) -> Run:
    """A run whose result does not depend on chance; `ratio` is a recipe of a function that divides
    a result by what it is without dropout."""
    in_training = replace(run, steps=(Step(method="train"),), training=True)
    summed = in_training.then_apply(as_argument(summed_up), Previous(0), ratio, x)
    return replace(summed, seed=draw.integer(0, 10**6))
