"""`AdditiveAttention`: additive attention."""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.attention_scoring.shared import (
    QKV,
    do_not_mix,
    fresh,
    has_parameters,
    one_changed,
    sized_tensors,
)
from attention_by_hand.exercises.shared import (
    OUTPUT_AND_WEIGHTS,
    all_finite,
    wrong_factor,
    wrong_share,
)
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Run,
    StridedArray,
    Trial,
    module,
    part,
    plain,
    tensor,
)
from autograder.student.engine.aspects import compare, numbers_of, same_results
from autograder.student.engine.compare import all_shaped

EXERCISE = Declaration("AdditiveAttention", "Additive attention", QKV, returns=OUTPUT_AND_WEIGHTS)


def _shapes(query_size: int, key_size: int, hidden_size: int) -> dict[str, tuple]:
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
        for name, shape in _shapes(*sizes).items()
    }
    state["w_v.weight"] = draw.tensor(1, sizes[2], scale=scale, dtype=dtype)
    return module(*sizes, dropout, state=state) if dropout else module(*sizes, state=state)


@EXERCISE.equals("output and weights", 1.25)
def _runs(draw: Draw) -> list[Run]:
    """Give W_q(query) the shape (B, n_q, 1, h) and W_k(key) the shape (B, 1, n_k, h); their sum is
    (B, n_q, n_k, h), one hidden vector per pair. After tanh, w_v turns it into one score."""
    query, key, value = sized_tensors(draw, 1, 4, 3, (2, 6, 4))
    first = sized_tensors(draw, 2, 3, 5, (4, 3, 2))
    return [
        _additive(draw, 4, 3, 6).then(*first).then(*first),
        _additive(draw, 2, 6, 5).then(value=value, key=key, query=query),
        _additive(draw, 5, 2, 7)
        .then(*sized_tensors(draw, 3, 2, 4, (5, 2, 3)))
        .then(*sized_tensors(draw, 1, 3, 2, (5, 2, 3))),
        _additive(draw, 2, 1, 2).then(*sized_tensors(draw, 1, 70, 2, (2, 1, 1))),
        _additive(draw, 1, 2, 2).then(*sized_tensors(draw, 1, 2, 70, (1, 2, 1))),
    ]


@EXERCISE.equals("all sizes equal", 0.5)
def _square(draw: Draw) -> list[Run]:
    """When all sizes are equal, a wrong order of axes raises no error. Queries come before keys,
    and the softmax runs over the keys."""
    return [
        _additive(draw, 3, 3, 3).then(*sized_tensors(draw, 3, 3, 3, (3, 3, 3))),
        _additive(draw, 2, 2, 2).then(*sized_tensors(draw, 2, 2, 2, (2, 2, 2))),
        _additive(draw, 4, 4, 5).then(*sized_tensors(draw, 2, 3, 3, (4, 4, 4))),
    ]


@EXERCISE.equals("one query, one key, a batch of one", 0.5)
def _single(draw: Draw) -> list[Run]:
    """squeeze() without an axis removes every axis of size 1, even one that counts queries. Remove
    only the axis you mean."""
    return [
        _additive(draw, 3, 2, 4).then(*sized_tensors(draw, 2, 1, 5, (3, 2, 4))),
        _additive(draw, 2, 3, 4).then(*sized_tensors(draw, 2, 4, 1, (2, 3, 2))),
        _additive(draw, 2, 3, 1).then(*sized_tensors(draw, 1, 3, 4, (2, 3, 1))),
        _additive(draw, 1, 1, 1).then(*sized_tensors(draw, 1, 1, 1, (1, 1, 1))),
        _additive(draw, 3, 4, 2).then(*map(StridedArray, sized_tensors(draw, 2, 3, 2, (3, 4, 5)))),
    ]


@EXERCISE.gradients("gradients reach every input and parameter", 0.75)
def _backward(draw: Draw) -> list[Run]:
    """W_q, W_k and w_v all contribute. A projection that is computed but not used gets no gradient,
    and .detach() cuts off everything before it."""
    # In float64, and small: the gradients of the known mistakes are stored, too.
    query, key, value = sized_tensors(draw, 1, 3, 2, (2, 4, 3), "float64")
    x = sized_tensors(draw, 2, 2, 3, (3, 2, 1), "float64")
    return [
        _additive(draw, 3, 2, 4, dtype="float64").then(*x),
        _additive(draw, 2, 4, 3, dtype="float64").then(value=value, key=key, query=query),
    ]


def _shares(trial: Trial) -> np.ndarray | None:
    """What each call leaves of each weight, divided by that weight; None if the shape is wrong."""
    outputs = [plain(part(value, 0)) for value in trial.record.values]
    if not all_shaped(outputs, (2, 6, 10)):
        return None
    weights = numbers_of(trial.expected.value[1])
    return np.stack(outputs) / np.concatenate([weights, weights], axis=-1)


def _drops_weights(trial: Trial) -> Finding:
    if not trial.run.random:
        return same_results(trial)
    shares, rate = _shares(trial), trial.run.constructor.args[3]
    if shares is None:
        return Finding(False, "expected (output, weights)")
    for value, expected in zip(trial.record.values, trial.expected.values, strict=True):
        kept = compare(part(value, 1), expected[1], "the returned weights")
        if not kept.passed:
            return replace(kept, message=f"{kept.message} (the weights before dropout)")
    if not np.allclose(shares[..., :5], shares[..., 5:], rtol=1e-3, atol=1e-3):
        return Finding(False, "features of the output are dropped, not weights")
    problem = wrong_share(shares, rate, "weight", within=0.15)
    return Finding(not problem, problem)


_CALLS = 6  # of 360 weights, a right answer drops a share that is off by 0.15 once in 10⁸ times


def _training(draw: Draw, calls: int) -> Run:
    """Values that show each weight twice: column j of each half of [I I] is the weight of key j."""
    query, key, _ = sized_tensors(draw, 2, 6, 5, (3, 4, 1))
    shown = tensor(np.stack([np.c_[np.eye(5), np.eye(5)]] * 2), "float32")
    rate = draw.number(0.25, 0.6)
    run = _additive(draw, 3, 4, 6, dropout=rate).in_training()
    for _ in range(calls):
        run = run.then(query, key, shown)
    return run.at_random(draw)


@EXERCISE.aspect("dropout in training", 0.5, _drops_weights, only_if_right=True)
def _dropout(draw: Draw) -> list[Run]:
    """Dropout goes between softmax and values: it zeroes a share of the weights. Return the weights
    from before dropout."""
    certain = _additive(draw, 3, 4, 6, dropout=1.0).in_training()
    return [
        _training(draw, _CALLS),
        certain.then(*sized_tensors(draw, 2, 3, 5, (3, 4, 2))),  # with p = 1 nothing is random
    ]


EXERCISE.draws_anew()


def _makes_up_for_them(trial: Trial) -> Finding:
    if not trial.run.random:
        return same_results(trial)
    shares, rate = _shares(trial), trial.run.constructor.args[3]
    if shares is None:
        return Finding(False, "expected (output, weights)")
    problem = wrong_factor(shares, rate, "weight")
    return Finding(not problem, problem)


@EXERCISE.aspect(
    "dropout rescales the weights it keeps", 0.25, _makes_up_for_them, only_if_right=True
)
def _scaled(draw: Draw) -> list[Run]:
    """The weights that are kept are divided by one minus the dropout probability, so that the
    expected output is the same as without dropout. nn.Dropout does this."""
    # With p = 10⁻⁷, neither of two weights is dropped (but once in 5 million times).
    model = _additive(draw, 3, 4, 6, dropout=1e-7, dtype="float64")
    pairs = sized_tensors(draw, 1, 1, 2, (3, 4, 3), "float64")
    return [_training(draw, 2), model.in_training().then(*pairs)]


@EXERCISE.equals("no dropout in eval mode", 0.25)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    x = sized_tensors(draw, 2, 3, 5, (4, 3, 2))
    by_default = _additive(draw, 4, 3, 6).in_training()
    return [_additive(draw, 4, 3, 6, dropout=0.5).then(*x).then(*x), by_default.then(*x)]


@EXERCISE.holds(
    "h(1 + q + k) parameters", 0.25, has_parameters(_shapes), forgeable=True, only_if_right=True
)
def _fresh(draw: Draw) -> list[Run]:
    """W_q, W_k and w_v are nn.Linear layers without bias: leave `__init__` as it is."""
    sizes = 2, 3, draw.integer(4, 6)
    return [
        fresh(module(*sizes).then(*sized_tensors(draw, 2, 1, 3, (2, 3, 1)))),
        fresh(module(4, 2, 3).then(*sized_tensors(draw, 1, 2, 3, (4, 2, 1)))),
    ]


@EXERCISE.holds("scores of ±10,000, forward and backward", 0.25, all_finite, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """tanh bounds what goes into w_v, not what comes out. torch.softmax subtracts the largest score
    for you; a plain exp and division do not."""
    runs = []
    for dtype, scale in (("float64", 1e4), ("float32", 3e3)):
        x = sized_tensors(draw, 1, 2, 4, (3, 2, 1), dtype)
        runs.append(_additive(draw, 3, 2, 4, dtype=dtype, scale=scale).then(*x).with_gradients())
    return runs


EXERCISE.add(
    do_not_mix(
        0.25,
        lambda draw: one_changed(
            draw, _additive(draw, 2, 4, 6, scale=0.7), sized_tensors(draw, 3, 3, 4, (2, 4, 5))
        ),
    )
)


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 model with float64 inputs gives float64, a float32 model float32."""
    x = sized_tensors(draw, 2, 3, 4, (3, 2, 5), "float64")
    return [_additive(draw, 3, 2, 4, dtype="float64").then(*x)]


EXERCISE.leaves_inputs_alone(0.1, lambda draw: _runs(draw)[1:])
EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[1:2], of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _dropout)
