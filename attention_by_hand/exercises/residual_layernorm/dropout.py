"""Judging random drops by what all right answers have in common."""

import itertools
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from autograder.student.authoring import (
    Array,
    Draw,
    Finding,
    Previous,
    Run,
    Step,
    Trial,
    as_argument,
    plain,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped

if TYPE_CHECKING:
    from torch import Tensor

P = 0.25  # the dropout probability of the runs below


CALLS = 24


def pattern(factors: np.ndarray) -> tuple[float, str, tuple[bool, ...]]:
    """What became of entries that were 1: the share of zeros, the value of the others, what varies.

    The last part says for each axis whether zeros and other entries alternate along it.
    """
    dropped = np.abs(factors) < 1e-6
    kept = factors[~dropped]
    low, high = (float(kept.min()), float(kept.max())) if kept.size else (0.0, 0.0)
    scale = f"{high:.3f}" if high - low < 1e-3 else "different numbers"
    varies = [bool((dropped.any(i) & ~dropped.all(i)).any()) for i in range(dropped.ndim)]
    return float(dropped.mean()), scale, tuple(varies)


def numbers_vary(factors: np.ndarray) -> bool:
    """Whether calls drop different numbers of samples; `factors` is (calls, samples, …).

    With 64 calls, four samples and p from 0.2 to 0.8, chance alone keeps the number the same in
    fewer than one of 10²⁰ trials.
    """
    dropped = (np.abs(factors) < 1e-6).reshape(*factors.shape[:2], -1).all(axis=-1)
    return bool(np.ptp(dropped.sum(axis=1)) > 0)


def next_numbers() -> "Tensor":
    """What torch's generator draws next."""
    import torch

    return torch.rand(4)


def quarters(share: float) -> float:
    return round(4 * share) / 4


def summed_up(module: Value, summary: str, x: Value, calls: int) -> Value:
    """A summary of many calls that does not depend on chance, so that known mistakes can be told
    apart. It carries no marks, since it is made where the answer runs."""
    outputs = [plain(module(x)) for _ in range(calls)]
    given = numbers_of(x)
    if not all_shaped(outputs, given.shape):
        return _NO_SHAPE
    return _SUMMARIES[summary](given, outputs), _heeds_the_seed(module, x, calls)


def _heeds_the_seed(module: Value, x: Value, calls: int) -> bool | None:
    """Whether copies of a module give something else under another seed; None if it has none."""
    import torch

    try:
        drew = []
        for seed in range(2):
            torch.manual_seed(seed)
            copy = deepcopy(module)
            drew.append(np.stack([numbers_of(copy(x)) for _ in range(calls)]))
        return bool((drew[0] != drew[1]).any())
    except Exception:  # noqa: BLE001  (a module that cannot be copied)
        return None


_NO_SHAPE = "the result does not have the shape of x"


def drawn_calls(run: Run, draw: Draw, x: Array, calls: int) -> Run:
    """Calls in training mode, judged by what all right results have in common."""
    for _ in range(calls):
        run = run.then(x)
    return run.in_training().at_random(draw)


def for_the_name(run: Run, draw: Draw, summary: str, x: Array, calls: int = CALLS) -> Run:
    """The same as a summary on which two answers can agree, to recognise a known mistake."""
    modules = replace(run, steps=(Step(method="train"),), training=True)
    summed = modules.then_apply(as_argument(summed_up), Previous(0), summary, x, calls)
    return replace(summed, seed=draw.integer(0, 10**6))


Problem = Callable[[Trial, np.ndarray, list[np.ndarray]], str | None]


def in_draws(problem: Problem) -> Callable[[Trial], Finding]:
    """Judges by `problem(trial, x, outputs)`: what is wrong with the results of a random run."""

    def judge(trial: Trial) -> Finding:
        if not trial.run.random:  # carries no marks, but tells known mistakes apart
            return Finding(True)
        x, outputs = numbers_of(trial.run.steps[0].args[0]), [plain(y) for y in trial.record.values]
        line = problem(trial, x, outputs) if all_shaped(outputs, x.shape) else _NO_SHAPE
        return Finding(False, line) if line else Finding(True)

    return judge


def hidden_features(_: np.ndarray, outputs: Sequence[np.ndarray]) -> tuple:
    """`pattern` of the hidden features, which are all 1 and appear in the output one by one; the
    output's last entry is their sum, and the second part says whether it agrees."""
    stacked = np.stack(outputs)
    hidden, total = stacked[..., :-1], stacked[..., -1]
    share, *others = pattern(hidden)
    return (quarters(share), *others), bool((np.abs(hidden.sum(-1) - total) < 1e-3).all())


def wrong_scale(scale: str, p: float) -> str | None:
    wanted = f"{1 / (1 - p):.3f}"
    if scale == wanted:
        return None
    return f"the factor of what is kept: expected 1 / (1 − {p}) = {wanted}, got {scale}"


def parts_of_the_stairs(x: np.ndarray, outputs: Sequence[np.ndarray]) -> tuple | None:
    """Where dropout acts, the share of a `staircase`'s outputs it dropped, and the factor of the
    others; None if no choice of dropped entries explains the outputs.

    Normalising a token only scales and shifts it: before and after correlate fully.
    """
    d = x.shape[-1]
    y = np.stack(outputs).reshape(-1, 1, d)
    start = np.stack([x] * len(outputs)).reshape(-1, 1, d)
    choices = np.array([*itertools.product((0.0, 1.0), repeat=d)])  # (2^d, d)
    for scale in (1 / (1 - P), 1.0, 1 / P):
        candidates = start + scale * choices * np.arange(1.0, d + 1)
        exact = np.abs(candidates - y).max(-1)
        normed = 1 - _correlation(candidates, y)
        for how, distance in (("added to x", exact), ("added to x, then normalised", normed)):
            if distance.min(1).max() < 1e-8:
                share = 1 - float(choices[distance.argmin(1)].mean())
                return how, quarters(share), f"{scale:.3f}"
    return None


def _correlation(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = a - a.mean(-1, keepdims=True), b - b.mean(-1, keepdims=True)
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return (a * b).sum(-1) / np.where(lengths > 0, lengths, 1.0)


def _paths(x: np.ndarray, outputs: Sequence[np.ndarray]) -> tuple:
    """`pattern` of the factors of x, and what x becomes where it is kept."""
    made = np.stack(outputs)
    share, *others = pattern(made / x)
    kept = made.max(0)  # x is positive
    kept = np.where(kept == 0, (made / x).max() * x, kept)  # a sample that no call kept
    return (quarters(share), *others, numbers_vary(made / x)), np.float32(kept)


_SUMMARIES = {"features": hidden_features, "stairs": parts_of_the_stairs, "paths": _paths}
