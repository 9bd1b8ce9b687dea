"""What chapter 3 asks: splitting and merging heads, multi-head attention, copying torch's weights,
and measuring what each head is worth."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    Runs,
    compare,
    dtypes_kept,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    no_side_effects_of_a_module,
    part,
    plain,
    raises,
    worst,
)
from autograder.engine.runs import (
    Array,
    Aspect,
    Draw,
    Exercise,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Strided,
    Trial,
    call,
    module,
    tensor,
)
from autograder.engine.state import parameters_of, write

_HERE = "autograder.exercises.multi_head:"

# --- split_heads --------------------------------------------------------------------------------


def _split_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 5, 6), 3),
        call(draw.tensor(1, 4, 8), 2),
        call(draw.tensor(3, 1, 6), 2),
        call(x=draw.tensor(2, 4, 12), num_heads=4),
    ]


def _split_square(draw: Draw) -> Sequence[Run]:
    """As many positions as heads, or as features in a head: every wrong order has a right shape."""
    return [
        call(draw.tensor(2, 3, 9), 3),
        call(draw.tensor(2, 2, 8), 2),
        call(draw.tensor(4, 4, 16), 4),
    ]


def _split_ends(draw: Draw) -> Sequence[Run]:
    return [call(draw.tensor(2, 3, 5), 1), call(draw.tensor(2, 3, 5), 5)]


def _split_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(draw.tensor(2, 5, 6)), 2)]


def _split_dtypes(draw: Draw) -> Sequence[Run]:
    whole = tensor(draw.integers(-9, 9, 2, 3, 4))
    return [call(draw.tensor(2, 3, 4, dtype="float64"), 2), call(whole, 2)]


def _split_uneven(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 14), 4),
        call(draw.tensor(1, 3, 7), 2),
        call(draw.tensor(2, 4, 3), 8),
    ]


SPLIT_HEADS = Exercise(
    "split_heads",
    "From features to heads",
    ("x", "num_heads"),
    (
        equals_reference(
            "each head gets its slice of the features",
            1.0,
            "Two steps. First cut the last axis in two, (B, n, H, d_k), positions still in place; "
            "then exchange two axes, (B, H, n, d_k). Cutting straight to (B, H, n, d_k) has the "
            "right shape and mixes positions.",
            _split_runs,
        ),
        equals_reference(
            "also where a wrong order has the right shape",
            0.75,
            "Number the entries of a small x from 0 and compare by eye: head 0 must hold the first "
            "d_k features of every position, in their order.",
            _split_square,
        ),
        equals_reference(
            "one head, and one feature per head",
            0.25,
            "One head is x with an axis of length 1 added; with d_model heads, d_k = 1.",
            _split_ends,
        ),
        raises(
            "features that the heads cannot share equally",
            0.5,
            "Raise ValueError before reshaping, and name both numbers: d_model and num_heads.",
            _split_uneven,
            ValueError,
            naming=lambda run: (run.steps[0].args[0].data.shape[-1], run.steps[0].args[1]),
        ),
        gradients_match(
            "gradients flow back to x",
            0.25,
            "Views and transposes keep the gradient; NumPy, .data and new tensors do not.",
            _split_runs,
        ),
        equals_reference(
            "a view that is not contiguous",
            0.1,
            "x may be a slice of something larger: reshape copies where a view is impossible.",
            _split_strided,
        ),
        dtypes_kept(0.1, "Moving numbers about changes no dtype.", _split_dtypes),
        inputs_untouched(0.05, _split_runs),
    ),
)

# --- merge_heads --------------------------------------------------------------------------------


def _merge_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 5, 2)),
        call(draw.tensor(1, 2, 4, 4)),
        call(x=draw.tensor(3, 4, 1, 2)),
        call(draw.tensor(2, 1, 3, 5)),
    ]


def _merge_square(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 3, 2)),
        call(draw.tensor(2, 2, 4, 2)),
        call(draw.tensor(3, 3, 3, 3)),
    ]


def _merge_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(draw.tensor(2, 3, 4, 2)))]


def _merge_dtypes(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 2, 3, 4, dtype="float64")),
        call(tensor(draw.integers(-9, 9, 1, 2, 3, 2))),
    ]


MERGE_HEADS = Exercise(
    "merge_heads",
    "From heads back to features",
    ("x",),
    (
        equals_reference(
            "the heads' features stand side by side",
            0.75,
            "Undo the two steps of the split in reverse: exchange the axes of heads and positions, "
            "(B, n, H, d_k), then join the last two.",
            _merge_runs,
        ),
        equals_reference(
            "also where a wrong order has the right shape",
            0.75,
            "Joining without exchanging the axes first mixes positions. "
            "merge_heads(split_heads(x, H)) must be x, number for number.",
            _merge_square,
        ),
        gradients_match(
            "gradients flow back to x",
            0.25,
            "Views and transposes keep the gradient; NumPy, .data and new tensors do not.",
            _merge_runs,
        ),
        equals_reference(
            "a view that is not contiguous",
            0.1,
            "x may be a slice of something larger: reshape copies where a view is impossible.",
            _merge_strided,
        ),
        dtypes_kept(0.1, "Moving numbers about changes no dtype.", _merge_dtypes),
        inputs_untouched(0.05, _merge_runs),
    ),
)

# --- multi_head_numpy ---------------------------------------------------------------------------


def _three(draw: Draw, n_q: int, n_k: int, d: int, scale: float = 1.0) -> tuple:
    return draw.normal(n_q, d, scale=scale), draw.normal(n_k, d), draw.normal(n_k, d)


def _numpy_runs(draw: Draw) -> Sequence[Run]:
    query, key, value = _three(draw, 4, 3, 6)
    return [
        call(*_three(draw, 3, 6, 8), 2),
        call(*_three(draw, 5, 2, 6), 3),
        call(num_heads=2, value=value, key=key, query=query),
        call(*_three(draw, 1, 5, 4), 2),
    ]


def _numpy_square(draw: Draw) -> Sequence[Run]:
    return [call(*_three(draw, 4, 4, 8), 4), call(*_three(draw, 2, 2, 8), 2)]


def _numpy_ends(draw: Draw) -> Sequence[Run]:
    return [call(*_three(draw, 3, 4, 5), 1), call(*_three(draw, 3, 4, 5), 5)]


def _numpy_large(draw: Draw) -> Sequence[Run]:
    return [
        call(*_three(draw, 3, 5, 6, scale=1e4), 2),
        call(draw.normal(2, 4) - 5e3, np.abs(draw.normal(3, 4)) + 1.0, draw.normal(3, 4), 2),
    ]


def _numpy_perturbed(draw: Draw) -> Sequence[Run]:
    query, key, value = _three(draw, 3, 5, 6)
    other_key, other_value = key.copy(), value.copy()
    other_key[:, 2:4] += draw.normal(5, 2)
    other_value[:, 2:4] += draw.normal(5, 2)
    return [call(query, key, value, 3).then(query, other_key, other_value, 3)]


def _numpy_stays_in_its_head(run: Run, record: Record) -> str | None:
    before, after = (plain(value) for value in record.values)
    if before is None or after is None or before.shape != (3, 6) or after.shape != (3, 6):
        return "the result is not an array of shape (n_q, d)"
    moved = np.abs(after - before).max(axis=0)
    if moved[[0, 1, 4, 5]].max() > 1e-9:
        return "changing features 2 and 3 of keys and values, those of head 1, moved another head"
    return None if moved[[2, 3]].min() > 1e-6 else "changing head 1's features changed nothing"


def _numpy_dtypes(draw: Draw) -> Sequence[Run]:
    single = [a.astype("float32") for a in _three(draw, 2, 3, 4)]
    return [call(*single, 2), call(*(draw.integers(-2, 2, n, 4) for n in (2, 3, 3)), 2)]


def _numpy_strided(draw: Draw) -> Sequence[Run]:
    return [call(*(Strided(a) for a in _three(draw, 3, 4, 6)), 2)]


MULTI_HEAD_NUMPY = Exercise(
    "multi_head_numpy",
    "Several heads in NumPy",
    ("query", "key", "value", "num_heads"),
    (
        equals_reference(
            "outputs where n_q ≠ n_k",
            1.25,
            "In each head's slice of the columns: scores q kᵀ / √d_k with d_k = d / H, softmax "
            "over the keys, times v. The head's output stands in the same columns of the result.",
            _numpy_runs,
        ),
        equals_reference(
            "also where a wrong order has the right shape",
            0.75,
            "(n, d) is cut to (n, H, d_k) first and its axes exchanged to (H, n, d_k) then; "
            "afterwards the same backwards.",
            _numpy_square,
        ),
        has_property(
            "a head sees only its own features",
            0.5,
            "Features h·d_k … (h + 1)·d_k − 1 belong to head h. No other head may notice them.",
            _numpy_perturbed,
            _numpy_stays_in_its_head,
            only_if_right=True,
        ),
        equals_reference(
            "one head, and one feature per head",
            0.5,
            "With one head this is plain attention, scaled by √d; with d heads, √d_k is 1.",
            _numpy_ends,
        ),
        equals_reference(
            "scores of ±10,000",
            0.5,
            "exp overflows from 710 on: subtract the largest score of each row first.",
            _numpy_large,
        ),
        dtypes_kept(
            0.2,
            "float32 stays float32: np.sqrt(d_k) is a float64 number and widens what it divides; "
            "math.sqrt(d_k) and d_k**0.5 do not. Integers give float64.",
            _numpy_dtypes,
        ),
        equals_reference(
            "views that are not contiguous", 0.1, "reshape takes any view.", _numpy_strided
        ),
        inputs_untouched(0.1, lambda d: [*_numpy_runs(d), *_numpy_large(d)]),
        no_side_effects(0.1, _numpy_runs),
    ),
)

# --- MultiHeadAttention -------------------------------------------------------------------------


def _state(draw: Draw, d: int, bias: bool = True, dtype: str = "float32") -> dict[str, Array]:
    """Random parameters for the four linear layers."""
    state = {f"W_{x}.weight": draw.tensor(d, d, scale=d**-0.5, dtype=dtype) for x in "qkvo"}
    biases = {f"W_{x}.bias": draw.tensor(d, dtype=dtype) for x in "qkvo"} if bias else {}
    return state | biases


def _inputs(draw: Draw, B: int, n_q: int, n_k: int, d: int, **kwargs: Any) -> tuple:
    return tuple(draw.tensor(B, n, d, **kwargs) for n in (n_q, n_k, n_k))


def _mha_runs(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    def state(d: int) -> dict[str, Array]:
        return _state(draw, d, dtype=dtype)

    query, key, value = _inputs(draw, 1, 4, 3, 6, dtype=dtype)
    named = module(d_model=6, num_heads=3, state=state(6))
    return [
        module(8, 2, state=state(8)).then(*_inputs(draw, 2, 3, 5, 8, dtype=dtype)),
        named.then(value=value, key=key, query=query),
        module(9, 3, state=state(9)).then(*_inputs(draw, 3, 3, 3, 9, dtype=dtype)),
    ]


def _mha_ends(draw: Draw) -> Sequence[Run]:
    return [
        module(6, 1, state=_state(draw, 6)).then(*_inputs(draw, 2, 3, 4, 6)),
        module(5, 5, state=_state(draw, 5)).then(*_inputs(draw, 1, 2, 4, 5)),
        module(8, 4, state=_state(draw, 8)).then(*_inputs(draw, 4, 4, 4, 8)),
    ]


def _mha_no_bias(draw: Draw, dtype: str = "float32") -> Sequence[Run]:
    first, second = (_state(draw, 8, bias=False, dtype=dtype) for _ in range(2))
    return [
        module(8, 2, bias=False, state=first).then(*_inputs(draw, 2, 3, 5, 8, dtype=dtype)),
        module(8, 4, 0.0, False, state=second).then(*_inputs(draw, 1, 3, 2, 8, dtype=dtype)),
    ]


def _mha_backward(draw: Draw) -> Sequence[Run]:
    """In float64, where terms that cancel do so to the last digits."""
    mask = tensor(draw.uniform(0.2, 2.0, 3), "float64")
    masked = module(6, 3, state=_state(draw, 6, dtype="float64"))
    masked = masked.then(*_inputs(draw, 2, 3, 5, 6, dtype="float64"), head_mask=mask)
    return [*_mha_runs(draw, "float64")[:2], _mha_no_bias(draw, "float64")[0], masked]


def _mha_masked(draw: Draw) -> Sequence[Run]:
    first, second = module(6, 3, state=_state(draw, 6)), module(8, 4, state=_state(draw, 8))
    x = draw.tensor(3, 4, 8)
    return [
        first.then(
            *_inputs(draw, 2, 3, 5, 6), head_mask=tensor(draw.uniform(0.2, 2.0, 3), "float32")
        ),
        first.then(*_inputs(draw, 3, 2, 4, 6), head_mask=tensor([1.0, 0.0, 1.0], "float32")),
        first.then(*_inputs(draw, 1, 3, 3, 6), tensor(np.zeros(3), "float32")),
        second.then(x, x, x, head_mask=tensor([0.0, 1.0, 0.5, 1.0], "float32")).then(x, x, x),
    ]


def _mha_evaluated(draw: Draw) -> Sequence[Run]:
    x = _inputs(draw, 2, 3, 5, 8)
    return [module(8, 2, 0.5, state=_state(draw, 8)).then(*x).then(*x)]


def _mha_large(draw: Draw) -> Sequence[Run]:
    query, key, value = _inputs(draw, 1, 3, 4, 8)
    big = tensor(query.data * 1e4, "float32")
    return [module(8, 2, state=_state(draw, 8)).then(big, key, value).with_gradients()]


def _mha_finite(run: Run, record: Record) -> str | None:
    arrays = [*map(plain, record.value), *map(plain, record.gradients.values())]
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "an output, a weight or a gradient is missing or not finite"


def _mha_batch(draw: Draw) -> Sequence[Run]:
    query, key, value = _inputs(draw, 3, 4, 4, 8)
    others = []
    for given in (query, key, value):
        data = given.data.copy()
        data[1] += draw.normal(4, 8)
        others.append(tensor(data, "float32"))
    return [module(8, 2, state=_state(draw, 8)).then(query, key, value).then(*others)]


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
        module(14, 4).then(*_inputs(draw, 1, 2, 2, 14)),
        module(7, 2, bias=False).then(*_inputs(draw, 1, 2, 2, 7)),
    ]


def _mha_strided(draw: Draw) -> Sequence[Run]:
    inputs = [Strided(t) for t in _inputs(draw, 2, 3, 4, 6)]
    return [module(6, 2, state=_state(draw, 6)).then(*inputs)]


def _mha_double(draw: Draw) -> Sequence[Run]:
    inputs = _inputs(draw, 2, 3, 4, 6, dtype="float64")
    mask = tensor([1.0, 0.5], "float64")
    return [module(6, 2, state=_state(draw, 6, dtype="float64")).then(*inputs, head_mask=mask)]


_P, _CALLS = 0.25, 8  # a right answer's share of dropped weights is out of bounds once in 10¹⁰


def _see_through(draw: Draw, d: int) -> dict[str, Array]:
    """Parameters that pass values through W_v and W_o as they are."""
    state = _state(draw, d)
    same = {f"W_{x}.weight": tensor(np.eye(d), "float32") for x in "vo"}
    return state | same | {f"W_{x}.bias": tensor(np.zeros(d), "float32") for x in "vo"}


def _mha_dropout(draw: Draw) -> Sequence[Run]:
    d = 8
    query, key, _ = _inputs(draw, 2, 6, d, d, scale=0.5)
    one_hot = tensor(np.stack([np.eye(d)] * 2), "float32")  # column c shows the weight of key c
    ones = tensor(np.ones((2, d, d)), "float32")  # every column shows the sum of the row's weights
    model = replace(module(d, 2, dropout=_P, state=_see_through(draw, d)), training=True)
    shown, summed = model, model.then(query, key, ones)
    for _ in range(_CALLS):
        shown = shown.then(query, key, one_hot)
    # With dropout 1 nothing is random; no marks hang on it, but the known mistakes differ there.
    certain = replace(module(d, 2, dropout=1.0, state=_state(draw, d)), training=True)
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

# --- load_torch_weights -------------------------------------------------------------------------


def torch_attention(d_model: int, num_heads: int, bias: bool) -> Any:
    """torch's own module, batch first."""
    from torch import nn

    return nn.MultiheadAttention(d_model, num_heads, bias=bias, batch_first=True)


def itself(thing: Any) -> Any:
    """The thing: makes a recipe a step's result, so that later steps can look at it again."""
    return thing


def overwrite(module: Any, state: Mapping[str, Any]) -> None:
    """Write other numbers into a module's parameters, where they lie."""
    for name, parameter in parameters_of(module):
        write(parameter, state[name])


def projected(attention: Any, x: Any) -> tuple[Any, ...]:
    """What each of the four layers makes of x. The bias of the keys, say, shows nowhere else."""
    return tuple(getattr(attention, f"W_{name}")(x) for name in "qkvo")


def step_down(module: Any, *args: Any) -> None:
    """A step of training: along the gradient of the sum of the squares of what comes out."""
    import torch

    with torch.enable_grad():  # whatever mode the answer has left
        output, _ = module(*args)
        length = output.square().sum()
    parameters = [p for _, p in parameters_of(module) if p.requires_grad and p.is_leaf]
    slopes = torch.autograd.grad(length, parameters, allow_unused=True)
    for parameter, slope in zip(parameters, slopes, strict=True):
        if slope is not None:
            write(parameter, parameter.detach() - 0.01 * slope)


def _torch_state(draw: Draw, d: int, bias: bool, dtype: str) -> dict[str, Array]:
    weights = {
        "in_proj_weight": draw.tensor(3 * d, d, scale=d**-0.5, dtype=dtype),
        "out_proj.weight": draw.tensor(d, d, scale=d**-0.5, dtype=dtype),
    }
    if not bias:
        return weights
    return weights | {
        "in_proj_bias": draw.tensor(3 * d, dtype=dtype),
        "out_proj.bias": draw.tensor(d, dtype=dtype),
    }


def _loaded(draw: Draw, d: int, num_heads: int, bias: bool = True, dtype: str = "float32") -> Run:
    """Ours (step 0), torch's (step 1), and the call with both (step 2)."""
    ours = _ours(d, num_heads, _state(draw, d, bias, dtype), bias)
    args = (d, num_heads, bias)
    theirs = Recipe(_HERE + "torch_attention", args, None, _torch_state(draw, d, bias, dtype))
    keep = Recipe(_HERE + "itself")
    both = Run(()).then_apply(keep, ours).then_apply(keep, theirs)
    return both.then(Previous(0), Previous(1))


def _ours(d: int, num_heads: int, state: Mapping[str, Array], bias: bool = True) -> Recipe:
    kwargs = {"bias": bias}
    return Recipe("autograder.blocks:MultiHeadAttention", (d, num_heads), kwargs, dict(state))


def _load_runs(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 4, 6)
    return [
        _loaded(draw, 8, 2).then_apply(Previous(0), *_inputs(draw, 2, 3, 5, 8)),
        _loaded(draw, 6, 3).then_apply(Previous(0), x, x, x),
    ]


def _load_weights_alone(draw: Draw) -> Sequence[Run]:
    run = _loaded(draw, 6, 2, bias=False)
    return [run.then_apply(Previous(0), *_inputs(draw, 2, 3, 4, 6))]


def _load_state(draw: Draw) -> Sequence[Run]:
    look = Recipe(_HERE + "projected")
    return [
        _loaded(draw, 6, 2).then_apply(look, Previous(0), draw.tensor(2, 3, 6)),
        _loaded(draw, 6, 3, dtype="float64").then_apply(
            look, Previous(0), draw.tensor(2, 3, 6, dtype="float64")
        ),
    ]


def _overwritten(run: Run, step: int, state: Mapping[str, Array]) -> Run:
    return run.then_apply(Recipe(_HERE + "overwrite"), Previous(step), dict(state))


def _load_returns(draw: Draw) -> Sequence[Run]:
    """The module that was given gets other numbers: what was returned is to have them, too."""
    runs = []
    for bias in (True, False):
        run = _overwritten(_loaded(draw, 6, 2, bias), 0, _state(draw, 6, bias))
        runs.append(run.then_apply(Previous(2), *_inputs(draw, 2, 3, 4, 6)))
    return runs


def _load_apart(draw: Draw) -> Sequence[Run]:
    """Each of the two is called before and after the other one gets other numbers."""
    runs = []
    for bias in (True, False):
        run, x = _loaded(draw, 6, 2, bias), draw.tensor(2, 3, 6)
        states = _state(draw, 6, bias), _torch_state(draw, 6, bias, "float32")
        for one, other in ((0, 1), (1, 0)):
            before = run.then_apply(Previous(one), x, x, x)
            after = _overwritten(before, other, states[other])
            runs.append(after.then_apply(Previous(one), x, x, x))
    return runs


def _stays_apart(run: Run, record: Record) -> str | None:
    before, after = (plain(part(record.values[step], 0)) for step in (3, 5))
    if before is None or after is None:
        return "a module cannot be called any more"
    same = before.shape == after.shape and np.allclose(before, after, atol=1e-6)
    return None if same else "other numbers in one module change what the other one computes"


def _load_trainable(draw: Draw) -> Sequence[Run]:
    """With numbers of our own, so that it makes no difference here what has been copied."""
    inputs = _inputs(draw, 2, 3, 4, 6)
    run = _overwritten(_loaded(draw, 6, 2), 0, _state(draw, 6))
    run = run.then_apply(Recipe(_HERE + "step_down"), Previous(0), *inputs)
    return [run.then_apply(Previous(0), *inputs)]


def _load_theirs(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 3, 6)
    return [_loaded(draw, 6, 2).then_apply(Previous(1), x, x, x)]


def _found_in_the_end(title: str, points: float, hint: str, runs: Runs) -> Aspect:
    """What the last step finds is as with the reference, whatever the call itself returned."""

    def judge(trial: Trial) -> Finding:
        return compare(trial.record.value, trial.expected.value, "what is found afterwards")

    return Aspect(title, points, hint, runs, each(judge))


LOAD_TORCH_WEIGHTS = Exercise(
    "load_torch_weights",
    "The same numbers as torch",
    ("attention", "torch_attention"),
    (
        _found_in_the_end(
            "equal outputs",
            1.0,
            "in_proj_weight holds W_q, W_k and W_v on top of each other, d_model rows each, in "
            "this order; out_proj is W_o. Both sides have nn.Linear's layout: transpose nothing.",
            _load_runs,
        ),
        _found_in_the_end(
            "every weight and every bias",
            0.5,
            "Four weights and four biases: in_proj_bias is packed like in_proj_weight, and "
            "out_proj has a bias of its own. nn.MultiheadAttention starts with zero biases, which "
            "hides one that is not copied.",
            _load_state,
        ),
        _found_in_the_end(
            "a module without biases",
            0.5,
            "With bias=False, in_proj_bias and out_proj.bias are None: copy the weights only.",
            _load_weights_alone,
        ),
        _found_in_the_end(
            "returns ours, the module that was given",
            0.25,
            "Copy into the `attention` you are given, and return it.",
            _load_returns,
        ),
        has_property(
            "copies: the two modules share no memory",
            0.25,
            "A slice of in_proj_weight is a view. Copy its numbers (copy_, clone), or training one "
            "module will train the other.",
            _load_apart,
            _stays_apart,
        ),
        _found_in_the_end(
            "parameters stay trainable parameters",
            0.25,
            "copy_ inside torch.no_grad() leaves each parameter what it was. An assigned tensor is "
            "no parameter, and a copy made outside no_grad is part of a graph: a step of training "
            "passes both by.",
            _load_trainable,
        ),
        _found_in_the_end(
            "leaves torch's module as it was",
            0.15,
            "Read from torch_attention, write to attention.",
            _load_theirs,
        ),
        no_side_effects(0.1, _load_runs),
    ),
    uses=("MultiHeadAttention",),
)

# --- head_importance ----------------------------------------------------------------------------


def _importance_runs(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(1, 4, 8)
    return [
        call(_ours(6, 3, _state(draw, 6)), draw.tensor(2, 5, 6)),
        call(attention=_ours(8, 4, _state(draw, 8)), x=x),
        call(_ours(8, 2, _state(draw, 8)), draw.tensor(3, 2, 8)),
    ]


def _importance_ends(draw: Draw) -> Sequence[Run]:
    return [
        call(_ours(5, 1, _state(draw, 5)), draw.tensor(2, 3, 5)),
        call(_ours(6, 2, _state(draw, 6, bias=False), bias=False), draw.tensor(1, 1, 6)),
    ]


def _importance_idle(draw: Draw) -> Sequence[Run]:
    state = _state(draw, 6)
    silent = state["W_o.weight"].data.copy()
    silent[:, 2:4] = 0.0  # head 1 of 3 is not listened to
    return [
        call(_ours(6, 3, state | {"W_o.weight": tensor(silent, "float32")}), draw.tensor(2, 4, 6))
    ]


def _importance_is_zero(run: Run, record: Record) -> str | None:
    found = plain(record.value)
    if found is None or found.shape != (3,):
        return "the result has not one number per head"
    if np.abs(found[1]) > 1e-5:
        return f"a head that W_o ignores has importance {found[1]:.3g}, not 0"
    return None if found[[0, 2]].min() > 1e-3 else "a head that W_o listens to has importance 0"


def in_training(thing: Any) -> Any:
    """A module, switched to training mode."""
    return thing.train()


def _importance_again(draw: Draw) -> Sequence[Run]:
    """Dropout 1 shows the mode: in training mode, nothing but the bias of W_o comes out."""
    x, runs = draw.tensor(2, 3, 6), []
    for start, num_heads in (("itself", 2), ("in_training", 3)):
        attention = _ours(6, num_heads, _state(draw, 6))
        attention = replace(attention, kwargs={**attention.kwargs, "dropout": 1.0})
        run = Run(()).then_apply(Recipe(_HERE + start), attention)
        run = run.then(Previous(0), x).then(Previous(0), x)
        runs.append(run.then_apply(Previous(0), x, x, x))
    return runs


def _attention_as_it_was(trial: Trial) -> Finding:
    """The importances twice, and what the attention then gives. What is important to a module in
    training mode is a matter of taste."""
    training = trial.run.steps[0].args[0].name.endswith("in_training")
    judged = (3,) if training else (1, 2, 3)
    found = worst([compare(trial.record.values[i], trial.expected.values[i]) for i in judged])
    if found.passed or found.error is None:
        return found
    after = compare(trial.record.values[3], trial.expected.values[3])
    return found if after.passed else replace(after, message="the attention is not as it was")


def _importance_double(draw: Draw) -> Sequence[Run]:
    state = _state(draw, 6, dtype="float64")
    return [call(_ours(6, 2, state), draw.tensor(2, 3, 6, dtype="float64"))]


HEAD_IMPORTANCE = Exercise(
    "head_importance",
    "Which heads matter?",
    ("attention", "x"),
    (
        equals_reference(
            "one number per head",
            1.5,
            "Run attention(x, x, x) once in full and once per head with a head_mask that is 0 for "
            "this head and 1 for the others (pass it by its name). The length of the difference, "
            "over the features, is one number per position; take their mean.",
            _importance_runs,
        ),
        equals_reference(
            "one head, one position, no bias",
            0.5,
            "With its only head masked, the output is the bias of W_o, or 0 without one.",
            _importance_ends,
        ),
        has_property(
            "a head that is not listened to has importance 0",
            0.5,
            "Compare outputs, after W_o, with and without the head.",
            _importance_idle,
            _importance_is_zero,
        ),
        Aspect(
            "twice the same, and the attention as it was",
            0.25,
            "Mask through head_mask; do not write into the module's parameters. If you change its "
            "train/eval mode, put it back.",
            _importance_again,
            each(_attention_as_it_was),
        ),
        dtypes_kept(0.1, "float64 in, float64 out; a tensor, not a list.", _importance_double),
        inputs_untouched(0.05, _importance_runs),
        no_side_effects(0.1, _importance_runs),
    ),
    uses=("MultiHeadAttention",),
)

EXERCISES = (
    SPLIT_HEADS,
    MERGE_HEADS,
    MULTI_HEAD_NUMPY,
    MULTI_HEAD_ATTENTION,
    LOAD_TORCH_WEIGHTS,
    HEAD_IMPORTANCE,
)
