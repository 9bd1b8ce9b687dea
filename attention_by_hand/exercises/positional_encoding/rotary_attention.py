"""`rotary_attention`: attention that turns."""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS, all_finite, qkv, transposed
from autograder.student.authoring import Declaration, Draw, Record, Run, call, part, plain, tensor
from autograder.student.engine.runs import made_by

EXERCISE = Declaration(
    "rotary_attention",
    "Attention that turns",
    ("query", "key", "value", "base"),
    returns=OUTPUT_AND_WEIGHTS,
)


@EXERCISE.equals("as many queries as keys", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """Rotate queries and keys, each by its own position, then apply scaled dot-product attention as
    usual. The values are averaged unrotated."""
    query, key, value = qkv(draw, 3, 3, 6, 4, 2)
    return [
        call(*qkv(draw, 4, 4, 4, 6, 2, 3)),
        call(value=value, key=key, query=query),
        call(*qkv(draw, 5, 5, 8, 3)),
        call(*qkv(draw, 3, 3, 4, 1)[:2], draw.tensor(3, 1, scale=1e-3)),
    ]


@EXERCISE.equals("more keys than queries, and fewer", 0.5)
def _chunk(draw: Draw) -> list[Run]:
    """The last query is at the last key's position: the queries' offset is n_k − n_q."""
    return [
        call(*qkv(draw, 2, 5, 4, 2, 2)),
        call(*qkv(draw, 1, draw.integer(3, 6), 6, 4, 1, 2)),
        call(*qkv(draw, 4, 2, 4, 4)),
        call(*qkv(draw, 3, 1, 4, 2)),
        call(*qkv(draw, 70, 2, 2, 1)),
        call(*qkv(draw, 2, 70, 2, 1)),
    ]


def _output_is_weights(run: Run, record: Record) -> str | None:
    output, weights = (plain(part(record.value, i)) for i in (0, 1))
    if output is None or weights is None or output.shape != (2, 4, 6) or weights.shape != (2, 4, 6):
        return "expected (output, weights)"
    off = np.abs(output - weights).max()
    sums = np.abs(weights.sum(-1) - 1).max()
    if not (off < 1e-5 and sums < 1e-5):
        return "with one-hot values, the output does not equal the weights"
    return None


@EXERCISE.holds("values are not rotated", 0.25, _output_is_weights)
def _shown(draw: Draw) -> list[Run]:
    """Rotated values would carry the positions of the keys into the output."""
    query, key, _ = qkv(draw, 4, 6, 4, 6, 2)
    values = tensor(np.stack([np.eye(6)] * 2), "float32")
    return [call(query, key, values)]


@EXERCISE.equals("another base", 0.15)
def _bases(draw: Draw) -> list[Run]:
    """`base` applies to both queries and keys."""
    return [
        call(*qkv(draw, 4, 4, 6, 2), draw.number(20.0, 90.0)),
        call(*qkv(draw, 2, 5, 4, 2), base=draw.number(300.0, 900.0)),
    ]


@EXERCISE.gradients("gradients reach query, key and value", 0.25)
def _gradients(draw: Draw) -> list[Run]:
    """Detach nothing on the way."""
    return [call(*qkv(draw, 3, 4, 4, 2, 2)), call(*qkv(draw, 3, 3, 6, 4))]


@EXERCISE.holds("scores of ±10,000", 0.15, all_finite, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax subtracts the largest score for you."""
    query, key, value = qkv(draw, 2, 4, 4, 3)
    return [call(tensor(query.data * 1e4, "float32"), key, value)]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out."""
    # Angles may be computed in float32, so the digits of float64 are not required.
    return [replace(call(*qkv(draw, 3, 4, 4, 2, dtype="float64")), random=True)]


@EXERCISE.equals("non-contiguous views", 0.05)
def _strided(draw: Draw) -> list[Run]:
    """Queries, keys and values may be heads that were split off: reshape copies where a view is
    impossible."""
    return [call(*(made_by(transposed, a) for a in qkv(draw, 3, 4, 4, 2, 2)))]


EXERCISE.leaves_inputs_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs)
