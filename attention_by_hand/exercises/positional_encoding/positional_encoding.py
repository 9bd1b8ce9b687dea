"""`PositionalEncoding`: positions as a module."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from attention_by_hand.exercises.shared import wrong_factor, wrong_share
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Previous,
    Record,
    Run,
    Step,
    StridedArray,
    Trial,
    as_argument,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import compare, judge_each, numbers_of
from autograder.student.engine.compare import all_shaped
from autograder.student.engine.state import write

if TYPE_CHECKING:
    from torch import Tensor

EXERCISE = Declaration("PositionalEncoding", "Positions as a module", ("x", "offset"))


@EXERCISE.equals("each position gets its row", 0.75)
def _runs(draw: Draw) -> list[Run]:
    """Row p of the table is added to token p of every sequence. Positions run along axis 1 of x,
    not along the batch; the table (n, d_model) broadcasts over the batch."""
    return [
        module(6, 8).then(draw.tensor(2, 5, 6)),
        module(d_model=4, max_len=9).then(x=draw.tensor(3, 2, 4)),
        module(6, 6).then(draw.tensor(1, 4, 6)).then(draw.tensor(4, 3, 6)),
        module(8).then(draw.tensor(4, 4, 8), 0),
        module(4).then(StridedArray(draw.tensor(2, 3, 4))),
        module(6, 5).then(draw.tensor(1, 3, 6, scale=1e-4)),
        module(2, 80).then(draw.tensor(1, 70, 2)),
        module(2).then(draw.tensor(1, 66, 2)),
    ]


@EXERCISE.equals("an odd d_model", 0.15)
def _odd(draw: Draw) -> list[Run]:
    """The table has one more sine than cosines, as in sinusoidal_encoding."""
    return [
        module(5, 6).then(draw.tensor(2, 4, 5)),
        module(3, max_len=4).then(draw.tensor(1, 3, 3)),
        module(1, 6).then(draw.tensor(2, 4, 1)),
    ]


@EXERCISE.equals("an offset", 0.35)
def _offsets(draw: Draw) -> list[Run]:
    """With an offset, the first token of x is at position `offset`: take n rows from there on."""
    model = module(6, 12)
    for offset in (3, 0, 7):
        model = model.then(draw.tensor(2, 4, 6), offset=offset)
    return [
        model,
        module(4, 10).then(draw.tensor(1, 1, 4), draw.integer(4, 8)),
        module(4, 10).then(draw.tensor(3, 2, 4), offset=draw.integer(1, 5)),
    ]


@EXERCISE.equals("up to the end of the table", 0.25)
def _full(draw: Draw) -> list[Run]:
    """The last row may be used: offset + n = max_len still fits."""
    return [
        module(4, 5).then(draw.tensor(2, 5, 4)),
        module(4, 7).then(draw.tensor(1, 3, 4), offset=4),
        module(6, 3).then(draw.tensor(2, 1, 6)),
        module(6, 1).then(draw.tensor(2, 1, 6)),
        module(4).then(draw.tensor(1, 2, 4), offset=510),  # 512 rows by default
    ]


def _numbers(run: Run) -> Sequence[int]:
    step = run.steps[0]
    offset = step.kwargs.get("offset", step.args[1] if len(step.args) > 1 else 0)
    init = (
        dict(zip(("d_model", "max_len"), run.constructor.args, strict=False))
        | run.constructor.kwargs
    )
    return offset + step.args[0].data.shape[1], init.get("max_len", 512)


@EXERCISE.raises("more positions than the table has", 0.25, ValueError, naming=_numbers)
def _long(draw: Draw) -> list[Run]:
    """Raise ValueError where offset + n exceeds max_len, and name these two numbers."""
    n = draw.integer(33, 39)
    return [
        module(4, 8).then(draw.tensor(1, n, 4)),
        module(4, max_len=27).then(draw.tensor(2, 3, 4), offset=n),
        module(4, 16).then(draw.tensor(2, 1, 4), 16),
        module(4).then(draw.tensor(1, 3, 4), offset=510),  # 512 rows by default
    ]


def fill(buffer: Value, numbers: "Tensor") -> None:
    """Write other numbers into a buffer, in place."""
    write(buffer, numbers)


def _filled(model: Run, numbers: np.ndarray) -> Run:
    """The buffer `pe` (step 0) gets other numbers (step 1), which must show in later calls."""
    kept = replace(model, steps=(Step(("pe",), {}, "get_buffer"),))
    return kept.then_apply(as_argument(fill), Previous(0), tensor(numbers, "float32"))


@EXERCISE.aspect(
    "the buffer pe", 0.25, lambda trial: compare(trial.record.value, trial.expected.value)
)
def _buffer(draw: Draw) -> list[Run]:
    """register_buffer stores a tensor under a name, and state_dict saves it unless it is told not
    to. The table is (max_len, d_model), without a batch axis."""
    # The table as it was made; then another in its place.
    table = replace(module(d_model=4, max_len=3), steps=(Step(("pe",), {}, "get_buffer"),))
    other = replace(module(6, 8), steps=(Step(("pe",), {}, "get_buffer"),))
    filled = _filled(module(d_model=4, max_len=5), draw.normal(5, 4))
    saved = replace(module(4, 6), steps=(Step((), {}, "state_dict"),))
    return [other, table, filled.then(draw.tensor(2, 3, 4), offset=1), saved]


def _has_moved(trial: Trial) -> Finding:
    found = compare(trial.record.value, trial.expected.value)
    if found.passed or found.error is None:
        return found
    return replace(found, message="module.bfloat16() and module.double() do not convert the buffer")


def _moves_along(trials: Sequence[Trial]) -> Finding:
    raised = trials[0].record.raised
    if raised and raised.during == "load":
        return Finding(False, "expected no parameters, got some")
    if raised and "AttributeError" in raised.types:
        return Finding(False, "the module has no buffer called pe")
    return judge_each(_has_moved)(trials[:1])


def _there_and_back(model: Run) -> Run:
    moves = (Step((), {}, dtype) for dtype in ("bfloat16", "double"))
    return replace(model, steps=(*model.steps, *moves))


@EXERCISE.aspect_over_runs("no parameters, and pe moves with the module", 0.25, _moves_along)
def _moved(draw: Draw) -> list[Run]:
    """A plain attribute stays behind when the module changes dtype or device, and a parameter is
    trained; a buffer moves along and is not trained."""
    # An empty state loads into a module without parameters. Its buffer gets numbers that bfloat16
    # cannot hold, goes there and back, and is added to an x that has not.
    numbers = (1.0 + draw.integers(0, 7, 4, 6) / 8 + 1 / 512).astype(np.float32)
    run = _filled(module(6, 4, state={}), numbers)
    named = module(6, 4)  # carries no marks, but tells known mistakes apart
    return [_there_and_back(model).then(draw.double(2, 3, 6)) for model in (run, named)]


_P, _CALLS = 0.25, 8


def _dropped(trial: Trial) -> Finding:
    if not trial.run.random:
        return compare(trial.record.value, trial.expected.value)
    whole = numbers_of(trial.expected.value)
    outs = [plain(value) for value in trial.record.values[:_CALLS]]
    if not all_shaped(outs, whole.shape):
        return Finding(False, "the result does not have the shape of x")
    ratio = np.stack(outs) / whole
    problem = wrong_share(ratio, _P, "number", 0.06) or wrong_factor(ratio, _P, "number")
    return Finding(not problem, problem)


@EXERCISE.aspect("dropout in training", 0.25, _dropped, only_if_right=True)
def _dropout(draw: Draw) -> list[Run]:
    """Dropout acts on the sum of x and the encoding."""
    # Some calls in training mode and one in eval mode; with p = 1 nothing is random.
    x = tensor(draw.normal(2, 16, 8) + 4.0, "float32")  # no sum is near 0
    model = module(8, 20, dropout=_P).in_training()
    for _ in range(_CALLS):
        model = model.then(x)
    model = replace(model, steps=(*model.steps, Step((), {}, "eval"))).then(x)
    certain = module(6, 8, dropout=1.0).in_training()
    return [
        model.at_random(draw),
        certain.then(draw.tensor(2, 3, 6)),
    ]


EXERCISE.draws_anew()


@EXERCISE.equals("no dropout in eval mode", 0.15)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    x = draw.tensor(2, 3, 4)
    return [
        module(4, 6, 0.5).then(x).then(x),
        module(4, 6, dropout=1.0).then(x),
        module(4, 6).in_training().then(x),
    ]


EXERCISE.gradients(
    "gradients reach x",
    0.15,
    "The encoding is added to x: the gradient of x is that of the output, unchanged.",
    lambda draw: [*_runs(draw)[:2], *_offsets(draw)[1:]],
)


def _dtype_stays(run: Run, record: Record) -> str | None:
    wanted = run.steps[0].args[0].dtype
    dtype = getattr(record.value, "dtype", describe(record.value))
    return None if dtype == wanted else f"the result: expected {wanted}, got {dtype}"


@EXERCISE.holds("dtype", 0.05, _dtype_stays, only_if_right=True)
def _wide(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out."""
    # Right answers differ in float32's last digit.
    run = module(4, 6).then(draw.double(2, 3, 4))
    return [replace(run, random=True), module(4, 6).then(draw.tensor(2, 3, 4))]


EXERCISE.leaves_inputs_alone(0.1, _runs, _offsets)
EXERCISE.leaves_state_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs, _dropout)
