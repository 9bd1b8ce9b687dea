"""`masked_attention`: attention under a mask."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    describe,
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    part,
    plain,
)
from autograder.engine.runs import Array, Draw, Exercise, Record, Run, Strided, call, tensor
from autograder.exercises.masking.shared import random_mask


def _qkv(
    draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    return (
        draw.tensor(*batch, n_q, d_k, dtype=dtype),
        draw.tensor(*batch, n_k, d_k, dtype=dtype),
        draw.tensor(*batch, n_k, d_v, dtype=dtype),
    )


def _attention_plain(draw: Draw) -> Sequence[Run]:
    query, key, value = _qkv(draw, 3, 4, 2, 3, 2)
    return [
        call(*_qkv(draw, 3, 5, 4, 2)),
        call(*_qkv(draw, 4, 2, 3, 5, 2, 3), None),
        call(value=value, key=key, query=query),
        call(*map(Strided, _qkv(draw, 2, 3, 5, 1, 1))),
    ]


def _attention_masked(draw: Draw) -> Sequence[Run]:
    causal = np.tri(5, 5, dtype=bool)
    return [
        call(*_qkv(draw, 3, 5, 4, 2), tensor(random_mask(draw, 3, 5))),
        call(*_qkv(draw, 5, 5, 3, 4, 2), tensor(causal)),
        call(*_qkv(draw, 3, 4, 2, 5, 2, 3), mask=tensor(random_mask(draw, 2, 1, 1, 4))),
        call(*_qkv(draw, 3, 3, 2, 5, 2), mask=tensor(random_mask(draw, 2, 3, 3))),
    ]


def _attention_nothing(draw: Draw) -> Sequence[Run]:
    mask = random_mask(draw, 4, 5)
    mask[[0, 3]] = False
    empty = np.array([[[[True, False, True]]], [[[False, False, False]]]])
    return [
        call(*_qkv(draw, 4, 5, 3, 2), tensor(mask)),
        call(*_qkv(draw, 2, 3, 4, 5, 2, 2), tensor(empty)),
        call(*_qkv(draw, 3, 4, 2, 3, 1), mask=tensor(np.zeros((3, 4), bool))),
    ]


def _attention_changed(draw: Draw) -> Sequence[Run]:
    """Three calls each: as is, with one key and value changed, and with another one changed."""
    runs = []
    for mask in (np.tri(5, 5, dtype=bool)[1:], np.array([[True, False, True, True, False]])):
        query, key, value = _qkv(draw, 4, 5, 3, 2, 2)
        run = call(query, key, value, tensor(mask))
        for position in (4, 2):
            k, v = key.data.copy(), value.data.copy()
            k[:, position] *= -30.0
            v[:, position] += 1e3
            run = run.then(query, tensor(k), tensor(v), tensor(mask))
        runs.append(run)
    return runs


def _sees_what_it_may(run: Run, record: Record) -> str | None:
    outputs = [plain(part(value, 0)) for value in record.values]
    wanted = (*run.steps[0].args[0].data.shape[:-1], run.steps[0].args[2].data.shape[-1])
    if any(output is None or output.shape != wanted for output in outputs):
        return f"the output is {describe(part(record.value, 0))}"
    mask = np.broadcast_to(run.steps[0].args[3].data, (wanted[1], 5))
    before = run.steps[0].args[2].data
    for step, output in zip(run.steps[1:], outputs[1:], strict=True):
        position = int(np.flatnonzero((step.args[2].data != before).any((0, 2)))[0])
        moved = np.abs(output - outputs[0]).max((0, 2))
        for query, (sees, far) in enumerate(zip(mask[:, position], moved, strict=True)):
            if np.isnan(far) or (not sees and far > 1e-6):
                return f"query {query} must not see key {position}; it does: {far:.3g} when changed"
            if sees and far < 1e-3:
                return f"query {query} may see key {position}; changing it changes nothing"
    return None


def _attention_large(draw: Draw) -> Sequence[Run]:
    """Scores of about 1e4 where the mask is False, of about −1e4 where it is True."""
    query, key, value = (x.data for x in _qkv(draw, 3, 5, 4, 2, dtype="float64"))
    mask = random_mask(draw, 5)
    mask[0], mask[-1] = False, True  # the first query may see the last key
    keys = 0.02 * key + np.where(mask, -100.0, 100.0)[:, None]
    large = tensor(query + 50.0), tensor(keys), tensor(value), tensor(mask)
    wild = tensor(3e3 * query), tensor(key), tensor(value), tensor(random_mask(draw, 3, 5))
    return [call(*large), call(*wild)]


def _attention_double(draw: Draw) -> Sequence[Run]:
    return [call(*_qkv(draw, 2, 4, 3, 2, dtype="float64"), tensor(random_mask(draw, 2, 4)))]


MASKED_ATTENTION = Exercise(
    "masked_attention",
    "Attention under a mask",
    ("query", "key", "value", "mask"),
    (
        equals_reference(
            "without a mask",
            0.75,
            "softmax(QKᵀ / √d_k) V over the last two axes, whatever stands before them; d_k is the "
            "size of a query. Return (output, weights).",
            _attention_plain,
        ),
        equals_reference(
            "with a mask",
            0.75,
            "Scores first, then the mask inside the softmax, then the average of the values. True "
            "means may attend.",
            _attention_masked,
        ),
        equals_reference(
            "a query that may see nothing",
            0.5,
            "Its weights and its output are 0: not NaN, and not the average of what is forbidden.",
            _attention_nothing,
        ),
        has_property(
            "only what may be seen counts",
            0.5,
            "Change a key and its value: the outputs of the queries that may see it move, all "
            "others stay as they were.",
            _attention_changed,
            _sees_what_it_may,
        ),
        gradients_match(
            "gradients to query, key and value",
            0.75,
            "One NaN in a row's weights reaches every gradient of the batch. A row without keys "
            "passes a gradient of 0.",
            lambda draw: [*_attention_masked(draw), *_attention_nothing(draw)[:2]],
        ),
        equals_reference(
            "scores of ±10,000",
            0.25,
            "Let the mask act before the softmax, and with −∞: a large score outweighs −100 and "
            "−10,000.",
            _attention_large,
        ),
        dtypes_kept(0.25, "float64 in, float64 out.", _attention_double),
        inputs_untouched(0.25, lambda draw: [*_attention_masked(draw), *_attention_plain(draw)]),
    ),
)
