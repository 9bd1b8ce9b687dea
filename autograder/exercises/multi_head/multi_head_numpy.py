"""`multi_head_numpy`: several heads in NumPy."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    has_property,
    inputs_untouched,
    no_side_effects,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, Strided, call


def _three(draw: Draw, n_q: int, n_k: int, d: int, scale: float = 1.0) -> tuple:
    return draw.normal(n_q, d, scale=scale), draw.normal(n_k, d), draw.normal(n_k, d)


def _numpy_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _three(draw, 4, 3, 6)
    return [
        call(*_three(draw, 3, 6, 8), 2),
        call(*_three(draw, 5, 2, 6), 3),
        call(num_heads=2, value=value, key=key, query=query),
        call(*_three(draw, 1, 5, 4), 2),
    ]


def _numpy_square(draw: Draw) -> Sequence[Run]:
    return [call(*_three(draw, 4, 4, 8), 4), call(*_three(draw, 2, 2, 8), 2)]


def _numpy_ends(draw: Draw) -> Sequence[Run]:
    return [call(*_three(draw, 3, 4, 5), 1), call(*_three(draw, 3, 4, 5), 5)]


def _numpy_large(draw: Draw) -> Sequence[Run]:
    return [
        call(*_three(draw, 3, 5, 6, scale=1e4), 2),
        call(draw.normal(2, 4) - 5e3, np.abs(draw.normal(3, 4)) + 1.0, draw.normal(3, 4), 2),
    ]


def _numpy_perturbed(draw: Draw) -> Sequence[Run]:
    query, key, value = _three(draw, 3, 5, 6)
    other_key, other_value = key.copy(), value.copy()
    other_key[:, 2:4] += draw.normal(5, 2)
    other_value[:, 2:4] += draw.normal(5, 2)
    return [call(query, key, value, 3).then(query, other_key, other_value, 3)]


def _numpy_stays_in_its_head(run: Run, record: Record) -> str | None:
    before, after = (plain(value) for value in record.values)
    if before is None or after is None or before.shape != (3, 6) or after.shape != (3, 6):
        return "the result is not an array of shape (n_q, d)"
    moved = np.abs(after - before).max(axis=0)
    if moved[[0, 1, 4, 5]].max() > 1e-9:
        return "changing features 2 and 3 of keys and values, those of head 1, moved another head"
    return None if moved[[2, 3]].min() > 1e-6 else "changing head 1's features changed nothing"


def _numpy_dtypes(draw: Draw) -> Sequence[Run]:
    single = [a.astype("float32") for a in _three(draw, 2, 3, 4)]
    return [call(*single, 2), call(*(draw.integers(-2, 2, n, 4) for n in (2, 3, 3)), 2)]


def _numpy_strided(draw: Draw) -> Sequence[Run]:
    return [call(*(Strided(a) for a in _three(draw, 3, 4, 6)), 2)]


MULTI_HEAD_NUMPY = Exercise(
    "multi_head_numpy",
    "Several heads in NumPy",
    ("query", "key", "value", "num_heads"),
    (
        equals_reference(
            "outputs where n_q ≠ n_k",
            1.25,
            "In each head's slice of the columns: scores q kᵀ / √d_k with d_k = d / H, softmax "
            "over the keys, times v. The head's output stands in the same columns of the result.",
            _numpy_runs,
        ),
        equals_reference(
            "also where a wrong order has the right shape",
            0.75,
            "(n, d) is cut to (n, H, d_k) first and its axes exchanged to (H, n, d_k) then; "
            "afterwards the same backwards.",
            _numpy_square,
        ),
        has_property(
            "a head sees only its own features",
            0.5,
            "Features h·d_k … (h + 1)·d_k − 1 belong to head h. No other head may notice them.",
            _numpy_perturbed,
            _numpy_stays_in_its_head,
            only_if_right=True,
        ),
        equals_reference(
            "one head, and one feature per head",
            0.5,
            "With one head this is plain attention, scaled by √d; with d heads, √d_k is 1.",
            _numpy_ends,
        ),
        equals_reference(
            "scores of ±10,000",
            0.5,
            "exp overflows from 710 on: subtract the largest score of each row first.",
            _numpy_large,
        ),
        dtypes_kept(
            0.2,
            "float32 stays float32: np.sqrt(d_k) is a float64 number and widens what it divides; "
            "math.sqrt(d_k) and d_k**0.5 do not. Integers give float64.",
            _numpy_dtypes,
        ),
        equals_reference(
            "views that are not contiguous", 0.1, "reshape takes any view.", _numpy_strided
        ),
        inputs_untouched(0.1, lambda d: [*_numpy_runs(d), *_numpy_large(d)]),
        no_side_effects(0.1, _numpy_runs),
    ),
)
