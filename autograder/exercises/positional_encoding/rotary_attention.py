"""`rotary_attention`: attention that turns."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    part,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, call, tensor


def _qkv(draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int) -> tuple:
    shapes = (n_q, d_k), (n_k, d_k), (n_k, d_v)
    return tuple(draw.tensor(*batch, *shape) for shape in shapes)


def _turning_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _qkv(draw, 3, 3, 6, 4, 2)
    return [
        call(*_qkv(draw, 4, 4, 4, 6, 2, 3)),
        call(value=value, key=key, query=query),
        call(*_qkv(draw, 5, 5, 8, 3)),
    ]


def _turning_chunk(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qkv(draw, 2, 5, 4, 2, 2)),
        call(*_qkv(draw, 1, draw.integer(3, 6), 6, 4, 1, 2)),
        call(*_qkv(draw, 4, 2, 4, 4)),
    ]


def _turning_bases(draw: Draw) -> Sequence[Run]:
    return [
        call(*_qkv(draw, 4, 4, 6, 2), draw.number(20.0, 90.0)),
        call(*_qkv(draw, 2, 5, 4, 2), base=draw.number(300.0, 900.0)),
    ]


def _turning_shown(draw: Draw) -> Sequence[Run]:
    query, key, _ = _qkv(draw, 4, 6, 4, 6, 2)
    values = tensor(np.stack([np.eye(6)] * 2), "float32")
    return [call(query, key, values)]


def _output_is_weights(run: Run, record: Record) -> str | None:
    output, weights = (plain(part(record.value, i)) for i in (0, 1))
    if output is None or weights is None or output.shape != (2, 4, 6) or weights.shape != (2, 4, 6):
        return "the result is not (output, weights)"
    off = np.abs(output - weights).max()
    sums = np.abs(weights.sum(-1) - 1).max()
    if not (off < 1e-5 and sums < 1e-5):
        return "with one-hot values the output must show the weights, and it does not"
    return None


def _turning_gradients(draw: Draw) -> Sequence[Run]:
    return [call(*_qkv(draw, 3, 4, 4, 2, 2)), call(*_qkv(draw, 3, 3, 6, 4))]


def _turning_large(draw: Draw) -> Sequence[Run]:
    query, key, value = _qkv(draw, 2, 4, 4, 3)
    return [call(tensor(query.data * 1e4, "float32"), key, value)]


def _turning_finite(run: Run, record: Record) -> str | None:
    arrays = [plain(part(record.value, i)) for i in (0, 1)]
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "an output or a weight is not finite"


ROTARY_ATTENTION = Exercise(
    "rotary_attention",
    "Attention that turns",
    ("query", "key", "value", "base"),
    (
        equals_reference(
            "as many queries as keys",
            1.0,
            "Rotate queries and keys, each by its own position; then scaled dot-product attention "
            "as ever. The values are averaged as they came.",
            _turning_runs,
        ),
        equals_reference(
            "more keys than queries, and fewer",
            0.5,
            "The last query stands at the last key's position: the queries' offset is n_k − n_q.",
            _turning_chunk,
        ),
        has_property(
            "values are left alone",
            0.25,
            "Rotated values would carry the positions of keys into the output.",
            _turning_shown,
            _output_is_weights,
        ),
        equals_reference(
            "another base", 0.25, "`base` belongs to queries and keys.", _turning_bases
        ),
        gradients_match(
            "gradients to query, key and value",
            0.25,
            "Nothing is detached on the way.",
            _turning_gradients,
        ),
        has_property(
            "scores of ±10,000",
            0.15,
            "torch.softmax subtracts the largest score for you.",
            _turning_large,
            _turning_finite,
            only_if_right=True,
        ),
        inputs_untouched(0.1, _turning_runs),
    ),
)
