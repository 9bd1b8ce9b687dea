"""What chapter 7 asks: the layers, the embedding and the whole Transformer, its loss and schedule,
and two ways to decode."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    Runs,
    compare,
    describe,
    dtypes_kept,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects,
    no_side_effects_of_a_module,
    plain,
    raises,
    worst,
)
from autograder.engine.runs import (
    APPLY,
    Array,
    Aspect,
    Draw,
    Exercise,
    Finding,
    Previous,
    Recipe,
    Record,
    Run,
    Step,
    Strided,
    Trial,
    call,
    module,
    tensor,
)

_HERE = "autograder.exercises.transformer:"
State = dict[str, Array]

# --- parameters ---------------------------------------------------------------------------------


def _linear(draw: Draw, name: str, n_out: int, n_in: int, dtype: str) -> State:
    return {
        f"{name}.weight": draw.tensor(n_out, n_in, scale=1.2 * n_in**-0.5, dtype=dtype),
        f"{name}.bias": draw.tensor(n_out, scale=0.4, dtype=dtype),
    }


def _norm(draw: Draw, name: str, d: int, dtype: str) -> State:
    return {
        f"{name}.weight": tensor(draw.uniform(0.5, 1.5, d), dtype),
        f"{name}.bias": draw.tensor(d, scale=0.4, dtype=dtype),
    }


def _layer_state(
    draw: Draw, d: int, d_ff: int, attentions: Sequence[str], dtype: str = "float32"
) -> State:
    """Parameters of an encoder layer (one attention) or a decoder layer (two)."""
    state: State = {}
    for name in attentions:
        for part in ("W_q", "W_k", "W_v", "W_o"):
            state |= _linear(draw, f"{name}.{part}", d, d, dtype)
    state |= _linear(draw, "linear1", d_ff, d, dtype) | _linear(draw, "linear2", d, d_ff, dtype)
    for i in range(len(attentions) + 1):
        state |= _norm(draw, f"norm{i + 1}", d, dtype)
    return state


_ENCODER, _DECODER = ("self_attn",), ("self_attn", "cross_attn")


def _layer(
    draw: Draw,
    attentions: Sequence[str],
    d: int,
    num_heads: int,
    d_ff: int,
    dtype: str = "float32",
    **kwargs: Any,
) -> Run:
    state = _layer_state(draw, d, d_ff, attentions, dtype)
    return module(d, num_heads, d_ff, state=state, **kwargs)


def _prefixed(prefix: str, state: State) -> State:
    return {f"{prefix}.{name}": value for name, value in state.items()}


def _some(draw: Draw, *shape: int) -> Array:
    """A boolean mask with at least one True and one False in every row."""
    mask = draw.integers(0, 1, *shape).astype(bool)
    for row in mask.reshape(-1, shape[-1]):
        row[draw.permutation(shape[-1])[:2]] = [True, False]
    return tensor(mask)


def _causal(n: int) -> Array:
    return tensor(np.tri(n, dtype=bool))


# --- dropout in a layer -------------------------------------------------------------------------


def _training(run: Run) -> Run:
    return replace(run, training=True)


def _inner_dropout(draw: Draw, attentions: Sequence[str], *others: Array) -> Sequence[Run]:
    """Attention adds nothing; the feed-forward adds linear2's one column to every position."""
    d = 4
    state = _layer_state(draw, d, 1, attentions)
    for name in attentions:
        for kind in ("weight", "bias"):
            full = f"{name}.W_o.{kind}"
            state[full] = tensor(np.zeros_like(state[full].data))
    state["linear1.weight"] = tensor(np.zeros((1, d)), "float32")
    state["linear1.bias"] = tensor(np.ones(1), "float32")
    state["linear2.weight"] = tensor(draw.uniform(1.0, 2.0, d, 1), "float32")
    state["linear2.bias"] = tensor(np.zeros(d), "float32")
    run = _training(module(d, 2, 1, 0.5, norm_first=True, state=state))
    x = draw.tensor(2, 20, d)
    run = run.then(x, *others).then(x, *others)
    return [replace(run, random=True, seed=draw.integer(0, 10**6))]


def _both_dropouts(run: Run, record: Record) -> str | None:
    x, column = plain(run.steps[0].args[0]), plain(run.state["linear2.weight"])[:, 0]
    results = [plain(value) for value in record.values]
    if any(y is None or y.shape != x.shape for y in results):
        return f"the result is {describe(record.value)}"
    added = np.stack([(y - x) / column for y in results])  # in eval mode, 1 everywhere
    sizes = np.unique(np.round(added[np.abs(added) > 1e-3], 2))
    if not sizes.size or np.ptp(sizes) > 0.1 or not (np.abs(added) < 1e-3).any():
        return "with dropout 0.5, what the feed-forward adds is not dropped half of the time"
    if abs(sizes.mean() - 4.0) > 0.1:
        return (
            f"with dropout 0.5, what is left of the feed-forward is {sizes.mean():.3g} times its "
            "size; two dropouts in a row make it 4 times"
        )
    gone = (np.abs(added) < 1e-3).all(-1).mean()  # one unit inside: its dropout takes all with it
    if abs(gone - 0.5) > 0.35:
        return f"the unit inside the feed-forward is dropped {gone:.0%} of the time, with p = 50 %"
    return None if not np.allclose(added[0], added[1]) else "two calls drop the same numbers"


# --- EncoderLayer -------------------------------------------------------------------------------


def _encoder(draw: Draw, d: int, num_heads: int, d_ff: int, **kwargs: Any) -> Run:
    return _layer(draw, _ENCODER, d, num_heads, d_ff, **kwargs)


def _encoder_post(draw: Draw) -> Sequence[Run]:
    named = module(d_model=6, num_heads=3, d_ff=5, state=_layer_state(draw, 6, 5, _ENCODER))
    return [
        _encoder(draw, 8, 2, 12).then(draw.tensor(2, 5, 8)),
        named.then(x=draw.tensor(1, 4, 6)),
        _encoder(draw, 4, 1, 7, norm_first=False).then(draw.tensor(3, 1, 4), None),
        _encoder(draw, 6, 2, 4).then(Strided(draw.tensor(2, 3, 6))).then(draw.tensor(1, 2, 6)),
    ]


def _encoder_pre(draw: Draw) -> Sequence[Run]:
    state = _layer_state(draw, 9, 6, _ENCODER)
    masked = _encoder(draw, 6, 2, 5, norm_first=True)
    return [
        _encoder(draw, 8, 2, 12, norm_first=True).then(draw.tensor(2, 5, 8)),
        module(9, 3, 6, 0.0, True, state=state).then(x=draw.tensor(1, 3, 9), mask=None),
        masked.then(draw.tensor(2, 4, 6), mask=_causal(4)),
        _training(replace(masked, init=Step((6, 2, 5, 1.0, True)))).then(draw.tensor(2, 3, 6)),
    ]


def _encoder_masked(draw: Draw) -> Sequence[Run]:
    run, other = _encoder(draw, 6, 3, 8), _encoder(draw, 6, 2, 5)
    return [
        run.then(draw.tensor(2, 4, 6), _some(draw, 2, 1, 1, 4)),
        run.then(draw.tensor(2, 3, 6), mask=_some(draw, 2, 3, 3, 3)),
        other.then(draw.tensor(2, 4, 6), mask=_causal(4)),
        other.then(draw.tensor(1, 5, 6), _some(draw, 1, 1, 5, 5)),
    ]


def _encoder_nothing(draw: Draw) -> Sequence[Run]:
    mask = np.array([[True, True, False], [False, False, False]])[:, None, None]
    return [_encoder(draw, 6, 3, 8).then(draw.tensor(2, 3, 6), tensor(mask))]


def _encoder_dropped(draw: Draw) -> Sequence[Run]:
    return [_training(_encoder(draw, 6, 2, 5, dropout=1.0)).then(draw.tensor(2, 3, 6))]


def _encoder_evaluated(draw: Draw) -> Sequence[Run]:
    return [_encoder(draw, 6, 2, 5, dropout=1.0).then(draw.tensor(2, 3, 6))]


def _encoder_gradients(draw: Draw) -> Sequence[Run]:
    """In float64, where terms that cancel do so to the last digits."""
    return [
        _encoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(
            draw.tensor(2, 3, 4, dtype="float64"), mask
        )
        for first, mask in ((False, _some(draw, 2, 1, 1, 3)), (True, _causal(3)))
    ]


def _encoder_double(draw: Draw) -> Sequence[Run]:
    run = _encoder(draw, 4, 2, 3, dtype="float64")
    return [run.then(draw.tensor(1, 3, 4, dtype="float64"))]


ENCODER_LAYER = Exercise(
    "EncoderLayer",
    "A layer of the encoder",
    ("x", "mask"),
    (
        equals_reference(
            "norm after the sum",
            1.25,
            "Two sublayers, one after the other: self-attention, then linear1, ReLU, linear2. Each "
            "adds to what came into it, and the sum is normalised: norm1 for the first, norm2 for "
            "the second.",
            _encoder_post,
        ),
        equals_reference(
            "norm before the sublayer",
            1.0,
            "With norm_first, a sublayer works on the normalised x and its result is added to x "
            "itself: the way around is never normalised.",
            _encoder_pre,
        ),
        equals_reference(
            "under a mask",
            0.6,
            "Hand the mask to self_attn, by name and as it is: True = may attend, as everywhere in "
            "this course.",
            _encoder_masked,
        ),
        equals_reference(
            "a sequence that is nothing but padding",
            0.15,
            "Attention gives zeros there; the rest of the layer goes on as always.",
            _encoder_nothing,
        ),
        equals_reference(
            "dropout after each sublayer",
            0.5,
            "Dropout acts on what a sublayer adds, before it is added. With p = 1 in training, "
            "only x and the norms are left.",
            _encoder_dropped,
        ),
        has_property(
            "dropout inside the feed-forward",
            0.25,
            "There is one more dropout: between the ReLU and linear2.",
            lambda draw: _inner_dropout(draw, _ENCODER),
            _both_dropouts,
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.2,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _encoder_evaluated,
        ),
        gradients_match(
            "gradients reach x and every parameter",
            0.75,
            "Every part takes part: four projections, two linear layers, two norms, and the way "
            "around.",
            _encoder_gradients,
        ),
        dtypes_kept(0.1, "A float64 layer with float64 inputs gives float64.", _encoder_double),
        inputs_untouched(0.1, lambda draw: [*_encoder_post(draw), *_encoder_masked(draw)]),
        no_side_effects_of_a_module(0.1, _encoder_post),
    ),
    forbids=("torch.*TransformerEncoder*",),
    uses=("MultiHeadAttention",),
)

# --- DecoderLayer -------------------------------------------------------------------------------


def _decoder(draw: Draw, d: int, num_heads: int, d_ff: int, **kwargs: Any) -> Run:
    return _layer(draw, _DECODER, d, num_heads, d_ff, **kwargs)


def _two(draw: Draw, B: int, n_q: int, n_k: int, d: int, dtype: str = "float32") -> tuple:
    return draw.tensor(B, n_q, d, dtype=dtype), draw.tensor(B, n_k, d, dtype=dtype)


def _decoder_post(draw: Draw) -> Sequence[Run]:
    named = module(d_model=6, num_heads=3, d_ff=5, state=_layer_state(draw, 6, 5, _DECODER))
    x, memory = _two(draw, 1, 4, 2, 6)
    return [
        _decoder(draw, 6, 2, 4).then(*_two(draw, 2, 3, 3, 6)),
        _decoder(draw, 8, 2, 12).then(*_two(draw, 2, 3, 5, 8)),
        named.then(memory=memory, x=x),
        _decoder(draw, 4, 1, 7, norm_first=False).then(*_two(draw, 3, 1, 4, 4), None, None),
    ]


def _decoder_pre(draw: Draw) -> Sequence[Run]:
    state = _layer_state(draw, 9, 6, _DECODER)
    masked = _decoder(draw, 6, 2, 5, norm_first=True)
    masks = _causal(3), _some(draw, 2, 1, 1, 4)
    return [
        _decoder(draw, 8, 2, 12, norm_first=True).then(*_two(draw, 2, 4, 4, 8)),
        module(9, 3, 6, 0.0, True, state=state).then(*_two(draw, 1, 3, 5, 9)),
        masked.then(*_two(draw, 2, 3, 4, 6), *masks),
        _training(replace(masked, init=Step((6, 2, 5, 1.0, True)))).then(*_two(draw, 2, 3, 4, 6)),
    ]


def _decoder_self_masked(draw: Draw) -> Sequence[Run]:
    run = _decoder(draw, 6, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6), _causal(4)),
        run.then(*_two(draw, 2, 4, 4, 6), self_mask=_some(draw, 2, 1, 4, 4)),
        run.then(*_two(draw, 1, 3, 5, 6), _causal(3), None),
    ]


def _decoder_cross_masked(draw: Draw) -> Sequence[Run]:
    run = _decoder(draw, 6, 3, 5)
    return [
        run.then(*_two(draw, 2, 4, 4, 6), cross_mask=_some(draw, 2, 1, 1, 4)),
        run.then(*_two(draw, 2, 4, 4, 6), None, _some(draw, 2, 1, 4, 4)),
        run.then(*_two(draw, 2, 3, 5, 6), _causal(3), _some(draw, 2, 1, 1, 5)),
    ]


def _decoder_dropped(draw: Draw) -> Sequence[Run]:
    return [_training(_decoder(draw, 6, 2, 5, dropout=1.0)).then(*_two(draw, 2, 3, 4, 6))]


def _decoder_evaluated(draw: Draw) -> Sequence[Run]:
    return [_decoder(draw, 6, 2, 5, dropout=1.0).then(*_two(draw, 2, 3, 4, 6))]


def _decoder_gradients(draw: Draw) -> Sequence[Run]:
    return [
        _decoder(draw, 4, 2, 3, dtype="float64", norm_first=first).then(
            *_two(draw, 2, 3, 3, 4, "float64"), _causal(3), _some(draw, 2, 1, 1, 3)
        )
        for first in (False, True)
    ]


def _decoder_double(draw: Draw) -> Sequence[Run]:
    return [_decoder(draw, 4, 2, 3, dtype="float64").then(*_two(draw, 1, 3, 3, 4, "float64"))]


DECODER_LAYER = Exercise(
    "DecoderLayer",
    "A layer of the decoder",
    ("x", "memory", "self_mask", "cross_mask"),
    (
        equals_reference(
            "norm after the sum",
            1.0,
            "Three sublayers: self_attn on x, cross_attn with queries from x and keys and values "
            "from the memory, then the feed-forward. Behind each sum stands a norm of its own.",
            _decoder_post,
        ),
        equals_reference(
            "norm before the sublayer",
            0.75,
            "With norm_first, what is normalised is the decoder's own x. The memory comes to every "
            "layer as the encoder left it.",
            _decoder_pre,
        ),
        equals_reference(
            "a mask for self-attention",
            0.6,
            "self_mask says what the target may see of itself. Nothing else gets it.",
            _decoder_self_masked,
        ),
        equals_reference(
            "a mask for cross-attention",
            0.6,
            "cross_mask says what may be seen of the memory: its columns are the memory's "
            "positions.",
            _decoder_cross_masked,
        ),
        equals_reference(
            "dropout after each sublayer",
            0.5,
            "Dropout acts on what each of the three sublayers adds. With p = 1 in training, only x "
            "and the norms are left.",
            _decoder_dropped,
        ),
        has_property(
            "dropout inside the feed-forward",
            0.25,
            "There is one more dropout: between the ReLU and linear2.",
            lambda draw: _inner_dropout(draw, _DECODER, draw.tensor(2, 3, 4)),
            _both_dropouts,
            only_if_right=True,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.2,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _decoder_evaluated,
        ),
        gradients_match(
            "gradients reach x, the memory and every parameter",
            0.75,
            "The encoder learns only through the memory: no detach, and keys and values both come "
            "from it.",
            _decoder_gradients,
        ),
        dtypes_kept(0.1, "A float64 layer with float64 inputs gives float64.", _decoder_double),
        inputs_untouched(0.15, lambda draw: [*_decoder_post(draw), *_decoder_pre(draw)]),
        no_side_effects_of_a_module(0.1, _decoder_post),
    ),
    forbids=("torch.*TransformerDecoder*",),
    uses=("MultiHeadAttention",),
)

# --- TokenEmbedding -----------------------------------------------------------------------------


def _embedding(draw: Draw, vocab: int, d: int, dtype: str = "float32", **kwargs: Any) -> Run:
    return module(vocab, d, state={"weight": draw.tensor(vocab, d, dtype=dtype)}, **kwargs)


def _then(run: Run, method: str, *args: Any, **kwargs: Any) -> Run:
    return replace(run, steps=(*run.steps, Step(args, kwargs, method)))


def _embedding_runs(draw: Draw) -> Sequence[Run]:
    named = module(vocab_size=5, d_model=6, state={"weight": draw.tensor(5, 6)})
    return [
        _embedding(draw, 9, 8).then(tensor(draw.integers(0, 8, 2, 5))),
        named.then(ids=tensor(draw.integers(0, 4, 3, 4))),
        _embedding(draw, 7, 3).then(tensor([[0, 6, 3, 0]])),
    ]


def _embedding_shapes(draw: Draw) -> Sequence[Run]:
    run = _embedding(draw, 7, 4)
    return [
        run.then(tensor(draw.integers(0, 6, 5))),
        run.then(tensor(draw.integers(0, 6, 2, 3, 2))),
        run.then(Strided(tensor(draw.integers(0, 6, 3, 2)))),
        _then(run, "logits", draw.tensor(4)),
        _then(run, "logits", draw.tensor(2, 2, 3, 4)),
    ]


def _embedding_logits(draw: Draw) -> Sequence[Run]:
    return [
        _then(_embedding(draw, 9, 8), "logits", draw.tensor(2, 5, 8)),
        _then(_embedding(draw, 6, 6), "logits", h=draw.tensor(3, 1, 6)),
        _then(_embedding(draw, 4, 4), "logits", Strided(draw.tensor(1, 3, 4))),
    ]


def _embedding_both(draw: Draw) -> Sequence[Run]:
    """One after the other on the same object: its weight must be the same for both, and stay."""
    run = _embedding(draw, 7, 5).then(tensor(draw.integers(0, 6, 2, 3)))
    run = _then(run, "logits", draw.tensor(2, 3, 5))
    return [run.then(tensor(draw.integers(0, 6, 2, 3)))]


def _embedding_gradients(draw: Draw) -> Sequence[Run]:
    run = _embedding(draw, 5, 4, "float64")
    ids = tensor([[0, 3, 3, 1]])
    return [
        run.then(ids),
        _then(run, "logits", draw.tensor(2, 3, 4, dtype="float64")),
        _then(run.then(ids), "logits", Previous(0)),
    ]


def _embedding_double(draw: Draw) -> Sequence[Run]:
    run = _embedding(draw, 5, 4, "float64")
    ids = tensor(draw.integers(0, 4, 2, 3))
    return [run.then(ids), _then(run, "logits", draw.tensor(2, 4, dtype="float64"))]


TOKEN_EMBEDDING = Exercise(
    "TokenEmbedding",
    "Tokens to vectors and back",
    ("ids",),
    (
        equals_reference(
            "vectors for tokens",
            0.75,
            "Row i of weight stands for token i. Multiply what you look up by √d_model, the number "
            "of columns.",
            _embedding_runs,
        ),
        equals_reference(
            "logits for vectors",
            0.5,
            "A token's score is the dot product of h with its row of weight. The √d_model belongs "
            "to the input side only, and a softmax to the loss.",
            _embedding_logits,
        ),
        gradients_match(
            "both sides teach the same weight",
            0.25,
            "One parameter, used twice: gradients reach it from the look-up and from the logits.",
            _embedding_gradients,
        ),
        equals_reference(
            "any batch shape",
            0.15,
            "ids may be (n,) or (B, n, m); the result has one more axis at the end.",
            _embedding_shapes,
        ),
        equals_reference(
            "the weight stays as it is",
            0.1,
            "Scale the result, not the parameter.",
            _embedding_both,
        ),
        dtypes_kept(0.1, "A float64 weight gives float64.", _embedding_double),
        inputs_untouched(0.05, lambda draw: [*_embedding_runs(draw), *_embedding_logits(draw)]),
        no_side_effects_of_a_module(0.1, _embedding_runs),
    ),
)

# --- Transformer --------------------------------------------------------------------------------


def _model_state(
    draw: Draw,
    source_vocab: int,
    target_vocab: int,
    d: int,
    num_layers: int,
    d_ff: int,
    norm_first: bool = False,
    dtype: str = "float32",
) -> State:
    state: State = {}
    for name, vocab in (("source", source_vocab), ("target", target_vocab)):
        state[f"{name}_embedding.weight"] = draw.tensor(vocab, d, scale=d**-0.5, dtype=dtype)
    for name, attentions in (("encoder", _ENCODER), ("decoder", _DECODER)):
        for i in range(num_layers):
            layer = _layer_state(draw, d, d_ff, attentions, dtype)
            state |= _prefixed(f"{name}_layers.{i}", layer)
        if norm_first:
            state |= _norm(draw, f"{name}_norm", d, dtype)
    return state


def _model(
    draw: Draw,
    source_vocab: int,
    target_vocab: int,
    d: int,
    num_heads: int,
    num_layers: int,
    d_ff: int,
    dtype: str = "float32",
    **kwargs: Any,
) -> Run:
    sizes = (source_vocab, target_vocab, d, num_heads, num_layers, d_ff)
    first = kwargs.get("norm_first", False)
    state = _model_state(draw, *sizes[:3], num_layers, d_ff, first, dtype)
    return module(*sizes, state=state, **kwargs)


def _ids(draw: Draw, B: int, n: int, vocab: int, low: int = 1) -> Array:
    """Random tokens, without pad as long as that is 0."""
    return tensor(draw.integers(low, vocab - 1, B, n))


def _padded(draw: Draw, lengths: Sequence[int], vocab: int, pad_id: int = 0) -> Array:
    """Rows of random tokens other than pad, each filled up with pad behind its length."""
    others = np.array([token for token in range(vocab) if token != pad_id])
    ids = others[draw.integers(0, vocab - 2, len(lengths), max(lengths))]
    ids[np.arange(max(lengths)) >= np.array(lengths)[:, None]] = pad_id
    return tensor(ids)


def _model_runs(draw: Draw) -> Sequence[Run]:
    sizes = {"source_vocab": 6, "target_vocab": 5, "d_model": 6, "num_heads": 3, "num_layers": 1}
    named = module(**sizes, d_ff=5, dropout=0.0, state=_model_state(draw, 6, 5, 6, 1, 5))
    two = _model(draw, 7, 9, 8, 2, 2, 6).then(_ids(draw, 2, 5, 7), _ids(draw, 2, 4, 9))
    return [
        two.then(_ids(draw, 1, 3, 7), _ids(draw, 1, 6, 9)),
        named.then(target=_ids(draw, 1, 3, 5), source=_ids(draw, 1, 3, 6)),
        _model(draw, 5, 5, 4, 1, 2, 4).then(_ids(draw, 3, 4, 5), _ids(draw, 3, 4, 5)),
    ]


def _model_pre(draw: Draw) -> Sequence[Run]:
    return [
        _model(draw, 7, 6, 6, 2, n, 5, norm_first=True).then(
            _ids(draw, 2, 4, 7), _ids(draw, 2, n_t, 6)
        )
        for n, n_t in ((2, 4), (1, 3))
    ]


def _model_bare(draw: Draw) -> Sequence[Run]:
    """Without layers: what goes into the first of them, on either side."""
    runs = []
    for d, heads in ((8, 2), (5, 1)):
        source, target = _ids(draw, 2, 9, 7), _ids(draw, 2, 6, 6)
        run = _then(_model(draw, 7, 6, d, heads, 0, 4), "encode", source)
        runs.append(_then(run, "decode", target, Previous(0), source))
    return runs


def _model_source_padded(draw: Draw) -> Sequence[Run]:
    """Targets of one token, for which no causal mask is needed."""
    post = _model(draw, 7, 6, 6, 2, 2, 5)
    other = _model(draw, 7, 6, 6, 3, 1, 4, pad_id=3, norm_first=True)
    return [
        post.then(_padded(draw, (4, 2, 3), 7), _ids(draw, 3, 1, 6)),
        other.then(_padded(draw, (3, 5), 7, 3), _padded(draw, (1, 1), 6, 3)),
    ]


def _model_longer(draw: Draw) -> Sequence[Run]:
    """The same source twice, the second time with more padding behind it."""
    runs = []
    for pad_id in (0, 2):
        run = _model(draw, 7, 6, 6, 2, 2, 5, pad_id=pad_id)
        source = _padded(draw, (3, 4), 7, pad_id)
        more = np.concatenate([source.data, np.full((2, 3), pad_id)], axis=1)
        target = _padded(draw, (3, 3), 6, pad_id)
        runs.append(run.then(source, target).then(tensor(more), target))
    return runs


def _padding_changes_nothing(run: Run, record: Record) -> str | None:
    short, long = (plain(value) for value in record.values)
    if short is None or long is None or short.shape != (2, 3, 6) or long.shape != (2, 3, 6):
        return f"the logits are {describe(record.value)}"
    far = np.abs(long - short).max()
    if not far < 1e-5:
        return f"three more pads behind the source change the logits by {far:.3g}"
    same = np.abs(short[0] - short[1]).max() < 1e-3
    return "different sources and targets give the same logits" if same else None


def _model_target_padded(draw: Draw) -> Sequence[Run]:
    first = _model(draw, 7, 6, 6, 2, 2, 5).then(
        _padded(draw, (3, 4, 2), 7), _padded(draw, (2, 4, 3), 6)
    )
    second = _model(draw, 7, 6, 6, 3, 1, 4, pad_id=3, norm_first=True).then(
        _padded(draw, (5, 2), 7, 3), _padded(draw, (2, 3), 6, 3)
    )
    return [first, second]


def _model_halves(draw: Draw) -> Sequence[Run]:
    post = _model(draw, 7, 6, 6, 2, 2, 5)
    pre = _model(draw, 7, 6, 6, 3, 2, 4, norm_first=True)
    source = _padded(draw, (4, 2), 7)
    return [
        _then(post, "encode", source),
        _then(post, "decode", _padded(draw, (3, 2), 6), draw.tensor(2, 4, 6), source),
        _then(pre, "encode", source),
        _then(pre, "decode", _ids(draw, 2, 3, 6), memory=draw.tensor(2, 4, 6), source=source),
    ]


def _where_real(title: str, points: float, hint: str, runs: Runs) -> Aspect:
    """The results are those of the reference wherever there is a token; on padding, anything."""

    def judge(trial: Trial) -> Finding:
        pad_id = trial.run.init.kwargs.get("pad_id", 0)
        findings = []
        for step, value, expected in zip(
            trial.run.steps, trial.record.values, trial.expected.values, strict=True
        ):
            ids = step.args[0] if step.method else step.args[1]
            if isinstance(value, Array) and value.data.shape == expected.data.shape:
                real = (ids.data != pad_id)[..., None]
                shown = replace(value, data=np.where(real, value.data, expected.data))
            else:
                shown = value
            findings.append(compare(shown, expected))
        return worst(findings)

    return Aspect(title, points, hint, runs, each(judge))


def _model_perturbed(draw: Draw) -> Sequence[Run]:
    """Source and target three times: as they are, with the last token new, with a middle one."""
    runs = []
    for first in (False, True):
        run = _model(draw, 7, 6, 6, 2, 2, 5, norm_first=first)
        source, target = _ids(draw, 2, 5, 7), _ids(draw, 2, 5, 6)
        run = run.then(source, target)
        for position in (4, 2):
            other = target.data.copy()
            other[:, position] = other[:, position] % 5 + 1
            run = run.then(source, tensor(other))
        runs.append(run)
    return runs


def _no_peeking(run: Run, record: Record) -> str | None:
    results = [plain(value) for value in record.values]
    if any(logits is None or logits.shape != (2, 5, 6) for logits in results):
        return f"the logits are {describe(record.value)}"
    for position, logits in zip((4, 2), results[1:], strict=True):
        moved = np.abs(logits - results[0]).max((0, 2))
        for i, far in enumerate(moved):
            if i < position and not far < 1e-5:
                return f"a new token at {position} changes the logits at {i} (by {far:.3g})"
            if i >= position and not far > 1e-4:
                return f"a new token at {position} leaves the logits at {i} as they were"
    return None


def _model_dropped(draw: Draw) -> Sequence[Run]:
    bare = _training(_model(draw, 7, 6, 6, 2, 0, 5, dropout=1.0))
    source, target = _ids(draw, 2, 3, 7), _ids(draw, 2, 4, 6)
    whole = _training(_model(draw, 7, 6, 6, 2, 1, 5, dropout=1.0))
    return [
        _then(bare, "encode", source),
        _then(bare, "decode", target, draw.tensor(2, 3, 6), source),
        whole.then(source, target),
    ]


def _model_evaluated(draw: Draw) -> Sequence[Run]:
    run = _model(draw, 7, 6, 6, 2, 1, 5, dropout=1.0)
    return [run.then(_ids(draw, 2, 3, 7), _ids(draw, 2, 1, 6))]


def _model_gradients(draw: Draw) -> Sequence[Run]:
    post = _model(draw, 5, 4, 4, 2, 2, 2)
    pre = _model(draw, 4, 5, 4, 2, 1, 2, norm_first=True)
    return [
        post.then(_padded(draw, (4, 3), 5), _ids(draw, 2, 4, 4)),
        pre.then(_ids(draw, 2, 3, 4), _ids(draw, 2, 3, 5)),
    ]


def _model_nothing(draw: Draw) -> Sequence[Run]:
    source = _padded(draw, (3, 2), 7)
    source.data[1] = 0
    run = _model(draw, 7, 4, 4, 2, 1, 2).then(source, _ids(draw, 2, 3, 4))
    return [run.with_gradients()]


def _model_finite(run: Run, record: Record) -> str | None:
    numbers = [plain(record.value), *map(plain, record.gradients.values())]
    if numbers[0] is None or numbers[0].shape != (2, 3, 4):
        return f"the logits are {describe(record.value)}"
    fine = all(a is None or np.isfinite(a).all() for a in numbers)
    return None if fine else "a source of nothing but padding makes logits or gradients NaN"


def _model_double(draw: Draw) -> Sequence[Run]:
    run = _model(draw, 7, 6, 4, 2, 1, 3, dtype="float64")
    return [run.then(_ids(draw, 2, 3, 7), _ids(draw, 2, 4, 6))]


def _model_one_layer(draw: Draw) -> Sequence[Run]:
    run = _model(draw, 5, 6, 4, 2, 1, 3)
    return [run.then(_padded(draw, (4, 2), 5), _padded(draw, (2, 3), 6))]


def _model_same_dtype(trial: Trial) -> Finding:
    """A table of positions may be float32, so the digits of float64 are not required."""
    value, expected = trial.record.value, trial.expected.value
    if not isinstance(value, Array) or value.dtype != "float64":
        return Finding(False, f"the result: expected float64, got {describe(value)}")
    rounded = (
        replace(v, data=v.data.astype("float32"), dtype="float32") for v in (value, expected)
    )
    return compare(*rounded)


TRANSFORMER = Exercise(
    "Transformer",
    "The Transformer",
    ("source", "target"),
    (
        equals_reference(
            "the logits",
            1.0,
            "Embed the source, add positions, go through the encoder's layers: that is the memory. "
            "Embed the target, add positions, go through the decoder's layers, each of which looks "
            "into the memory. Score the result with the target's embedding.",
            _model_runs,
        ),
        equals_reference(
            "with the norms first",
            0.6,
            "Where each layer normalises what comes in, nothing normalises what comes out of the "
            "last one: encoder_norm and decoder_norm do.",
            _model_pre,
        ),
        equals_reference(
            "what goes into the first layer",
            0.5,
            "Without layers, encode and decode give back the embeddings, times √d_model, plus the "
            "positions, which are not scaled and begin at 0.",
            _model_bare,
        ),
        equals_reference(
            "padding in the source",
            0.5,
            "Keys that hold pad_id are masked in the encoder's self-attention and in the decoder's "
            "cross-attention. pad_id need not be 0.",
            _model_source_padded,
        ),
        has_property(
            "more padding changes nothing",
            0.25,
            "Three more pads behind a source must leave its logits as they were.",
            _model_longer,
            _padding_changes_nothing,
        ),
        _where_real(
            "padding in the target",
            0.25,
            "A target's padding is in its future or masked, so its real positions never see it.",
            _model_target_padded,
        ),
        has_property(
            "no position sees what comes after it",
            0.5,
            "The decoder's self-attention needs a causal mask: position i sees 0 … i. Everything "
            "from the changed token on may move, nothing before it.",
            _model_perturbed,
            _no_peeking,
        ),
        _where_real(
            "encode and decode, each alone",
            0.4,
            "decode(target, memory, source) works with any memory; the source only says what of it "
            "is padding. The final norms belong to the two halves, not to forward.",
            _model_halves,
        ),
        equals_reference(
            "dropout on the sum of embedding and position",
            0.25,
            "Dropout acts once on the sum, in encoder and decoder. With p = 1, zeros go into the "
            "first layer.",
            _model_dropped,
        ),
        equals_reference(
            "no dropout in eval mode",
            0.1,
            "nn.Dropout follows model.eval(); F.dropout only with training=self.training.",
            _model_evaluated,
        ),
        gradients_match(
            "gradients reach every parameter",
            0.4,
            "The encoder learns through the memory, every layer in its own right, and the target's "
            "embedding from both its ends.",
            _model_gradients,
        ),
        has_property(
            "a source of nothing but padding",
            0.05,
            "Attention gives zeros where nothing may be seen. Let boolean masks do it.",
            _model_nothing,
            _model_finite,
            only_if_right=True,
        ),
        Aspect(
            "dtype",
            0.05,
            "A float64 model gives float64: bring the positions to the dtype of the embeddings.",
            _model_double,
            each(_model_same_dtype),
            only_if_right=True,
        ),
        inputs_untouched(0.05, _model_one_layer),
        no_side_effects_of_a_module(0.1, _model_one_layer),
    ),
    forbids=("torch.nn.*Transformer*",),
    given={
        "EncoderLayer": "autograder.blocks:EncoderLayer",
        "DecoderLayer": "autograder.blocks:DecoderLayer",
        "TokenEmbedding": "autograder.blocks:TokenEmbedding",
    },
    uses=("MultiHeadAttention", "sinusoidal_encoding"),
)

# --- shift_right --------------------------------------------------------------------------------


def _shift_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.integers(3, 9, 2, 5)), 1),
        call(target=tensor(draw.integers(3, 9, 3, 4)), bos_id=11),
        call(tensor([[7, 5, 4, 2, 0, 0], [6, 2, 0, 0, 0, 0]]), draw.integer(8, 10)),
        call(tensor(draw.integers(3, 9, 3, 3)), bos_id=0),
    ]


def _shift_single(draw: Draw) -> Sequence[Run]:
    return [call(tensor(draw.integers(3, 9, 3, 1)), 2), call(tensor([[draw.integer(4, 9)]]), 1)]


def _shift_shapes(draw: Draw) -> Sequence[Run]:
    return [
        call(tensor(draw.integers(3, 9, 5)), 1),
        call(tensor(draw.integers(3, 9, 2, 3, 4)), 2),
    ]


def _shift_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(tensor(draw.integers(3, 9, 3, 4))), 1)]


def _shift_dtypes(draw: Draw) -> Sequence[Run]:
    narrow = tensor(draw.integers(3, 9, 2, 4), "int32")
    return [call(tensor(draw.integers(3, 9, 2, 4)), 1), call(narrow, 2)]


SHIFT_RIGHT = Exercise(
    "shift_right",
    "What the decoder reads in training",
    ("target", "bos_id"),
    (
        equals_reference(
            "one step to the right",
            0.5,
            "bos comes first, then the target without its last token: at position i stands what "
            "comes before token i. The shape stays.",
            _shift_runs,
        ),
        equals_reference(
            "a target of one token",
            0.15,
            "Of one token nothing is left but bos.",
            _shift_single,
        ),
        equals_reference(
            "any batch shape",
            0.1,
            "Shift along the last axis, whatever stands before it.",
            _shift_shapes,
        ),
        equals_reference(
            "a view that is not contiguous", 0.05, "Any view will do.", _shift_strided
        ),
        dtypes_kept(0.1, "Token ids stay integers of their dtype.", _shift_dtypes),
        inputs_untouched(0.1, _shift_runs),
    ),
)

# --- label_smoothed_cross_entropy ---------------------------------------------------------------


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, scale=2.0, dtype=dtype)


def _loss_runs(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 2, 4, 7), _ids(draw, 2, 4, 7)),
        call(_logits(draw, 5, 6), tensor(draw.integers(1, 5, 5)), 0.3),
        call(logits=_logits(draw, 1, 3, 4), target=_ids(draw, 1, 3, 4), smoothing=0.2),
        call(_logits(draw, 2, 3, 5), tensor([[0, 4, 1], [1, 0, 2]]), 0.1, 3),
    ]


def _loss_ends(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 2, 4, 7), _ids(draw, 2, 4, 7), 0.0),
        call(_logits(draw, 2, 3, 5), _ids(draw, 2, 3, 5), smoothing=1.0),
    ]


def _loss_padded(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 3, 5, 6), _padded(draw, (5, 2, 1), 6)),
        call(_logits(draw, 2, 4, 6), _padded(draw, (4, 1), 6, 2), 0.2, pad_id=2),
        call(_logits(draw, 2, 3, 5), _padded(draw, (1, 3), 5), smoothing=0.0),
    ]


def _loss_nothing(draw: Draw) -> Sequence[Run]:
    return [
        call(_logits(draw, 2, 3, 5), tensor(np.zeros((2, 3), int))),
        call(_logits(draw, 2, 4), tensor([2, 2]), 0.1, 2),
    ]


def _loss_large(draw: Draw) -> Sequence[Run]:
    return [
        call(draw.tensor(2, 3, 5, scale=1e4), _ids(draw, 2, 3, 5)),
        call(tensor(300.0 + draw.normal(2, 3, 5), "float32"), _padded(draw, (3, 2), 5), 0.2),
    ]


def _loss_double(draw: Draw) -> Sequence[Run]:
    return [call(_logits(draw, 2, 3, 5, dtype="float64"), _padded(draw, (3, 2), 5))]


def _loss_strided(draw: Draw) -> Sequence[Run]:
    return [call(Strided(_logits(draw, 2, 3, 5)), Strided(_ids(draw, 2, 3, 5)))]


LABEL_SMOOTHED_CROSS_ENTROPY = Exercise(
    "label_smoothed_cross_entropy",
    "A loss that is never quite sure",
    ("logits", "target", "smoothing", "pad_id"),
    (
        equals_reference(
            "the loss of some logits",
            1.0,
            "Every one of the V tokens gets ε/V of the probability, the right one 1 − ε on top. "
            "The loss is minus the sum of these shares times log-softmax of the logits, averaged "
            "over the tokens.",
            _loss_runs,
        ),
        equals_reference(
            "no smoothing, and nothing but smoothing",
            0.4,
            "With ε = 0 this is the cross-entropy itself; with ε = 1 the target does not matter.",
            _loss_ends,
        ),
        equals_reference(
            "padding does not count",
            0.9,
            "Leave out the positions whose target is pad_id: both of the sum and of the number it "
            "is divided by. All tokens of all rows count alike.",
            _loss_padded,
        ),
        equals_reference(
            "nothing but padding",
            0.4,
            "A mean over nothing is 0/0. Here it is to be 0.",
            _loss_nothing,
        ),
        equals_reference(
            "logits of ±10,000",
            0.3,
            "log_softmax in one step stays finite; the logarithm of a softmax is −∞ where that "
            "has become 0.",
            _loss_large,
        ),
        gradients_match(
            "gradients to the logits",
            0.6,
            "At a token: softmax minus smoothed target, over the number of tokens; at padding: 0.",
            lambda draw: [*_loss_padded(draw), *_loss_nothing(draw)],
        ),
        dtypes_kept(0.2, "float64 logits give a float64 loss.", _loss_double),
        inputs_untouched(0.1, lambda draw: [*_loss_runs(draw), *_loss_padded(draw)]),
        equals_reference(
            "views that are not contiguous", 0.1, "reshape takes any view.", _loss_strided
        ),
    ),
)

# --- noam_rate ----------------------------------------------------------------------------------


def _noam_runs(draw: Draw) -> Sequence[Run]:
    warmup = draw.integer(80, 120)
    return [
        call(draw.integer(2, 70), 512, warmup),
        call(draw.integer(130, 400), 512, warmup),
        call(step=draw.integer(3, 60), d_model=256, warmup=warmup),
        call(draw.integer(1000, 9000), 64, warmup=warmup),
        call(draw.integer(40, 70), 16, 3),
    ]


def _noam_marks(draw: Draw) -> Sequence[Run]:
    warmup = draw.integer(80, 120)
    return [
        call(1, 128, warmup),
        call(2, 128, warmup),
        *(call(warmup + shift, 128, warmup) for shift in (-1, 0, 1)),
        call(1, 32, 1),
    ]


def _noam_default(draw: Draw) -> Sequence[Run]:
    return [call(draw.integer(100, 3000), 512), call(draw.integer(5000, 99999), 1024)]


def _noam_early(draw: Draw) -> Sequence[Run]:
    return [call(0, 512), call(-draw.integer(1, 9), d_model=64, warmup=10)]


NOAM_RATE = Exercise(
    "noam_rate",
    "Warm up, then cool down",
    ("step", "d_model", "warmup"),
    (
        equals_reference(
            "on the way up and on the way down",
            0.4,
            "The smaller of two curves, step · warmup^−3/2 and step^−1/2, over √d_model.",
            _noam_runs,
        ),
        equals_reference(
            "the first steps and the peak",
            0.2,
            "Step 1 is the first, step 2 has twice its rate, and the two curves meet at warmup.",
            _noam_marks,
        ),
        equals_reference("4000 steps by default", 0.15, "As in the paper.", _noam_default),
        raises(
            "a step before the first",
            0.15,
            "Raise ValueError for a step below 1.",
            _noam_early,
            ValueError,
        ),
        dtypes_kept(0.1, "The rate is a float.", _noam_runs),
    ),
)

# --- models to decode with ----------------------------------------------------------------------


def lookup(*args: Any, **kwargs: Any) -> Any:
    """A model that looks the next token's logits up in a table.

    `table` `(T, V, V)` holds the logits by position, previous token and next token; positions
    beyond T are as T − 1. `by_source` `(S, V)` is added for every token of the source. With `ends`
    `(S,)`, a row whose source begins with token s has its `eos_id` at position ends[s], never
    elsewhere. In training mode the logits come out back to front; while its part `part` is in
    training mode, with the other sign. A `strict` model that is called again when every text has
    its eos raises `RuntimeError`, and gives other logits from then on.
    """
    import torch
    from torch import nn

    spoilt = []

    class Lookup(nn.Module):
        def __init__(self, table, by_source=None, pad_id=0, ends=None, eos_id=None, strict=False):
            super().__init__()
            self.table = nn.Parameter(table)
            self.by_source, self.ends, self.eos_id = by_source, ends, eos_id
            self.pad_id, self.strict = pad_id, strict
            self.part = nn.Dropout()

        def forward(self, source, ids):
            if len(source) != len(ids):
                raise ValueError(f"{len(source)} sources for {len(ids)} targets")
            if self.strict and (ids[:, 1:] == self.eos_id).any(1).all():
                spoilt.append(ids)
                raise RuntimeError(_ASKED_ON)
            place = torch.arange(ids.shape[1], device=ids.device)
            logits = self.table[place.clamp(max=len(self.table) - 1), ids]  # (B, n, V)
            if self.by_source is not None:
                logits = logits + self.by_source[source].sum(1, keepdim=True)
            if self.ends is not None:
                over = self.ends[source[:, :1]] == place  # (B, n)
                eos = torch.where(over, 50.0, -50.0)[..., None]
                at = torch.arange(logits.shape[-1], device=ids.device) == self.eos_id
                logits = torch.where(at, eos, logits)
            logits = -logits if self.part.training else logits
            return logits.flip(-1) if self.training or spoilt else logits

    return Lookup(*args, **kwargs)


_ASKED_ON = "the model is called again though every text has its eos"


def in_training(model: Any) -> Any:
    """The model in training mode, but for one part of it."""
    model.train()
    getattr(model, "part", model).eval()
    return model


def itself(thing: Any) -> Any:
    """The thing: makes a recipe a step's result, so that later steps can call it again."""
    return thing


def _lookup(table: np.ndarray, **kwargs: Any) -> Recipe:
    return Recipe(_HERE + "lookup", (tensor(table, "float32"),), kwargs)


def _apply(name: str, *args: Any) -> Run:
    """A run whose first step applies a function of this module, to keep what it gives."""
    return Run((Step((Recipe(_HERE + name), *args), {}, APPLY),))


def _called_again(model: Recipe, *args: Any, start: str = "itself", **kwargs: Any) -> Run:
    """Three steps: the model, the answer with it, and what the model then says of two tokens."""
    run = _apply(start, model).then(Previous(0), *args, **kwargs)
    source, bos_id = args[:2]
    return run.then_apply(Previous(0), source, tensor(np.full((len(source.data), 2), bos_id)))


def _real_model(draw: Draw, dropout: float = 0.0) -> Recipe:
    """A small Transformer of the blocks that never writes pad, bos or eos (0, 1, 2).

    Its last norm gives every hidden vector the same first feature, which words are in favour of. A
    loud feed-forward without biases makes it choose anew at every token and position.
    """
    d, d_ff, layer = 12, 24, "decoder_layers.0"
    state = _model_state(draw, 8, 9, d, 1, d_ff)
    for name, value in state.items():
        if name.endswith("bias"):
            state[name] = tensor(np.zeros_like(value.data))
    table = draw.normal(9, d)
    table[:, 0] = np.where(np.arange(9) < 3, -2.0, 2.0)
    spread, shift = np.ones(d), np.zeros(d)
    spread[0], shift[0] = 0.0, 12.0
    state["target_embedding.weight"] = tensor(table, "float32")
    state[f"{layer}.linear1.weight"] = draw.tensor(d_ff, d, scale=3.0)
    state[f"{layer}.linear2.weight"] = draw.tensor(d, d_ff, scale=3.0)
    state[f"{layer}.norm3.weight"] = tensor(spread, "float32")
    state[f"{layer}.norm3.bias"] = tensor(shift, "float32")
    return Recipe("autograder.blocks:Transformer", (8, 9, d, 2, 1, d_ff, dropout, 0), {}, state)


# --- greedy_decode ------------------------------------------------------------------------------


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
    model = _lookup(table, by_source=by_source, **kwargs)
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
        _called_again(first, source, 1, 2, 14),
        _called_again(second, other, 1, 2, max_len=14),
    ]


def _stops(trials: Sequence[Trial]) -> Finding:
    if any(t.record.raised and t.record.raised.message == _ASKED_ON for t in trials):
        return Finding(False, _ASKED_ON)
    return each(_has_stopped)(trials)


def _has_stopped(trial: Trial) -> Finding:
    ids, logits = (plain(value) for value in trial.record.values[1:])
    if ids is None or ids.ndim != 2 or logits is None:
        return Finding(False, f"the result is {describe(trial.record.values[1])}")
    eos = trial.run.steps[1].args[3]
    if not (ids == eos).any(1).all():
        return Finding(False, "a row ends without eos, long before max_len")
    as_before = compare(trial.record.values[2], trial.expected.values[2]).passed
    return Finding(as_before, None if as_before else _ASKED_ON)


def _greedy_ends(draw: Draw) -> Sequence[Run]:
    return [
        call(*_ending(draw, (99, 99)), 1, 2, 4),
        call(*_ending(draw, (99, 3)), 1, 2, 1),
        call(*_ending(draw, (1, 1)), 1, 2, 6),
        call(*_ending(draw, (4, 2)), 1, 2, 4),
        call(_real_model(draw), tensor(_PADDED), 1, 2, 5),
    ]


def _greedy_in_training(draw: Draw) -> Sequence[Run]:
    model, source = _ending(draw, (4, 3))
    real = _apply("in_training", _real_model(draw, dropout=0.6))
    return [
        _apply("in_training", model).then(Previous(0), source, 1, 2, 7),
        real.then(Previous(0), tensor(_PADDED), 1, 2, 5),
    ]


def _greedy_modes(draw: Draw) -> Sequence[Run]:
    runs = []
    for start in ("in_training", "itself"):
        model, source = _ending(draw, (2, 3))
        runs.append(_called_again(model, source, 1, 2, 7, start=start))
    return runs


def _modes_kept(trial: Trial) -> Finding:
    """The logits show the modes: back to front in training, negative where a part is."""
    if trial.record.values[1] is None:
        return Finding(False, "the result is None")
    given, wanted = plain(trial.record.value), plain(trial.expected.value)
    if given is None or given.shape != wanted.shape:
        return Finding(False, f"the model returns {describe(trial.record.value)} afterwards")
    if np.allclose(given, wanted, atol=1e-4):
        return Finding(True)
    if np.allclose(given, -wanted, atol=1e-4):
        line = "one part of the model was in eval mode, and is now in training mode"
        return Finding(False, line)
    started = trial.run.steps[0].args[0].name.endswith("in_training")
    mode = "training" if started else "eval"
    return Finding(False, f"the model came in {mode} mode, and did not leave so")


_PADDED = np.array([[3, 5, 7, 4], [6, 2, 0, 0], [1, 1, 5, 0]])


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
            each(_modes_kept),
            only_if_right=True,
        ),
        dtypes_kept(0.1, "Token ids are long.", _greedy_runs),
        inputs_untouched(0.05, _greedy_uneven),
        no_side_effects(0.1, _greedy_runs),
    ),
    uses=("Transformer",),
)

# --- beam_search --------------------------------------------------------------------------------

_PAD, _BOS, _EOS = 0, 1, 2  # in the tables for beam search; tokens from 3 on are words
Odds = Mapping[tuple[int, int], Mapping[int, float]]


def _table(draw: Draw, vocab: int, length: int, odds: Odds, end: float = 1e-4) -> Recipe:
    """A model of next tokens with `odds[position, previous][token]` about as given.

    Other words share what is left of a row; eos has the share `end` where the odds do not say
    otherwise. The previous token −1 stands for all that have no entry of their own.
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
    shift = draw.normal(length, vocab, 1)  # logits are log p up to one number per row
    return _lookup(np.log(share) + shift, pad_id=_PAD)


def _some_source(draw: Draw) -> Array:
    return tensor(draw.integers(1, 5, 1, 3))


def _words(draw: Draw, vocab: int) -> list[int]:
    return [int(word) + 3 for word in draw.permutation(vocab - 3)]


def _garden(draw: Draw, length: int, lead: int = 0) -> Recipe:
    """After `lead` words that are sure: a likely word that leads nowhere in particular, and a less
    likely one that leads on and on; then eos.
    """
    a, b, c, d = _words(draw, 7)
    odds = {(place, -1): {c: 0.9} for place in range(lead)}
    odds |= {(lead, -1): {a: 0.5, b: 0.35}, (lead + 1, b): {c: 0.92}}
    for place in range(lead + 2, length):
        odds |= {(place, c): {d: 0.9}, (place, d): {c: 0.9}}
    odds |= {(length - 1, previous): {_EOS: 0.97} for previous in (-1, c, d)}
    return _table(draw, 7, length, odds)


_PLAIN = {"length_penalty": 0.0}  # the score is log p: what the penalty does is judged by itself


def _beam_runs(draw: Draw) -> Sequence[Run]:
    first, source = _garden(draw, 4), _some_source(draw)
    keywords = {"bos_id": _BOS, "eos_id": _EOS, "max_len": 5, "beam_size": 3, **_PLAIN}
    return [
        call(first, source, _BOS, _EOS, 6, 2, 0.0).then(first, source, _BOS, _EOS, 6, 3, 0.0),
        call(model=_garden(draw, 3), source=_some_source(draw), **keywords),
        call(_garden(draw, 5, lead=1), _some_source(draw), _BOS, _EOS, 7, **_PLAIN),
    ]


def _mixed(draw: Draw) -> Recipe:
    """Some way to eos at every step."""
    a, b, *_ = _words(draw, 6)
    odds = {
        (0, -1): {_EOS: 0.2, a: 0.45, b: 0.25},
        (1, a): {_EOS: 0.35, b: 0.4},
        (1, b): {_EOS: 0.3, a: 0.45},
        (2, -1): {_EOS: 0.25, a: 0.4},
    }
    return _table(draw, 6, 4, odds, end=0.3)


def _beam_pairs(draw: Draw) -> Sequence[Run]:
    return [
        call(_mixed(draw), _some_source(draw), _BOS, _EOS, 4, 3),
        call(_mixed(draw), _some_source(draw), _BOS, _EOS, 3, 4, 1.5),
        call(_garden(draw, 4), _some_source(draw), _BOS, _EOS, 5, beam_size=2, length_penalty=0.0),
    ]


def _pairs(value: Any) -> list[tuple[np.ndarray, float]] | None:
    """The (ids, score) pairs of a result, if it is a list of such; ids: a tensor or a list."""
    if not isinstance(value, list | tuple) or not value:
        return None
    found = []
    for pair in value:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            return None
        ids, score = pair
        ids = plain(ids) if isinstance(ids, Array) else np.array(ids, dtype=object)
        score = plain(score)
        whole = all(isinstance(i, int | float) and i == int(i) for i in ids.ravel())
        if ids.ndim != 1 or not ids.size or not whole or score is None or score.size != 1:
            return None
        found.append((ids.astype(np.int64), float(score.reshape(()))))
    return found


def _no_pairs(value: Any) -> str:
    return f"the result: expected a list of pairs (ids, score), got {describe(value)}"


def _same_best(trial: Trial) -> Finding:
    """The first pair is the reference's; which others a beam keeps is a matter of taste."""
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


def _best(title: str, points: float, hint: str, runs: Runs) -> Aspect:
    return Aspect(title, points, hint, runs, each(_same_best))


def _step_argument(run: Run, index: int, name: str, default: Any = None) -> Any:
    step = run.steps[-1]
    return step.args[index] if len(step.args) > index else step.kwargs.get(name, default)


def _pairs_hold(run: Run, record: Record) -> str | None:
    pairs = _pairs(record.value)
    if pairs is None:
        return _no_pairs(record.value)
    logits = plain(run.steps[0].args[0].args[0])
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    max_len, size = run.steps[0].args[4], _step_argument(run, 5, "beam_size", 4)
    alpha = _step_argument(run, 6, "length_penalty", 0.6)
    if len(pairs) > size:
        return f"{len(pairs)} pairs come back; beam_size is {size}"
    if len({tuple(ids) for ids, _ in pairs}) < len(pairs):
        return "two pairs hold the same ids"
    if any(x < y - 1e-6 for (_, x), (_, y) in zip(pairs, pairs[1:], strict=False)):
        return "the scores do not fall: the best comes first"
    for ids, score in pairs:
        shown = ids.tolist()
        if (ids < 0).any() or (ids >= log_p.shape[-1]).any() or len(ids) > max_len:
            return f"{shown} are not at most {max_len} tokens"
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
            return f"the score of {shown} is {score:.6g}; log p / penalty is {wanted:.6g}"
    return None


def _beam_penalised(draw: Draw) -> Sequence[Run]:
    """A short text, or a long one that is a little less likely."""
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
        model = _table(draw, 7, 4, odds)
        runs.append(call(model, _some_source(draw), _BOS, _EOS, 6, 3, **alpha))
    return runs


def _beam_of_one(draw: Draw) -> Sequence[Run]:
    real = _real_model(draw), tensor([[3, 5, 7, 4]])
    return [
        call(_garden(draw, 4), _some_source(draw), _BOS, _EOS, 6, 1, 0.0),
        call(_mixed(draw), _some_source(draw), _BOS, _EOS, 4, beam_size=1, **_PLAIN),
        call(*real, 1, 2, 4, beam_size=1, **_PLAIN),
    ]


def _beam_unfinished(draw: Draw) -> Sequence[Run]:
    runs = []
    for size, max_len in ((2, 4), (4, 3)):
        a, b, *_ = _words(draw, 6)
        odds = {(0, -1): {_EOS: 0.08, a: 0.7}, (1, a): {b: 0.85}, (2, b): {a: 0.85}}
        odds |= {(3, a): {b: 0.85}}
        model = _table(draw, 6, 4, odds)
        runs.append(call(model, _some_source(draw), _BOS, _EOS, max_len, size, **_PLAIN))
    return runs


def _beam_wide(draw: Draw) -> Sequence[Run]:
    """More beams than there are texts: nothing can be overlooked."""
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


def _beam_ends(draw: Draw) -> Sequence[Run]:
    a, b, *_ = _words(draw, 6)
    at_once = _table(draw, 6, 2, {(0, -1): {_EOS: 0.9, a: 0.05}}, end=0.5)
    short = _table(draw, 6, 2, {(0, -1): {_EOS: 0.2, a: 0.6, b: 0.1}})
    return [
        call(at_once, _some_source(draw), _BOS, _EOS, 4, 3, **_PLAIN),
        call(short, _some_source(draw), _BOS, _EOS, 1, 3, **_PLAIN),
    ]


def _beam_in_training(draw: Draw) -> Sequence[Run]:
    run = _apply("in_training", _garden(draw, 3))
    return [run.then(Previous(0), _some_source(draw), _BOS, _EOS, 4, 2, 0.0)]


def _beam_modes(draw: Draw) -> Sequence[Run]:
    return [
        _called_again(_garden(draw, 3), _some_source(draw), _BOS, _EOS, 4, 2, start=start)
        for start in ("in_training", "itself")
    ]


BEAM_SEARCH = Exercise(
    "beam_search",
    "Write, with second thoughts",
    ("model", "source", "bos_id", "eos_id", "max_len", "beam_size", "length_penalty"),
    (
        _best(
            "a better text behind a worse beginning",
            1.25,
            "At every step, add each beam's log p to the log-softmax of what may follow it, and "
            "keep the best of all of these together. From its place in the flattened scores comes "
            "which beam it goes on from, and with which token.",
            _beam_runs,
        ),
        has_property(
            "every pair: ids, score, order",
            0.75,
            "A pair: the ids, without bos, up to eos or max_len, and log p / ((5 + length) / 6)^α "
            "for the length of these ids. The best comes first, none twice.",
            _beam_pairs,
            _pairs_hold,
        ),
        _best(
            "the length penalty",
            0.75,
            "log p is negative and falls with every token. Dividing it by a number that grows with "
            "the length makes up for some of that; α = 0 makes up for nothing.",
            _beam_penalised,
        ),
        _best(
            "one beam is greedy decoding",
            0.5,
            "With beam_size 1, the likeliest token is taken at every step, until it is eos.",
            _beam_of_one,
        ),
        _best(
            "beams that are unfinished at max_len",
            0.4,
            "They count as they are, with their log p and their length.",
            _beam_unfinished,
        ),
        _best(
            "more beams than there are texts",
            0.35,
            "topk cannot take more than there is: ask for beam_size or for all, whichever is less.",
            _beam_wide,
        ),
        _best(
            "eos at once, and one token at most",
            0.3,
            "A beam may be finished after its first token, and max_len may be 1.",
            _beam_ends,
        ),
        _best(
            "decodes in eval mode",
            0.25,
            "Dropout has no business in decoding, in whatever mode the model comes.",
            _beam_in_training,
        ),
        Aspect(
            "leaves each module's mode as it was",
            0.2,
            "A part of a model in training may be in eval mode, frozen. Note the mode of each of "
            "model.modules(), and put each back.",
            _beam_modes,
            each(_modes_kept),
            only_if_right=True,
        ),
        inputs_untouched(0.1, _beam_runs),
        no_side_effects(0.15, _beam_runs),
    ),
    uses=("Transformer",),
)

EXERCISES = (
    ENCODER_LAYER,
    DECODER_LAYER,
    TOKEN_EMBEDDING,
    TRANSFORMER,
    SHIFT_RIGHT,
    LABEL_SMOOTHED_CROSS_ENTROPY,
    NOAM_RATE,
    GREEDY_DECODE,
    BEAM_SEARCH,
)
