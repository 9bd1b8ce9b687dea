"""`multi_head_numpy`: several heads in NumPy."""

import numpy as np

from autograder.student.authoring import Declaration, Draw, Record, Run, StridedArray, call, plain

EXERCISE = Declaration(
    "multi_head_numpy", "Several heads in NumPy", ("query", "key", "value", "num_heads")
)


def _three(draw: Draw, n_q: int, n_k: int, d: int, scale: float = 1.0) -> tuple:
    return draw.normal(n_q, d, scale=scale), draw.normal(n_k, d), draw.normal(n_k, d)


@EXERCISE.equals("outputs where n_q ≠ n_k", 1.25)
def _runs(draw: Draw) -> list[Run]:
    """In each head's slice of the columns: scores q kᵀ / √d_k with d_k = d / H, a softmax over the
    keys, then the weighted sum of the values. A head's output takes the same columns of the
    result."""
    query, key, value = _three(draw, 4, 3, 6)
    return [
        call(*_three(draw, 3, 6, 8), 2),
        call(*_three(draw, 5, 2, 6), 3),
        call(num_heads=2, value=value, key=key, query=query),
        call(*_three(draw, 1, 5, 4), 2),
        call(*_three(draw, 2, 1, 4), 2),
        call(*_three(draw, 70, 2, 2), 2),
        call(*_three(draw, 2, 70, 2), 2),
        call(*(1e-3 * a for a in _three(draw, 2, 3, 4)), 2),
    ]


@EXERCISE.equals("also where a wrong order of axes has the right shape", 0.75)
def _square(draw: Draw) -> list[Run]:
    """First split (n, d) into (n, H, d_k), then swap the axes to (H, n, d_k); afterwards, undo both
    in reverse."""
    return [call(*_three(draw, 4, 4, 8), 4), call(*_three(draw, 2, 2, 8), 2)]


def _stays_in_its_head(run: Run, record: Record) -> str | None:
    before, after = (plain(value) for value in record.values)
    if before is None or after is None or before.shape != (3, 6) or after.shape != (3, 6):
        return "expected an array of shape (n_q, d)"
    moved = np.abs(after - before).max(axis=0)
    if moved[[0, 1, 4, 5]].max() > 1e-9:
        return "changing features 2 and 3 of keys and values, those of head 1, changed another head"
    return None if moved[[2, 3]].min() > 1e-6 else "changing head 1's features changed nothing"


@EXERCISE.holds("a head sees only its own features", 0.5, _stays_in_its_head, only_if_right=True)
def _perturbed(draw: Draw) -> list[Run]:
    """Features h·d_k … (h + 1)·d_k − 1 belong to head h. They must not affect any other head."""
    query, key, value = _three(draw, 3, 5, 6)
    other_key, other_value = key.copy(), value.copy()
    other_key[:, 2:4] += draw.normal(5, 2)
    other_value[:, 2:4] += draw.normal(5, 2)
    return [call(query, key, value, 3).then(query, other_key, other_value, 3)]


@EXERCISE.equals("one head, and one feature per head", 0.5)
def _ends(draw: Draw) -> list[Run]:
    """With one head this is plain attention, scaled by √d; with d heads, √d_k is 1."""
    return [call(*_three(draw, 3, 4, d), heads) for d, heads in ((5, 1), (5, 5), (1, 1))]


@EXERCISE.equals("scores of ±10,000", 0.5)
def _large(draw: Draw) -> list[Run]:
    """exp overflows from 710 on: subtract each row's largest score first."""
    return [
        call(*_three(draw, 3, 5, 6, scale=1e4), 2),
        call(draw.normal(2, 4) - 5e3, np.abs(draw.normal(3, 4)) + 1.0, draw.normal(3, 4), 2),
    ]


@EXERCISE.keeps_dtypes(0.2)
def _dtypes(draw: Draw) -> list[Run]:
    """float32 stays float32: np.sqrt(d_k) is a NumPy float64, which widens what it divides; a
    Python float does not. Integers give float64."""
    single = [a.astype("float32") for a in _three(draw, 2, 3, 4)]
    return [call(*single, 2), call(*(draw.integers(-2, 2, n, 4) for n in (2, 3, 3)), 2)]


@EXERCISE.equals("non-contiguous views", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view."""
    return [call(*(StridedArray(a) for a in _three(draw, 3, 4, 6)), 2)]


EXERCISE.leaves_inputs_alone(0.1, _runs, _large)
EXERCISE.leaves_state_alone(0.1, _runs)
