"""`AdditiveAttention`: additive attention."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from autograder.engine.aspects import (
    compare,
    dtypes_kept,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects_of_a_module,
    part,
    plain,
)
from autograder.engine.runs import (
    Aspect,
    Draw,
    Exercise,
    Finding,
    Run,
    Strided,
    Trial,
    module,
    tensor,
)
from autograder.exercises.attention_scoring.shared import (
    QKV,
    all_finite,
    each_for_itself,
    fresh,
    has_parameters,
    one_changed,
    sized_tensors,
)


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
    query, key, value = sized_tensors(draw, 1, 4, 3, (2, 6, 4))
    first = sized_tensors(draw, 2, 3, 5, (4, 3, 2))
    return [
        _additive(draw, 4, 3, 6).then(*first).then(*first),
        _additive(draw, 2, 6, 5).then(value=value, key=key, query=query),
        _additive(draw, 5, 2, 7).then(*sized_tensors(draw, 3, 2, 4, (5, 2, 3))),
    ]


def _additive_backward(draw: Draw) -> Sequence[Run]:
    """In float64, and small: a mistake's gradients are on file, too."""
    query, key, value = sized_tensors(draw, 1, 3, 2, (2, 4, 3), "float64")
    x = sized_tensors(draw, 2, 2, 3, (3, 2, 1), "float64")
    return [
        _additive(draw, 3, 2, 4, dtype="float64").then(*x),
        _additive(draw, 2, 4, 3, dtype="float64").then(value=value, key=key, query=query),
    ]


def _additive_square(draw: Draw) -> Sequence[Run]:
    return [
        _additive(draw, 3, 3, 3).then(*sized_tensors(draw, 3, 3, 3, (3, 3, 3))),
        _additive(draw, 2, 2, 2).then(*sized_tensors(draw, 2, 2, 2, (2, 2, 2))),
        _additive(draw, 4, 4, 5).then(*sized_tensors(draw, 2, 3, 3, (4, 4, 4))),
    ]


def _additive_single(draw: Draw) -> Sequence[Run]:
    return [
        _additive(draw, 3, 2, 4).then(*sized_tensors(draw, 2, 1, 5, (3, 2, 4))),
        _additive(draw, 2, 3, 4).then(*sized_tensors(draw, 2, 4, 1, (2, 3, 2))),
        _additive(draw, 2, 3, 1).then(*sized_tensors(draw, 1, 3, 4, (2, 3, 1))),
        _additive(draw, 1, 1, 1).then(*sized_tensors(draw, 1, 1, 1, (1, 1, 1))),
        _additive(draw, 3, 4, 2).then(*map(Strided, sized_tensors(draw, 2, 3, 2, (3, 4, 5)))),
    ]


def _additive_evaluated(draw: Draw) -> Sequence[Run]:
    x = sized_tensors(draw, 2, 3, 5, (4, 3, 2))
    return [_additive(draw, 4, 3, 6, dropout=0.5).then(*x).then(*x)]


def _additive_fresh(draw: Draw) -> Sequence[Run]:
    sizes = 2, 3, draw.integer(4, 6)
    return [
        fresh(module(*sizes).then(*sized_tensors(draw, 2, 1, 3, (2, 3, 1)))),
        fresh(module(4, 2, 3).then(*sized_tensors(draw, 1, 2, 3, (4, 2, 1)))),
    ]


def _additive_large(draw: Draw) -> Sequence[Run]:
    runs = []
    for dtype, scale in (("float64", 1e4), ("float32", 3e3)):
        x = sized_tensors(draw, 1, 2, 4, (3, 2, 1), dtype)
        runs.append(_additive(draw, 3, 2, 4, dtype=dtype, scale=scale).then(*x).with_gradients())
    return runs


def _additive_double(draw: Draw) -> Sequence[Run]:
    x = sized_tensors(draw, 2, 3, 4, (3, 2, 5), "float64")
    return [_additive(draw, 3, 2, 4, dtype="float64").then(*x)]


_CALLS = 6  # with 360 weights, a right answer's share of dropped ones is 0.15 off once in 10⁸


def _additive_training(draw: Draw, calls: int) -> Run:
    """Values that show each weight twice over: row j of [I I] is the weight of key j."""
    query, key, _ = sized_tensors(draw, 2, 6, 5, (3, 4, 1))
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
        certain.then(*sized_tensors(draw, 2, 3, 5, (3, 4, 2))),  # with dropout 1 nothing is random
    ]


def _additive_scaled(draw: Draw) -> Sequence[Run]:
    """Of two weights, a dropout of 10⁻⁷ drops none (but once in 5 million), and scales both."""
    model = _additive(draw, 3, 4, 6, dropout=1e-7, dtype="float64")
    pairs = sized_tensors(draw, 1, 1, 2, (3, 4, 3), "float64")
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
    QKV,
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
            has_parameters(_additive_shapes),
            looks=True,
            only_if_right=True,
        ),
        has_property(
            "scores of ±10,000, forward and backward",
            0.25,
            "tanh bounds what goes into w_v, not what comes out. torch.softmax subtracts the "
            "largest score for you; exp and a division do not.",
            _additive_large,
            all_finite,
            only_if_right=True,
        ),
        each_for_itself(
            0.25,
            lambda draw: one_changed(
                draw, _additive(draw, 2, 4, 6, scale=0.7), sized_tensors(draw, 3, 3, 4, (2, 4, 5))
            ),
        ),
        dtypes_kept(0.1, "A float64 model with float64 inputs gives float64.", _additive_double),
        inputs_untouched(0.1, lambda draw: _additive_runs(draw)[1:]),
        no_side_effects_of_a_module(0.05, lambda draw: _additive_runs(draw)[1:2]),
    ),
)
