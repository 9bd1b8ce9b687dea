"""`masked_attention`: attention under a mask."""

import numpy as np

from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS, qkv, random_mask
from autograder.student.authoring import (
    Declaration,
    Draw,
    Record,
    Run,
    StridedArray,
    call,
    describe,
    part,
    plain,
    tensor,
)
from autograder.student.engine.compare import all_shaped

EXERCISE = Declaration(
    "masked_attention",
    "Attention under a mask",
    ("query", "key", "value", "mask"),
    returns=OUTPUT_AND_WEIGHTS,
)


@EXERCISE.equals("without a mask", 0.75)
def _plain(draw: Draw) -> list[Run]:
    """softmax(QKᵀ / √d_k) V over the last two axes, whatever comes before them; d_k is the size of
    a query. Return (output, weights)."""
    query, key, value = qkv(draw, 3, 4, 2, 3, 2)
    return [
        call(*qkv(draw, 3, 5, 4, 2)),
        call(*qkv(draw, 4, 2, 3, 5, 2, 3), None),
        call(value=value, key=key, query=query),
        call(*map(StridedArray, qkv(draw, 2, 3, 5, 1, 1))),
        call(*qkv(draw, 1, 3, 1, 2)),
        call(*qkv(draw, 2, 1, 3, 2)),
        call(*qkv(draw, 70, 2, 2, 1)),
        call(*qkv(draw, 2, 70, 2, 1)),
        call(*qkv(draw, 2, 3, 4, 1)[:2], draw.tensor(3, 2, scale=1e-3)),
    ]


@EXERCISE.equals("with a mask", 0.75)
def _masked(draw: Draw) -> list[Run]:
    """Compute the scores, apply the mask inside the softmax, then average the values. True means
    may attend."""
    causal = np.tri(5, 5, dtype=bool)
    return [
        call(*qkv(draw, 3, 5, 4, 2), tensor(random_mask(draw, 3, 5))),
        call(*qkv(draw, 5, 5, 3, 4, 2), tensor(causal)),
        call(*qkv(draw, 3, 4, 2, 5, 2, 3), mask=tensor(random_mask(draw, 2, 1, 1, 4))),
        call(*qkv(draw, 3, 3, 2, 5, 2), mask=tensor(random_mask(draw, 2, 3, 3))),
        call(*qkv(draw, 3, 4, 2, 5, 2), tensor(random_mask(draw, 2, 3, 4))).as_views(),
    ]


@EXERCISE.equals("a query that may see nothing", 0.5)
def _nothing(draw: Draw) -> list[Run]:
    """Its weights and its output are 0: not NaN, and not the average of what is forbidden."""
    mask = random_mask(draw, 4, 5)
    mask[[0, 3]] = False
    empty = np.array([[[[True, False, True]]], [[[False, False, False]]]])
    return [
        call(*qkv(draw, 4, 5, 3, 2), tensor(mask)),
        call(*qkv(draw, 2, 3, 4, 5, 2, 2), tensor(empty)),
        call(*qkv(draw, 3, 4, 2, 3, 1), mask=tensor(np.zeros((3, 4), bool))),
    ]


def _hidden(key: int, query: int, far: float) -> str:
    moved = f"changing key {key} moves query {query}'s output by {far:.4g}"
    return f"{moved}, although the mask hides that key from it"


def _sees_what_it_may(run: Run, record: Record) -> str | None:
    outputs = [plain(part(value, 0)) for value in record.values]
    wanted = (*run.steps[0].args[0].data.shape[:-1], run.steps[0].args[2].data.shape[-1])
    if not all_shaped(outputs, wanted):
        return f"the output: expected shape {wanted}, got {describe(part(record.value, 0))}"
    mask = np.broadcast_to(run.steps[0].args[3].data, (wanted[1], 5))
    before = run.steps[0].args[2].data
    for step, output in zip(run.steps[1:], outputs[1:], strict=True):
        position = int(np.flatnonzero((step.args[2].data != before).any((0, 2)))[0])
        moved = np.abs(output - outputs[0]).max((0, 2))
        for query, (sees, far) in enumerate(zip(mask[:, position], moved, strict=True)):
            if np.isnan(far) or (not sees and far > 1e-6):
                return _hidden(position, query, far)
            if sees and far < 1e-3:
                return f"query {query} may see key {position}, but changing that key has no effect"
    return None


@EXERCISE.holds("forbidden keys have no influence", 0.5, _sees_what_it_may)
def _changed(draw: Draw) -> list[Run]:
    """When a key and its value change, the outputs of the queries that may see it change, and all
    others stay the same."""
    # Three calls each: unchanged, with one key and its value changed, and with another changed.
    runs = []
    for mask in (np.tri(5, 5, dtype=bool)[1:], np.array([[True, False, True, True, False]])):
        query, key, value = qkv(draw, 4, 5, 3, 2, 2)
        run = call(query, key, value, tensor(mask))
        for position in (4, 2):
            k, v = key.data.copy(), value.data.copy()
            k[:, position] *= -30.0
            v[:, position] += 1e3
            run = run.then(query, tensor(k), tensor(v), tensor(mask))
        runs.append(run)
    return runs


EXERCISE.gradients(
    "gradients reach query, key and value",
    0.75,
    "Stay in torch from start to end. A row without keys passes on a gradient of 0, every other "
    "row that of a softmax over the keys it may see.",
    lambda draw: [*_masked(draw), *_nothing(draw)[:2]],
    if_nan="One NaN in a row of weights reaches every gradient of the batch. A row without keys "
    "passes on a gradient of 0.",
)


@EXERCISE.equals("scores of ±10,000", 0.25)
def _large(draw: Draw) -> list[Run]:
    """Apply the mask before the softmax, and with −∞: a large score outweighs −100 and −10,000."""
    # Scores of about 1e4 where the mask is False, of about −1e4 where it is True.
    query, key, value = (x.data for x in qkv(draw, 3, 5, 4, 2, dtype="float64"))
    mask = random_mask(draw, 5)
    mask[0], mask[-1] = False, True  # the first query may see the last key
    keys = 0.02 * key + np.where(mask, -100.0, 100.0)[:, None]
    large = tensor(query + 50.0), tensor(keys), tensor(value), tensor(mask)
    wild = tensor(3e3 * query), tensor(key), tensor(value), tensor(random_mask(draw, 3, 5))
    return [call(*large), call(*wild)]


@EXERCISE.keeps_dtypes(0.25)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out."""
    query_key_value = qkv(draw, 2, 4, 3, 2, dtype="float64")
    return [call(*query_key_value, tensor(random_mask(draw, 2, 4))), call(*query_key_value)]


EXERCISE.leaves_inputs_alone(0.25, _masked, _plain)
EXERCISE.follows_its_inputs(_plain, _masked)
