"""`attend_with_cache`: one token at a time."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from attention_by_hand.exercises.shared import used
from autograder.student.authoring import (
    Declaration,
    Draw,
    Finding,
    Previous,
    Recipe,
    Run,
    StridedArray,
    Trial,
    as_argument,
    call,
    part,
)
from autograder.student.engine.aspects import numbers_of
from autograder.student.engine.compare import TOLERANCE, compare, worst

if TYPE_CHECKING:
    from torch import nn

EXERCISE = Declaration(
    "attend_with_cache",
    "One token at a time",
    ("attention", "x", "cache"),
    uses=("MultiHeadAttention",),
    returns=("the output", ("the cache", ("the keys in the cache", "the values in the cache"))),
)


def _attention(
    draw: Draw, d_model: int, num_heads: int, bias: bool = True, dtype: str = "float32"
) -> Recipe:
    state = {}
    for name in ("W_q", "W_k", "W_v", "W_o"):
        state[f"{name}.weight"] = draw.tensor(
            d_model, d_model, scale=1.5 / d_model**0.5, dtype=dtype
        )
        if bias:
            state[f"{name}.bias"] = draw.tensor(d_model, dtype=dtype)
    args = (d_model, num_heads, 0.0, bias)
    return Recipe("attention_by_hand.blocks:MultiHeadAttention", args, {}, state, kept=True)


@EXERCISE.equals("the first positions: a causal pass", 0.75, part=0)
def _start(draw: Draw) -> list[Run]:
    """Without a cache this is causal self-attention: project x with W_q, W_k and W_v, split into
    heads as in chapter 3, attend under a causal mask, merge the heads, apply W_o."""
    return [
        call(_attention(draw, 6, 3), draw.tensor(2, 5, 6)),
        call(_attention(draw, 4, 1), draw.tensor(1, 1, 4), None),
        call(_attention(draw, 8, 2, bias=False), x=draw.tensor(3, 4, 8), cache=None),
        call(_attention(draw, 6, 2), StridedArray(draw.tensor(2, 3, 6))),
        call(_attention(draw, 1, 1), draw.tensor(1, 3, 1)),
        call(_attention(draw, 2, 2), draw.tensor(1, 70, 2)),
    ]


def _given(draw: Draw) -> list[Run]:
    past = draw.tensor(2, 3, 4, 2), draw.tensor(2, 3, 4, 2)
    one = draw.tensor(1, 2, 1, 2), draw.tensor(1, 2, 1, 2)
    return [
        call(_attention(draw, 6, 3), draw.tensor(2, 2, 6), past),
        call(_attention(draw, 4, 2), draw.tensor(1, 3, 4), cache=one),
    ]


EXERCISE.equals(
    "the returned cache",
    0.75,
    "The cache is (k, v) after the projection and the split into heads, (B, H, T + t, d_k) each: "
    "the old entries, followed along the positions by the new ones.",
    _start,
    _given,
    part=1,
)
EXERCISE.equals(
    "continuing from a cache",
    0.75,
    "The new queries see all T positions of the cache, and of the new positions those up to their "
    "own. Do not project again what is already in the cache.",
    _given,
)


def _in_chunks(
    attention: Recipe, draw: Draw, *sizes: int, batch: int, d_model: int, dtype: str = "float32"
) -> Run:
    """Calls on consecutive chunks of a sequence, each with the cache of the previous one."""
    chunks = [draw.tensor(batch, size, d_model, dtype=dtype) for size in sizes]
    run = call(attention, chunks[0])
    for i, chunk in enumerate(chunks[1:]):
        run = run.then(attention, chunk, Previous(i, (1,)))
    return run


ROUNDING = 8 * 2.0**-24  # of a sum of six products and a bias


def _as_the_sums_allow(trial: Trial) -> Finding:
    """As near as rounding allows. W_o adds up numbers of the size of the largest output, in another
    order for another number of positions: where they nearly cancel, fewer digits are left."""
    found = []
    for i, (value, wanted) in enumerate(
        zip(trial.record.values, trial.expected.values, strict=True)
    ):
        finding = compare(value, wanted, parts=trial.returns)
        if finding.kind == "value" and compare(part(value, 1), part(wanted, 1)).passed:
            output, right = numbers_of(part(value, 0)), numbers_of(part(wanted, 0))
            relative, absolute = TOLERANCE["float32"]
            allowed = absolute + relative * np.abs(right) + ROUNDING * np.abs(right).max()
            near = (np.abs(output - right) <= allowed).all()
            finding = Finding(True) if near else finding
        found.append(replace(finding, step=i))
    return worst(found)


@EXERCISE.aspect("twelve positions, one at a time", 0.75, _as_the_sums_allow)
def _single(draw: Draw) -> list[Run]:
    """Each call sees everything before it and itself, and returns a cache that is one position
    longer."""
    attention = _attention(draw, 6, 3)
    return [_in_chunks(attention, draw, *[1] * 12, batch=2, d_model=6)]


@EXERCISE.aspect("twelve positions in chunks", 1.0, _as_the_sums_allow)
def _chunks(draw: Draw) -> list[Run]:
    """A chunk of t new positions after T old ones needs a causal mask of t rows and T + t columns,
    whose last row sees everything."""
    attention = _attention(draw, 6, 2)
    cuts = [(5, 7), (1, 11), (11, 1), (3, 1, 8), (4, 4, 4), (2, 1, 1, 5, 3)]
    return [_in_chunks(attention, draw, *sizes, batch=2, d_model=6) for sizes in cuts]


@EXERCISE.equals("an old cache can be reused", 0.25)
def _branches(draw: Draw) -> list[Run]:
    """Make a new cache and leave the old one unchanged. Trying two continuations of one text takes
    the same cache twice."""
    attention = _attention(draw, 6, 3)
    run = call(attention, draw.tensor(2, 3, 6))
    for size in (2, 1, 2):
        run = run.then(attention, draw.tensor(2, size, 6), Previous(0, (1,)))
    return [run]


@EXERCISE.gradients("gradients reach x, also through the cache", 0.25)
def _gradients(draw: Draw) -> list[Run]:
    """The backward pass with a cache equals the full one, too: no detach, no torch.no_grad."""
    return [
        *_start(draw)[:1],
        *_given(draw),
        _in_chunks(_attention(draw, 6, 2), draw, 2, 3, batch=2, d_model=6),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out, and float32 for float32, the cache included."""
    attention = _attention(draw, 4, 2, dtype="float64")
    return [_in_chunks(attention, draw, 2, 1, batch=1, d_model=4, dtype="float64")]


EXERCISE.leaves_inputs_alone(0.2, _start, _given)


def in_training(*args: Any) -> "nn.Module":
    """A MultiHeadAttention in training mode; the probe puts other modules in eval mode."""
    from attention_by_hand.blocks import MultiHeadAttention

    attention = MultiHeadAttention(*args)

    def once() -> "nn.Module":  # ignores the probe's own call; from then on it is like any other
        del vars(attention)["eval"]
        return attention

    vars(attention)["eval"] = once
    return attention


def _in_training(draw: Draw) -> Run:
    attention = replace(_attention(draw, 6, 3), name=as_argument(in_training).name)
    return call(attention, draw.tensor(2, 3, 6))


def _in_use(draw: Draw) -> list[Run]:
    runs = used(Run(()), _attention(draw, 6, 3))
    return [run.then(Previous(0), draw.tensor(2, 3, 6)) for run in runs]


EXERCISE.leaves_state_alone(0.2, lambda draw: [*_start(draw)[:2], _in_training(draw)], _in_use)
EXERCISE.follows_its_inputs(_start, _given)
