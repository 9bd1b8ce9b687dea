"""`BertEmbeddings`: token, position and segment as one vector."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from attention_by_hand.exercises.dropped import named
from attention_by_hand.exercises.parameters import norm_state, token_ids
from attention_by_hand.exercises.shared import State, wrong_factor, wrong_share
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Record,
    Run,
    Strided,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import all_shaped
from autograder.student.engine.runs import made_by

EXERCISE = Declaration("BertEmbeddings", "Token, position, segment", ("ids", "segment_ids"))


def _state(
    draw: Draw,
    vocab: int,
    d: int,
    max_len: int,
    segments: int = 2,
    dtype: str = "float32",
    scale: float = 3.0,
) -> State:
    """Random parameters. With the scale of most runs, the norm's eps makes no difference."""
    rows = {"tokens": vocab, "positions": max_len, "segments": segments}
    tables = {
        f"{name}.weight": draw.tensor(n, d, scale=scale, dtype=dtype) for name, n in rows.items()
    }
    return tables | norm_state(draw, "norm", d, dtype)


def _embeddings(
    draw: Draw, vocab: int, d: int, max_len: int, segments: int = 2, **kwargs: Any
) -> Run:
    state = _state(draw, vocab, d, max_len, segments)
    return module(vocab, d, max_len, segments, state=state, **kwargs)


def _ids(draw: Draw, B: int, n: int, vocab: int) -> Array:
    return token_ids(draw, B, n, vocab, low=0)


@EXERCISE.equals("the norm of the sum of three embeddings", 1.2)
def _runs(draw: Draw) -> list[Run]:
    """Look up the token, its position 0 … n − 1 and its segment, each in its own table; add the
    three vectors, and normalise the sum."""
    named = module(
        vocab_size=5, d_model=6, max_len=7, num_segments=3, dropout=0.0,
        state=_state(draw, 5, 6, 7, 3),
    )  # fmt: skip
    run = _embeddings(draw, 7, 8, 6)
    return [
        run.then(_ids(draw, 2, 5, 7), _ids(draw, 2, 5, 2)).then(
            _ids(draw, 3, 6, 7), _ids(draw, 3, 6, 2)
        ),
        named.then(segment_ids=_ids(draw, 1, 4, 3), ids=_ids(draw, 1, 4, 5)),
        _embeddings(draw, 9, 6, 8, 4).then(_ids(draw, 3, 4, 9), _ids(draw, 3, 4, 4)),
    ]


@EXERCISE.equals("without segment_ids: segment 0", 0.4)
def _one_segment(draw: Draw) -> list[Run]:
    """Every token is then in segment 0, whose vector is added like any other."""
    return [
        _embeddings(draw, 7, 8, 6).then(_ids(draw, 2, 5, 7)),
        _embeddings(draw, 5, 6, 6, 3).then(_ids(draw, 2, 3, 5), None),
        _embeddings(draw, 5, 6, 6, 1).then(ids=_ids(draw, 2, 3, 5)),
    ]


@EXERCISE.equals("one token, more rows than positions, one feature", 0.5)
def _sizes(draw: Draw) -> list[Run]:
    """Positions are counted along axis 1, from 0 in every row. Up to max_len of them are allowed,
    512 if nothing else is said, and two segments."""
    faint = _state(draw, 6, 6, 5) | {
        f"norm.{kind}": draw.tensor(6, scale=3e-4) for kind in ("weight", "bias")
    }
    # Of 512 tokens, the norm's bias is enough: what is on file stays small.
    long = _state(draw, 4, 6, 512) | {"norm.weight": tensor(np.zeros(6), "float32")}
    standard = module(4, 6, state=_state(draw, 4, 6, 512))
    return [
        _embeddings(draw, 6, 6, 5).then(_ids(draw, 2, 1, 6), _ids(draw, 2, 1, 2)),
        _embeddings(draw, 6, 6, 5).then(_ids(draw, 9, 5, 6), _ids(draw, 9, 5, 2)),
        _embeddings(draw, 5, 6, 4).then(_ids(draw, 4, 4, 5), _ids(draw, 4, 4, 2)),
        _embeddings(draw, 5, 1, 4).then(_ids(draw, 2, 3, 5), _ids(draw, 2, 3, 2)),
        _embeddings(draw, 1, 6, 1).then(_ids(draw, 3, 1, 1), _ids(draw, 3, 1, 2)),
        standard.then(_ids(draw, 1, 5, 4), _ids(draw, 1, 5, 2)),
        module(4, 6, state=long).then(_ids(draw, 1, 512, 4)),
        module(6, 6, 5, state=faint).then(_ids(draw, 2, 4, 6), _ids(draw, 2, 4, 2)),
        _embeddings(draw, 6, 6, 5).then(Strided(_ids(draw, 2, 4, 6)), Strided(_ids(draw, 2, 4, 2))),
    ]


@EXERCISE.equals("the norm's eps is 1e-12", 0.3)
def _faint(draw: Draw) -> list[Run]:
    """BERT's layer norm has an eps of 1e-12, not torch's 1e-5: nn.LayerNorm takes it as an
    argument. It shows where the vectors are small."""
    return [
        module(6, 8, 5, state=_state(draw, 6, 8, 5, scale=scale)).then(
            _ids(draw, 2, 4, 6), _ids(draw, 2, 4, 2)
        )
        for scale in (1e-2, 1e-3, 1e-6)
    ]


@EXERCISE.equals("dropout after the norm", 0.3)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout comes last: with p = 1 in training, nothing is left, not even the norm's bias."""
    named = module(5, 4, dropout=1.0, state=_state(draw, 5, 4, 512))
    runs = _embeddings(draw, 7, 6, 5, dropout=1.0), named
    return [run.in_training().then(_ids(draw, 2, 4, 5), _ids(draw, 2, 4, 2)) for run in runs]


def _half_of_them(run: Run, record: Record) -> str | None:
    bias = numbers_of(run.parameters["norm.bias"])
    if not run.random:  # carries no marks, but tells known mistakes apart
        return None
    results = [plain(value) for value in record.values]
    shape = (*run.steps[0].args[0].data.shape, len(bias))
    if not all_shaped(results, shape):
        return f"the result: expected shape {shape}, got {describe(record.value)}"
    ratio = np.stack(results) / bias
    p, gone = run.constructor.kwargs["dropout"], np.abs(ratio) < 1e-3
    if gone.any() and (gone.all(-1) == gone.any(-1)).all():
        return "whole tokens are dropped: expected single numbers"
    return wrong_share(ratio, p, "number", 0.09) or wrong_factor(ratio, p, "number")


def over_bias(bias: Any) -> Any:
    """Divides a result by the norm's bias."""
    return lambda result: result / numbers_of(bias)


@EXERCISE.holds("each number is dropped on its own", 0.2, _half_of_them, only_if_right=True)
def _drawn(draw: Draw) -> list[Run]:
    """nn.Dropout(p) drops every number with probability p, and divides the others by 1 − p."""
    # With a weight of 0, the norm gives its bias: so what dropout does to it can be seen.
    runs = []
    for p in (0.3, 0.5):
        norm = {
            "norm.weight": tensor(np.zeros(4), "float32"),
            "norm.bias": tensor(draw.uniform(1.0, 2.0, 4), "float32"),
        }
        run = module(5, 4, 64, dropout=p, state=_state(draw, 5, 4, 64) | norm).in_training()
        ids = _ids(draw, 4, 30, 5)
        runs.append(run.then(ids).then(ids).at_random(draw))
        runs.append(named(run, draw, made_by(over_bias, norm["norm.bias"]), ids))
    return runs


EXERCISE.draws_anew()


@EXERCISE.equals("no dropout in eval mode", 0.15)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    runs = _embeddings(draw, 7, 6, 5, dropout=1.0), _embeddings(draw, 7, 6, 5).in_training()
    return [run.then(_ids(draw, 2, 4, 7), _ids(draw, 2, 4, 2)) for run in runs]


def _both_lengths(run: Run) -> Sequence[int]:
    return run.steps[0].args[0].data.shape[1], (*run.constructor.args, 512)[2]


@EXERCISE.raises("more tokens than positions", 0.35, ValueError, naming=_both_lengths)
def _too_long(draw: Draw) -> list[Run]:
    """There is no vector for a position beyond max_len: raise a ValueError with the number of
    tokens and max_len."""
    return [
        _embeddings(draw, 7, 4, 5).then(_ids(draw, 2, 6, 7), _ids(draw, 2, 6, 2)),
        _embeddings(draw, 7, 4, 3).then(_ids(draw, 1, 40, 7)),
        module(4, 3, state=_state(draw, 4, 3, 512)).then(_ids(draw, 1, 513, 4)),
    ]


@EXERCISE.gradients("gradients reach every table and the norm", 0.4)
def _gradients(draw: Draw) -> list[Run]:
    """A row that is looked up several times gets the sum of these gradients, and one that is not
    looked up a gradient of 0."""
    state = _state(draw, 5, 4, 6, dtype="float64", scale=1e-3)
    run = module(5, 4, 6, state=state)
    return [
        run.then(_ids(draw, 2, 4, 5), _ids(draw, 2, 4, 2)),
        run.then(_ids(draw, 3, 3, 5)),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """Float64 tables give float64, float32 tables float32."""
    run = module(5, 4, 6, state=_state(draw, 5, 4, 6, dtype="float64", scale=1e-3))
    new = module(5, 4, 6).then(_ids(draw, 2, 3, 5))
    return [
        run.then(_ids(draw, 2, 4, 5), _ids(draw, 2, 4, 2)),
        run.then(_ids(draw, 2, 3, 5)),
        new.at_random(draw),
    ]


EXERCISE.leaves_inputs_alone(0.05, _runs)
EXERCISE.leaves_state_alone(0.05, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _one_segment, _dropped)
