"""`MultiHeadAttention`: multi-head attention."""

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
    raises,
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
    module,
    tensor,
)
from autograder.exercises.multi_head.shared import attention_state, qkv_inputs


def _mha_runs(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    def state(d: int) -> dict[str, Array]:
        return attention_state(draw, d, dtype=dtype)

    query, key, value = qkv_inputs(draw, 1, 4, 3, 6, dtype=dtype)
    named = module(d_model=6, num_heads=3, state=state(6))
    return [
        module(8, 2, state=state(8)).then(*qkv_inputs(draw, 2, 3, 5, 8, dtype=dtype)),
        named.then(value=value, key=key, query=query),
        module(9, 3, state=state(9)).then(*qkv_inputs(draw, 3, 3, 3, 9, dtype=dtype)),
    ]


def _mha_ends(draw: Draw) -> Sequence[Run]:
    return [
        module(6, 1, state=attention_state(draw, 6)).then(*qkv_inputs(draw, 2, 3, 4, 6)),
        module(5, 5, state=attention_state(draw, 5)).then(*qkv_inputs(draw, 1, 2, 4, 5)),
        module(8, 4, state=attention_state(draw, 8)).then(*qkv_inputs(draw, 4, 4, 4, 8)),
    ]


def _mha_no_bias(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    first, second = (attention_state(draw, 8, bias=False, dtype=dtype) for _ in range(2))
    return [
        module(8, 2, bias=False, state=first).then(*qkv_inputs(draw, 2, 3, 5, 8, dtype=dtype)),
        module(8, 4, 0.0, False, state=second).then(*qkv_inputs(draw, 1, 3, 2, 8, dtype=dtype)),
    ]


def _mha_backward(draw: Draw) -> Sequence[Run]:
    """In float64, where terms that cancel do so to the last digits."""
    mask = tensor(draw.uniform(0.2, 2.0, 3), "float64")
    masked = module(6, 3, state=attention_state(draw, 6, dtype="float64"))
    masked = masked.then(*qkv_inputs(draw, 2, 3, 5, 6, dtype="float64"), head_mask=mask)
    return [*_mha_runs(draw, "float64")[:2], _mha_no_bias(draw, "float64")[0], masked]


def _mha_masked(draw: Draw) -> Sequence[Run]:
    first, second = (
        module(6, 3, state=attention_state(draw, 6)),
        module(8, 4, state=attention_state(draw, 8)),
    )
    x = draw.tensor(3, 4, 8)
    return [
        first.then(
            *qkv_inputs(draw, 2, 3, 5, 6), head_mask=tensor(draw.uniform(0.2, 2.0, 3), "float32")
        ),
        first.then(*qkv_inputs(draw, 3, 2, 4, 6), head_mask=tensor([1.0, 0.0, 1.0], "float32")),
        first.then(*qkv_inputs(draw, 1, 3, 3, 6), tensor(np.zeros(3), "float32")),
        second.then(x, x, x, head_mask=tensor([0.0, 1.0, 0.5, 1.0], "float32")).then(x, x, x),
    ]


def _mha_evaluated(draw: Draw) -> Sequence[Run]:
    x = qkv_inputs(draw, 2, 3, 5, 8)
    return [module(8, 2, 0.5, state=attention_state(draw, 8)).then(*x).then(*x)]


def _mha_large(draw: Draw) -> Sequence[Run]:
    query, key, value = qkv_inputs(draw, 1, 3, 4, 8)
    big = tensor(query.data * 1e4, "float32")
    return [module(8, 2, state=attention_state(draw, 8)).then(big, key, value).with_gradients()]


def _mha_finite(run: Run, record: Record) -> str | None:
    arrays = [*map(plain, record.value), *map(plain, record.gradients.values())]
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "an output, a weight or a gradient is missing or not finite"


def _mha_batch(draw: Draw) -> Sequence[Run]:
    query, key, value = qkv_inputs(draw, 3, 4, 4, 8)
    others = []
    for given in (query, key, value):
        data = given.data.copy()
        data[1] += draw.normal(4, 8)
        others.append(tensor(data, "float32"))
    return [module(8, 2, state=attention_state(draw, 8)).then(query, key, value).then(*others)]


def _mha_batch_apart(run: Run, record: Record) -> str | None:
    before, after = (plain(part(value, 0)) for value in record.values)
    if before is None or after is None or before.shape != (3, 4, 8) or after.shape != (3, 4, 8):
        return "the output has not the shape of the queries"
    moved = np.abs(after - before).max(axis=(1, 2))
    if moved[[0, 2]].max() > 1e-6:
        return "changing the second sequence of the batch changed the output of another"
    return None if moved[1] > 1e-3 else "changing a sequence left its own output as it was"


def _mha_uneven(draw: Draw) -> Sequence[Run]:
    return [
        module(14, 4).then(*qkv_inputs(draw, 1, 2, 2, 14)),
        module(7, 2, bias=False).then(*qkv_inputs(draw, 1, 2, 2, 7)),
    ]


def _mha_strided(draw: Draw) -> Sequence[Run]:
    inputs = [Strided(t) for t in qkv_inputs(draw, 2, 3, 4, 6)]
    return [module(6, 2, state=attention_state(draw, 6)).then(*inputs)]


def _mha_double(draw: Draw) -> Sequence[Run]:
    inputs = qkv_inputs(draw, 2, 3, 4, 6, dtype="float64")
    mask = tensor([1.0, 0.5], "float64")
    return [
        module(6, 2, state=attention_state(draw, 6, dtype="float64")).then(*inputs, head_mask=mask)
    ]


_P, _CALLS = 0.25, 8  # a right answer's share of dropped weights is out of bounds once in 10¹⁰


def _see_through(draw: Draw, d: int) -> dict[str, Array]:
    """Parameters that pass values through W_v and W_o as they are."""
    state = attention_state(draw, d)
    same = {f"W_{x}.weight": tensor(np.eye(d), "float32") for x in "vo"}
    return state | same | {f"W_{x}.bias": tensor(np.zeros(d), "float32") for x in "vo"}


def _mha_dropout(draw: Draw) -> Sequence[Run]:
    d = 8
    query, key, _ = qkv_inputs(draw, 2, 6, d, d, scale=0.5)
    one_hot = tensor(np.stack([np.eye(d)] * 2), "float32")  # column c shows the weight of key c
    ones = tensor(np.ones((2, d, d)), "float32")  # every column shows the sum of the row's weights
    model = replace(module(d, 2, dropout=_P, state=_see_through(draw, d)), training=True)
    shown, summed = model, model.then(query, key, ones)
    for _ in range(_CALLS):
        shown = shown.then(query, key, one_hot)
    # With dropout 1 nothing is random; no marks hang on it, but the known mistakes differ there.
    certain = replace(module(d, 2, dropout=1.0, state=attention_state(draw, d)), training=True)
    return [
        replace(shown, random=True, seed=draw.integer(0, 10**6)),
        replace(summed, random=True, seed=draw.integer(0, 10**6)),
        certain.then(query, key, draw.tensor(2, d, d)),
    ]


def _mha_dropout_is_right(trial: Trial) -> Finding:
    results = [(plain(part(v, 0)), plain(part(v, 1))) for v in trial.record.values]
    if any(a is None or b is None or a.shape != (2, 6, 8) for a, b in results):
        return Finding(False, "the result is not (output, weights)")
    if trial.run.init.kwargs["dropout"] == 1.0:
        return Finding(True)
    kept = compare(trial.record.value[1], trial.expected.value[1], "part 1 of the result")
    if not kept.passed:
        return replace(kept, message=f"{kept.message} (the weights before dropout)")
    if len(results) == 1:
        spread = max(float(np.ptp(head, axis=-1).max()) for head in np.split(results[0][0], 2, -1))
        if spread > 1e-4:
            return Finding(False, "the features of a head are dropped one by one, not its weights")
        return Finding(True)
    return _mha_dropped(np.stack([out for out, _ in results]), plain(trial.expected.value[1]))


def _mha_dropped(outs: np.ndarray, weights: np.ndarray) -> Finding:
    ratio = np.concatenate(
        [outs[..., :4] / weights[:, 0, :, :4], outs[..., 4:] / weights[:, 1, :, 4:]]
    )
    dropped = np.abs(ratio) < 1e-3
    if not dropped.any():
        return Finding(False, f"in training mode with dropout {_P}, no weight is dropped")
    if (dropped[0] == dropped[1]).all():
        return Finding(False, "two calls in training mode drop the same weights")
    share = float(dropped.mean())
    if abs(share - _P) > 0.1:
        return Finding(False, f"weights dropped: expected {_P:.0%}, got {share:.0%}")
    off = float(np.abs(ratio[~dropped] * (1 - _P) - 1).max())
    if off > 1e-3:
        return Finding(
            False,
            f"the factor of the weights that are kept: expected 1 / (1 − {_P}) = "
            f"{1 / (1 - _P):.3g}, got {ratio[~dropped].mean():.3g}",
        )
    return Finding(True)


MULTI_HEAD_ATTENTION = Exercise(
    "MultiHeadAttention",
    "Multi-head attention",
    ("query", "key", "value", "head_mask"),
    (
        equals_reference(
            "output and weights",
            1.25,
            "Project with W_q, W_k and W_v, split each into heads, attend with scores / √d_k, "
            "merge, then W_o. Return the output first and the weights (B, H, n_q, n_k) second.",
            _mha_runs,
        ),
        equals_reference(
            "one head, one feature per head, as many of everything",
            0.5,
            "Equal sizes hide an exchange of axes: batch, heads, queries, keys, in this order.",
            _mha_ends,
        ),
        gradients_match(
            "gradients reach every input and parameter",
            0.75,
            "All four layers take part, biases included. A projection that is computed and unused, "
            "or shared by two, has the wrong gradient.",
            _mha_backward,
        ),
        equals_reference(
            "without biases",
            0.25,
            "bias=False goes to all four nn.Linear layers.",
            _mha_no_bias,
        ),
        equals_reference(
            "head_mask scales what a head contributes",
            0.75,
            "head_mask has one number per head. Bring it to shape (H, 1, 1) and multiply the "
            "weights that are applied to the values; return the weights as they were.",
            _mha_masked,
        ),
        Aspect(
            "dropout in training",
            0.5,
            "Dropout stands between softmax and values: nn.Dropout on the weights. It zeroes a "
            "share p of them and divides the rest by 1 − p. Return the weights before it.",
            _mha_dropout,
            each(_mha_dropout_is_right),
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.25,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _mha_evaluated,
        ),
        raises(
            "d_model not divisible by num_heads",
            0.25,
            "Raise ValueError in __init__, and name both numbers.",
            _mha_uneven,
            ValueError,
            naming=lambda run: run.init.args[:2],
        ),
        has_property(
            "scores of ±10,000, forward and backward",
            0.15,
            "torch.softmax subtracts the largest score for you; exp and a division do not.",
            _mha_large,
            _mha_finite,
            only_if_right=True,
        ),
        has_property(
            "the sequences of a batch do not see each other",
            0.15,
            "Keep the batch first in every reshape: positions attend within their own sequence.",
            _mha_batch,
            _mha_batch_apart,
            only_if_right=True,
        ),
        equals_reference(
            "views that are not contiguous", 0.05, "reshape takes any view.", _mha_strided
        ),
        dtypes_kept(0.05, "A float64 model with float64 inputs gives float64.", _mha_double),
        inputs_untouched(0.05, _mha_masked),
        no_side_effects_of_a_module(0.05, _mha_runs),
    ),
    forbids=(
        "torch.*MultiheadAttention*",
        "torch.*multi_head_attention*",
        "torch.*TransformerEncoder*",
        "torch.*TransformerDecoder*",
    ),
)
