"""`PositionalEncoding`: positions as a module."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    compare,
    describe,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    plain,
    raises,
)
from autograder.engine.runs import (
    Aspect,
    Draw,
    Exercise,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Step,
    Trial,
    module,
    tensor,
)
from autograder.engine.state import write
from autograder.exercises.positional_encoding.shared import float64_tensor

_HERE = "autograder.exercises.positional_encoding:"


def fill(buffer: Any, numbers: Any) -> None:
    """Write other numbers into a buffer, where it lies."""
    write(buffer, numbers)


def _encoding_runs(draw: Draw) -> Sequence[Run]:
    return [
        module(6, 8).then(draw.tensor(2, 5, 6)),
        module(d_model=4, max_len=9).then(x=draw.tensor(3, 2, 4)),
        module(6, 6).then(draw.tensor(1, 4, 6)).then(draw.tensor(4, 3, 6)),
        module(8).then(draw.tensor(4, 4, 8), 0),
    ]


def _encoding_odd(draw: Draw) -> Sequence[Run]:
    return [
        module(5, 6).then(draw.tensor(2, 4, 5)),
        module(3, max_len=4).then(draw.tensor(1, 3, 3)),
    ]


def _encoding_offsets(draw: Draw) -> Sequence[Run]:
    model = module(6, 12)
    for offset in (3, 0, 7):
        model = model.then(draw.tensor(2, 4, 6), offset=offset)
    return [
        model,
        module(4, 10).then(draw.tensor(1, 1, 4), draw.integer(4, 8)),
        module(4, 10).then(draw.tensor(3, 2, 4), offset=draw.integer(1, 5)),
    ]


def _encoding_full(draw: Draw) -> Sequence[Run]:
    return [
        module(4, 5).then(draw.tensor(2, 5, 4)),
        module(4, 7).then(draw.tensor(1, 3, 4), offset=4),
        module(6, 3).then(draw.tensor(2, 1, 6)),
    ]


def _filled(model: Run, numbers: np.ndarray) -> Run:
    """The buffer `pe` (step 0) gets other numbers (step 1), which are to show in later calls."""
    kept = replace(model, steps=(Step(("pe",), {}, "get_buffer"),))
    return kept.then_apply(Recipe(_HERE + "fill"), Previous(0), tensor(numbers, "float32"))


def _encoding_buffer(draw: Draw) -> Sequence[Run]:
    """The table as it is made; then another one in its place."""
    table = replace(module(d_model=4, max_len=3), steps=(Step(("pe",), {}, "get_buffer"),))
    other = replace(module(6, 8), steps=(Step(("pe",), {}, "get_buffer"),))
    filled = _filled(module(d_model=4, max_len=5), draw.normal(5, 4))
    return [other, table, filled.then(draw.tensor(2, 3, 4), offset=1)]


def _encoding_moved(draw: Draw) -> Sequence[Run]:
    """A module without parameters, to be loaded with none; its buffer gets numbers that bfloat16
    cannot hold, goes there and back, and is added to an x that has not come along."""
    numbers = np.float32(1.0 + draw.integers(0, 7, 4, 6) / 8 + 1 / 512)
    run = _filled(module(6, 4, state={}), numbers)
    named = module(6, 4)  # no marks hang on it, but known mistakes differ there
    return [_there_and_back(model).then(float64_tensor(draw, 2, 3, 6)) for model in (run, named)]


def _there_and_back(model: Run) -> Run:
    moves = (Step((), {}, dtype) for dtype in ("bfloat16", "double"))
    return replace(model, steps=(*model.steps, *moves))


def _moves_along(trials: Sequence[Trial]) -> Finding:
    raised = trials[0].record.raised
    if raised and raised.during == "load":
        return Finding(False, "the module has parameters; expected none")
    if raised and "AttributeError" in raised.types:
        return Finding(False, "the module has no buffer called pe")
    return each(_has_moved)(trials[:1])


def _has_moved(trial: Trial) -> Finding:
    found = compare(trial.record.value, trial.expected.value)
    if found.passed or found.error is None:
        return found
    return replace(found, message="module.bfloat16() and module.double() do not reach the buffer")


def _encoding_long(draw: Draw) -> Sequence[Run]:
    n = draw.integer(33, 39)
    return [
        module(4, 8).then(draw.tensor(1, n, 4)),
        module(4, max_len=27).then(draw.tensor(2, 3, 4), offset=n),
        module(4, 16).then(draw.tensor(2, 1, 4), 16),
    ]


def _encoding_numbers(run: Run) -> Sequence[int]:
    step = run.steps[0]
    offset = step.kwargs.get("offset", step.args[1] if len(step.args) > 1 else 0)
    init = dict(zip(("d_model", "max_len"), run.init.args, strict=False)) | run.init.kwargs
    return offset + step.args[0].data.shape[1], init["max_len"]


_P, _CALLS = 0.25, 8


def _encoding_dropout(draw: Draw) -> Sequence[Run]:
    """Some calls in training mode and one in eval mode; with dropout 1 nothing is random."""
    x = tensor(draw.normal(2, 16, 8) + 4.0, "float32")  # no sum is near 0
    model = replace(module(8, 20, dropout=_P), training=True)
    for _ in range(_CALLS):
        model = model.then(x)
    model = replace(model, steps=(*model.steps, Step((), {}, "eval"))).then(x)
    certain = replace(module(6, 8, dropout=1.0), training=True)
    return [
        replace(model, random=True, seed=draw.integer(0, 10**6)),
        certain.then(draw.tensor(2, 3, 6)),
    ]


def _encoding_dropped(trial: Trial) -> Finding:
    if not trial.run.random:
        return compare(trial.record.value, trial.expected.value)
    whole = plain(trial.expected.value)
    outs = [plain(value) for value in trial.record.values[:_CALLS]]
    if any(out is None or out.shape != whole.shape for out in outs):
        return Finding(False, "the result does not have the shape of x")
    ratio = np.stack(outs) / whole
    dropped = np.abs(ratio) < 1e-6
    if not dropped.any():
        return Finding(False, f"in training mode with dropout {_P}, nothing of the sum is dropped")
    if (dropped[0] == dropped[1]).all():
        return Finding(False, "two calls in training mode drop the same numbers")
    share = float(dropped.mean())
    if abs(share - _P) > 0.06:
        return Finding(False, f"numbers dropped: expected {_P:.0%}, got {share:.0%}")
    off = float(np.abs(ratio[~dropped] * (1 - _P) - 1).max())
    if off > 1e-3:
        wanted = 1 / (1 - _P)
        return Finding(False, f"what stays is not the sum of x and pe times {wanted:.3g}")
    return Finding(True)


def _encoding_evaluated(draw: Draw) -> Sequence[Run]:
    x = draw.tensor(2, 3, 4)
    return [module(4, 6, 0.5).then(x).then(x), module(4, 6, dropout=1.0).then(x)]


def _encoding_wide(draw: Draw) -> Sequence[Run]:
    """In float64, where answers differ from each other in float32's last digit."""
    run = module(4, 6).then(float64_tensor(draw, 2, 3, 4))
    return [replace(run, random=True)]


def _double_stays(run: Run, record: Record) -> str | None:
    dtype = getattr(record.value, "dtype", describe(record.value))
    return None if dtype == "float64" else f"x is float64, the result {dtype}"


POSITIONAL_ENCODING = Exercise(
    "PositionalEncoding",
    "Positions as a module",
    ("x", "offset"),
    (
        equals_reference(
            "each position gets its row",
            0.75,
            "Row p of the table is added to token p of every sequence. Positions run along axis 1 "
            "of x, not along the batch; the table (n, d_model) broadcasts over the batch.",
            _encoding_runs,
        ),
        equals_reference(
            "an odd d_model",
            0.15,
            "The table has one sine more than cosines, as in sinusoidal_encoding.",
            _encoding_odd,
        ),
        equals_reference(
            "an offset",
            0.35,
            "With an offset the first token of x stands at position `offset`: take n rows from "
            "there on.",
            _encoding_offsets,
        ),
        equals_reference(
            "as long as the table",
            0.25,
            "The last row may be used: offset + n = max_len still fits.",
            _encoding_full,
        ),
        raises(
            "more positions than the table has",
            0.25,
            "Raise ValueError where offset + n is above max_len, and name these two numbers.",
            _encoding_long,
            ValueError,
            naming=_encoding_numbers,
        ),
        Aspect(
            "the buffer pe",
            0.25,
            "register_buffer keeps a tensor under a name. The table is (max_len, d_model), without "
            "a batch axis.",
            _encoding_buffer,
            each(lambda trial: compare(trial.record.value, trial.expected.value)),
        ),
        Aspect(
            "no parameters, and it moves with the module",
            0.25,
            "A plain attribute stays behind when the module changes dtype or device, a parameter "
            "is trained; a buffer moves along and is not.",
            _encoding_moved,
            _moves_along,
        ),
        Aspect(
            "dropout in training",
            0.25,
            "nn.Dropout acts on the sum of x and the encoding.",
            _encoding_dropout,
            each(_encoding_dropped),
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.15,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _encoding_evaluated,
        ),
        gradients_match(
            "gradients flow back to x",
            0.15,
            "The encoding is added to x: the gradient of x is that of the output, untouched.",
            lambda draw: [*_encoding_runs(draw)[:2], *_encoding_offsets(draw)[1:]],
        ),
        has_property(
            "dtype",
            0.05,
            "float64 in, float64 out.",
            _encoding_wide,
            _double_stays,
            only_if_right=True,
        ),
        inputs_untouched(0.1, lambda d: [*_encoding_runs(d), *_encoding_offsets(d)]),
        no_side_effects(0.05, _encoding_runs),
    ),
)
