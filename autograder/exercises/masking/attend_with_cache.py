"""`attend_with_cache`: one token at a time."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    no_side_effects,
)
from autograder.engine.runs import Draw, Exercise, Previous, Recipe, Run, Strided, call

_HERE = "autograder.exercises.masking:"


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
    return Recipe("autograder.blocks:MultiHeadAttention", args, {}, state)


def in_training(*args: Any) -> Any:
    """A MultiHeadAttention in training mode, for recipes: as a rule a module comes in eval mode."""
    from autograder.blocks import MultiHeadAttention

    attention = MultiHeadAttention(*args)

    def once() -> Any:  # whoever builds it asks for eval mode once; from then on it is as any other
        del attention.eval
        return attention

    attention.eval = once
    return attention


def _in_chunks(
    attention: Recipe, draw: Draw, *sizes: int, batch: int, d_model: int, dtype: str = "float32"
) -> Run:
    """Calls on consecutive chunks of a sequence, each with the cache of the one before."""
    chunks = [draw.tensor(batch, size, d_model, dtype=dtype) for size in sizes]
    run = call(attention, chunks[0])
    for i, chunk in enumerate(chunks[1:]):
        run = run.then(attention, chunk, Previous(i, (1,)))
    return run


def _cache_start(draw: Draw) -> Sequence[Run]:
    return [
        call(_attention(draw, 6, 3), draw.tensor(2, 5, 6)),
        call(_attention(draw, 4, 1), draw.tensor(1, 1, 4), None),
        call(_attention(draw, 8, 2, bias=False), x=draw.tensor(3, 4, 8), cache=None),
        call(_attention(draw, 6, 2), Strided(draw.tensor(2, 3, 6))),
    ]


def _cache_given(draw: Draw) -> Sequence[Run]:
    past = draw.tensor(2, 3, 4, 2), draw.tensor(2, 3, 4, 2)
    one = draw.tensor(1, 2, 1, 2), draw.tensor(1, 2, 1, 2)
    return [
        call(_attention(draw, 6, 3), draw.tensor(2, 2, 6), past),
        call(_attention(draw, 4, 2), draw.tensor(1, 3, 4), cache=one),
    ]


def _cache_single(draw: Draw) -> Sequence[Run]:
    attention = _attention(draw, 6, 3)
    return [_in_chunks(attention, draw, *[1] * 12, batch=2, d_model=6)]


def _cache_chunks(draw: Draw) -> Sequence[Run]:
    attention = _attention(draw, 6, 2)
    cuts = [(5, 7), (1, 11), (11, 1), (3, 1, 8), (4, 4, 4), (2, 1, 1, 5, 3)]
    return [_in_chunks(attention, draw, *sizes, batch=2, d_model=6) for sizes in cuts]


def _cache_branches(draw: Draw) -> Sequence[Run]:
    attention = _attention(draw, 6, 3)
    run = call(attention, draw.tensor(2, 3, 6))
    for size in (2, 1, 2):
        run = run.then(attention, draw.tensor(2, size, 6), Previous(0, (1,)))
    return [run]


def _cache_gradients(draw: Draw) -> Sequence[Run]:
    return [
        *_cache_start(draw)[:1],
        *_cache_given(draw),
        _in_chunks(_attention(draw, 6, 2), draw, 2, 3, batch=2, d_model=6),
    ]


def _cache_in_training(draw: Draw) -> Run:
    attention = replace(_attention(draw, 6, 3), name=_HERE + "in_training")
    return call(attention, draw.tensor(2, 3, 6))


def _cache_double(draw: Draw) -> Sequence[Run]:
    attention = _attention(draw, 4, 2, dtype="float64")
    return [_in_chunks(attention, draw, 2, 1, batch=1, d_model=4, dtype="float64")]


ATTEND_WITH_CACHE = Exercise(
    "attend_with_cache",
    "One token at a time",
    ("attention", "x", "cache"),
    (
        equals_reference(
            "the first positions: a causal pass",
            0.75,
            "Without a cache this is causal self-attention: project x with W_q, W_k, W_v, split "
            "into heads as in chapter 3, attend under a causal mask, merge the heads, apply W_o.",
            _cache_start,
            part=0,
        ),
        equals_reference(
            "the cache that is handed on",
            0.75,
            "The cache is (k, v) after the projection and the split into heads, (B, H, T + t, d_k) "
            "each: what came in, followed along the positions by what is new.",
            lambda draw: [*_cache_start(draw), *_cache_given(draw)],
            part=1,
        ),
        equals_reference(
            "a cache that is given",
            0.75,
            "The new queries see all T positions of the cache, and of the new ones those up to "
            "their own. Do not project what stands in the cache again.",
            _cache_given,
        ),
        equals_reference(
            "twelve positions, one at a time",
            0.75,
            "Each call sees everything before it and itself, and its cache is one position longer.",
            _cache_single,
        ),
        equals_reference(
            "twelve positions in chunks",
            1.0,
            "A chunk of t new positions after T old ones needs a causal mask of t rows and T + t "
            "columns, in which the last row sees all.",
            _cache_chunks,
        ),
        equals_reference(
            "an old cache can be used again",
            0.25,
            "Make a new cache; leave the old one as it was. Whoever tries two continuations of "
            "one text needs it twice.",
            _cache_branches,
        ),
        gradients_match(
            "gradients reach x, through the cache as well",
            0.25,
            "The cached pass equals the full pass backward, too: no detach, no torch.no_grad.",
            _cache_gradients,
        ),
        dtypes_kept(0.1, "float64 in, float64 out, the cache included.", _cache_double),
        inputs_untouched(0.2, lambda draw: [*_cache_start(draw), *_cache_given(draw)]),
        no_side_effects(0.2, lambda draw: [*_cache_start(draw)[:2], _cache_in_training(draw)]),
    ),
    uses=("MultiHeadAttention",),
)
