"""`MultiHeadAttention`: multi-head attention."""

from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.multi_head.shared import qkv_inputs
from attention_by_hand.exercises.shared import (
    OUTPUT_AND_WEIGHTS,
    State,
    all_finite,
    attention_state,
    wrong_factor,
    wrong_share,
)
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Record,
    Run,
    StridedArray,
    Trial,
    module,
    part,
    plain,
    tensor,
)
from autograder.student.engine.aspects import compare, numbers_of
from autograder.student.engine.compare import all_shaped

EXERCISE = Declaration(
    "MultiHeadAttention",
    "Multi-head attention",
    ("query", "key", "value", "head_mask"),
    returns=OUTPUT_AND_WEIGHTS,
    forbids=("multi_head_attention", "transformer"),
    uses=("merge_heads",),
)


@EXERCISE.equals("output and weights", 1.2)
def _runs(draw: Draw, dtype: str = "float32") -> list[Run]:
    """Project with W_q, W_k and W_v, split each into heads, attend with scores / √d_k, merge, then
    apply W_o. Return the output first and the weights (B, H, n_q, n_k) second."""

    def state(d: int) -> State:
        return attention_state(draw, d, dtype=dtype)

    query, key, value = qkv_inputs(draw, 1, 4, 3, 6, dtype=dtype)
    named = module(d_model=6, num_heads=3, state=state(6))
    return [
        module(8, 2, state=state(8)).then(*qkv_inputs(draw, 2, 3, 5, 8, dtype=dtype)),
        named.then(value=value, key=key, query=query),
        module(9, 3, state=state(9)).then(*qkv_inputs(draw, 3, 3, 3, 9, dtype=dtype)),
        module(2, 2, state=state(2)).then(*qkv_inputs(draw, 1, 70, 2, 2, dtype=dtype)),
        module(2, 1, state=state(2)).then(*qkv_inputs(draw, 1, 2, 70, 2, dtype=dtype)),
    ]


@EXERCISE.equals("one head, one feature per head, all sizes equal", 0.5)
def _ends(draw: Draw) -> list[Run]:
    """Equal sizes hide swapped axes: the order is batch, heads, queries, keys."""
    return [
        module(6, 1, state=attention_state(draw, 6)).then(*qkv_inputs(draw, 2, 3, 4, 6)),
        module(5, 5, state=attention_state(draw, 5)).then(*qkv_inputs(draw, 1, 2, 4, 5)),
        module(8, 4, state=attention_state(draw, 8)).then(*qkv_inputs(draw, 4, 4, 4, 8)),
        module(1, 1, state=attention_state(draw, 1)).then(*qkv_inputs(draw, 1, 1, 1, 1)),
    ]


def _no_bias(draw: Draw, dtype: str = "float32") -> list[Run]:
    first, second = (attention_state(draw, 8, bias=False, dtype=dtype) for _ in range(2))
    return [
        module(8, 2, bias=False, state=first).then(*qkv_inputs(draw, 2, 3, 5, 8, dtype=dtype)),
        module(8, 4, 0.0, False, state=second).then(*qkv_inputs(draw, 1, 3, 2, 8, dtype=dtype)),
    ]


@EXERCISE.gradients("gradients reach every input and parameter", 0.75)
def _backward(draw: Draw) -> list[Run]:
    """All four layers contribute, biases included. A projection that is computed but not used, or
    shared by two roles, gets the wrong gradient."""
    # In float64, where terms that cancel do so to the last digit.
    mask = tensor(draw.uniform(0.2, 2.0, 3), "float64")
    masked = module(6, 3, state=attention_state(draw, 6, dtype="float64"))
    masked = masked.then(*qkv_inputs(draw, 2, 3, 5, 6, dtype="float64"), head_mask=mask)
    return [*_runs(draw, "float64")[:2], _no_bias(draw, "float64")[0], masked]


EXERCISE.equals(
    "without biases", 0.25, "bias=False applies to all four nn.Linear layers.", _no_bias
)


@EXERCISE.equals("head_mask scales what a head contributes", 0.75)
def _masked(draw: Draw) -> list[Run]:
    """head_mask has one number per head. Give it a shape that broadcasts over queries and keys, and
    multiply the weights that are applied to the values by it; return the weights from before."""
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
        module(3, 1, state=attention_state(draw, 3)).then(
            *qkv_inputs(draw, 2, 2, 3, 3), tensor([0.7], "float32")
        ),
        second.then(x, x, x, head_mask=tensor([0.0, 1.0, 0.5, 1.0], "float32")).then(x, x, x),
    ]


_P, _CALLS = 0.25, 8  # a right answer is out of bounds once in 10¹⁰ times


def _dropout_is_right(trial: Trial) -> Finding:
    outs, weights = ([plain(part(v, i)) for v in trial.record.values] for i in (0, 1))
    if not all_shaped(outs, (2, 6, 8)) or any(w is None for w in weights):
        return Finding(False, "expected (output, weights)")
    if trial.run.constructor.kwargs["dropout"] == 1.0:
        return Finding(True)
    kept = compare(trial.record.value[1], trial.expected.value[1], "the returned weights")
    if not kept.passed:
        return replace(kept, message=f"{kept.message} (the weights before dropout)")
    if len(outs) == 1:
        spread = max(float(np.ptp(head, axis=-1).max()) for head in np.split(outs[0], 2, -1))
        if spread > 1e-4:
            return Finding(False, "features of a head are dropped, not its weights")
        return Finding(True)
    right = numbers_of(trial.expected.value[1])
    ratio = np.stack(outs) / np.concatenate([right[:, 0, :, :4], right[:, 1, :, 4:]], axis=-1)
    problem = wrong_share(ratio, _P, "weight", 0.1) or wrong_factor(ratio, _P, "weight")
    return Finding(not problem, problem)


def _see_through(draw: Draw, d: int) -> State:
    """Parameters whose W_v and W_o pass values through unchanged."""
    state = attention_state(draw, d)
    same = {f"W_{x}.weight": tensor(np.eye(d), "float32") for x in "vo"}
    return state | same | {f"W_{x}.bias": tensor(np.zeros(d), "float32") for x in "vo"}


@EXERCISE.aspect("dropout in training", 0.5, _dropout_is_right, only_if_right=True)
def _dropout(draw: Draw) -> list[Run]:
    """Dropout goes between softmax and values. It zeroes a share p of the weights and divides the
    rest by 1 − p. Return the weights from before dropout."""
    d = 8
    query, key, _ = qkv_inputs(draw, 2, 6, d, d, scale=0.5)
    one_hot = tensor(np.stack([np.eye(d)] * 2), "float32")  # column c shows the weight of key c
    ones = tensor(np.ones((2, d, d)), "float32")  # each column shows the sum of the row's weights
    model = module(d, 2, dropout=_P, state=_see_through(draw, d)).in_training()
    shown, summed = model, model.then(query, key, ones)
    for _ in range(_CALLS):
        shown = shown.then(query, key, one_hot)
    # With p = 1 nothing is random; it carries no marks, but tells known mistakes apart.
    certain = module(d, 2, dropout=1.0, state=attention_state(draw, d)).in_training()
    return [
        shown.at_random(draw),
        summed.at_random(draw),
        certain.then(query, key, draw.tensor(2, d, d)),
    ]


EXERCISE.draws_anew()


@EXERCISE.equals("no dropout in eval mode", 0.25)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    x = qkv_inputs(draw, 2, 3, 5, 8)
    by_default = module(8, 2, state=attention_state(draw, 8)).in_training()
    return [
        module(8, 2, 0.5, state=attention_state(draw, 8)).then(*x).then(*x),
        by_default.then(*x),
    ]


@EXERCISE.raises(
    "d_model not divisible by num_heads",
    0.25,
    ValueError,
    naming=lambda run: run.constructor.args[:2],
)
def _uneven(draw: Draw) -> list[Run]:
    """Raise ValueError in __init__, and name both numbers."""
    return [
        module(14, 4).then(*qkv_inputs(draw, 1, 2, 2, 14)),
        module(7, 2, bias=False).then(*qkv_inputs(draw, 1, 2, 2, 7)),
        module(10, 4),  # built and never called: it is the constructor that has to raise
    ]


@EXERCISE.holds("scores of ±10,000, forward and backward", 0.15, all_finite, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax subtracts the largest score for you; a plain exp and division do not."""
    query, key, value = qkv_inputs(draw, 1, 3, 4, 8)
    big = tensor(query.data * 1e4, "float32")
    return [module(8, 2, state=attention_state(draw, 8)).then(big, key, value).with_gradients()]


def _batch_apart(run: Run, record: Record) -> str | None:
    before, after = (plain(part(value, 0)) for value in record.values)
    if before is None or after is None or before.shape != (3, 4, 8) or after.shape != (3, 4, 8):
        return "the output does not have the shape of the queries"
    moved = np.abs(after - before).max(axis=(1, 2))
    if moved[[0, 2]].max() > 1e-6:
        return "changing the second sequence of the batch changed the output of another"
    return None if moved[1] > 1e-3 else "changing a sequence left its own output unchanged"


@EXERCISE.holds("sequences do not mix", 0.15, _batch_apart, only_if_right=True)
def _batch(draw: Draw) -> list[Run]:
    """Keep the batch axis first in every reshape: positions attend within their own sequence."""
    query, key, value = qkv_inputs(draw, 3, 4, 4, 8)
    others = []
    for given in (query, key, value):
        data = given.data.copy()
        data[1] += draw.normal(4, 8)
        others.append(tensor(data, "float32"))
    return [module(8, 2, state=attention_state(draw, 8)).then(query, key, value).then(*others)]


@EXERCISE.equals("non-contiguous views", 0.05)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view."""
    inputs = [StridedArray(t) for t in qkv_inputs(draw, 2, 3, 4, 6)]
    mask = StridedArray(tensor(draw.uniform(0.2, 2.0, 2), "float32"))
    return [module(6, 2, state=attention_state(draw, 6)).then(*inputs).then(*inputs, mask)]


@EXERCISE.keeps_dtypes(0.05)
def _double(draw: Draw) -> list[Run]:
    """A float64 model with float64 inputs gives float64, a float32 model float32."""
    inputs = qkv_inputs(draw, 2, 3, 4, 6, dtype="float64")
    mask = tensor([1.0, 0.5], "float64")
    run = module(6, 2, state=attention_state(draw, 6, dtype="float64"))
    return [run.then(*inputs, head_mask=mask).then(*inputs), _no_bias(draw, "float64")[0]]


@EXERCISE.equals("the attribute num_heads", 0.05, only_if_right=True)
def _attribute(draw: Draw) -> list[Run]:
    """Whoever masks heads has to know how many there are: keep num_heads as an attribute."""
    run = module(8, 4, state=attention_state(draw, 8))
    return [run.then_method("__getattribute__", "num_heads")]


EXERCISE.leaves_inputs_alone(0.05, _masked)
EXERCISE.leaves_state_alone(0.05, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _masked, _dropout)
