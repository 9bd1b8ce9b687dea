"""`load_torch_weights`: the same numbers as torch."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from attention_by_hand.exercises.multi_head.shared import qkv_inputs
from attention_by_hand.exercises.shared import (
    OUTPUT_AND_WEIGHTS,
    State,
    attention_state,
    itself,
    our_attention,
    used,
)
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Finding,
    Previous,
    Record,
    Run,
    Trial,
    as_argument,
    part,
    plain,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import compare
from autograder.student.engine.runs import made_by
from autograder.student.engine.state import parameters_of, write

if TYPE_CHECKING:
    from torch import nn

EXERCISE = Declaration(
    "load_torch_weights",
    "The same numbers as torch",
    ("attention", "torch_attention"),
    uses=("MultiHeadAttention",),
)


def _right_in_the_end(trial: Trial) -> Finding:
    """The last step finds what it finds with the reference, whatever the call itself returned."""
    value, expected = trial.record.value, trial.expected.value
    names = _LAYERS if isinstance(expected, tuple) and len(expected) == 4 else OUTPUT_AND_WEIGHTS
    parts = tuple(f"afterwards, {name}" for name in names)
    return compare(value, expected, "what the modules give afterwards", parts=parts)


_LAYERS = tuple(f"what W_{name} returns" for name in "qkvo")


def torch_attention(d_model: int, num_heads: int, bias: bool) -> "nn.Module":
    """torch's own module, batch first."""
    from torch import nn

    return nn.MultiheadAttention(d_model, num_heads, bias=bias, batch_first=True)


def _torch_state(draw: Draw, d: int, bias: bool, dtype: str) -> State:
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
    theirs = made_by(torch_attention, *args, state=_torch_state(draw, d, bias, dtype))
    keep = as_argument(itself)
    both = Run(()).then_apply(keep, ours).then_apply(keep, theirs)
    return both.then(Previous(0), Previous(1))


def _in_use(draw: Draw) -> list[Run]:
    """Both modules in the same mode."""
    ours = our_attention(6, 2, attention_state(draw, 6))
    theirs = made_by(torch_attention, 6, 2, True, state=_torch_state(draw, 6, True, "float32"))
    runs = []
    for first, run in enumerate(used(Run(()), ours, frozen=False)):
        runs.append(used(run, theirs)[first].then(Previous(0), Previous(1)))
    return runs


@EXERCISE.aspect("equal outputs", 1.0, _right_in_the_end)
def _runs(draw: Draw) -> list[Run]:
    """in_proj_weight stacks W_q, W_k and W_v in this order, d_model rows each; out_proj is W_o.
    Both modules use nn.Linear's layout: transpose nothing."""
    x = draw.tensor(2, 4, 6)
    return [
        _loaded(draw, 8, 2).then_apply(Previous(0), *qkv_inputs(draw, 2, 3, 5, 8)),
        _loaded(draw, 6, 3).then_apply(Previous(0), x, x, x),
    ]


def projected(attention: Value, x: Value) -> tuple[Value, ...]:
    """What each of the four layers makes of x; the bias of the keys, say, shows nowhere else."""
    return tuple(getattr(attention, f"W_{name}")(x) for name in "qkvo")


@EXERCISE.aspect("every weight and every bias", 0.5, _right_in_the_end)
def _state(draw: Draw) -> list[Run]:
    """There are four weights and four biases: in_proj_bias is packed like in_proj_weight, and
    out_proj has a bias of its own. nn.MultiheadAttention starts with zero biases, which hides one
    that is not copied."""
    look = as_argument(projected)
    return [
        _loaded(draw, 6, 2).then_apply(look, Previous(0), draw.tensor(2, 3, 6)),
        _loaded(draw, 6, 3, dtype="float64").then_apply(look, Previous(0), draw.double(2, 3, 6)),
        _in_use(draw)[0].then_apply(look, Previous(0), draw.tensor(2, 3, 6)),
    ]


@EXERCISE.aspect("a module without biases", 0.5, _right_in_the_end)
def _weights_alone(draw: Draw) -> list[Run]:
    """With bias=False, in_proj_bias and out_proj.bias are None: copy only the weights."""
    run = _loaded(draw, 6, 2, bias=False)
    return [run.then_apply(Previous(0), *qkv_inputs(draw, 2, 3, 4, 6))]


def overwrite(module: Value, state: Mapping[str, Value]) -> None:
    """Write other numbers into a module's parameters, in place."""
    for name, parameter in parameters_of(module):
        write(parameter, state[name])


def _overwritten(run: Run, step: int, state: Mapping[str, Array]) -> Run:
    return run.then_apply(as_argument(overwrite), Previous(step), dict(state))


@EXERCISE.aspect("returns the module it was given", 0.25, _right_in_the_end)
def _returns(draw: Draw) -> list[Run]:
    """Copy into the `attention` you are given, and return it."""
    # The given module gets other numbers; what was returned must then have them, too.
    runs = []
    for bias in (True, False):
        run = _overwritten(_loaded(draw, 6, 2, bias), 0, attention_state(draw, 6, bias))
        runs.append(run.then_apply(Previous(2), *qkv_inputs(draw, 2, 3, 4, 6)))
    return runs


def _stays_apart(run: Run, record: Record) -> str | None:
    before, after = (plain(part(record.values[step], 0)) for step in (3, 5))
    if before is None or after is None:
        return "a module can no longer be called"
    same = before.shape == after.shape and np.allclose(before, after, atol=1e-6)
    return None if same else "new numbers in one module change what the other computes"


@EXERCISE.holds("copies: the two modules share no memory", 0.25, _stays_apart)
def _apart(draw: Draw) -> list[Run]:
    """A slice of in_proj_weight is a view. Copy its numbers, or training one module will also train
    the other."""
    # Each of the two is called before and after the other gets new numbers.
    runs = []
    for bias in (True, False):
        run, x = _loaded(draw, 6, 2, bias), draw.tensor(2, 3, 6)
        states = attention_state(draw, 6, bias), _torch_state(draw, 6, bias, "float32")
        for one, other in ((0, 1), (1, 0)):
            before = run.then_apply(Previous(one), x, x, x)
            after = _overwritten(before, other, states[other])
            runs.append(after.then_apply(Previous(one), x, x, x))
    return runs


def step_down(module: Value, *args: Value) -> None:
    """A training step, down the gradient of the sum of squares of the output."""
    import torch

    with torch.enable_grad():  # whatever mode the answer has left torch in
        output, _ = module(*args)
        length = output.square().sum()
    parameters = [p for _, p in parameters_of(module) if p.requires_grad and p.is_leaf]
    slopes = torch.autograd.grad(length, parameters, allow_unused=True)
    for parameter, slope in zip(parameters, slopes, strict=True):
        if slope is not None:
            write(parameter, parameter.detach() - 0.01 * slope)


@EXERCISE.aspect("the parameters stay trainable", 0.25, _right_in_the_end)
def _trainable(draw: Draw) -> list[Run]:
    """Writing into a parameter under torch.no_grad() keeps it a parameter. A tensor assigned in its
    place is none, and a copy recorded by autograd becomes part of a graph: a training step updates
    neither."""
    # With numbers of our own, so that it does not matter here what was copied.
    inputs = qkv_inputs(draw, 2, 3, 4, 6)
    run = _overwritten(_loaded(draw, 6, 2), 0, attention_state(draw, 6))
    run = run.then_apply(as_argument(step_down), Previous(0), *inputs)
    return [run.then_apply(Previous(0), *inputs)]


@EXERCISE.aspect("leaves torch's module unchanged", 0.15, _right_in_the_end)
def _theirs(draw: Draw) -> list[Run]:
    """Read from torch_attention, write to attention."""
    x = draw.tensor(2, 3, 6)
    return [run.then_apply(Previous(1), x, x, x) for run in (_loaded(draw, 6, 2), *_in_use(draw))]


EXERCISE.leaves_state_alone(0.1, _runs, _in_use, writes=True)
EXERCISE.follows_its_inputs(_runs)
