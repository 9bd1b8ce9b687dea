"""`greedy_decode`: always the likeliest token."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attention_by_hand.exercises.shared import (
    applied,
    in_training,
    itself,
    modes_kept,
    part_in_training,
    used,
)
from attention_by_hand.exercises.transformer.decoding import (
    ASKED_ON,
    PADDED,
    called_again,
    real_model,
    table_model,
)
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Finding,
    Previous,
    Recipe,
    Run,
    Trial,
    call,
    describe,
    plain,
    tensor,
)
from autograder.student.engine.aspects import compare, judge_each

EXERCISE = Declaration(
    "greedy_decode",
    "Always the likeliest token",
    ("model", "source", "bos_id", "eos_id", "max_len"),
    uses=("Transformer",),
)


def _ending(
    draw: Draw,
    ends: Sequence[int],
    *,
    vocab: int = 8,
    eos_id: int = 2,
    pad_id: int = 0,
    **kwargs: bool,
) -> tuple[Recipe, Array]:
    """A model and a source whose row i has its eos as token number ends[i] (from 1)."""
    table = draw.normal(6, vocab, vocab, scale=2.0)
    words = np.array([word for word in draw.permutation(vocab) if word not in (eos_id, pad_id)])
    begin = np.arange(vocab)  # what an answer begins with shows in its first word
    table[0, begin, words[begin % len(words)]] += 25.0
    table[..., pad_id] -= 40.0  # no trained model writes padding
    by_source = tensor(draw.normal(9, vocab, scale=1.5), "float32")
    times = tensor(np.array([99, *(end - 1 for end in ends)]))
    settings = {"pad_id": pad_id, "ends": times, "eos_id": eos_id} | kwargs
    model = table_model(table, by_source=by_source, **settings)
    rows = np.arange(1, len(ends) + 1)[:, None]
    return model, tensor(np.concatenate([rows, draw.integers(0, 8, len(ends), 2)], axis=1))


@EXERCISE.equals("the likeliest token at every step", 1.25)
def _runs(draw: Draw) -> list[Run]:
    """Begin with bos in every row. model(source, ids)[:, -1] scores the next token; append the best
    one, and call the model again with everything written so far. Leave bos out of the result."""
    first, source = _ending(draw, (5, 5, 5))
    named, alone = _ending(draw, (4,), eos_id=5)
    return [
        call(first, source, 1, 2, 9),
        call(model=named, source=alone, bos_id=3, eos_id=5, max_len=8),
        call(*_ending(draw, (6, 6), vocab=6, eos_id=0, pad_id=5), 2, 0, max_len=7),
    ]


@EXERCISE.equals("rows that end at different times", 0.9)
def _uneven(draw: Draw) -> list[Run]:
    """A row keeps its eos and holds model.pad_id from there on, while the others continue. Keep
    track of which rows are done."""
    return [
        call(*_ending(draw, (2, 6, 4)), 1, 2, 9),
        call(*_ending(draw, (5, 1, 3, 2), pad_id=4, eos_id=3), 1, 3, 9),
        call(*_ending(draw, (3, 99, 2)), 1, 2, 5),
        call(*_ending(draw, (2, 4, 3)), 1, 2, 7).as_views(),
    ]


def _has_stopped(trial: Trial) -> Finding:
    ids, logits = (plain(value) for value in trial.record.values[1:])
    if ids is None or ids.ndim != 2 or logits is None:
        return Finding(
            False, f"the result: expected (B, n) token ids, got {describe(trial.record.values[1])}"
        )
    eos = trial.run.steps[1].args[3]
    if not (ids == eos).any(1).all():
        return Finding(False, "a row ends without eos well before max_len")
    value, expected = trial.record.values[2], trial.expected.values[2]
    # Back to front, with the other sign: left in training mode, which another aspect judges.
    forms = logits, logits[..., ::-1], -logits[..., ::-1]
    as_before = any(compare(replace(value, data=form), expected).passed for form in forms)
    return Finding(as_before, None if as_before else ASKED_ON)


def _stops(trials: Sequence[Trial]) -> Finding:
    if any(t.record.raised and t.record.raised.message == ASKED_ON for t in trials):
        return Finding(False, ASKED_ON)
    return judge_each(_has_stopped)(trials)


@EXERCISE.aspect_over_runs("stops when all rows are done", 0.5, _stops)
def _stopped(draw: Draw) -> list[Run]:
    """Once every row has its eos, there is no reason to call the model again."""
    first, source = _ending(draw, (2, 3), strict=True)
    second, other = _ending(draw, (1, 1, 1), strict=True)
    return [
        called_again(first, source, 1, 2, 14),
        called_again(second, other, 1, 2, max_len=14),
    ]


def _long(draw: Draw) -> Run:
    """A source and a target of many tokens."""
    model, source = _ending(draw, (66,))
    return call(model, tensor(np.tile(source.data, 24)), 1, 2, 70)


@EXERCISE.equals("max_len, and eos at once", 0.45)
def _ends(draw: Draw) -> list[Run]:
    """At most max_len tokens are written, bos not counted; eos may be the first of them."""
    return [
        call(*_ending(draw, (99, 99)), 1, 2, 4),
        call(*_ending(draw, (99, 3)), 1, 2, 1),
        call(*_ending(draw, (1, 1)), 1, 2, 6),
        call(*_ending(draw, (4, 2)), 1, 2, 4),
        call(real_model(draw), tensor(PADDED), 1, 2, 5),
        call(real_model(draw), tensor(PADDED[:, :1]), 3, 2, 3),
        _long(draw),
    ]


@EXERCISE.equals("decodes in eval mode", 0.3)
def _in_training(draw: Draw) -> list[Run]:
    """Dropout must not act while decoding, whatever mode the model comes in."""
    model, source = _ending(draw, (4, 3))
    real = applied(in_training, real_model(draw, dropout=0.6))
    return [
        applied(in_training, model).then(Previous(0), source, 1, 2, 7),
        real.then(Previous(0), tensor(PADDED), 1, 2, 5),
    ]


@EXERCISE.aspect("restores each module's mode", 0.25, modes_kept, only_if_right=True)
def _modes(draw: Draw) -> list[Run]:
    """A part of a model in training may be in eval mode, frozen. Remember the mode of each of
    model.modules(), and restore each."""
    runs = []
    for start in (in_training, itself, part_in_training):
        model, source = _ending(draw, (2, 3))
        runs.append(called_again(model, source, 1, 2, 7, start=start))
    return runs


@EXERCISE.equals("without gradients", 0.1, only_if_right=True)
def _no_gradients(draw: Draw) -> list[Run]:
    """Under torch.no_grad() or torch.inference_mode(), the model keeps nothing for a backward pass
    that never comes."""
    return [call(*_ending(draw, (5, 4), unrecorded=True), 1, 2, 7)]


EXERCISE.keeps_dtypes(0.1, "Token ids are long.", _runs)
EXERCISE.leaves_inputs_alone(0.05, _uneven)


def _in_use(draw: Draw) -> list[Run]:
    model, source = _ending(draw, (2, 3))
    runs = used(Run(()), model)
    return [run.then(Previous(0), source, 1, 2, 5) for run in runs]


EXERCISE.leaves_state_alone(0.1, _runs, _in_use)
EXERCISE.follows_its_inputs(_runs, _uneven)
