"""`scaled_dot_product_attention`: scaled dot-product attention."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    plain,
)
from autograder.engine.runs import Draw, Exercise, Record, Run, Strided, call, tensor
from autograder.exercises.attention_scoring.shared import (
    all_finite,
    each_for_itself,
    large_scores,
    one_changed,
    outputs_and_weights,
    qkv_tensors,
    score_of_minus_infinity,
)


def _scaled_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = qkv_tensors(draw, 4, 3, 7, 2, 2)
    return [
        call(*qkv_tensors(draw, 3, 5, 4, 2, 2)),
        call(*qkv_tensors(draw, 6, 2, 3, 5)),
        call(value=value, key=key, query=query).then(*qkv_tensors(draw, 2, 7, 5, 3)),
    ]


def _scaled_square(draw: Draw) -> Sequence[Run]:
    return [
        call(*qkv_tensors(draw, 4, 4, 4, 4)),
        call(*qkv_tensors(draw, 3, 3, 3, 3, 3)),
        call(*qkv_tensors(draw, 2, 2, 2, 2, 2, 2)),
    ]


def _scaled_single(draw: Draw) -> Sequence[Run]:
    return [
        call(*qkv_tensors(draw, 1, 5, 3, 2, 2)),
        call(*qkv_tensors(draw, 4, 1, 3, 2, 2)),
        call(*qkv_tensors(draw, 3, 4, 1, 2, 1)),
        call(*qkv_tensors(draw, 3, 4, 2, 1, 1)),
        call(*qkv_tensors(draw, 1, 1, 1, 1, 1)),
    ]


def _scaled_batches(draw: Draw) -> Sequence[Run]:
    return [
        call(*qkv_tensors(draw, 3, 5, 4, 2)),
        call(*qkv_tensors(draw, 4, 2, 3, 5, 1)),
        call(*qkv_tensors(draw, 2, 3, 5, 2, 2, 3)),
        call(*qkv_tensors(draw, 2, 3, 4, 2, 2, 1, 2)),
        call(*map(Strided, qkv_tensors(draw, 3, 2, 4, 5, 2))),
    ]


def _scaled_backward(draw: Draw) -> Sequence[Run]:
    """In float64, where terms that cancel do so to the last digits.

    Here and in the other float64 runs of this exercise, d_k is a square: its root is then right
    in float32, too, and `torch.sqrt(torch.tensor(d_k))` is as good as `math.sqrt(d_k)`.
    """
    return [
        call(*qkv_tensors(draw, 2, 3, 4, 1, 2, dtype="float64")),
        call(*qkv_tensors(draw, 3, 2, 4, 5, dtype="float64")),
        call(*qkv_tensors(draw, 3, 2, 1, 2, 1, dtype="float64")),
    ]


def _scaled_large(draw: Draw) -> Sequence[Run]:
    pairs = [(q * 1.5, k * 1.5) for q, k in large_scores(draw, 3, 5, 4)]
    arrays = [*((q, k, draw.normal(5, 2)) for q, k in pairs), score_of_minus_infinity(draw)]
    return [call(*(tensor(a, "float64") for a in qkv)) for qkv in arrays]


def _scaled_large_backward(draw: Draw) -> Sequence[Run]:
    query, key, value = qkv_tensors(draw, 3, 4, 5, 2, 2)
    return [call(tensor(query.data * 1e4, "float32"), key, value).with_gradients()]


def _scaled_reordered(draw: Draw) -> Sequence[Run]:
    query, key, value = qkv_tensors(draw, 3, 5, 4, 2, 2)
    order = np.roll(np.arange(5), draw.integer(1, 4))
    moved = (tensor(x.data[:, order], "float32") for x in (key, value))
    return [call(query, key, value).then(query, *moved)]


def _order_is_nothing(run: Run, record: Record) -> str | None:
    (query, key), (_, moved_key) = ([plain(arg) for arg in step.args[:2]] for step in run.steps)
    order = [int(np.flatnonzero((key[0] == row).all(-1))[0]) for row in moved_key[0]]
    pairs = outputs_and_weights(record, *query.shape[:-1], len(order))
    if pairs is None:
        return "the result is not (output, weights) with a weight for each key"
    (out, weights), (moved, moved_weights) = pairs
    if not np.allclose(moved, out, rtol=1e-4, atol=1e-5):
        return "the output depends on the order in which the pairs of key and value stand"
    if not np.allclose(moved_weights, weights[..., order], rtol=1e-4, atol=1e-5):
        return "reordering the keys does not reorder their weights"
    return None


SCALED_DOT_PRODUCT_ATTENTION = Exercise(
    "scaled_dot_product_attention",
    "Scaled dot-product attention",
    ("query", "key", "value"),
    (
        equals_reference(
            "output and weights",
            1.0,
            "softmax(QKᵀ / √d_k) V, the softmax over the keys. d_k is the size of a query and of a "
            "key: not n_k, not d_v. Return (output, weights).",
            _scaled_runs,
        ),
        equals_reference(
            "as many of everything",
            0.25,
            "When all sizes are equal, no wrong order of axes is an error. Rows are queries, "
            "columns are keys, and each row sums to 1.",
            _scaled_square,
        ),
        equals_reference(
            "one query, one key, one feature",
            0.25,
            "An axis of size 1 is still an axis: use no squeeze().",
            _scaled_single,
        ),
        equals_reference(
            "any leading dimensions",
            0.5,
            "Transpose the last two axes only, transpose(-2, -1), and multiply with @, which takes "
            "any number of axes before them; torch.bmm wants exactly one.",
            _scaled_batches,
        ),
        gradients_match(
            "gradients to query, key and value",
            0.75,
            "Stay in torch: .detach(), .data, .item() and NumPy cut the gradient, and with it what "
            "the projections before you could learn.",
            _scaled_backward,
        ),
        equals_reference(
            "scores of ±10,000",
            0.25,
            "torch.softmax subtracts each row's largest score for you; exp and a division do not.",
            _scaled_large,
        ),
        has_property(
            "scores of ±10,000, backward",
            0.15,
            "Where the forward pass has made infinity or NaN, the backward pass makes NaN.",
            _scaled_large_backward,
            all_finite,
            only_if_right=True,
        ),
        has_property(
            "the order of the keys is nothing",
            0.2,
            "A weighted average does not depend on the order of its terms, so long as each key "
            "goes with its own value.",
            _scaled_reordered,
            _order_is_nothing,
            only_if_right=True,
        ),
        each_for_itself(
            0.2, lambda draw: one_changed(draw, Run(()), qkv_tensors(draw, 3, 4, 2, 5, 3))
        ),
        dtypes_kept(0.2, "float64 in, float64 out.", _scaled_backward),
        inputs_untouched(0.15, lambda draw: [*_scaled_runs(draw)[:2], *_scaled_batches(draw)[1:2]]),
        no_side_effects(0.1, lambda draw: _scaled_runs(draw)[:2]),
    ),
    forbids=(
        "torch.*scaled_dot_product*",
        "torch.*multi_head_attention*",
        "torch.*MultiheadAttention*",
        "torch.*flex_attention*",
        "torch.onnx.*",
        "torch.ops.onnx.*",
        "torch.ops.aten._safe_softmax",  # the fused attention alone is made of it
    ),
)
