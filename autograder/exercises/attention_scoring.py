"""What chapter 2 asks: attention by dot products, in NumPy and in torch, and other scores."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    compare,
    dtypes_kept,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    no_side_effects_of_a_module,
    not_rows_of_one,
    part,
    plain,
)
from autograder.engine.runs import (
    Array,
    Aspect,
    Draw,
    Exercise,
    Finding,
    Record,
    Run,
    Strided,
    Trial,
    call,
    module,
    tensor,
)

Runs = Callable[[Draw], Sequence[Run]]

# --- inputs and properties that several exercises share -----------------------------------------


def _arrays(draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int) -> tuple:
    """Query, key and value for NumPy, with scores of about ±√d_k."""
    return (
        draw.normal(*batch, n_q, d_k),
        draw.normal(*batch, n_k, d_k),
        draw.normal(*batch, n_k, d_v),
    )


def _tensors(
    draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    arrays = _arrays(draw, n_q, n_k, d_k, d_v, *batch)
    return tuple(tensor(array, dtype) for array in arrays)


def _pairs(
    draw: Draw, B: int, n_q: int, n_k: int, sizes: Sequence[int], dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    """Query, key and value of three sizes of their own, for a module."""
    shapes = zip((n_q, n_k, n_k), sizes, strict=True)
    return tuple(draw.tensor(B, n, size, dtype=dtype) for n, size in shapes)


def _large(draw: Draw, n_q: int, n_k: int, d: int) -> Sequence[tuple[np.ndarray, np.ndarray]]:
    """Queries and keys with scores of 10⁴ ± 1, of −10⁴ ± 1, and of anything up to about ±10⁴."""
    level = np.sqrt(1e4 / d)
    query, key = level + 0.01 * draw.normal(n_q, d), level + 0.01 * draw.normal(n_k, d)
    uneven = np.linspace(0.02, 1.5, n_q)[:, None] * level  # rows far below the largest score of all
    return [
        (query, key),
        (-query, key),
        (70 * draw.normal(n_q, d), 70 * draw.normal(n_k, d)),
        (uneven * np.ones(d), key),
    ]


def _minus_infinity(draw: Draw) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A key whose score is −inf for every query."""
    query, key, value = _arrays(draw, 3, 5, 4, 2)
    query[:, 0] = np.abs(query[:, 0]) + 0.5
    key[2, 0] = -np.inf
    return query, key, value


def _finite(run: Run, record: Record) -> str | None:
    arrays = [plain(part(record.value, i)) for i in (0, 1)]
    arrays += map(plain, record.gradients.values())
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "an output, a weight or a gradient is missing or not finite"


def _outputs_and_weights(record: Record, *shape: int) -> list[tuple] | None:
    """Output and weights of each step, or None unless all the weights have this shape, and all the
    outputs one shape, with the same rows. What comes back of an answer may be anything."""
    pairs = [tuple(plain(part(value, i)) for i in (0, 1)) for value in record.values]
    if any(out is None or weights is None or weights.shape != shape for out, weights in pairs):
        return None
    shapes = {out.shape for out, _ in pairs}
    fits = len(shapes) == 1 and shapes.pop()[:-1] == shape[:-1]
    return pairs if fits else None


def _rows(run: Run, record: Record) -> str | None:
    return not_rows_of_one(part(record.value, 1))


def _changed(draw: Draw, start: Run, inputs: Sequence[Array]) -> list[Run]:
    """Three calls: as is; with query 1 of sequence 1 changed; with its key 2 and value 2."""
    query, key, value = (array.data.copy() for array in inputs)
    query[1, 1] = query[1, 1] + draw.uniform(1.0, 2.0, query.shape[-1])
    key[1, 2] = key[1, 2] + draw.uniform(0.5, 1.0, key.shape[-1])
    value[1, 2] = value[1, 2] + 100.0
    other_query, *others = (tensor(array, "float32") for array in (query, key, value))
    run = start.then(*inputs).then(other_query, *inputs[1:])
    return [run.then(inputs[0], *others)]


def _sees_its_own(run: Run, record: Record) -> str | None:
    outputs = [plain(part(value, 0)) for value in record.values]
    arrays = run.steps[0].args
    shape = (*arrays[0].data.shape[:2], arrays[2].data.shape[-1])
    if any(output is None or output.shape != shape for output in outputs):
        return f"the output has not the shape {shape}"
    by_query, by_pair = (np.abs(output - outputs[0]).max(-1) for output in outputs[1:])
    elsewhere = np.delete(by_query.ravel(), shape[1] + 1)
    if not elsewhere.max() < 1e-5:
        return "changing one query changed the output of another"
    if not by_query[1, 1] > 1e-3:
        return "changing a query left its own output as it was"
    if not np.delete(by_pair, 1, axis=0).max() < 1e-5:
        return "changing a key and its value changed the output of another sequence of the batch"
    if not by_pair[1].min() > 1e-3:
        return "changing a key and its value left an output of their sequence as it was"
    return None


def _own_things(points: float, runs: Runs) -> Aspect:
    return has_property(
        "each query for itself, each sequence for itself",
        points,
        "A query's output depends on itself and on the keys and values of its own sequence, all of "
        "them, and on nothing else. The softmax runs over the keys of one query.",
        runs,
        _sees_its_own,
        only_if_right=True,
    )


def _fresh(run: Run) -> Run:
    """A module as its constructor makes it: with random parameters, seen by their gradients."""
    return replace(run, random=True).with_gradients()


def _has_parameters(shapes: Callable[..., Mapping[str, tuple]]) -> Callable:
    """What the module itself says that its parameters are: a look, other than their gradients."""

    def holds(run: Run, record: Record) -> str | None:
        wanted = shapes(*run.init.args)
        given = {
            name.removeprefix("parameter "): plain(gradient)
            for name, gradient in record.gradients.items()
            if name.startswith("parameter ")
        }
        if given.keys() != wanted.keys():
            return f"the parameters are {', '.join(sorted(given)) or 'none'}"[:200]
        for name, shape in wanted.items():
            if given[name] is None:
                return f"no gradient reaches {name}"
            if given[name].shape != shape:
                return f"{name}: expected shape {shape}, got {given[name].shape}"
        return _rows(run, record)

    return holds


# --- simple_attention ---------------------------------------------------------------------------


def _simple_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _arrays(draw, 2, 5, 3, 4)
    return [
        call(*_arrays(draw, 3, 5, 4, 2)),
        call(*_arrays(draw, 6, 2, 3, 5)),
        call(value=value, key=key, query=query).then(*_arrays(draw, 1, 3, 2, 4)),
    ]


def _simple_square(draw: Draw) -> Sequence[Run]:
    return [
        call(*_arrays(draw, 3, 3, 3, 3)),
        call(*_arrays(draw, 2, 2, 2, 2, 2)),
        call(*_arrays(draw, 2, 2, 2, 2, 2, 2)),
    ]


def _simple_batches(draw: Draw) -> Sequence[Run]:
    return [
        call(*_arrays(draw, 3, 4, 5, 2, 2)),
        call(*_arrays(draw, 3, 2, 4, 5, 1)),
        call(*_arrays(draw, 2, 3, 4, 2, 2, 3)),
        call(*map(Strided, _arrays(draw, 3, 2, 4, 5, 2))),
        call(*_arrays(draw, 1, 1, 1, 1, 1)),
    ]


def _simple_large(draw: Draw) -> Sequence[Run]:
    runs = [call(q, k, draw.normal(4, 2)) for q, k in _large(draw, 3, 4, 5)]
    return [*runs, call(*_minus_infinity(draw))]


def _simple_integers(draw: Draw) -> Sequence[Run]:
    shapes = (3, 4), (5, 4), (5, 2)
    return [
        call(*(draw.integers(-2, 2, *shape) for shape in shapes)),
        call(*(draw.integers(0, 2, 3, 3) for _ in "qkv")),
    ]


def _simple_dtypes(draw: Draw) -> Sequence[Run]:
    single = tuple(a.astype("float32") for a in _arrays(draw, 3, 4, 2, 5))
    return [call(*single), *_simple_integers(draw)[:1]]


SIMPLE_ATTENTION = Exercise(
    "simple_attention",
    "Attention by dot products",
    ("query", "key", "value"),
    (
        equals_reference(
            "output and weights",
            1.0,
            "Scores: the dot product of every query with every key, (n_q, n_k). Weights: a softmax "
            "along each row. Output: weights @ value. Return (output, weights), and scale nothing.",
            _simple_runs,
        ),
        equals_reference(
            "as many of everything",
            0.25,
            "When all sizes are equal, no wrong order of axes is an error. Rows are queries, "
            "columns are keys, and each row sums to 1.",
            _simple_square,
        ),
        equals_reference(
            "leading batch dimensions",
            0.5,
            "Work on the last two axes. `.T` turns all axes round; np.swapaxes exchanges two.",
            _simple_batches,
        ),
        equals_reference(
            "scores of ±10,000",
            0.5,
            "exp(10000) is infinite. Subtract each row's own largest score first.",
            _simple_large,
        ),
        has_property(
            "each row of weights sums to 1",
            0.25,
            "Each query spreads a weight of 1 over the keys: the sum runs over the last axis.",
            lambda draw: [*_simple_runs(draw)[:1], *_simple_batches(draw)[:3:2]],
            _rows,
            only_if_right=True,
        ),
        equals_reference(
            "whole numbers",
            0.25,
            "Integers give floating-point weights: exp of an integer array is fine, writing "
            "weights back into an integer array is not.",
            _simple_integers,
        ),
        dtypes_kept(0.15, "float32 stays float32, and integers give float64.", _simple_dtypes),
        inputs_untouched(0.1, lambda draw: [*_simple_runs(draw)[:2], *_simple_batches(draw)[:1]]),
    ),
)

# --- self_similarity ----------------------------------------------------------------------------


def _similarity_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(5, 3)),
        call(draw.normal(2, 6)),
        call(x=draw.normal(4, 4)),
        call(draw.normal(1, 3)).then(draw.normal(3, 2)),
    ]


def _similarity_batches(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.normal(2, 4, 3)),
        call(draw.normal(1, 2, 5)),
        call(draw.normal(2, 2, 2)),
        call(draw.normal(2, 3, 2, 1)),
        call(Strided(draw.normal(2, 3, 2))),
    ]


def _similarity_large(draw: Draw) -> Sequence[Run]:
    level = 50 + 0.01 * draw.normal(3, 4)
    return [call(level), call(60 * draw.normal(4, 3)), call(np.r_[level, 0.1 * level[:2]])]


def _similarity_permuted(draw: Draw) -> Sequence[Run]:
    x, order = draw.normal(6, 3), np.roll(draw.permutation(6), 1)
    order = order if (order != np.arange(6)).any() else order[::-1]
    return [call(x).then(x[order])]


def _permutes(run: Run, record: Record) -> str | None:
    """Rows of the second call's x, taken from the first's, come out in their new order."""
    x, moved_x = (plain(step.args[0]) for step in run.steps)
    first, second = (a.reshape(-1, *a.shape[-2:])[0] for a in (x, moved_x))
    order = [int(np.flatnonzero((first == row).all(-1))[0]) for row in second]
    pairs = _outputs_and_weights(record, *x.shape[:-1], len(order))
    if pairs is None:
        return "the result is not (output, weights) with a row for each row of x"
    (out, weights), (moved, moved_weights) = pairs
    if not np.allclose(moved, out[..., order, :], rtol=1e-4, atol=1e-5):
        return "reordering the rows of x does not reorder the rows of the output"
    if not np.allclose(moved_weights, weights[..., order, :][..., order], rtol=1e-4, atol=1e-5):
        return "reordering the rows of x does not reorder rows and columns of the weights"
    return None


SELF_SIMILARITY = Exercise(
    "self_similarity",
    "A sequence attends to itself",
    ("x",),
    (
        equals_reference(
            "output and weights",
            0.75,
            "x is query, key and value at once. You have written the rest already.",
            _similarity_runs,
        ),
        equals_reference(
            "leading batch dimensions",
            0.35,
            "Each x[b] attends to itself alone; `.T` would turn the batch round as well.",
            _similarity_batches,
        ),
        has_property(
            "reordered rows come out reordered",
            0.25,
            "Nothing here knows of positions: the same rows in another order give the same outputs "
            "in that order.",
            _similarity_permuted,
            _permutes,
            only_if_right=True,
        ),
        equals_reference(
            "scores of ±10,000",
            0.35,
            "A long row has a large dot product with itself. Subtract each row's largest score.",
            _similarity_large,
        ),
        dtypes_kept(
            0.2,
            "float32 stays float32, and integers give float64.",
            lambda draw: [
                call(draw.normal(3, 4, dtype="float32")),
                call(draw.integers(-2, 2, 4, 3)),
            ],
        ),
        inputs_untouched(
            0.1, lambda draw: [*_similarity_runs(draw)[:2], *_similarity_batches(draw)[:1]]
        ),
    ),
)

# --- scaled_dot_product_attention ---------------------------------------------------------------


def _scaled_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _tensors(draw, 4, 3, 7, 2, 2)
    return [
        call(*_tensors(draw, 3, 5, 4, 2, 2)),
        call(*_tensors(draw, 6, 2, 3, 5)),
        call(value=value, key=key, query=query).then(*_tensors(draw, 2, 7, 5, 3)),
    ]


def _scaled_square(draw: Draw) -> Sequence[Run]:
    return [
        call(*_tensors(draw, 4, 4, 4, 4)),
        call(*_tensors(draw, 3, 3, 3, 3, 3)),
        call(*_tensors(draw, 2, 2, 2, 2, 2, 2)),
    ]


def _scaled_single(draw: Draw) -> Sequence[Run]:
    return [
        call(*_tensors(draw, 1, 5, 3, 2, 2)),
        call(*_tensors(draw, 4, 1, 3, 2, 2)),
        call(*_tensors(draw, 3, 4, 1, 2, 1)),
        call(*_tensors(draw, 3, 4, 2, 1, 1)),
        call(*_tensors(draw, 1, 1, 1, 1, 1)),
    ]


def _scaled_batches(draw: Draw) -> Sequence[Run]:
    return [
        call(*_tensors(draw, 3, 5, 4, 2)),
        call(*_tensors(draw, 4, 2, 3, 5, 1)),
        call(*_tensors(draw, 2, 3, 5, 2, 2, 3)),
        call(*_tensors(draw, 2, 3, 4, 2, 2, 1, 2)),
        call(*map(Strided, _tensors(draw, 3, 2, 4, 5, 2))),
    ]


def _scaled_backward(draw: Draw) -> Sequence[Run]:
    """In float64, where terms that cancel do so to the last digits.

    Here and in the other float64 runs of this exercise, d_k is a square: its root is then right
    in float32, too, and `torch.sqrt(torch.tensor(d_k))` is as good as `math.sqrt(d_k)`.
    """
    return [
        call(*_tensors(draw, 2, 3, 4, 1, 2, dtype="float64")),
        call(*_tensors(draw, 3, 2, 4, 5, dtype="float64")),
        call(*_tensors(draw, 3, 2, 1, 2, 1, dtype="float64")),
    ]


def _scaled_large(draw: Draw) -> Sequence[Run]:
    pairs = [(q * 1.5, k * 1.5) for q, k in _large(draw, 3, 5, 4)]
    arrays = [*((q, k, draw.normal(5, 2)) for q, k in pairs), _minus_infinity(draw)]
    return [call(*(tensor(a, "float64") for a in qkv)) for qkv in arrays]


def _scaled_large_backward(draw: Draw) -> Sequence[Run]:
    query, key, value = _tensors(draw, 3, 4, 5, 2, 2)
    return [call(tensor(query.data * 1e4, "float32"), key, value).with_gradients()]


def _scaled_reordered(draw: Draw) -> Sequence[Run]:
    query, key, value = _tensors(draw, 3, 5, 4, 2, 2)
    order = np.roll(np.arange(5), draw.integer(1, 4))
    moved = (tensor(x.data[:, order], "float32") for x in (key, value))
    return [call(query, key, value).then(query, *moved)]


def _order_is_nothing(run: Run, record: Record) -> str | None:
    (query, key), (_, moved_key) = ([plain(arg) for arg in step.args[:2]] for step in run.steps)
    order = [int(np.flatnonzero((key[0] == row).all(-1))[0]) for row in moved_key[0]]
    pairs = _outputs_and_weights(record, *query.shape[:-1], len(order))
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
            _finite,
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
        _own_things(0.2, lambda draw: _changed(draw, Run(()), _tensors(draw, 3, 4, 2, 5, 3))),
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

# --- AdditiveAttention --------------------------------------------------------------------------

_QKV = ("query", "key", "value")


def _additive_shapes(query_size: int, key_size: int, hidden_size: int) -> dict[str, tuple]:
    return {
        "W_q.weight": (hidden_size, query_size),
        "W_k.weight": (hidden_size, key_size),
        "w_v.weight": (1, hidden_size),
    }


def _additive(
    draw: Draw, *sizes: int, dropout: float = 0.0, dtype: str = "float32", scale: float = 1.5
) -> Run:
    """An `AdditiveAttention` with random parameters; `scale` is that of w_v, and of the scores."""
    state = {
        name: draw.tensor(*shape, scale=shape[1] ** -0.5, dtype=dtype)
        for name, shape in _additive_shapes(*sizes).items()
    }
    state["w_v.weight"] = draw.tensor(1, sizes[2], scale=scale, dtype=dtype)
    return module(*sizes, dropout, state=state) if dropout else module(*sizes, state=state)


def _additive_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _pairs(draw, 1, 4, 3, (2, 6, 4))
    first = _pairs(draw, 2, 3, 5, (4, 3, 2))
    return [
        _additive(draw, 4, 3, 6).then(*first).then(*first),
        _additive(draw, 2, 6, 5).then(value=value, key=key, query=query),
        _additive(draw, 5, 2, 7).then(*_pairs(draw, 3, 2, 4, (5, 2, 3))),
    ]


def _additive_backward(draw: Draw) -> Sequence[Run]:
    """In float64, and small: a mistake's gradients are on file, too."""
    query, key, value = _pairs(draw, 1, 3, 2, (2, 4, 3), "float64")
    x = _pairs(draw, 2, 2, 3, (3, 2, 1), "float64")
    return [
        _additive(draw, 3, 2, 4, dtype="float64").then(*x),
        _additive(draw, 2, 4, 3, dtype="float64").then(value=value, key=key, query=query),
    ]


def _additive_square(draw: Draw) -> Sequence[Run]:
    return [
        _additive(draw, 3, 3, 3).then(*_pairs(draw, 3, 3, 3, (3, 3, 3))),
        _additive(draw, 2, 2, 2).then(*_pairs(draw, 2, 2, 2, (2, 2, 2))),
        _additive(draw, 4, 4, 5).then(*_pairs(draw, 2, 3, 3, (4, 4, 4))),
    ]


def _additive_single(draw: Draw) -> Sequence[Run]:
    return [
        _additive(draw, 3, 2, 4).then(*_pairs(draw, 2, 1, 5, (3, 2, 4))),
        _additive(draw, 2, 3, 4).then(*_pairs(draw, 2, 4, 1, (2, 3, 2))),
        _additive(draw, 2, 3, 1).then(*_pairs(draw, 1, 3, 4, (2, 3, 1))),
        _additive(draw, 1, 1, 1).then(*_pairs(draw, 1, 1, 1, (1, 1, 1))),
        _additive(draw, 3, 4, 2).then(*map(Strided, _pairs(draw, 2, 3, 2, (3, 4, 5)))),
    ]


def _additive_evaluated(draw: Draw) -> Sequence[Run]:
    x = _pairs(draw, 2, 3, 5, (4, 3, 2))
    return [_additive(draw, 4, 3, 6, dropout=0.5).then(*x).then(*x)]


def _additive_fresh(draw: Draw) -> Sequence[Run]:
    sizes = 2, 3, draw.integer(4, 6)
    return [
        _fresh(module(*sizes).then(*_pairs(draw, 2, 1, 3, (2, 3, 1)))),
        _fresh(module(4, 2, 3).then(*_pairs(draw, 1, 2, 3, (4, 2, 1)))),
    ]


def _additive_large(draw: Draw) -> Sequence[Run]:
    runs = []
    for dtype, scale in (("float64", 1e4), ("float32", 3e3)):
        x = _pairs(draw, 1, 2, 4, (3, 2, 1), dtype)
        runs.append(_additive(draw, 3, 2, 4, dtype=dtype, scale=scale).then(*x).with_gradients())
    return runs


def _additive_double(draw: Draw) -> Sequence[Run]:
    x = _pairs(draw, 2, 3, 4, (3, 2, 5), "float64")
    return [_additive(draw, 3, 2, 4, dtype="float64").then(*x)]


_CALLS = 6  # with 360 weights, a right answer's share of dropped ones is 0.15 off once in 10⁸


def _additive_training(draw: Draw, calls: int) -> Run:
    """Values that show each weight twice over: row j of [I I] is the weight of key j."""
    query, key, _ = _pairs(draw, 2, 6, 5, (3, 4, 1))
    shown = tensor(np.stack([np.c_[np.eye(5), np.eye(5)]] * 2), "float32")
    rate = draw.number(0.25, 0.6)
    run = replace(_additive(draw, 3, 4, 6, dropout=rate), training=True, random=True)
    for _ in range(calls):
        run = run.then(query, key, shown)
    return replace(run, seed=draw.integer(0, 10**6))


def _additive_dropout(draw: Draw) -> Sequence[Run]:
    certain = replace(_additive(draw, 3, 4, 6, dropout=1.0), training=True)
    return [
        _additive_training(draw, _CALLS),
        certain.then(*_pairs(draw, 2, 3, 5, (3, 4, 2))),  # with dropout 1 nothing is random
    ]


def _additive_scaled(draw: Draw) -> Sequence[Run]:
    """Of two weights, a dropout of 10⁻⁷ drops none (but once in 5 million), and scales both."""
    model = _additive(draw, 3, 4, 6, dropout=1e-7, dtype="float64")
    pairs = _pairs(draw, 1, 1, 2, (3, 4, 3), "float64")
    return [_additive_training(draw, 2), replace(model, training=True).then(*pairs)]


def _shares(trial: Trial) -> np.ndarray | None:
    """What is left of each weight in each call, divided by the weight; None for another shape."""
    outputs = [plain(part(value, 0)) for value in trial.record.values]
    if any(output is None or output.shape != (2, 6, 10) for output in outputs):
        return None
    weights = plain(trial.expected.value[1])
    return np.stack(outputs) / np.concatenate([weights, weights], axis=-1)


def _drops_weights(trial: Trial) -> Finding:
    if not trial.run.random:
        return compare(trial.record.value, trial.expected.value)
    shares, rate = _shares(trial), trial.run.init.args[3]
    if shares is None:
        return Finding(False, "the result is not (output, weights)")
    for value, expected in zip(trial.record.values, trial.expected.values, strict=True):
        kept = compare(part(value, 1), expected[1], "part 1 of the result")
        if not kept.passed:
            return replace(kept, message=f"{kept.message} (the weights before dropout)")
    if not np.allclose(shares[..., :5], shares[..., 5:], rtol=1e-3, atol=1e-3):
        return Finding(False, "the features of the output are dropped one by one, not the weights")
    dropped = np.abs(shares) < 1e-3
    if not dropped.any():
        return Finding(False, f"in training mode with dropout {rate}, no weight is dropped")
    if all((dropped[0] == again).all() for again in dropped[1:]):
        return Finding(False, "every call in training mode drops the same weights")
    found = float(dropped.mean())
    if not abs(found - rate) <= 0.15:
        return Finding(False, f"weights dropped: expected {rate:.0%}, got {found:.0%}")
    return Finding(True)


def _makes_up_for_them(trial: Trial) -> Finding:
    if not trial.run.random:
        return compare(trial.record.value, trial.expected.value)
    shares, rate = _shares(trial), trial.run.init.args[3]
    if shares is None:
        return Finding(False, "the result is not (output, weights)")
    kept, factor = shares[~(np.abs(shares) < 1e-3)], 1 / (1 - rate)
    if kept.size == 0:
        return Finding(False, "in training mode every weight is dropped")
    worst = kept[np.argmax(np.abs(kept - factor))]
    if not abs(worst - factor) < 1e-3 * factor:
        text = f"expected 1 / (1 − {rate}) = {factor:.3g}, got {worst:.3g}"
        return Finding(False, f"the factor of a weight that is kept: {text}")
    return Finding(True)


ADDITIVE_ATTENTION = Exercise(
    "AdditiveAttention",
    "Additive attention",
    _QKV,
    (
        equals_reference(
            "output and weights",
            1.25,
            "Bring W_q(query) to (B, n_q, 1, h) and W_k(key) to (B, 1, n_k, h); their sum is "
            "(B, n_q, n_k, h), one hidden vector for each pair. tanh, then w_v makes it one score.",
            _additive_runs,
        ),
        equals_reference(
            "as many of everything",
            0.5,
            "When all sizes are equal, no wrong order of axes is an error. Queries come before "
            "keys, and the softmax runs over the keys.",
            _additive_square,
        ),
        equals_reference(
            "one query, one key, a batch of one",
            0.5,
            "squeeze() without an axis takes away every axis of size 1, also one that counts "
            "queries. squeeze(-1) takes away the last.",
            _additive_single,
        ),
        gradients_match(
            "gradients reach every input and parameter",
            0.75,
            "W_q, W_k and w_v all take part. A projection that is computed and not used gets no "
            "gradient, and .detach() cuts off everything before it.",
            _additive_backward,
        ),
        Aspect(
            "dropout in training",
            0.5,
            "Dropout stands between softmax and values: self.dropout(weights) zeroes a share of "
            "them. Return the weights before it.",
            _additive_dropout,
            each(_drops_weights),
            only_if_right=True,
        ),
        Aspect(
            "dropout makes up for what it drops",
            0.25,
            "The weights that stay are divided by one minus the share that is dropped, so that the "
            "output is on average what it is without dropout. nn.Dropout does so.",
            _additive_scaled,
            each(_makes_up_for_them),
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.25,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _additive_evaluated,
        ),
        has_property(
            "h(1 + q + k) parameters",
            0.25,
            "W_q, W_k and w_v are nn.Linear layers without bias: `__init__` as it is given.",
            _additive_fresh,
            _has_parameters(_additive_shapes),
            looks=True,
            only_if_right=True,
        ),
        has_property(
            "scores of ±10,000, forward and backward",
            0.25,
            "tanh bounds what goes into w_v, not what comes out. torch.softmax subtracts the "
            "largest score for you; exp and a division do not.",
            _additive_large,
            _finite,
            only_if_right=True,
        ),
        _own_things(
            0.25,
            lambda draw: _changed(
                draw, _additive(draw, 2, 4, 6, scale=0.7), _pairs(draw, 3, 3, 4, (2, 4, 5))
            ),
        ),
        dtypes_kept(0.1, "A float64 model with float64 inputs gives float64.", _additive_double),
        inputs_untouched(0.1, lambda draw: _additive_runs(draw)[1:]),
        no_side_effects_of_a_module(0.05, lambda draw: _additive_runs(draw)[1:2]),
    ),
)

# --- BilinearAttention --------------------------------------------------------------------------


def _bilinear_shapes(query_size: int, key_size: int) -> dict[str, tuple]:
    return {"W": (query_size, key_size)}


def _bilinear(draw: Draw, *sizes: int, dtype: str = "float32", scale: float = 1.0) -> Run:
    return module(*sizes, state={"W": draw.tensor(*sizes, scale=scale, dtype=dtype)})


def _bilinear_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _pairs(draw, 1, 4, 3, (2, 6, 4))
    first = _pairs(draw, 2, 3, 5, (4, 3, 2))
    return [
        _bilinear(draw, 4, 3).then(*first).then(*first),
        _bilinear(draw, 2, 6).then(value=value, key=key, query=query),
        _bilinear(draw, 7, 2).then(*_pairs(draw, 3, 2, 4, (7, 2, 3))),
    ]


def _bilinear_backward(draw: Draw) -> Sequence[Run]:
    """In float64; the product of the sizes is 16, whose fourth root is right in float32, too."""
    query, key, value = _pairs(draw, 1, 3, 2, (2, 8, 1), "float64")
    x = _pairs(draw, 2, 1, 3, (8, 2, 1), "float64")
    return [
        _bilinear(draw, 8, 2, dtype="float64", scale=0.5).then(*x),
        _bilinear(draw, 2, 8, dtype="float64", scale=0.5).then(value=value, key=key, query=query),
    ]


def _bilinear_square(draw: Draw) -> Sequence[Run]:
    return [
        _bilinear(draw, 3, 3).then(*_pairs(draw, 3, 3, 3, (3, 3, 3))),
        _bilinear(draw, 2, 2).then(*_pairs(draw, 2, 2, 2, (2, 2, 2))),
        _bilinear(draw, 5, 5).then(*_pairs(draw, 1, 2, 3, (5, 5, 2))),
    ]


def _bilinear_single(draw: Draw) -> Sequence[Run]:
    return [
        _bilinear(draw, 3, 2).then(*_pairs(draw, 2, 1, 5, (3, 2, 4))),
        _bilinear(draw, 2, 3).then(*_pairs(draw, 2, 4, 1, (2, 3, 2))),
        _bilinear(draw, 1, 3).then(*_pairs(draw, 1, 3, 4, (1, 3, 1))),
        _bilinear(draw, 3, 4).then(*map(Strided, _pairs(draw, 2, 3, 2, (3, 4, 5)))),
    ]


def _bilinear_fresh(draw: Draw) -> Sequence[Run]:
    size = draw.integer(4, 6)
    return [
        _fresh(module(3, size).then(*_pairs(draw, 2, 1, 3, (3, size, 1)))),
        _fresh(module(4, 2).then(*_pairs(draw, 1, 2, 3, (4, 2, 1)))),
    ]


def _bilinear_large(draw: Draw) -> Sequence[Run]:
    runs = []
    for dtype in ("float64", "float32"):
        x = _pairs(draw, 1, 2, 4, (3, 2, 1), dtype)
        runs.append(_bilinear(draw, 3, 2, dtype=dtype, scale=1e4).then(*x).with_gradients())
    return runs


def _bilinear_double(draw: Draw) -> Sequence[Run]:
    x = _pairs(draw, 2, 1, 3, (8, 2, 1), "float64")
    return [_bilinear(draw, 8, 2, dtype="float64", scale=0.5).then(*x)]


BILINEAR_ATTENTION = Exercise(
    "BilinearAttention",
    "Bilinear attention",
    _QKV,
    (
        equals_reference(
            "output and weights",
            1.0,
            "query @ W @ keyᵀ is (B, n_q, n_k). Divide it by the fourth root of query_size "
            "times key_size, softmax over the keys, average the values.",
            _bilinear_runs,
        ),
        equals_reference(
            "as many of everything",
            0.35,
            "When queries and keys have one size, Wᵀ fits where W belongs. W's rows are for the "
            "features of the query, its columns for those of the key.",
            _bilinear_square,
        ),
        equals_reference(
            "one query, one key, a batch of one",
            0.25,
            "An axis of size 1 is still an axis: use no squeeze().",
            _bilinear_single,
        ),
        gradients_match(
            "gradients reach W and every input",
            0.6,
            "Use self.W itself, in torch, from start to end: .detach() and .data cut it off.",
            _bilinear_backward,
        ),
        has_property(
            "one parameter, W",
            0.15,
            "W is an nn.Parameter of shape (query_size, key_size): `__init__` as it is given.",
            _bilinear_fresh,
            _has_parameters(_bilinear_shapes),
            looks=True,
            only_if_right=True,
        ),
        has_property(
            "scores of ±10,000, forward and backward",
            0.25,
            "torch.softmax subtracts the largest score for you; exp and a division do not.",
            _bilinear_large,
            _finite,
            only_if_right=True,
        ),
        _own_things(
            0.15,
            lambda draw: _changed(
                draw, _bilinear(draw, 2, 4, scale=0.3), _pairs(draw, 3, 3, 4, (2, 4, 5))
            ),
        ),
        dtypes_kept(0.1, "A float64 model with float64 inputs gives float64.", _bilinear_double),
        inputs_untouched(0.1, lambda draw: _bilinear_runs(draw)[1:]),
        no_side_effects_of_a_module(0.05, lambda draw: _bilinear_runs(draw)[1:2]),
    ),
)

# --- cosine_scores ------------------------------------------------------------------------------


def _vectors(draw: Draw, n_q: int, n_k: int, d: int, *batch: int, **kwargs: Any) -> tuple:
    return draw.tensor(*batch, n_q, d, **kwargs), draw.tensor(*batch, n_k, d, **kwargs)


def _cosine_runs(draw: Draw) -> Sequence[Run]:
    query, key = _vectors(draw, 2, 6, 3, scale=3.0)
    return [
        call(*_vectors(draw, 3, 5, 4, scale=2.0)),
        call(*_vectors(draw, 4, 2, 3, 2), 1e-6),
        call(key=key, query=query),
        call(query=key, key=query, eps=1e-7),
    ]


def _cosine_square(draw: Draw) -> Sequence[Run]:
    return [
        call(*_vectors(draw, 4, 4, 4)),
        call(*_vectors(draw, 3, 3, 3, 3)),
        call(*_vectors(draw, 3, 3, 5)),
    ]


def _cosine_batches(draw: Draw) -> Sequence[Run]:
    return [
        call(*_vectors(draw, 3, 4, 2, 2)),
        call(*_vectors(draw, 1, 4, 3, 1)),
        call(*_vectors(draw, 2, 1, 5, 2, 3)),
        call(*map(Strided, _vectors(draw, 4, 3, 2, 3))),
    ]


def _cosine_zero(draw: Draw) -> Sequence[Run]:
    query, key = (x.data.copy() for x in _vectors(draw, 3, 4, 5, 2))
    query[1, 0] = key[0, 2] = 0.0
    some = tensor(np.stack([np.zeros(3), draw.normal(3)]), "float32")
    return [
        call(tensor(query, "float32"), tensor(key, "float32")),
        call(some, draw.tensor(4, 3, scale=100.0)),
        call(draw.tensor(4, 3, scale=100.0), some, eps=1e-6),
        call(some, some),
    ]


def _cosine_lengths(draw: Draw) -> Sequence[Run]:
    """The same directions, twice: with other lengths in the second call."""
    query, key = draw.normal(4, 3), draw.normal(5, 3)
    key[1], key[3] = 2.5 * query[2], -0.3 * query[0]
    far = 10.0 ** draw.uniform(-2.0, 4.0, 4, 1), 10.0 ** draw.uniform(-2.0, 4.0, 5, 1)
    return [
        call(tensor(query), tensor(key)).then(tensor(query * far[0]), tensor(key * far[1])),
        call(tensor(query, "float32"), tensor(query, "float32")).then(
            tensor(query * 7, "float32"), tensor(query, "float32")
        ),
    ]


def _cosine_bounds(run: Run, record: Record) -> str | None:
    queries, keys = (plain(arg) for arg in run.steps[0].args)
    results = [plain(value) for value in record.values]
    if any(r is None or r.shape != (len(queries), len(keys)) for r in results):
        return "the result has not the shape (n_q, n_k)"
    for scores in results:
        if not np.abs(scores).max() <= 1 + 1e-6:
            return f"a score is {np.abs(scores).max():.6g}, outside [−1, 1]"
    if np.abs(results[0] - results[1]).max() > 1e-5:
        return "longer vectors in the same directions have other scores"
    lengths = np.linalg.norm(queries, axis=1)[:, None] * np.linalg.norm(keys, axis=1)
    parallel = np.abs(np.abs(queries @ keys.T) / lengths - 1) < 1e-6
    if np.abs(np.abs(results[0][parallel]) - 1).max() > 1e-5:
        return "two vectors in one direction do not have the score 1"
    return None


def _cosine_backward(draw: Draw) -> Sequence[Run]:
    return [
        call(*_vectors(draw, 3, 4, 2, 2, scale=100.0, dtype="float64")),
        call(*_vectors(draw, 3, 3, 5, scale=100.0, dtype="float64")),
    ]


COSINE_SCORES = Exercise(
    "cosine_scores",
    "Cosine scores",
    ("query", "key", "eps"),
    (
        equals_reference(
            "scores of every pair",
            1.0,
            "Divide each query and each key by its own length (its norm over the last axis, "
            "keepdim=True), then take dot products of every query with every key. No softmax here.",
            _cosine_runs,
        ),
        equals_reference(
            "as many of everything",
            0.25,
            "Lengths are taken over the features, the last axis; rows of the result are queries.",
            _cosine_square,
        ),
        equals_reference(
            "leading batch dimensions",
            0.4,
            "Work on the last two axes, whatever stands before them.",
            _cosine_batches,
        ),
        equals_reference(
            "a zero vector",
            0.5,
            "0/0 is NaN. Keep the length from falling below eps, and 0/eps is 0.",
            _cosine_zero,
        ),
        has_property(
            "between −1 and 1, whatever the lengths",
            0.25,
            "A cosine knows the angle only: twice as long a vector has the same scores, and a "
            "vector has the score 1 with itself.",
            _cosine_lengths,
            _cosine_bounds,
            only_if_right=True,
        ),
        gradients_match(
            "gradients to query and key",
            0.35,
            "The length depends on the vector, too: do not detach it.",
            _cosine_backward,
        ),
        dtypes_kept(0.1, "float64 in, float64 out.", _cosine_backward),
        inputs_untouched(0.1, _cosine_runs),
        no_side_effects(0.05, lambda draw: _cosine_runs(draw)[:2]),
    ),
)

# --- SelfAttention ------------------------------------------------------------------------------


def _self_shapes(d_model: int, d_k: int, d_v: int) -> dict[str, tuple]:
    return {
        "W_q.weight": (d_k, d_model),
        "W_k.weight": (d_k, d_model),
        "W_v.weight": (d_v, d_model),
    }


def _self(draw: Draw, *sizes: int, dtype: str = "float32", scale: float = 1.2) -> Run:
    state = {
        name: draw.tensor(*shape, scale=scale * shape[1] ** -0.5, dtype=dtype)
        for name, shape in _self_shapes(*sizes).items()
    }
    return module(*sizes, state=state)


def _self_runs(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 5, 4)
    return [
        _self(draw, 4, 3, 2).then(x).then(x),
        _self(draw, 2, 6, 5).then(x=draw.tensor(1, 3, 2)),
        _self(draw, 7, 2, 4).then(draw.tensor(3, 4, 7)),
    ]


def _self_backward(draw: Draw) -> Sequence[Run]:
    """In float64; d_k is a square, whose root is right in float32, too."""
    return [
        _self(draw, 3, 4, 2, dtype="float64").then(draw.tensor(2, 3, 3, dtype="float64")),
        _self(draw, 4, 1, 3, dtype="float64").then(x=draw.tensor(1, 2, 4, dtype="float64")),
    ]


def _self_square(draw: Draw) -> Sequence[Run]:
    return [
        _self(draw, 3, 3, 3).then(draw.tensor(3, 3, 3)),
        _self(draw, 2, 2, 2).then(draw.tensor(2, 2, 2)),
        _self(draw, 5, 1, 1).then(draw.tensor(1, 1, 5)).then(draw.tensor(2, 3, 5)),
        _self(draw, 3, 3, 3).then(Strided(draw.tensor(2, 2, 3))),
    ]


def _self_fresh(draw: Draw) -> Sequence[Run]:
    size = draw.integer(4, 6)
    return [
        _fresh(module(size, 3, 2).then(draw.tensor(2, 2, size))),
        _fresh(module(3, 2, 4).then(draw.tensor(1, 3, 3))),
    ]


def _self_permuted(draw: Draw) -> Sequence[Run]:
    x, order = draw.tensor(2, 4, 3), np.roll(np.arange(4), draw.integer(1, 3))
    return [_self(draw, 3, 5, 2).then(x).then(tensor(x.data[:, order], "float32"))]


def _self_batch(draw: Draw) -> Sequence[Run]:
    """Two calls: as is, and with position 2 of sequence 1 changed."""
    x = draw.tensor(3, 4, 5)
    other = x.data.copy()
    other[1, 2] += draw.uniform(1.0, 2.0, 5)
    return [_self(draw, 5, 3, 2).then(x).then(tensor(other, "float32"))]


def _self_apart(run: Run, record: Record) -> str | None:
    before, after = (plain(part(value, 0)) for value in record.values)
    if before is None or after is None or before.shape != (3, 4, 2) or after.shape != (3, 4, 2):
        return "the output has not the shape (B, n, d_v)"
    moved = np.abs(after - before).max(-1)
    if not moved[[0, 2]].max() < 1e-6:
        return "changing one sequence of the batch changed the output of another"
    return None if moved[1].min() > 1e-5 else "a position does not see the one that was changed"


def _self_large(draw: Draw) -> Sequence[Run]:
    return [
        _self(draw, 4, 3, 1, dtype=dtype, scale=100.0)
        .then(draw.tensor(1, 3, 4, dtype=dtype))
        .with_gradients()
        for dtype in ("float64", "float32")
    ]


def _self_double(draw: Draw) -> Sequence[Run]:
    return [_self(draw, 3, 4, 2, dtype="float64").then(draw.tensor(2, 3, 3, dtype="float64"))]


SELF_ATTENTION = Exercise(
    "SelfAttention",
    "Self-attention",
    ("x",),
    (
        equals_reference(
            "output and weights",
            1.0,
            "Queries are W_q(x), keys W_k(x), values W_v(x); then scaled dot-product attention, "
            "with the √d_k of the projected queries. Return (output, weights).",
            _self_runs,
        ),
        equals_reference(
            "as many of everything",
            0.35,
            "When all sizes are equal, every projection fits everywhere. Each belongs to one role.",
            _self_square,
        ),
        gradients_match(
            "gradients reach x and every projection",
            0.6,
            "x is used three times and learns three times. A projection that is computed and not "
            "used gets no gradient.",
            _self_backward,
        ),
        has_property(
            "reordered positions come out reordered",
            0.25,
            "Nothing here knows of positions: the same vectors in another order give the same "
            "outputs in that order.",
            _self_permuted,
            _permutes,
            only_if_right=True,
        ),
        has_property(
            "each sequence for itself",
            0.2,
            "Every position sees all positions of its own sequence, and none of another.",
            _self_batch,
            _self_apart,
            only_if_right=True,
        ),
        has_property(
            "three projections, no biases",
            0.15,
            "W_q, W_k and W_v are nn.Linear layers without bias: `__init__` as it is given.",
            _self_fresh,
            _has_parameters(_self_shapes),
            looks=True,
            only_if_right=True,
        ),
        has_property(
            "scores of ±10,000, forward and backward",
            0.25,
            "torch.softmax subtracts the largest score for you; exp and a division do not.",
            _self_large,
            _finite,
            only_if_right=True,
        ),
        dtypes_kept(0.1, "A float64 model with a float64 input gives float64.", _self_double),
        inputs_untouched(0.05, lambda draw: _self_runs(draw)[1:]),
        no_side_effects_of_a_module(0.05, lambda draw: _self_runs(draw)[1:2]),
    ),
)

EXERCISES = (
    SIMPLE_ATTENTION,
    SELF_SIMILARITY,
    SCALED_DOT_PRODUCT_ATTENTION,
    ADDITIVE_ATTENTION,
    BILINEAR_ATTENTION,
    COSINE_SCORES,
    SELF_ATTENTION,
)
