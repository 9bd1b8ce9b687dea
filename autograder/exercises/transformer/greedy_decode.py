"""`greedy_decode`: write, always the likeliest."""

from collections.abc import Sequence

import numpy as np

from autograder.engine.aspects import (
    compare,
    describe,
    dtypes_kept,
    each,
    equals_reference,
    inputs_untouched,
    no_side_effects,
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
    Run,
    Trial,
    call,
    tensor,
)
from autograder.exercises.transformer.decoding import (
    ASKED_ON,
    PADDED,
    applied,
    called_again,
    modes_kept,
    real_model,
    table_model,
)


def _ending(
    draw: Draw,
    ends: Sequence[int],
    *,
    vocab: int = 8,
    eos_id: int = 2,
    pad_id: int = 0,
    strict: bool = False,
) -> tuple[Recipe, Array]:
    """A model and a source, row i of which has its eos as token number ends[i] (from 1)."""
    table = draw.normal(6, vocab, vocab, scale=2.0)
    words = [word for word in draw.permutation(vocab) if word not in (eos_id, pad_id)]
    table[0, :, words[0]] += 25.0  # whoever begins with eos is to begin otherwise
    table[0, eos_id, words[1]] += 60.0
    table[..., pad_id] -= 40.0  # no model that has learnt anything writes padding
    by_source = tensor(draw.normal(9, vocab, scale=1.5), "float32")
    times = tensor(np.array([99, *(end - 1 for end in ends)]))
    kwargs = {"pad_id": pad_id, "ends": times, "eos_id": eos_id, "strict": strict}
    model = table_model(table, by_source=by_source, **kwargs)
    rows = np.arange(1, len(ends) + 1)[:, None]
    return model, tensor(np.concatenate([rows, draw.integers(0, 8, len(ends), 2)], axis=1))


def _greedy_runs(draw: Draw) -> Sequence[Run]:
    first, source = _ending(draw, (5, 5, 5))
    named, alone = _ending(draw, (4,), eos_id=5)
    return [
        call(first, source, 1, 2, 9),
        call(model=named, source=alone, bos_id=3, eos_id=5, max_len=8),
        call(*_ending(draw, (6, 6), vocab=6, eos_id=0, pad_id=5), 2, 0, max_len=7),
    ]


def _greedy_uneven(draw: Draw) -> Sequence[Run]:
    return [
        call(*_ending(draw, (2, 6, 4)), 1, 2, 9),
        call(*_ending(draw, (5, 1, 3, 2), pad_id=4, eos_id=3), 1, 3, 9),
        call(*_ending(draw, (3, 99, 2)), 1, 2, 5),
    ]


def _greedy_stopped(draw: Draw) -> Sequence[Run]:
    first, source = _ending(draw, (2, 3), strict=True)
    second, other = _ending(draw, (1, 1, 1), strict=True)
    return [
        called_again(first, source, 1, 2, 14),
        called_again(second, other, 1, 2, max_len=14),
    ]


def _stops(trials: Sequence[Trial]) -> Finding:
    if any(t.record.raised and t.record.raised.message == ASKED_ON for t in trials):
        return Finding(False, ASKED_ON)
    return each(_has_stopped)(trials)


def _has_stopped(trial: Trial) -> Finding:
    ids, logits = (plain(value) for value in trial.record.values[1:])
    if ids is None or ids.ndim != 2 or logits is None:
        return Finding(False, f"the result is {describe(trial.record.values[1])}")
    eos = trial.run.steps[1].args[3]
    if not (ids == eos).any(1).all():
        return Finding(False, "a row ends without eos, long before max_len")
    as_before = compare(trial.record.values[2], trial.expected.values[2]).passed
    return Finding(as_before, None if as_before else ASKED_ON)


def _greedy_ends(draw: Draw) -> Sequence[Run]:
    return [
        call(*_ending(draw, (99, 99)), 1, 2, 4),
        call(*_ending(draw, (99, 3)), 1, 2, 1),
        call(*_ending(draw, (1, 1)), 1, 2, 6),
        call(*_ending(draw, (4, 2)), 1, 2, 4),
        call(real_model(draw), tensor(PADDED), 1, 2, 5),
    ]


def _greedy_in_training(draw: Draw) -> Sequence[Run]:
    model, source = _ending(draw, (4, 3))
    real = applied("in_training", real_model(draw, dropout=0.6))
    return [
        applied("in_training", model).then(Previous(0), source, 1, 2, 7),
        real.then(Previous(0), tensor(PADDED), 1, 2, 5),
    ]


def _greedy_modes(draw: Draw) -> Sequence[Run]:
    runs = []
    for start in ("in_training", "itself"):
        model, source = _ending(draw, (2, 3))
        runs.append(called_again(model, source, 1, 2, 7, start=start))
    return runs


GREEDY_DECODE = Exercise(
    "greedy_decode",
    "Write, always the likeliest",
    ("model", "source", "bos_id", "eos_id", "max_len"),
    (
        equals_reference(
            "the likeliest token at every step",
            1.25,
            "Begin with bos in every row. model(source, ids)[:, -1] scores what may come next; "
            "append the best, and ask again with all that is written so far. Leave bos out of the "
            "result.",
            _greedy_runs,
        ),
        equals_reference(
            "rows that end at different times",
            0.9,
            "A row keeps its eos and holds model.pad_id from there on, while the others go on. "
            "Remember which rows are done.",
            _greedy_uneven,
        ),
        Aspect(
            "stops when all rows are done",
            0.5,
            "As soon as every row has its eos, there is nothing left to ask the model.",
            _greedy_stopped,
            _stops,
        ),
        equals_reference(
            "max_len, and eos at once",
            0.45,
            "At most max_len tokens are written, bos not counted; eos may be the first of them.",
            _greedy_ends,
        ),
        equals_reference(
            "decodes in eval mode",
            0.4,
            "Dropout has no business in decoding, in whatever mode the model comes.",
            _greedy_in_training,
        ),
        Aspect(
            "leaves each module's mode as it was",
            0.25,
            "A part of a model in training may be in eval mode, frozen. Note the mode of each of "
            "model.modules(), and put each back.",
            _greedy_modes,
            each(modes_kept),
            only_if_right=True,
        ),
        dtypes_kept(0.1, "Token ids are long.", _greedy_runs),
        inputs_untouched(0.05, _greedy_uneven),
        no_side_effects(0.1, _greedy_runs),
    ),
    uses=("Transformer",),
)
