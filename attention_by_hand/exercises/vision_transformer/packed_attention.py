"""`PackedAttention`: queries, keys and values from one projection."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attention_by_hand.exercises.dropped import named
from attention_by_hand.exercises.shared import State, wrong_factor, wrong_share
from attention_by_hand.exercises.vision_transformer.parameters import packed_state
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Record,
    Run,
    StridedArray,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped
from autograder.student.engine.runs import made_by

EXERCISE = Declaration(
    "PackedAttention",
    "One projection for three",
    ("x",),
    forbids=("multi_head_attention",),
)


def _attention(draw: Draw, d: int, heads: int, dtype: str = "float32", **kwargs: Any) -> Run:
    state = packed_state(draw, d, dtype, bias=kwargs.get("qkv_bias", True))
    return module(d, heads, state=state, **kwargs)


@EXERCISE.equals("attention with one projection", 1.5)
def _runs(draw: Draw) -> list[Run]:
    """Cut what qkv gives into three, queries, keys and values, and each of these into heads. From
    there on it is multi-head attention, with scores divided by √d_k; proj comes last."""
    named = module(d_model=6, num_heads=3, qkv_bias=True, state=packed_state(draw, 6))
    return [
        _attention(draw, 8, 2).then(draw.tensor(2, 5, 8)),
        named.then(x=draw.tensor(1, 4, 6)),
        _attention(draw, 12, 4).then(draw.tensor(2, 3, 12)).then(draw.tensor(1, 6, 12)),
    ]


@EXERCISE.equals("one head, one feature, one position, many", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """Equal sizes hide swapped axes: batch, positions, and of the features first query, key, value,
    then the heads."""
    return [
        _attention(draw, 4, 1).then(draw.tensor(2, 3, 4)),
        _attention(draw, 4, 4).then(draw.tensor(4, 4, 4)),
        _attention(draw, 6, 2).then(draw.tensor(3, 1, 6)),
        _attention(draw, 9, 3).then(draw.tensor(3, 3, 9)),
        _attention(draw, 1, 1).then(draw.tensor(2, 3, 1)),
        _attention(draw, 2, 2).then(draw.tensor(1, 66, 2)),
        _attention(draw, 6, 3).then(StridedArray(draw.tensor(2, 3, 6))),
    ]


@EXERCISE.equals("without a bias in qkv", 0.35)
def _weights_alone(draw: Draw) -> list[Run]:
    """qkv_bias=False is about qkv alone; proj keeps its bias."""
    positional = module(6, 3, False, state=packed_state(draw, 6, bias=False))
    return [
        positional.then(draw.tensor(2, 4, 6)),
        _attention(draw, 8, 2, qkv_bias=False).then(draw.tensor(1, 3, 8)),
    ]


def _both(run: Run) -> Sequence[int]:
    return (*run.constructor.args, *run.constructor.kwargs.values())[:2]


@EXERCISE.raises("num_heads that does not divide d_model", 0.35, ValueError, naming=_both)
def _refused(draw: Draw) -> list[Run]:
    """Raise the ValueError when the module is built, with both numbers."""
    return [
        module(8, 3).then(draw.tensor(1, 2, 8)),
        module(d_model=9, num_heads=4).then(draw.tensor(1, 2, 9)),
        module(4, 8).then(draw.tensor(1, 2, 4)),
    ]


_ALL = 1 - 1e-7  # on a GPU, torch's own kernel gives NaN for 1


@EXERCISE.equals("two dropouts: on the weights, and behind proj", 0.45)
def _dropped(draw: Draw) -> list[Run]:
    """With attention_dropout = 1 in training, no value gets through, and only proj's bias is left;
    with dropout = 1, nothing at all. The two arguments come in this order, after qkv_bias.
    """
    positional = (
        module(6, 3, True, on_weights, behind, state=packed_state(draw, 6))
        for on_weights, behind in ((_ALL, 0.0), (0.0, 1.0), (_ALL, 1.0))
    )
    runs = [
        *positional,
        _attention(draw, 8, 2, attention_dropout=_ALL),
        _attention(draw, 8, 2, dropout=1.0),
    ]
    return [run.in_training().then(draw.tensor(2, 3, run.constructor.args[0])) for run in runs]


_N = 8


def _seen_weights() -> tuple[State, Array]:
    """Parameters and inputs with which the result is the weights, all of them 1/n."""
    d, eye = _N, np.eye(_N)
    state = {
        "qkv.weight": np.concatenate([np.zeros((2 * d, d)), eye]),
        "qkv.bias": np.zeros(3 * d),
        "proj.weight": eye,
        "proj.bias": np.zeros(d),
    }
    x = tensor(np.stack([eye] * 8), "float32")
    return {name: tensor(data, "float32") for name, data in state.items()}, x


def _seen_output(draw: Draw) -> tuple[State, Array]:
    """Parameters with which the result is proj's bias, all of it from 1 to 2."""
    state = packed_state(draw, _N) | {
        "proj.weight": tensor(np.zeros((_N, _N)), "float32"),
        "proj.bias": tensor(draw.uniform(1.0, 2.0, _N), "float32"),
    }
    return state, draw.tensor(4, 16, _N)


def _known(state: Mapping[str, Array]) -> Array:
    """The result without dropout, for one of these."""
    bias = state["proj.bias"]
    return bias if bias.data.any() else tensor(np.full(_N, 1 / _N), "float32")


def over(known: Value) -> Value:
    """Divides a result by what it is without dropout."""
    return lambda result: result / numbers_of(known)


def _half_of_them(run: Run, record: Record) -> str | None:
    if not run.random:  # carries no marks, but tells known mistakes apart
        return None
    x, kwargs = numbers_of(run.steps[0].args[0]), run.constructor.kwargs
    results = [plain(value) for value in record.values]
    if not all_shaped(results, x.shape):
        return f"the result: expected shape {x.shape}, got {describe(record.value)}"
    (p,), what = kwargs.values(), "weight" if "attention_dropout" in kwargs else "number"
    ratio = np.stack(results) / numbers_of(_known(run.parameters))
    gone = np.abs(ratio) < 1e-3
    if any((gone.all(a) == gone.any(a)).all() for a in (-1, -2, -3)) and gone.any():
        return f"{what}s are dropped together: expected single {what}s"
    return wrong_share(ratio, p, what, 0.12) or wrong_factor(ratio, p, what)


@EXERCISE.holds("each number is dropped on its own", 0.3, _half_of_them, only_if_right=True)
def _drawn(draw: Draw) -> list[Run]:
    """nn.Dropout(p) drops every number with probability p, and divides the others by 1 − p."""
    runs = []
    for kind, p, (state, x) in (
        ("attention_dropout", 0.4, _seen_weights()),
        ("dropout", 0.3, _seen_output(draw)),
        ("dropout", 0.4, _seen_weights()),
    ):
        run = module(_N, 1, state=state, **{kind: p}).in_training()
        runs.append(run.then(x).then(x).at_random(draw))
        runs.append(named(run, draw, made_by(over, _known(state)), x))
    return runs


EXERCISE.draws_anew()


@EXERCISE.equals("no dropout in eval mode", 0.15)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless they
    are given, nothing is dropped in training, either."""
    return [
        _attention(draw, 6, 2, attention_dropout=1.0, dropout=1.0).then(draw.tensor(2, 3, 6)),
        _attention(draw, 6, 2).in_training().then(draw.tensor(2, 3, 6)),
    ]


@EXERCISE.gradients("gradients reach x and every parameter", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """A third of qkv learns for queries, a third for keys, a third for values."""
    return [
        _attention(draw, 6, 2, "float64").then(draw.double(2, 3, 6)),
        _attention(draw, 4, 4, "float64", qkv_bias=False).then(draw.double(1, 3, 4)),
    ]


def _finite(run: Run, record: Record) -> str | None:
    arrays = [plain(record.value), *map(plain, record.gradients.values())]
    fine = all(a is not None and np.isfinite(a).all() for a in arrays)
    return None if fine else "the output or a gradient is missing or not finite"


@EXERCISE.holds("scores of ±10,000", 0.2, _finite)
def _large(draw: Draw) -> list[Run]:
    """torch.softmax stays finite; exp alone does not."""
    return [_attention(draw, 8, 4).then(draw.tensor(2, 3, 8, scale=1e2)).with_gradients()]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 module with float64 inputs gives float64, a float32 module float32."""
    run = _attention(draw, 6, 2, "float64").then(draw.double(1, 3, 6))
    return [run, module(6, 2).then(draw.tensor(1, 3, 6)).at_random(draw)]


EXERCISE.leaves_inputs_alone(0.1, _runs)
EXERCISE.leaves_state_alone(0.1, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _dropped)
