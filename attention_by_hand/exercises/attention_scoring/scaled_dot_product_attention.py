"""`scaled_dot_product_attention`: scaled dot-product attention."""

import numpy as np

from attention_by_hand.exercises.attention_scoring.shared import (
    do_not_mix,
    large_scores,
    one_changed,
    outputs_and_weights,
    score_of_minus_infinity,
)
from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS, all_finite, qkv
from autograder.student.authoring import Declaration, Draw, Record, Run, StridedArray, call, tensor
from autograder.student.engine.aspects import numbers_of

EXERCISE = Declaration(
    "scaled_dot_product_attention",
    "Scaled dot-product attention",
    ("query", "key", "value"),
    returns=OUTPUT_AND_WEIGHTS,
    forbids=("attention",),
)


@EXERCISE.equals("output and weights", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """softmax(QKᵀ / √d_k) V, with the softmax over the keys. d_k is the size of a query or a key,
    not n_k and not d_v. Return (output, weights)."""
    query, key, value = qkv(draw, 4, 3, 7, 2, 2)
    return [
        call(*qkv(draw, 3, 5, 4, 2, 2)),
        call(*qkv(draw, 6, 2, 3, 5)),
        call(*qkv(draw, 2, 3, 4, 1)[:2], draw.tensor(3, 2, scale=1e-3)),
        call(value=value, key=key, query=query).then(*qkv(draw, 2, 7, 5, 3)),
    ]


@EXERCISE.equals("all sizes equal", 0.25)
def _square(draw: Draw) -> list[Run]:
    """When all sizes are equal, a wrong order of axes raises no error. Rows are queries, columns
    are keys, and each row sums to 1."""
    return [
        call(*qkv(draw, 4, 4, 4, 4)),
        call(*qkv(draw, 3, 3, 3, 3, 3)),
        call(*qkv(draw, 2, 2, 2, 2, 2, 2)),
    ]


@EXERCISE.equals("one query, one key, one feature", 0.25)
def _single(draw: Draw) -> list[Run]:
    """An axis of size 1 is still an axis: do not use squeeze()."""
    return [
        call(*qkv(draw, 1, 5, 3, 2, 2)),
        call(*qkv(draw, 4, 1, 3, 2, 2)),
        call(*qkv(draw, 3, 4, 1, 2, 1)),
        call(*qkv(draw, 3, 4, 2, 1, 1)),
        call(*qkv(draw, 1, 1, 1, 1, 1)),
    ]


@EXERCISE.equals("any leading dimensions", 0.5)
def _batches(draw: Draw) -> list[Run]:
    """Transpose the last two axes only, and multiply with @, which takes any number of axes before
    them; torch.bmm requires exactly one."""
    return [
        call(*qkv(draw, 3, 5, 4, 2)),
        call(*qkv(draw, 4, 2, 3, 5, 1)),
        call(*qkv(draw, 2, 3, 5, 2, 2, 3)),
        call(*qkv(draw, 2, 3, 4, 2, 2, 1, 2)),
        call(*map(StridedArray, qkv(draw, 3, 2, 4, 5, 2))),
        call(*qkv(draw, 70, 2, 1, 1)),
        call(*qkv(draw, 2, 70, 1, 1)),
    ]


@EXERCISE.gradients("gradients reach query, key and value", 0.75)
def _backward(draw: Draw) -> list[Run]:
    """Stay in torch: .detach(), .data, .item() and NumPy cut the gradient, and with it what the
    projections before this step could learn."""
    # In float64, where terms that cancel do so to the last digit. Here and in the other float64
    # runs of this exercise, d_k is a square: its root is then exact in float32, too, and
    # `torch.sqrt(torch.tensor(d_k))` is as good as `math.sqrt(d_k)`.
    return [
        call(*qkv(draw, 2, 3, 4, 1, 2, dtype="float64")),
        call(*qkv(draw, 3, 2, 4, 5, dtype="float64")),
        call(*qkv(draw, 3, 2, 1, 2, 1, dtype="float64")),
    ]


@EXERCISE.equals("scores of ±10,000", 0.25)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax subtracts each row's largest score for you; a plain exp and division do not."""
    pairs = [(q * 1.5, k * 1.5) for q, k in large_scores(draw, 3, 5, 4)]
    arrays = [*((q, k, draw.normal(5, 2)) for q, k in pairs), score_of_minus_infinity(draw)]
    return [call(*(tensor(a, "float64") for a in triple)) for triple in arrays]


@EXERCISE.holds("scores of ±10,000, backward", 0.15, all_finite, only_if_right=True)
def _large_backward(draw: Draw) -> list[Run]:
    """Where the forward pass produces infinity or NaN, the backward pass produces NaN."""
    query, key, value = qkv(draw, 3, 4, 5, 2, 2)
    return [call(tensor(query.data * 1e4, "float32"), key, value).with_gradients()]


def _order_does_not_matter(run: Run, record: Record) -> str | None:
    (query, key), (_, moved_key) = (
        [numbers_of(arg) for arg in step.args[:2]] for step in run.steps
    )
    order = [int(np.flatnonzero((key[0] == row).all(-1))[0]) for row in moved_key[0]]
    pairs = outputs_and_weights(record, *query.shape[:-1], len(order))
    if pairs is None:
        return "expected (output, weights) with a weight for each key"
    (out, weights), (moved, moved_weights) = pairs
    if not np.allclose(moved, out, rtol=1e-4, atol=1e-5):
        return "the output depends on the order of the keys and their values"
    if not np.allclose(moved_weights, weights[..., order], rtol=1e-4, atol=1e-5):
        return "reordering the keys does not reorder their weights"
    return None


@EXERCISE.holds(
    "the order of the keys does not matter", 0.2, _order_does_not_matter, only_if_right=True
)
def _reordered(draw: Draw) -> list[Run]:
    """A weighted average does not depend on the order of its terms, as long as each key stays with
    its own value."""
    query, key, value = qkv(draw, 3, 5, 4, 2, 2)
    order = np.roll(np.arange(5), draw.integer(1, 4))
    moved = (tensor(x.data[:, order], "float32") for x in (key, value))
    return [call(query, key, value).then(query, *moved)]


EXERCISE.add(do_not_mix(0.2, lambda draw: one_changed(draw, Run(()), qkv(draw, 3, 4, 2, 5, 3))))
EXERCISE.keeps_dtypes(0.2, "float64 in, float64 out; float32 in, float32 out.", _backward)
EXERCISE.leaves_inputs_alone(0.15, lambda draw: [*_runs(draw)[:2], *_batches(draw)[1:2]])
EXERCISE.leaves_state_alone(0.1, lambda draw: _runs(draw)[:2])
EXERCISE.follows_its_inputs(_runs, _batches)
