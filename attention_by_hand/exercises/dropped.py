"""What dropout leaves of numbers that are known, without what is up to chance."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attention_by_hand.exercises.parameters import layer_state
from attention_by_hand.exercises.shared import State
from autograder.student.authoring import (
    Array,
    Draw,
    Previous,
    Recipe,
    Record,
    Run,
    Step,
    as_argument,
    describe,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped

if TYPE_CHECKING:
    from torch import Tensor

_CALLS = 12


def how_dropped(factors: np.ndarray) -> dict[str, object]:
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


def summed_up(module: Value, ratio: Callable[[Value], np.ndarray], x: Value) -> Value:
    """`how_dropped` of many calls, so that known mistakes can be told apart. It carries no marks,
    since it is made where the answer runs."""
    try:
        return how_dropped(np.stack([ratio(plain(module(x))) for _ in range(_CALLS)]))
    except Exception as error:  # noqa: BLE001  (an answer that cannot do this is judged elsewhere)
        return type(error).__name__


def named(run: Run, draw: Draw, ratio: Recipe, x: Array) -> Run:
    """A run whose result does not depend on chance; `ratio` is a recipe of a function that divides
    a result by what it is without dropout."""
    in_training = replace(run, steps=(Step(method="train"),), training=True)
    summed = in_training.then_apply(as_argument(summed_up), Previous(0), ratio, x)
    return replace(summed, seed=draw.integer(0, 10**6))


# --- a layer whose last norm shows what was dropped before it ------------------------------------

WIDTH = 12
_TALL = 4.0


def steps(draw: Draw, scale: float, attentions: Sequence[str]) -> State:
    """Parameters with which the feed-forward network adds the same numbers at every position, 0 in
    the first two features, to a vector that is 0 except in the first."""
    state = layer_state(draw, WIDTH, 1, attentions)
    zeros, first = np.zeros(WIDTH), _TALL * (np.arange(WIDTH) == 0)
    still = {"norm1.weight": zeros, "norm1.bias": first, "linear2.bias": zeros}
    still |= {"linear1.weight": np.zeros((1, WIDTH)), "linear1.bias": np.full(1, scale)}
    last = f"norm{len(attentions) + 1}"
    still |= {f"{last}.weight": np.ones(WIDTH), f"{last}.bias": zeros}
    added = draw.uniform(1.0, 2.0, WIDTH, 1) / scale
    added[:2] = 0.0
    return state | {n: tensor(a, "float32") for n, a in (still | {"linear2.weight": added}).items()}


def factors(y: np.ndarray, column: np.ndarray) -> np.ndarray | None:
    """By what the numbers of the column were multiplied before they were added."""
    tall = y[..., :1] - y[..., 1:2]  # what the norm has made of _TALL
    return _TALL * (y[..., 2:] - y[..., 1:2]) / tall / column if (tall > 1e-3).all() else None


def over_column(column: "Tensor", scale: "Tensor") -> Callable[[Value], np.ndarray | None]:
    """Finds these factors in a result."""
    return lambda result: factors(result, numbers_of(column)[2:, 0] * numbers_of(scale))


def by_factors(
    problem: Callable[[np.ndarray, float], str | None],
) -> Callable[[Run, Record], str | None]:
    """Judges by `problem(factors, p)` what calls in training drop of what the feed-forward adds."""

    def judge(run: Run, record: Record) -> str | None:
        if not run.random:  # carries no marks, but tells known mistakes apart
            return None
        column = numbers_of(run.parameters["linear2.weight"])[2:, 0]
        column = column * numbers_of(run.parameters["linear1.bias"])
        shape = run.steps[0].args[0].data.shape
        results = [plain(value) for value in record.values]
        if not all_shaped(results, shape):
            return f"the result: expected shape {shape}, got {describe(record.value)}"
        factor = factors(np.stack(results), column)
        if factor is None:
            return "with norm1 giving the same vector everywhere, the result does not show it"
        p = run.constructor.kwargs["dropout"]
        dropped = np.abs(factor) < 1e-3
        if not dropped.any() or dropped.all():
            whole = "everything" if dropped.any() else "nothing"
            return f"in training with dropout {p}, {whole} that the feed-forward adds is dropped"
        if (dropped[0] == dropped[1]).all():
            return "two calls in training drop the same numbers"
        return problem(factor, p)

    return judge


# --- a sum of numbers that are all alike ---------------------------------------------------------


def dropped_once(results: np.ndarray, p: float = 0.5) -> str | None:
    """What dropout has left of numbers that were all alike, the last axis: zeros and one other
    number. Scale and shift are up to what comes after it."""
    lowest = results - results.min(-1, keepdims=True)
    parts = np.sort(lowest / np.maximum(lowest.max(-1, keepdims=True), 1e-6), -1)
    if (np.abs(parts - np.round(parts)) > 1e-3).any():
        return (
            f"in training with dropout {p}, numbers that are all alike come out as several: "
            "expected zeros and one other number, as from one dropout on the sum"
        )
    if not (np.ptp(results, -1) > 1e-3).any():
        return f"in training with dropout {p}, nothing of the sum is dropped, or whole tokens are"
    return None
