"""What chapter 4 asks: masks, a softmax and an attention that obey them, and the cache."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    describe,
    dtypes_kept,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    part,
    plain,
    raises,
)
from autograder.engine.runs import (
    Array,
    Draw,
    Exercise,
    Previous,
    Recipe,
    Record,
    Run,
    Strided,
    call,
    tensor,
)

_HERE = "autograder.exercises.masking:"


def __getattr__(name: str) -> Any:
    """torch's dtypes by name, for recipes: a message then says `dtype float16`."""
    if name not in ("float16", "bfloat16", "float32", "float64", "int64", "bool"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import torch

    return getattr(torch, name)


def _dtype(name: str) -> Recipe:
    return Recipe(_HERE + name)


def _some(draw: Draw, *shape: int) -> np.ndarray:
    """A boolean mask with at least one True and one False in every row."""
    mask = draw.integers(0, 1, *shape).astype(bool)
    for row in mask.reshape(-1, shape[-1]):
        row[draw.permutation(shape[-1])[:2]] = [True, False]
    return mask


# --- padding_mask -------------------------------------------------------------------------------


def _padding_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.permutation(6)[:4] + 1)),
        call(lengths=tensor([3, 5, 1])),
        call(tensor([draw.integer(2, 5)])),
        call(Strided(tensor(draw.permutation(5) + 1))),
    ]


def _padding_wide(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.permutation(5)[:3] + 1), 8),
        call(tensor(draw.integers(1, 4, 2)), max_len=7),
        call(tensor([2, 6, 4]), max_len=6),
    ]


def _padding_empty(draw: Draw) -> Sequence[Run]:
    return [call(tensor([3, 0, draw.integer(1, 2)])), call(tensor([0, 0]), max_len=3)]


def _padding_long(draw: Draw) -> Sequence[Run]:
    longest = draw.integer(31, 38)
    return [call(tensor([4, longest, 2]), 9), call(tensor([longest]), max_len=longest - 10)]


def _padding_numbers(run: Run) -> Sequence[Any]:
    step = run.steps[0]
    limit = step.kwargs["max_len"] if "max_len" in step.kwargs else step.args[1]
    return int(plain(step.args[0]).max()), limit


PADDING_MASK = Exercise(
    "padding_mask",
    "Which positions hold a token",
    ("lengths", "max_len"),
    (
        equals_reference(
            "the mask of some lengths",
            1.25,
            "Position j of a sequence of length n holds a token if j < n: compare 0, 1, 2, … with "
            "each length, then shape the result (B, 1, 1, max_len). The keys stand on the last "
            "axis, the two ones broadcast over heads and queries.",
            _padding_runs,
        ),
        equals_reference(
            "a max_len of its own",
            0.5,
            "max_len is the number of columns, which may be more than the longest sequence needs.",
            _padding_wide,
        ),
        equals_reference(
            "a sequence of length 0",
            0.25,
            "Nothing to attend to is a row of False, not an error.",
            _padding_empty,
        ),
        raises(
            "a length above max_len",
            0.5,
            "Raise ValueError where a length exceeds max_len, and name both numbers: a mask that "
            "silently cuts a sequence hides a bug.",
            _padding_long,
            ValueError,
            naming=_padding_numbers,
        ),
        dtypes_kept(
            0.25, "A comparison gives a boolean mask; keep it boolean, True = token.", _padding_runs
        ),
        inputs_untouched(0.25, lambda draw: [*_padding_runs(draw), *_padding_wide(draw)]),
    ),
)

# --- causal_mask --------------------------------------------------------------------------------


def _causal_square(draw: Draw) -> Sequence[Run]:
    n = draw.integer(6, 25)
    return [call(5), call(n_q=draw.integer(6, 40)), call(1), call(n, n)]


def _causal_chunk(draw: Draw) -> Sequence[Run]:
    n_q = draw.integer(2, 9)
    return [call(n_q, n_q + draw.integer(2, 20)), call(1, 6), call(n_q=4, n_k=5)]


def _causal_long(draw: Draw) -> Sequence[Run]:
    n_k = draw.integer(2, 9)
    return [call(n_k + draw.integer(2, 20), n_k), call(4, 1)]


def _causal_nowhere(_: Draw) -> Sequence[Run]:
    return [call(3, 5, device="nowhere")]  # torch refuses it, if it gets that far


CAUSAL_MASK = Exercise(
    "causal_mask",
    "No look into the future",
    ("n_q", "n_k", "device"),
    (
        equals_reference(
            "as many queries as keys",
            1.0,
            "Query i sees the keys 0 … i, itself included: True on the diagonal and below it.",
            _causal_square,
        ),
        equals_reference(
            "fewer queries than keys",
            1.0,
            "The queries are the last n_q of n_k positions, so query i stands at position "
            "i + n_k − n_q. The last row is True everywhere: align at the bottom right.",
            _causal_chunk,
        ),
        equals_reference(
            "more queries than keys",
            0.5,
            "The same rule holds: the last query stands at the last key, and a query before the "
            "first key sees nothing.",
            _causal_long,
        ),
        dtypes_kept(0.25, "Make a boolean mask: dtype=torch.bool.", _causal_square),
        raises(
            "on the device that is asked for",
            0.25,
            "Hand `device` on to whatever makes the tensor. (Tried with a device that does not "
            "exist: torch has to refuse it with a RuntimeError.)",
            _causal_nowhere,
            RuntimeError,
        ),
    ),
)

# --- masked_softmax -----------------------------------------------------------------------------


def _softmax_plain(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(3, 5, scale=2.0)),
        call(draw.tensor(2, 3, 2, 4), None),
        call(scores=draw.tensor(1, 3)),
        call(Strided(draw.tensor(4, 3)), mask=None),
    ]


def _softmax_masked(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(4, 5, scale=2.0), tensor(_some(draw, 4, 5))),
        call(draw.tensor(2, 3, 3, 4), mask=tensor(_some(draw, 2, 3, 3, 4))),
        call(Strided(draw.tensor(3, 6)), Strided(tensor(_some(draw, 3, 6)))),
        call(mask=tensor(_some(draw, 5)), scores=draw.tensor(5)),
    ]


def _softmax_broadcast(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 4, 5), tensor(_some(draw, 2, 1, 1, 5))),
        call(draw.tensor(2, 3, 4, 5), tensor(_some(draw, 4, 5))),
        call(draw.tensor(3, 3, 3), tensor(_some(draw, 3))),
        call(draw.tensor(2, 2, 2, 3), tensor(_some(draw, 2, 1, 3))),
    ]


def _softmax_large(draw: Draw) -> Sequence[Run]:
    mask = _some(draw, 4, 6)
    near = draw.uniform(-2.0, 2.0, 4, 6)
    low = np.array([[-1e4], [0.0], [-300.0], [9e3]])  # the visible scores of each row, about
    return [
        call(tensor(np.where(mask, near + low, near + 1e4), "float32"), tensor(mask)),
        call(tensor(draw.uniform(-1e4, 1e4, 3, 5), "float32"), tensor(_some(draw, 3, 5))),
    ]


def _softmax_infinite(draw: Draw) -> Sequence[Run]:
    scores, mask = draw.normal(3, 5), _some(draw, 3, 5)
    for row, allowed in zip(scores, mask, strict=True):
        seen, hidden = np.flatnonzero(allowed), np.flatnonzero(~allowed)
        row[hidden[0]] = -np.inf
        row[seen[1:2]] = -np.inf  # and one that may be seen, where another is left
    alone = draw.normal(3, 4)
    alone[0, 1] = alone[2, :3] = -np.inf
    return [call(tensor(scores, "float32"), tensor(mask)), call(tensor(alone, "float32"))]


def _softmax_nothing(draw: Draw) -> Sequence[Run]:
    mask = _some(draw, 4, 5)
    mask[[0, 2]] = False
    lengths = np.array([[[[True, True, False]]], [[[False, False, False]]]])
    return [
        call(draw.tensor(4, 5, scale=2.0), tensor(mask)),
        call(draw.tensor(2, 2, 3, 3), tensor(lengths)),
        call(draw.tensor(2, 3, scale=1e4), tensor(np.zeros((1, 3), bool))),
        call(draw.tensor(2, 1), tensor(np.array([[False], [True]]))),
    ]


def _some_row_sees(run: Run) -> bool:
    """Whether there is a gradient to ask for: constant zeros, a right answer, pass none on."""
    return bool(run.steps[0].args[1].data.any())


def _exact_zeros(run: Run, record: Record) -> str | None:
    args = dict(zip(("scores", "mask"), run.steps[0].args, strict=False)) | run.steps[0].kwargs
    weights, mask = plain(record.value), plain(args["mask"])
    if weights is None or weights.shape != plain(args["scores"]).shape:
        return f"the result is {describe(record.value)}"
    hidden = weights[~np.broadcast_to(mask, weights.shape).astype(bool)]
    if np.isnan(hidden).any():
        return "a key that the mask forbids gets the weight NaN"
    if (hidden != 0).any():
        return f"a key that the mask forbids gets the weight {np.abs(hidden).max():.3g}, not 0"
    sums = weights.sum(-1)
    off = np.abs(sums - np.broadcast_to(mask, weights.shape).any(-1)).max()
    return None if off < 1e-5 else f"a row of weights sums to {sums.flat[0]:.6g}"


def _softmax_dtypes(draw: Draw) -> Sequence[Run]:
    some = tensor(_some(draw, 3, 4))
    mask = _some(draw, 3, 4)
    mask[1] = False
    return [
        call(draw.tensor(3, 4, dtype="float64"), some),
        call(draw.tensor(3, 4, dtype="float16"), some),
        call(draw.tensor(3, 4, dtype="float16"), tensor(mask)),
        call(draw.tensor(2, 4, dtype="bfloat16")),
    ]


MASKED_SOFTMAX = Exercise(
    "masked_softmax",
    "A softmax that obeys a mask",
    ("scores", "mask"),
    (
        equals_reference(
            "without a mask",
            0.5,
            "Without a mask this is the softmax over the last axis.",
            _softmax_plain,
        ),
        equals_reference(
            "with a mask",
            0.75,
            "Forbidden scores become −∞ before the softmax: the rest then still sums to 1. True "
            "means may attend, and masked_fill fills where it is given True.",
            _softmax_masked,
        ),
        equals_reference(
            "a mask that broadcasts",
            0.5,
            "The mask may be (n_k,), (n_q, n_k), (B, 1, 1, n_k): let torch broadcast it.",
            _softmax_broadcast,
        ),
        has_property(
            "forbidden keys get exactly 0",
            0.5,
            "Nothing finite is small enough to add: a forbidden score of 10,000 beside allowed "
            "ones of −10,000 must still count for nothing. exp(−∞) is 0.",
            lambda draw: [*_softmax_large(draw)[:1], *_softmax_masked(draw)],
            _exact_zeros,
        ),
        equals_reference(
            "scores of ±10,000",
            0.25,
            "torch.softmax subtracts the largest score of a row. Mask before it, so that the "
            "largest is one that counts.",
            _softmax_large,
        ),
        equals_reference(
            "scores of −inf",
            0.25,
            "0 · (−∞) is NaN. Replace forbidden scores (masked_fill, where); never multiply them.",
            _softmax_infinite,
        ),
        equals_reference(
            "a row in which all is forbidden",
            0.75,
            "Nothing to attend to means weights of 0. A row of nothing but −∞ is 0/0 in a softmax, "
            "and one of equal large negative numbers is an average of everything forbidden.",
            _softmax_nothing,
        ),
        gradients_match(
            "finite gradients",
            1.0,
            "Where the softmax has made NaN, its backward pass makes NaN again, whatever you put "
            "over the result. Give such a row harmless scores before the softmax, and zeros after.",
            lambda draw: [
                *_softmax_masked(draw),
                *filter(_some_row_sees, _softmax_nothing(draw)),
                *_softmax_plain(draw),
            ],
        ),
        dtypes_kept(
            0.25,
            "float64 stays float64 and float16 stays float16, in which −1e9 does not exist.",
            _softmax_dtypes,
        ),
        inputs_untouched(0.25, lambda draw: [*_softmax_masked(draw), *_softmax_nothing(draw)]),
    ),
)

# --- additive_mask ------------------------------------------------------------------------------


def _additive_runs(draw: Draw) -> Sequence[Run]:
    nothing = _some(draw, 3, 4)
    nothing[1] = False
    return [
        call(tensor(nothing)),
        call(mask=tensor(_some(draw, 2, 1, 1, 5))),
        call(Strided(tensor(_some(draw, 4, 3)))),
        call(tensor(_some(draw, 6)), _dtype("float32")),
    ]


def _additive_narrow(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(_some(draw, 3, 5)), _dtype("float16")),
        call(tensor(_some(draw, 2, 4)), dtype=_dtype("bfloat16")),
    ]


def _additive_wide(draw: Draw) -> Sequence[Run]:
    return [call(tensor(_some(draw, 3, 5)), dtype=_dtype("float64"))]


def _additive_whole(draw: Draw) -> Sequence[Run]:
    mask = tensor(_some(draw, 2, 3))
    return [call(mask, _dtype("int64")), call(mask, dtype=_dtype("bool"))]


ADDITIVE_MASK = Exercise(
    "additive_mask",
    "A mask to add",
    ("mask", "dtype"),
    (
        equals_reference(
            "in float32",
            1.0,
            "0 where the mask is True, torch.finfo(dtype).min where it is False: the most negative "
            "number there is, and finite.",
            _additive_runs,
        ),
        equals_reference(
            "in float16 and bfloat16",
            0.75,
            "Each dtype has an end of its own: float16 ends at 65504, and what lies beyond is "
            "infinite there. Ask torch.finfo for the dtype you are given.",
            _additive_narrow,
        ),
        equals_reference(
            "in float64",
            0.25,
            "The least float32 is a rather middling float64.",
            _additive_wide,
        ),
        raises(
            "a dtype without fractions",
            0.5,
            "Scores are floating-point: an integer or boolean dtype is a TypeError.",
            _additive_whole,
            TypeError,
        ),
        dtypes_kept(
            0.25,
            "The result has the dtype that the caller names.",
            lambda draw: [*_additive_runs(draw), *_additive_narrow(draw), *_additive_wide(draw)],
        ),
        inputs_untouched(0.25, _additive_runs),
    ),
)

# --- masked_attention ---------------------------------------------------------------------------


def _qkv(
    draw: Draw, n_q: int, n_k: int, d_k: int, d_v: int, *batch: int, dtype: str = "float32"
) -> tuple[Array, Array, Array]:
    return (
        draw.tensor(*batch, n_q, d_k, dtype=dtype),
        draw.tensor(*batch, n_k, d_k, dtype=dtype),
        draw.tensor(*batch, n_k, d_v, dtype=dtype),
    )


def _attention_plain(draw: Draw) -> Sequence[Run]:
    query, key, value = _qkv(draw, 3, 4, 2, 3, 2)
    return [
        call(*_qkv(draw, 3, 5, 4, 2)),
        call(*_qkv(draw, 4, 2, 3, 5, 2, 3), None),
        call(value=value, key=key, query=query),
        call(*map(Strided, _qkv(draw, 2, 3, 5, 1, 1))),
    ]


def _attention_masked(draw: Draw) -> Sequence[Run]:
    causal = np.tri(5, 5, dtype=bool)
    return [
        call(*_qkv(draw, 3, 5, 4, 2), tensor(_some(draw, 3, 5))),
        call(*_qkv(draw, 5, 5, 3, 4, 2), tensor(causal)),
        call(*_qkv(draw, 3, 4, 2, 5, 2, 3), mask=tensor(_some(draw, 2, 1, 1, 4))),
        call(*_qkv(draw, 3, 3, 2, 5, 2), mask=tensor(_some(draw, 2, 3, 3))),
    ]


def _attention_nothing(draw: Draw) -> Sequence[Run]:
    mask = _some(draw, 4, 5)
    mask[[0, 3]] = False
    empty = np.array([[[[True, False, True]]], [[[False, False, False]]]])
    return [
        call(*_qkv(draw, 4, 5, 3, 2), tensor(mask)),
        call(*_qkv(draw, 2, 3, 4, 5, 2, 2), tensor(empty)),
        call(*_qkv(draw, 3, 4, 2, 3, 1), mask=tensor(np.zeros((3, 4), bool))),
    ]


def _attention_changed(draw: Draw) -> Sequence[Run]:
    """Three calls each: as is, with one key and value changed, and with another one changed."""
    runs = []
    for mask in (np.tri(5, 5, dtype=bool)[1:], np.array([[True, False, True, True, False]])):
        query, key, value = _qkv(draw, 4, 5, 3, 2, 2)
        run = call(query, key, value, tensor(mask))
        for position in (4, 2):
            k, v = key.data.copy(), value.data.copy()
            k[:, position] *= -30.0
            v[:, position] += 1e3
            run = run.then(query, tensor(k), tensor(v), tensor(mask))
        runs.append(run)
    return runs


def _sees_what_it_may(run: Run, record: Record) -> str | None:
    outputs = [plain(part(value, 0)) for value in record.values]
    wanted = (*run.steps[0].args[0].data.shape[:-1], run.steps[0].args[2].data.shape[-1])
    if any(output is None or output.shape != wanted for output in outputs):
        return f"the output is {describe(part(record.value, 0))}"
    mask = np.broadcast_to(run.steps[0].args[3].data, (wanted[1], 5))
    before = run.steps[0].args[2].data
    for step, output in zip(run.steps[1:], outputs[1:], strict=True):
        position = int(np.flatnonzero((step.args[2].data != before).any((0, 2)))[0])
        moved = np.abs(output - outputs[0]).max((0, 2))
        for query, (sees, far) in enumerate(zip(mask[:, position], moved, strict=True)):
            if np.isnan(far) or (not sees and far > 1e-6):
                return f"query {query} must not see key {position}; it does: {far:.3g} when changed"
            if sees and far < 1e-3:
                return f"query {query} may see key {position}; changing it changes nothing"
    return None


def _attention_large(draw: Draw) -> Sequence[Run]:
    """Scores of about 1e4 where the mask is False, of about −1e4 where it is True."""
    query, key, value = (x.data for x in _qkv(draw, 3, 5, 4, 2, dtype="float64"))
    mask = _some(draw, 5)
    mask[0], mask[-1] = False, True  # the first query may see the last key
    keys = 0.02 * key + np.where(mask, -100.0, 100.0)[:, None]
    large = tensor(query + 50.0), tensor(keys), tensor(value), tensor(mask)
    wild = tensor(3e3 * query), tensor(key), tensor(value), tensor(_some(draw, 3, 5))
    return [call(*large), call(*wild)]


def _attention_double(draw: Draw) -> Sequence[Run]:
    return [call(*_qkv(draw, 2, 4, 3, 2, dtype="float64"), tensor(_some(draw, 2, 4)))]


MASKED_ATTENTION = Exercise(
    "masked_attention",
    "Attention under a mask",
    ("query", "key", "value", "mask"),
    (
        equals_reference(
            "without a mask",
            0.75,
            "softmax(QKᵀ / √d_k) V over the last two axes, whatever stands before them; d_k is the "
            "size of a query. Return (output, weights).",
            _attention_plain,
        ),
        equals_reference(
            "with a mask",
            0.75,
            "Scores first, then the mask inside the softmax, then the average of the values. True "
            "means may attend.",
            _attention_masked,
        ),
        equals_reference(
            "a query that may see nothing",
            0.5,
            "Its weights and its output are 0: not NaN, and not the average of what is forbidden.",
            _attention_nothing,
        ),
        has_property(
            "only what may be seen counts",
            0.5,
            "Change a key and its value: the outputs of the queries that may see it move, all "
            "others stay as they were.",
            _attention_changed,
            _sees_what_it_may,
        ),
        gradients_match(
            "gradients to query, key and value",
            0.75,
            "One NaN in a row's weights reaches every gradient of the batch. A row without keys "
            "passes a gradient of 0.",
            lambda draw: [*_attention_masked(draw), *_attention_nothing(draw)[:2]],
        ),
        equals_reference(
            "scores of ±10,000",
            0.25,
            "Let the mask act before the softmax, and with −∞: a large score outweighs −100 and "
            "−10,000.",
            _attention_large,
        ),
        dtypes_kept(0.25, "float64 in, float64 out.", _attention_double),
        inputs_untouched(0.25, lambda draw: [*_attention_masked(draw), *_attention_plain(draw)]),
    ),
)

# --- attend_with_cache --------------------------------------------------------------------------


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

EXERCISES = (
    PADDING_MASK,
    CAUSAL_MASK,
    MASKED_SOFTMAX,
    ADDITIVE_MASK,
    MASKED_ATTENTION,
    ATTEND_WITH_CACHE,
)
