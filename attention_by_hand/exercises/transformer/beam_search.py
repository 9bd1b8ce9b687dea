"""`beam_search`: decoding with several beams."""

from collections.abc import Mapping
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
    Record,
    Run,
    StridedArray,
    Trial,
    call,
    describe,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import compare, numbers_of, worst

EXERCISE = Declaration(
    "beam_search",
    "Keep several beams",
    ("model", "source", "bos_id", "eos_id", "max_len", "beam_size", "length_penalty"),
    uses=("Transformer",),
)


def _pairs(value: Value) -> list[tuple[np.ndarray, float]] | None:
    """The (ids, score) pairs of a result, if it is a list of them; ids: a tensor or a list."""
    if not isinstance(value, list | tuple) or not value:
        return None
    found = []
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return None
        ids, score = pair
        ids = numbers_of(ids) if isinstance(ids, Array) else np.array(ids, dtype=object)
        score = plain(score)
        whole = all(isinstance(i, int | float) and i == int(i) for i in ids.ravel())
        if ids.ndim != 1 or not ids.size or not whole or score is None or score.size != 1:
            return None
        found.append((ids.astype(np.int64), float(score.reshape(()))))
    return found


def _no_pairs(value: Value) -> str:
    return f"the result: expected a list of pairs (ids, score), got {describe(value)}"


def _same_best(trial: Trial) -> Finding:
    """The first pair is the reference's; which others are kept may differ."""
    findings = []
    for value, expected in zip(trial.record.values, trial.expected.values, strict=True):
        wanted = _pairs(expected)
        if wanted is None:
            findings.append(compare(value, expected))
            continue
        given = _pairs(value)
        if given is None:
            findings.append(Finding(False, _no_pairs(value)))
        elif given[0][0].tolist() != wanted[0][0].tolist():
            ids = wanted[0][0].tolist(), given[0][0].tolist()
            findings.append(Finding(False, f"the best ids: expected {ids[0]}, got {ids[1]}"))
        else:
            found, best = (tensor(pairs[0][1], "float32") for pairs in (given, wanted))
            findings.append(compare(found, best, "the score of the best"))
    return worst(findings)


_PAD, _BOS, _EOS = 0, 1, 2  # in the tables for beam search; tokens from 3 on are words


def _some_source(draw: Draw) -> Array:
    return tensor(draw.integers(1, 5, 1, 3))


Odds = Mapping[tuple[int, int], Mapping[int, float]]


def _table(
    draw: Draw, vocab: int, length: int, odds: Odds, end: float = 1e-4, eos: int = _EOS
) -> Recipe:
    """A model of the next token with about the given `odds[position, previous][token]`.

    Other words share what is left of a row; eos has the share `end` where the odds do not say
    otherwise. The previous token −1 stands for all that have no entry of their own. In the model,
    `_EOS` and `eos` have changed places.
    """
    share = np.ones((length, vocab, vocab))
    share[..., :_EOS] = 1e-4
    share[..., _EOS] = 0.0
    share *= np.exp(0.1 * draw.normal(*share.shape))
    for place in range(length):
        for previous in range(vocab):
            row = share[place, previous]
            fixed = {_EOS: end} | dict(odds.get((place, previous), odds.get((place, -1), {})))
            row[[*fixed]] = 0.0
            row *= (1 - sum(fixed.values())) / row.sum()
            row[[*fixed]] = [*fixed.values()]
    shift = draw.normal(length, vocab, 1)  # logits are log p up to a constant per row
    logits, ids = np.log(share) + shift, np.arange(vocab)
    ids[[_EOS, eos]] = eos, _EOS
    return table_model(logits[:, ids][..., ids], pad_id=_PAD)


def _words(draw: Draw, vocab: int) -> list[int]:
    return [int(word) + 3 for word in draw.permutation(vocab - 3)]


def _garden(draw: Draw, length: int, lead: int = 0) -> Recipe:
    """After `lead` certain words: a likely word that leads nowhere in particular, and a less
    likely one with a likely continuation; then eos.
    """
    a, b, c, d = _words(draw, 7)
    odds = {(place, -1): {c: 0.9} for place in range(lead)}
    odds |= {(lead, -1): {a: 0.5, b: 0.35}, (lead + 1, b): {c: 0.92}}
    for place in range(lead + 2, length):
        odds |= {(place, c): {d: 0.9}, (place, d): {c: 0.9}}
    odds |= {(length - 1, previous): {_EOS: 0.97} for previous in (-1, c, d)}
    return _table(draw, 7, length, odds)


_PLAIN = {"length_penalty": 0.0}  # the score is log p: the penalty has an aspect of its own


@EXERCISE.aspect("a better sequence after a worse beginning", 1.25, _same_best)
def _runs(draw: Draw) -> list[Run]:
    """At every step, add each beam's log p to the log-softmax of what may follow it, and keep the
    best of all of these together. The position in the flattened scores tells which beam is
    continued, and with which token."""
    first, source = _garden(draw, 4), _some_source(draw)
    keywords = {"bos_id": _BOS, "eos_id": _EOS, "max_len": 5, "beam_size": 3, **_PLAIN}
    return [
        call(first, source, _BOS, _EOS, 6, 2, 0.0).then(first, source, _BOS, _EOS, 6, 3, 0.0),
        call(model=_garden(draw, 3), source=_some_source(draw), **keywords),
        call(_garden(draw, 5, lead=1), _some_source(draw), _BOS, _EOS, 7, **_PLAIN),
    ]


def _step_argument(run: Run, index: int, name: str, default: Value = None) -> Value:
    step = run.steps[-1]
    return step.args[index] if len(step.args) > index else step.kwargs.get(name, default)


def _pairs_hold(run: Run, record: Record) -> str | None:
    pairs = _pairs(record.value)
    if pairs is None:
        return _no_pairs(record.value)
    logits = numbers_of(run.steps[0].args[0].args[0])
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    max_len, size = run.steps[0].args[4], _step_argument(run, 5, "beam_size", 4)
    alpha = _step_argument(run, 6, "length_penalty", 0.6)
    if len(pairs) > size:
        return f"expected at most {size} pairs, got {len(pairs)}"
    if len(pairs) == 1:
        return f"expected up to {size} pairs, got a single one"
    if len({tuple(ids) for ids, _ in pairs}) < len(pairs):
        return "two pairs hold the same ids"
    if any(x < y - 1e-6 for (_, x), (_, y) in zip(pairs, pairs[1:], strict=False)):
        return "the scores do not decrease: the best comes first"
    for ids, score in pairs:
        shown = ids.tolist()
        if (ids < 0).any() or (ids >= log_p.shape[-1]).any() or len(ids) > max_len:
            return f"{shown} are not at most {max_len} tokens of the vocabulary"
        if (ids[:-1] == _EOS).any():
            return f"{shown} go on after eos"
        if ids[-1] != _EOS and len(ids) < max_len:
            return f"{shown} end neither with eos nor at max_len"
        total = sum(
            log_p[min(i, len(log_p) - 1), previous, token]
            for i, (previous, token) in enumerate(zip([_BOS, *ids], ids, strict=False))
        )
        wanted = total / ((5 + len(ids)) / 6) ** alpha
        if abs(score - wanted) > 1e-4 * max(1.0, abs(wanted)):
            return f"the score of {shown}: expected {wanted:.6g}, got {score:.6g}"
    return None


def _mixed(draw: Draw) -> Recipe:
    """A way to eos at every step."""
    a, b, *_ = _words(draw, 6)
    odds = {
        (0, -1): {_EOS: 0.2, a: 0.45, b: 0.25},
        (1, a): {_EOS: 0.35, b: 0.4},
        (1, b): {_EOS: 0.3, a: 0.45},
        (2, -1): {_EOS: 0.25, a: 0.4},
    }
    return _table(draw, 6, 4, odds, end=0.3)


@EXERCISE.holds("every pair: ids, score, order", 0.75, _pairs_hold)
def _every_pair(draw: Draw) -> list[Run]:
    """A pair: the ids, without bos, up to eos or max_len, and log p / ((5 + length) / 6)^α for the
    length of these ids. The best comes first, and none occurs twice."""
    return [
        call(_mixed(draw), _some_source(draw), _BOS, _EOS, 4, 3),
        call(_mixed(draw), _some_source(draw), _BOS, _EOS, 3, 4, 1.5),
        call(_mixed(draw), _some_source(draw), _BOS, _EOS, 4),
        call(_garden(draw, 4), _some_source(draw), _BOS, _EOS, 5, beam_size=2, length_penalty=0.0),
    ]


@EXERCISE.aspect("the length penalty", 0.75, _same_best)
def _penalised(draw: Draw) -> list[Run]:
    """log p is negative and falls with every token. Dividing it by a number that grows with the
    length makes up for part of that; with α = 0, for none of it."""
    # A short sequence, or a long one that is a little less likely.
    runs = []
    for alpha in ({}, {"length_penalty": 0.0}, {"length_penalty": 2.0}):
        a, b, c, d = _words(draw, 7)
        likely = 0.3 if alpha.get("length_penalty") else 0.42
        odds = {
            (0, -1): {_EOS: 0.45, a: likely},
            (1, a): {b: 0.985},
            (2, b): {c: 0.985},
            (3, -1): {_EOS: 0.985},
        }
        eos = _EOS if alpha else 5
        model = _table(draw, 7, 4, odds, eos=eos)
        runs.append(call(model, _some_source(draw), _BOS, eos, 6, 3, **alpha))
    return runs


def _nearly_sure(draw: Draw) -> Run:
    """A model of which every digit counts: log p of the whole is −0.001, or so."""
    a, b, *_ = _words(draw, 6)
    odds = {(0, -1): {a: 0.9997}, (1, a): {b: 0.9998}, (2, b): {_EOS: 0.9998}}
    model = _table(draw, 6, 3, odds, end=1e-5)
    return call(model, _some_source(draw), _BOS, _EOS, 4, 1, 0.0)


@EXERCISE.aspect("one beam is greedy decoding", 0.4, _same_best)
def _of_one(draw: Draw) -> list[Run]:
    """With beam_size 1, the likeliest token is taken at every step, until it is eos."""
    real = real_model(draw), tensor([[3, 5, 7, 4]])
    return [
        call(_garden(draw, 4), _some_source(draw), _BOS, _EOS, 6, 1, 0.0),
        call(_mixed(draw), _some_source(draw), _BOS, _EOS, 4, beam_size=1, **_PLAIN),
        call(*real, 1, 2, 4, beam_size=1, **_PLAIN),
        call(real[0], StridedArray(real[1]), 3, 2, 3, 1, 0.0),
        call(real[0], tensor([[3]]), 1, 2, 3, 1, 0.0),
        call(_garden(draw, 4), tensor(draw.integers(1, 5, 1, 70)), _BOS, _EOS, 70, 1, 0.0),
        _nearly_sure(draw),
    ]


@EXERCISE.aspect("beams unfinished at max_len", 0.4, _same_best)
def _unfinished(draw: Draw) -> list[Run]:
    """They count as they are, with their log p and their length."""
    runs = []
    for size, max_len in ((2, 4), (4, 3)):
        a, b, *_ = _words(draw, 6)
        odds = {(0, -1): {_EOS: 0.08, a: 0.7}, (1, a): {b: 0.85}, (2, b): {a: 0.85}}
        odds |= {(3, a): {b: 0.85}}
        model = _table(draw, 6, 4, odds)
        runs.append(call(model, _some_source(draw), _BOS, _EOS, max_len, size, **_PLAIN))
    return runs


@EXERCISE.aspect("more beams than possible sequences", 0.35, _same_best)
def _wide(draw: Draw) -> list[Run]:
    """topk cannot return more than there is: take beam_size or all of them, whichever is less."""
    # More beams than possible sequences: none can be missed.
    runs = []
    for max_len in (2, 3):
        a, b = _words(draw, 5)
        odds = {
            (0, -1): {_EOS: 0.05, a: 0.5, b: 0.4},
            (1, a): {_EOS: 0.3, a: 0.33, b: 0.33},
            (1, b): {_EOS: 0.05, a: 0.9},
        }
        model = _table(draw, 5, 3, odds, end=0.5)
        runs.append(call(model, _some_source(draw), _BOS, _EOS, max_len, 130, **_PLAIN))
    return runs


@EXERCISE.aspect("eos at once, and a max_len of 1", 0.3, _same_best)
def _ends(draw: Draw) -> list[Run]:
    """A beam may be finished after its first token, and max_len may be 1."""
    a, b, *_ = _words(draw, 6)
    at_once = _table(draw, 6, 2, {(0, -1): {_EOS: 0.9, a: 0.05}}, end=0.5)
    short = _table(draw, 6, 2, {(0, -1): {_EOS: 0.2, a: 0.6, b: 0.1}})
    return [
        call(at_once, _some_source(draw), _BOS, _EOS, 4, 3, **_PLAIN),
        call(short, _some_source(draw), _BOS, _EOS, 1, 3, **_PLAIN),
    ]


@EXERCISE.aspect("decodes in eval mode", 0.25, _same_best)
def _in_training(draw: Draw) -> list[Run]:
    """Dropout must not act while decoding, whatever mode the model comes in."""
    run = applied(in_training, _garden(draw, 3))
    return [run.then(Previous(0), _some_source(draw), _BOS, _EOS, 4, 2, 0.0)]


@EXERCISE.aspect("restores each module's mode", 0.2, modes_kept, only_if_right=True)
def _modes(draw: Draw) -> list[Run]:
    """A part of a model in training may be in eval mode, frozen. Remember the mode of each of
    model.modules(), and restore each."""
    return [
        called_again(_garden(draw, 3), _some_source(draw), _BOS, _EOS, 4, 2, start=start)
        for start in (in_training, itself, part_in_training)
    ]


@EXERCISE.aspect("without gradients", 0.1, _same_best, only_if_right=True)
def _no_gradients(draw: Draw) -> list[Run]:
    """Under torch.no_grad() or torch.inference_mode(), the model keeps nothing for a backward pass
    that never comes."""
    model = _garden(draw, 3)
    model = replace(model, kwargs={**(model.kwargs or {}), "unrecorded": True})
    return [call(model, _some_source(draw), _BOS, _EOS, 4, 2, 0.0)]


EXERCISE.leaves_inputs_alone(0.1, _runs)


def _in_use(draw: Draw) -> list[Run]:
    runs = used(Run(()), _garden(draw, 3))
    return [run.then(Previous(0), _some_source(draw), _BOS, _EOS, 4, 2) for run in runs]


EXERCISE.leaves_state_alone(0.15, _runs, _in_use)
EXERCISE.follows_its_inputs(_runs, _penalised)
