"""`linear_attention`: attention whose cost grows with the length, not with its square."""

import numpy as np

from attention_by_hand.exercises.shared import makes_nothing_larger, qkv
from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call, tensor

EXERCISE = Declaration("linear_attention", "Linear attention", ("query", "key", "value", "causal"))


@EXERCISE.equals("every query sees every key", 0.7)
def _runs(draw: Draw) -> list[Run]:
    """φ(x) = elu(x) + 1, of queries and keys. Sum φ(k_j)ᵀ v_j over the keys, a matrix (d_k, d_v),
    and φ(k_j), a vector; φ(q_i) times the first, divided by φ(q_i) · the second."""
    query, key, value = qkv(draw, 3, 4, 2, 3, 2)
    return [
        call(*qkv(draw, 3, 5, 4, 2)),
        call(*qkv(draw, 4, 2, 3, 5, 2), False),
        call(value=value, key=key, query=query, causal=False),
        call(*qkv(draw, 3, 3, 3, 3, 3)),
        call(*qkv(draw, 2, 70, 3, 2, 1)),
        call(*qkv(draw, 70, 2, 2, 1)),
        call(*qkv(draw, 3, 4, 2, 2)[:2], draw.tensor(4, 2, scale=1e-3)),
    ]


@EXERCISE.equals("causal", 0.7)
def _causal(draw: Draw) -> list[Run]:
    """Both sums run over the keys up to the query's own position, itself included, so there is a
    matrix and a vector for each position."""
    query, key, value = qkv(draw, 4, 4, 3, 2, 2)
    return [
        call(*qkv(draw, 5, 5, 3, 4), True),
        call(value=value, key=key, query=query, causal=True),
        call(*qkv(draw, 3, 3, 3, 3, 3), causal=True),
        call(*qkv(draw, 70, 70, 2, 1), True),
    ]


@EXERCISE.equals("one query, one key, one feature", 0.2)
def _single(draw: Draw) -> list[Run]:
    """With one key, every query gets its value, whatever the scores."""
    return [
        call(*qkv(draw, 1, 1, 1, 1)),
        call(*qkv(draw, 1, 4, 2, 3, 1)),
        call(*qkv(draw, 3, 1, 2, 1, 2)),
        call(*qkv(draw, 1, 1, 2, 3, 2), True),
        call(*qkv(draw, 4, 4, 1, 1, 1), True),
    ]


@EXERCISE.equals("any leading axes, and views", 0.2)
def _shapes(draw: Draw) -> list[Run]:
    """Positions are the last axis but one, features the last; count axes from the end."""
    return [
        call(*qkv(draw, 3, 4, 2, 5, 2, 3)),
        call(*qkv(draw, 3, 3, 2, 4, 3, 1, 2), True),
        call(*map(StridedArray, qkv(draw, 4, 3, 2, 3, 2))),
        call(*map(StridedArray, qkv(draw, 4, 4, 2, 3, 2)), True),
    ]


@EXERCISE.gradients("gradients reach query, key and value", 0.4)
def _backward(draw: Draw) -> list[Run]:
    """Queries and keys count twice, above the fraction line and below it."""
    return [
        call(*qkv(draw, 3, 4, 2, 3, 2, dtype="float64")),
        call(*qkv(draw, 4, 4, 3, 2, dtype="float64"), True),
    ]


@EXERCISE.raises(
    "causal, with more queries than keys or fewer",
    0.25,
    ValueError,
    naming=lambda run: [a.data.shape[-2] for a in run.steps[0].args[:2]],
)
def _uneven(draw: Draw) -> list[Run]:
    """Nothing then says up to which key a query may see: raise a ValueError that names both
    numbers. Without `causal`, any two numbers will do.
    """
    return [
        call(*qkv(draw, 6, 9, 2, 3), True),
        call(*qkv(draw, 7, 4, 5, 2, 3), causal=True),
        call(*qkv(draw, 1, 8, 3, 3, 2), causal=True),
    ]


@EXERCISE.equals("keys and values first", 0.55, only_if_right=True)
def _lost_in_a_table(draw: Draw) -> list[Run]:
    """A table rounds φ(q)·φ(k) before the values come in: beside 2^27, all that the keys differ by
    is lost. In φ(q) (φ(k)ᵀ v), keys meet values first, and nothing is lost."""
    return [_nearly_alike(draw, 3, 4), _nearly_alike(draw, 4, 6, causal=False)]


def _nearly_alike(draw: Draw, n_q: int, n_k: int, **causal: bool) -> Run:
    """Keys that are alike in the feature that counts, and values that then add up to 0. What is
    left comes of the other feature. In powers of 2, so that no order of the sums rounds."""
    query = np.stack([2.0 ** draw.integers(27, 30, n_q), np.zeros(n_q)], axis=-1)
    key = np.stack([np.zeros(n_k), np.resize([0.0, 1.0, 2.0, 0.0], n_k)], axis=-1)
    half = 2.0 ** draw.integers(29, 31, n_k // 2, 2)
    value = np.stack([half, -half], axis=1).reshape(n_k, 2)
    return call(*(tensor(x, "float32") for x in (query, key, value)), **causal)


def _half_a_table(run: Run) -> int:
    query, key = (array.data.shape for array in run.steps[0].args[:2])
    return query[-2] * key[-2] // 2


EXERCISE.add(
    makes_nothing_larger(
        "no table of queries and keys",
        0.2,
        "φ(q) (φ(k)ᵀ v) is (φ(q) φ(k)ᵀ) v, without a number for each query and key: multiply keys "
        "and values first.",
        lambda draw: [call(*qkv(draw, 60, 50, 3, 2)), call(*qkv(draw, 50, 60, 2, 3, 2), False)],
        _half_a_table,
    )
)


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out."""
    return [
        call(*qkv(draw, 3, 4, 2, 3, dtype="float64")),
        call(*qkv(draw, 3, 3, 2, 3, 2, dtype="float64"), True),
    ]


EXERCISE.leaves_inputs_alone(0.1, _causal, _runs)
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[:1])
EXERCISE.follows_its_inputs(_runs, _causal)
