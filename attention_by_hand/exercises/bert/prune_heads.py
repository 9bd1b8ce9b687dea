"""`prune_heads`: smaller matrices for the heads that stay."""

from collections.abc import Mapping

import numpy as np

from attention_by_hand.exercises.shared import attention_state, itself, our_attention, used
from autograder.student.authoring import (
    Aspect,
    Declaration,
    Draw,
    Finding,
    Previous,
    Record,
    Run,
    Trial,
    as_argument,
    plain,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import compare, judge_each, numbers_of, worst
from autograder.student.engine.state import parameters_of, write

EXERCISE = Declaration(
    "prune_heads",
    "Heads that are cut out",
    ("attention", "heads"),
    uses=("MultiHeadAttention",),
)

_LAYERS = tuple(f"W_{x}" for x in "qkvo")


_OUTPUTS = tuple(f"what {name} returns" for name in _LAYERS)


def projected(layers: Mapping[str, Value], x: Value, heads: Value) -> tuple[Value, ...]:
    """What the new layers make of inputs: the first three of x, the last of what heads return."""
    return (*(layers[name](x) for name in _LAYERS[:3]), layers["W_o"](heads))


def _in_the_end(trial: Trial) -> Finding:
    """The last step finds what it finds with the reference."""
    value, expected = trial.record.value, trial.expected.value
    if not isinstance(expected, tuple) or len(expected) != len(_OUTPUTS):
        return compare(value, expected, "the layers")
    pairs = zip(value, expected, _OUTPUTS, strict=True)
    return worst([compare(v, e, f"afterwards, {name}") for v, e, name in pairs])


def attend(layers: Mapping[str, Value], num_heads: int, x: Value) -> Value:
    """Self-attention with these layers and so many heads."""
    import torch

    parts = (layers[name](x) for name in _LAYERS[:3])
    q, k, v = (p.unflatten(-1, (num_heads, -1)).transpose(1, 2) for p in parts)
    heads = torch.nn.functional.scaled_dot_product_attention(q, k, v)
    return layers["W_o"](heads.transpose(1, 2).flatten(2))


def _pruned(
    draw: Draw, d: int, num_heads: int, heads: object, bias: bool = True, dtype: str = "float32"
) -> Run:
    """The attention (step 0), and the call with it (step 1)."""
    whole = our_attention(d, num_heads, attention_state(draw, d, bias, dtype), bias)
    return Run(()).then_apply(as_argument(itself), whole).then(Previous(0), heads)


def _projecting(draw: Draw, run: Run) -> Run:
    """The run, then what the new layers make of a few inputs."""
    (whole,) = run.steps[0].args[1:]
    (d, num_heads), dtype = whole.args, whole.state["W_q.weight"].dtype
    call = run.steps[1]
    gone = call.kwargs["heads"] if call.kwargs else call.args[1]
    left = max(num_heads - len({*gone}), 1) * (d // num_heads)
    x, heads = (draw.tensor(1, min(d + 2, 9), n, dtype=dtype) for n in (d, left))
    return run.then_apply(as_argument(projected), Previous(1), x, heads)


@EXERCISE.aspect("the rows and columns of the heads that stay", 1.0, _in_the_end)
def _runs(draw: Draw) -> list[Run]:
    """Head h has the rows h·d_k … (h + 1)·d_k − 1 of W_q, W_k and W_v, weights and biases, and the
    columns of the same numbers of W_o. Whatever comes out of W_o keeps its bias."""
    named = our_attention(6, 3, attention_state(draw, 6))
    return [
        _projecting(draw, _pruned(draw, 8, 4, [1])),
        _projecting(draw, _pruned(draw, 12, 4, [0, 2])),
        _projecting(
            draw,
            Run(()).then_apply(as_argument(itself), named).then(heads=(2,), attention=Previous(0)),
        ),
        _projecting(draw, _pruned(draw, 12, 6, [4, 1, 0])),
    ]


def _as_masked(run: Run, record: Record) -> str | None:
    whole, pruned = numbers_of(record.values[-2][0]), plain(record.values[-1])
    if pruned is None or pruned.shape != whole.shape:
        return "attention with the new layers gives no output of the old one's shape"
    apart = float(np.abs(whole - pruned).max())
    if apart < 1e-4 * max(1.0, np.abs(whole).max()):
        return None
    return f"attention with these heads masked, and without them: the outputs differ by {apart:.3g}"


@EXERCISE.holds("as if the heads were masked by 0", 0.6, _as_masked)
def _masked(draw: Draw) -> list[Run]:
    """Attention with the new layers and the heads that are left gives what the whole one gives
    with a head_mask that is 0 for the heads cut out."""
    runs = []
    for d, num_heads, heads in ((8, 4, [2]), (12, 3, [0, 1]), (10, 5, [3, 0])):
        x = draw.tensor(2, 4, d)
        stay = [h not in heads for h in range(num_heads)]
        run = _pruned(draw, d, num_heads, heads)
        mask = draw.tensor(num_heads, scale=0.0)
        mask.data[:] = stay
        run = run.then_apply(Previous(0), x, x, x, None, mask)
        runs.append(run.then_apply(as_argument(attend), Previous(1), sum(stay), x))
    return runs


@EXERCISE.aspect("no heads, the same head twice, one head left", 0.5, _in_the_end)
def _ends(draw: Draw) -> list[Run]:
    """With no heads to cut, all four layers are copies. A head that is named twice is cut once, and
    the order in which heads are named makes no difference."""
    return [
        _projecting(draw, run)
        for run in (
            _pruned(draw, 6, 3, []),
            _pruned(draw, 5, 1, ()),
            _pruned(draw, 8, 4, [1, 3, 1]),
            _pruned(draw, 6, 3, [1, 1, 1]),
            _pruned(draw, 8, 4, (3, 1, 0)),
            _pruned(draw, 4, 4, [0, 1, 2]),
        )
    ]


@EXERCISE.aspect("a module without biases", 0.3, _in_the_end)
def _weights_alone(draw: Draw) -> list[Run]:
    """Where the old layers have no bias, the new ones have none, either."""
    return [
        _projecting(draw, _pruned(draw, 6, 3, [1], bias=False)),
        _projecting(draw, _pruned(draw, 8, 2, [], bias=False)),
    ]


@EXERCISE.raises("a head that does not exist, and none left", 0.4, ValueError)
def _refused(draw: Draw) -> list[Run]:
    """The heads are 0 … num_heads − 1. Python counts from the end for −1, but no head has that
    number. An attention without heads is none."""
    cases = (
        (6, 3, [3]),
        (6, 3, [0, -1]),
        (6, 2, [0, 1]),
        (4, 1, [0]),
        (8, 4, (2, 9)),
        (6, 3, [2, 1, 0, 0]),
    )
    return [_projecting(draw, _pruned(draw, *case)) for case in cases]


def forms(layers: Mapping[str, Value]) -> dict[str, object]:
    """What the dict holds: the names in the order of the alphabet, and what an
    nn.Linear tells of itself."""
    found: dict[str, object] = {"names": sorted(layers)}
    for name in _LAYERS:
        layer = layers[name]
        found[f"{name}.in_features"], found[f"{name}.out_features"] = (
            layer.in_features,
            layer.out_features,
        )
        found[f"{name}.requires_grad"] = [p.requires_grad for _, p in parameters_of(layer)]
    return found


def _form(draw: Draw) -> list[Run]:
    runs = [_pruned(draw, 8, 4, [1]), _pruned(draw, 6, 3, [0, 2], bias=False)]
    return [run.then_apply(as_argument(forms), Previous(1)) for run in runs]


EXERCISE.add(
    Aspect(
        "four layers of their own",
        0.2,
        "Return a dict with four new nn.Linear under the old names. nn.Linear(n_in, n_out) knows "
        "its sizes; its weight is (n_out, n_in), and it can be trained.",
        _form,
        judge_each(_in_the_end),
        forgeable=True,
    )
)


def overwrite(module: Value, by: float) -> None:
    """Add a number to all of a module's parameters, in place."""
    for _, parameter in parameters_of(module):
        write(parameter, parameter.detach() + by)


def overwrite_all(layers: Mapping[str, Value], by: float) -> None:
    """The same for each of the new layers."""
    for name in _LAYERS:
        overwrite(layers[name], by)


@EXERCISE.aspect("copies: old and new share no memory", 0.35, _in_the_end, only_if_right=True)
def _apart(draw: Draw) -> list[Run]:
    """A slice is a view of the same memory, and so is the old bias in a new layer. Copy the
    numbers, or training one module will also train the other."""
    runs = []
    for heads, bias in (([1], True), ([], True), ([2, 0], False), ([0, 1], True)):
        run, x = _pruned(draw, 6, 3, heads, bias), draw.tensor(2, 3, 6)
        after = run.then_apply(as_argument(overwrite_all), Previous(1), 1.0)
        runs.append(after.then_apply(Previous(0), x, x, x))
        runs.append(_projecting(draw, run.then_apply(as_argument(overwrite), Previous(0), 1.0)))
    return runs


def step_down(layers: Mapping[str, Value], num_heads: int, x: Value) -> None:
    """A training step of the new layers, down the gradient of the sum of squares of the output."""
    import torch

    with torch.enable_grad():  # whatever mode the answer has left torch in
        length = attend(layers, num_heads, x).square().sum()
    own = [p for name in _LAYERS for _, p in parameters_of(layers[name])]
    trained = [p for p in own if p.requires_grad and p.is_leaf]
    slopes = torch.autograd.grad(length, trained, allow_unused=True)
    for parameter, slope in zip(trained, slopes, strict=True):
        if slope is not None:
            write(parameter, parameter.detach() - 0.01 * slope)


@EXERCISE.aspect("the new layers can be trained", 0.2, _in_the_end, only_if_right=True)
def _trainable(draw: Draw) -> list[Run]:
    """Their weights and biases are parameters with numbers of their own. A slice that autograd has
    recorded is part of a graph, and a training step does not reach it."""
    x, run = draw.tensor(2, 3, 6), _pruned(draw, 6, 3, [1])
    return [_projecting(draw, run.then_apply(as_argument(step_down), Previous(1), 2, x))]


@EXERCISE.aspect("the attention passed in stays as it is", 0.25, _in_the_end, only_if_right=True)
def _as_it_was(draw: Draw) -> list[Run]:
    """Build new layers, and leave the old ones and num_heads alone."""
    runs = [_pruned(draw, 6, 3, heads) for heads in ([1], [], [0, 2])]
    return [r.then_apply(Previous(0), *[draw.tensor(2, 3, 6)] * 3) for r in runs]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 module gives float64 layers, a float32 module float32 ones."""
    return [_projecting(draw, _pruned(draw, 6, 3, heads, dtype="float64")) for heads in ([1], [])]


EXERCISE.leaves_inputs_alone(0.05, lambda draw: [*_runs(draw)[:1], *_ends(draw)[:3]])


def _in_use(draw: Draw) -> list[Run]:
    runs = used(Run(()), our_attention(6, 3, attention_state(draw, 6)))
    return [run.then(Previous(0), [1]) for run in runs]


EXERCISE.leaves_state_alone(0.05, lambda draw: _runs(draw)[:1], _in_use, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _ends)
