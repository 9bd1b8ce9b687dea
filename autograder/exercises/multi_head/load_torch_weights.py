"""`load_torch_weights`: the same numbers as torch."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    Runs,
    compare,
    each,
    has_property,
    no_side_effects,
    part,
    plain,
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
    Trial,
)
from autograder.engine.state import parameters_of, write
from autograder.exercises.multi_head.shared import attention_state, our_attention, qkv_inputs

_HERE = "autograder.exercises.multi_head:"


def torch_attention(d_model: int, num_heads: int, bias: bool) -> Any:
    """torch's own module, batch first."""
    from torch import nn

    return nn.MultiheadAttention(d_model, num_heads, bias=bias, batch_first=True)


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
    ours = our_attention(d, num_heads, attention_state(draw, d, bias, dtype), bias)
    args = (d, num_heads, bias)
    theirs = Recipe(_HERE + "torch_attention", args, None, _torch_state(draw, d, bias, dtype))
    keep = Recipe(_HERE + "itself")
    both = Run(()).then_apply(keep, ours).then_apply(keep, theirs)
    return both.then(Previous(0), Previous(1))


def _load_runs(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 4, 6)
    return [
        _loaded(draw, 8, 2).then_apply(Previous(0), *qkv_inputs(draw, 2, 3, 5, 8)),
        _loaded(draw, 6, 3).then_apply(Previous(0), x, x, x),
    ]


def _load_weights_alone(draw: Draw) -> Sequence[Run]:
    run = _loaded(draw, 6, 2, bias=False)
    return [run.then_apply(Previous(0), *qkv_inputs(draw, 2, 3, 4, 6))]


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
        run = _overwritten(_loaded(draw, 6, 2, bias), 0, attention_state(draw, 6, bias))
        runs.append(run.then_apply(Previous(2), *qkv_inputs(draw, 2, 3, 4, 6)))
    return runs


def _load_apart(draw: Draw) -> Sequence[Run]:
    """Each of the two is called before and after the other one gets other numbers."""
    runs = []
    for bias in (True, False):
        run, x = _loaded(draw, 6, 2, bias), draw.tensor(2, 3, 6)
        states = attention_state(draw, 6, bias), _torch_state(draw, 6, bias, "float32")
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
    inputs = qkv_inputs(draw, 2, 3, 4, 6)
    run = _overwritten(_loaded(draw, 6, 2), 0, attention_state(draw, 6))
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
