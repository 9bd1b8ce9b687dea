"""`GRUCell`: a recurrent unit with gates."""

from collections.abc import Iterable

import numpy as np

from attention_by_hand.exercises.shared import State
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    StridedArray,
    as_argument,
    module,
    tensor,
)
from autograder.student.engine.arrays import Value

EXERCISE = Declaration(
    "GRUCell",
    "A gated recurrent unit",
    ("x", "h"),
    forbids=("recurrence",),
)


def _shapes(input_size: int, hidden_size: int) -> dict[str, tuple[int, ...]]:
    """The parameters of a GRU cell."""
    rows = 3 * hidden_size
    weights = {"weight_ih": (rows, input_size), "weight_hh": (rows, hidden_size)}
    return weights | {"bias_ih": (rows,), "bias_hh": (rows,)}


def gru_state(draw: Draw, input_size: int, hidden_size: int, dtype: str = "float32") -> State:
    """Parameters of a GRU cell whose gates are from about 0.1 to 0.9."""
    return {
        name: draw.tensor(*shape, scale=shape[1] ** -0.5 if shape[1:] else 0.5, dtype=dtype)
        for name, shape in _shapes(input_size, hidden_size).items()
    }


def _cell(draw: Draw, input_size: int, hidden_size: int, dtype: str = "float32") -> Run:
    return module(input_size, hidden_size, state=gru_state(draw, input_size, hidden_size, dtype))


def _given(
    draw: Draw, B: int, input_size: int, hidden_size: int, dtype: str = "float32"
) -> tuple[Array, Array]:
    """x and h."""
    return draw.tensor(B, input_size, dtype=dtype), draw.tensor(B, hidden_size, dtype=dtype)


@EXERCISE.equals("one step", 1.45)
def _runs(draw: Draw) -> list[Run]:
    """The rows of the parameters come in the order reset, update, new. r multiplies U h + c inside
    the tanh; z says how much of the old state stays."""
    x, h = _given(draw, 1, 2, 5)
    named = module(input_size=2, hidden_size=5, state=gru_state(draw, 2, 5))
    unbiased = gru_state(draw, 3, 4) | {
        f"bias_{of}": tensor(np.zeros(12, "f")) for of in ("ih", "hh")
    }
    small = draw.tensor(2, 3, scale=1e-3), draw.tensor(2, 4, scale=1e-3)
    return [
        _cell(draw, 3, 4).then(*_given(draw, 2, 3, 4)),
        named.then(h=h, x=x),
        _cell(draw, 5, 2).then(*_given(draw, 4, 5, 2)),
        _cell(draw, 4, 3).then(*map(StridedArray, _given(draw, 3, 4, 3))),
        module(3, 4, state=unbiased).then(*small),
    ]


@EXERCISE.equals("all sizes equal, and all sizes one", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """Where all sizes are equal, exchanged factors raise no error: x belongs to weight_ih, h to
    weight_hh."""
    return [
        _cell(draw, 3, 3).then(*_given(draw, 3, 3, 3)),
        _cell(draw, 1, 1).then(*_given(draw, 1, 1, 1)),
        _cell(draw, 1, 4).then(*_given(draw, 2, 1, 4)),
    ]


@EXERCISE.equals("six steps", 0.35)
def _steps(draw: Draw) -> list[Run]:
    """What comes out of one step goes into the next: the cell itself remembers nothing."""
    run = _cell(draw, 2, 3).then(draw.tensor(2, 2), draw.tensor(2, 3))
    for i in range(5):
        run = run.then(draw.tensor(2, 2), Previous(i))
    other = _cell(draw, 2, 3).then(draw.tensor(2, 2), draw.tensor(2, 3))
    return [run, other.then(draw.tensor(1, 2), draw.tensor(1, 3))]


@EXERCISE.gradients("gradients reach x, h and every parameter", 0.75)
def _backward(draw: Draw) -> list[Run]:
    """Both gates and the new state contribute. Both biases of the new state count, the second one
    times r."""
    two = _cell(draw, 2, 3, "float64").then(*_given(draw, 2, 2, 3, "float64"))
    return [
        _cell(draw, 3, 2, "float64").then(*_given(draw, 3, 3, 2, "float64")),
        two.then(draw.double(2, 2), Previous(0)),
    ]


def as_they_begin(parameters: Iterable[tuple[str, Value]], bound: float) -> tuple[tuple, ...]:
    """Name and shape of each parameter of a new module, and how large its numbers are.

    Of 96 numbers drawn as they should be, some lies beyond three tenths of `bound` on either side
    but once in 10¹⁷ times.
    """
    found = []
    for name, parameter in parameters:
        low, high = parameter.min().item(), parameter.max().item()
        size = "right"
        if max(-low, high) > 1.001 * bound:
            size = "larger ones"
        elif low == high:
            size = "only zeros" if low == 0 else "one number throughout"
        elif max(-low, high) < 0.3 * bound:
            size = "smaller ones"
        elif min(-low, high) < 0.3 * bound:
            size = f"hardly any {'below' if -low < high else 'above'} 0"
        found.append((name, tuple(parameter.shape), size))
    return tuple(sorted(found))


def _begins_as_torchs(run: Run, record: Record) -> str | None:
    size, hidden = run.constructor.args
    found, shapes = record.value, _shapes(size, hidden)
    if [name for name, *_ in found] != sorted(shapes):
        names = ", ".join(name for name, *_ in found)[:100]
        return f"the parameters: expected {', '.join(sorted(shapes))}, got {names or 'none'}"
    for name, shape, _ in found:
        if shape != shapes[name]:
            return f"{name}: expected shape {shapes[name]}, got {shape}"
    wrong = [(name, numbers) for name, _, numbers in found if numbers != "right"]
    if not wrong:
        return None
    name, numbers = wrong[0]
    which = "all parameters" if wrong == [(name, numbers) for name in sorted(shapes)] else name
    return f"{which} of a new cell: expected numbers up to ±1/√{hidden}, got {numbers}"


@EXERCISE.holds("a new cell", 0.15, _begins_as_torchs, only_if_right=True, forgeable=True)
def _new(draw: Draw) -> list[Run]:
    """Four parameters with the names and shapes of nn.GRUCell's, drawn uniformly from −1/√h to
    1/√h, where h is hidden_size: with equal numbers, all features of the state would be alike."""
    run = module(2, 32).then_method("named_parameters")
    return [run.then_apply(as_argument(as_they_begin), Previous(0), 32**-0.5)]


@EXERCISE.equals("features of ±10,000", 0.1, only_if_right=True)
def _large(draw: Draw) -> list[Run]:
    """Gates are then 0 or 1, and the new state ±1. A formula with exponentials overflows."""
    x, h = _given(draw, 3, 2, 3)
    return [_cell(draw, 2, 3).then(tensor(1e4 * np.sign(x.data) + x.data, "float32"), h)]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 cell with float64 inputs gives float64, a float32 cell float32."""
    return [_cell(draw, 3, 4, "float64").then(*_given(draw, 2, 3, 4, "float64"))]


EXERCISE.leaves_inputs_alone(0.1, lambda draw: _runs(draw)[:3])
EXERCISE.leaves_state_alone(0.1, lambda draw: _runs(draw)[:1], of_a_module=True)
EXERCISE.follows_its_inputs(_runs)
