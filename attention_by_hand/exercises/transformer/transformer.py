"""`Transformer`: the Transformer."""

from dataclasses import replace
from typing import Any

import numpy as np

from attention_by_hand.exercises.dropped import dropped_once
from attention_by_hand.exercises.parameters import padded, token_ids
from attention_by_hand.exercises.shared import no_peeking
from attention_by_hand.exercises.transformer.parameters import model_state
from attention_by_hand.exercises.transformer.where_real import (
    DEEP,
    found_where_real,
    padded_anew,
    right_where_real,
)
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Finding,
    Previous,
    Record,
    Run,
    StridedArray,
    Trial,
    describe,
    module,
    plain,
    tensor,
)
from autograder.student.engine.aspects import compare, same_results

EXERCISE = Declaration(
    "Transformer",
    "The Transformer",
    ("source", "target"),
    forbids=("transformer",),
    allows=("EncoderLayer", "DecoderLayer", "TokenEmbedding"),
    uses=("MultiHeadAttention", "sinusoidal_encoding"),
)


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
    state = model_state(draw, *sizes[:3], num_layers, d_ff, first, dtype)
    return module(*sizes, state=state, **kwargs)


def _other_sizes(draw: Draw) -> list[Run]:
    """Views, many tokens, a single one, a single feature."""
    view, small = _model(draw, 5, 5, 4, 2, 1, 3), _model(draw, 5, 3, 4, 2, 1, 3)
    single = _model(draw, 5, 4, 1, 1, 1, 1)
    return [
        view.then(token_ids(draw, 2, 3, 5), token_ids(draw, 2, 4, 5)).as_views(),
        small.then(token_ids(draw, 1, 70, 5), token_ids(draw, 1, 2, 3)),
        small.then(token_ids(draw, 1, 1, 5), token_ids(draw, 1, 70, 3)),
        single.then(token_ids(draw, 1, 3, 5), token_ids(draw, 1, 2, 4)),
    ]


def _through_all_layers(trial: Trial) -> Finding:
    return same_results(trial, DEEP)


@EXERCISE.aspect("the logits", 0.9, _through_all_layers)
def _runs(draw: Draw) -> list[Run]:
    """Embed the source, add positions, and go through the encoder's layers: that is the memory.
    Embed the target, add positions, and go through the decoder's layers, each of which attends to
    the memory. Score the result with the target's embedding."""
    sizes = {"source_vocab": 6, "target_vocab": 5, "d_model": 6, "num_heads": 3, "num_layers": 1}
    named = module(**sizes, d_ff=5, dropout=0.0, state=model_state(draw, 6, 5, 6, 1, 5))
    by_default = module(4, 4, 8, state=model_state(draw, 4, 4, 8, 6, 2048))
    two = _model(draw, 7, 9, 8, 2, 2, 6).then(token_ids(draw, 2, 5, 7), token_ids(draw, 2, 4, 9))
    return [
        two.then(token_ids(draw, 1, 3, 7), token_ids(draw, 1, 6, 9)),
        named.then(target=token_ids(draw, 1, 3, 5), source=token_ids(draw, 1, 3, 6)),
        _model(draw, 5, 5, 4, 1, 2, 4).then(token_ids(draw, 3, 4, 5), token_ids(draw, 3, 4, 5)),
        by_default.then(token_ids(draw, 1, 3, 4), token_ids(draw, 1, 2, 4)),
        *_other_sizes(draw),
    ]


@EXERCISE.equals("with norm_first", 0.6)
def _pre(draw: Draw) -> list[Run]:
    """Where each layer normalises its input, nothing normalises the output of the last one:
    encoder_norm and decoder_norm do."""
    return [
        _model(draw, 7, 6, 6, 2, n, 5, norm_first=True).then(
            token_ids(draw, 2, 4, 7), token_ids(draw, 2, n_t, 6)
        )
        for n, n_t in ((2, 4), (1, 3))
    ]


def _as_embedded(trial: Trial) -> Finding:
    """Far out, positions may be computed in float32, which rounds an angle of 500."""
    far = trial.run.steps[-1].kwargs.get("offset", 0) > 100
    return compare(trial.record.value, trial.expected.value, slack=100.0 if far else 1.0)


@EXERCISE.aspect("what goes into the first layer", 0.25, _as_embedded)
def _bare(draw: Draw) -> list[Run]:
    """Without layers, encode and decode return the embeddings, times √d_model, plus the positions,
    which are not scaled and begin at 0."""
    runs = []
    for d, heads in ((8, 2), (5, 1)):
        source, target = token_ids(draw, 2, 9, 7), token_ids(draw, 2, 6, 6)
        run = _model(draw, 7, 6, d, heads, 0, 4).then_method("encode", source)
        runs.append(run.then_method("decode", target, Previous(0), source))
    return runs


def _embedded(draw: Draw, d: int, side: str, **how: Any) -> Run:
    """A model without layers that embeds some ids of one side, with the arguments `how`."""
    dropout = {"dropout": how.pop("dropout")} if "dropout" in how else {}
    run = _model(draw, 7, 6, d, 1, 0, 4, **dropout).then_method(
        "get_submodule", f"{side}_embedding"
    )
    return run.then_method("embed", Previous(0), token_ids(draw, 2, 4, 6), **how)


EXERCISE.step("embed")


@EXERCISE.aspect("embed: vectors plus positions", 0.25, _as_embedded)
def _embed(draw: Draw) -> list[Run]:
    """The embedding has multiplied its vectors by √d_model already. Add the rows of
    self.positions from `offset` on, one for each token."""
    # Far out, the table that the model begins with is too short.
    further, ids = _embedded(draw, 6, "target", offset=3), token_ids(draw, 2, 4, 6)
    return [
        _embedded(draw, 8, "source"),
        _embedded(draw, 5, "target"),
        _embedded(draw, 6, "target", offset=draw.integer(2, 9)),
        _embedded(draw, 6, "target", offset=510),
        further.then_method("embed", Previous(0), ids, offset=7),
    ]


@EXERCISE.equals("embed: dropout on the sum", 0.1)
def _embed_dropped(draw: Draw) -> list[Run]:
    """Dropout comes last, on the sum. With p = 1 nothing is left of it in training mode, and all
    of it in eval mode."""
    run = _embedded(draw, 6, "source", dropout=1.0)
    return [run.in_training(), run]


def _once(run: Run, record: Record) -> str | None:
    found = plain(record.value)
    if found is None or found.shape != (60, 1, 6):
        return f"the result: expected shape (60, 1, 6), got {describe(record.value)}"
    return dropped_once(found[..., ::2]) or dropped_once(found[..., 1::2])


@EXERCISE.holds("embed: dropout acts once", 0.1, _once, only_if_right=True)
def _embed_drawn(draw: Draw) -> list[Run]:
    """The sum is dropped once: neither the tokens' vectors before it, nor the sum again."""
    state = model_state(draw, 7, 6, 6, 0, 4)  # at position 0, sines are 0, cosines 1
    state |= {"source_embedding.weight": tensor(np.ones((7, 6)), "float32")}
    run = module(7, 6, 6, 1, 0, 4, dropout=0.5, state=state).in_training()
    run = run.then_method("get_submodule", "source_embedding")
    return [run.then_method("embed", Previous(0), token_ids(draw, 60, 1, 7)).at_random(draw)]


EXERCISE.draws_anew()

EXERCISE.step("encode")


@EXERCISE.aspect("encode: the memory", 0.2, right_where_real)
def _encode(draw: Draw) -> list[Run]:
    """Mask the padding, embed the source, go through the encoder's layers, each with that mask, and
    end with encoder_norm, which does nothing without norm_first. pad_id need not be 0."""
    post = _model(draw, 7, 6, 6, 2, 2, 5)
    pre = _model(draw, 7, 6, 6, 3, 2, 4, pad_id=3, norm_first=True)
    return [
        post.then_method("encode", token_ids(draw, 2, 4, 7)),
        post.then_method("encode", padded(draw, (4, 2), 7)),
        pre.then_method("encode", padded(draw, (3, 5), 7, 3)),
    ]


EXERCISE.step("decode")


@EXERCISE.aspect("decode: from any memory", 0.2, right_where_real)
def _decode(draw: Draw) -> list[Run]:
    """Two masks: the future and the padding of the target, the padding of the source. Any memory
    will do; the source only says where it is padding. End with decoder_norm."""
    post = _model(draw, 7, 6, 6, 2, 2, 5)
    pre = _model(draw, 7, 6, 6, 3, 2, 4, pad_id=3, norm_first=True)
    source = padded(draw, (4, 2), 7)
    other = padded(draw, (2, 4), 7, 3)
    one = token_ids(draw, 2, 1, 6)
    return [
        post.then_method("decode", one, draw.tensor(2, 4, 6), source).then_method(
            "decode", one, draw.tensor(2, 4, 6), padded(draw, (2, 4), 7)
        ),
        post.then_method("decode", token_ids(draw, 2, 3, 6), draw.tensor(2, 4, 6), source),
        post.then_method(
            "decode", padded(draw, (3, 2), 6), StridedArray(draw.tensor(2, 4, 6)), source
        ),
        pre.then_method(
            "decode", padded(draw, (3, 1), 6, 3), memory=draw.tensor(2, 4, 6), source=other
        ),
    ]


EXERCISE.step()


@EXERCISE.equals("padding in the source", 0.5)
def _source_padded(draw: Draw) -> list[Run]:
    """Keys that hold pad_id are masked in the encoder's self-attention and in the decoder's
    cross-attention. pad_id need not be 0."""
    # Targets of one token need no causal mask.
    post = _model(draw, 7, 6, 6, 2, 2, 5)
    other = _model(draw, 7, 6, 6, 3, 1, 4, pad_id=3, norm_first=True)
    return [
        post.then(padded(draw, (4, 2, 3), 7), token_ids(draw, 3, 1, 6)),
        other.then(padded(draw, (3, 5), 7, 3), padded(draw, (1, 1), 6, 3)),
    ]


def _anew(draw: Draw) -> list[Run]:
    return [padded_anew(draw, _model(draw, 7, 6, 6, 2, 1, 5))]


EXERCISE.called_again(_anew, found=found_where_real)


def _padding_changes_nothing(run: Run, record: Record) -> str | None:
    short, long = (plain(value) for value in record.values)
    if short is None or long is None or short.shape != (2, 3, 6) or long.shape != (2, 3, 6):
        return f"the logits: expected shape (2, 3, 6), got {describe(record.value)}"
    far = np.abs(long - short).max()
    if not far < 1e-5:
        return f"three more pads after the source change the logits by {far:.3g}"
    same = np.abs(short[0] - short[1]).max() < 1e-3
    return "different sources and targets give the same logits" if same else None


@EXERCISE.holds("more padding changes nothing", 0.25, _padding_changes_nothing)
def _longer(draw: Draw) -> list[Run]:
    """Three more pads after a source must leave its logits unchanged."""
    # The same source twice, the second time with more padding after it.
    runs = []
    for pad_id in (0, 2):
        run = _model(draw, 7, 6, 6, 2, 2, 5, pad_id=pad_id)
        source = padded(draw, (3, 4), 7, pad_id)
        more = np.concatenate([source.data, np.full((2, 3), pad_id)], axis=1)
        target = padded(draw, (3, 3), 6, pad_id)
        runs.append(run.then(source, target).then(tensor(more), target))
    return runs


@EXERCISE.aspect("padding in the target", 0.25, right_where_real)
def _target_padded(draw: Draw) -> list[Run]:
    """Behind a target, padding lies in the future of what is real. Before it or inside, only the
    mask hides it: attend to no padding, wherever it stands."""
    first = _model(draw, 7, 6, 6, 2, 2, 5).then(
        padded(draw, (3, 4, 2), 7), padded(draw, (2, 4, 3), 6)
    )
    second = _model(draw, 7, 6, 6, 3, 1, 4, pad_id=3, norm_first=True).then(
        padded(draw, (5, 2), 7, 3), padded(draw, (2, 3), 6, 3)
    )
    target = token_ids(draw, 2, 5, 6)
    target.data[:] = target.data % 5 + 1
    target.data[0, 0] = target.data[1, 2] = 0
    return [first, second, _model(draw, 7, 6, 6, 2, 1, 5).then(token_ids(draw, 2, 3, 7), target)]


@EXERCISE.holds("no position sees what comes after it", 0.5, no_peeking)
def _perturbed(draw: Draw) -> list[Run]:
    """The decoder's self-attention needs a causal mask: position i sees 0 … i. Everything from the
    changed token on may change, nothing before it."""
    # Source and target three times: unchanged, with a new last token, with a new middle token.
    runs = []
    for first in (False, True):
        run = _model(draw, 7, 6, 6, 2, 2, 5, norm_first=first)
        source, target = token_ids(draw, 2, 5, 7), token_ids(draw, 2, 5, 6)
        run = run.then(source, target)
        for position in (4, 2):
            other = target.data.copy()
            other[:, position] = other[:, position] % 5 + 1
            run = run.then(source, tensor(other))
        runs.append(run)
    return runs


@EXERCISE.equals("dropout on the sum of embedding and position", 0.15)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts once on the sum, in encoder and decoder. With p = 1, the first layer gets
    zeros."""
    bare = _model(draw, 7, 6, 6, 2, 0, 5, dropout=1.0).in_training()
    source, target = token_ids(draw, 2, 3, 7), token_ids(draw, 2, 4, 6)
    whole = _model(draw, 7, 6, 6, 2, 1, 5, dropout=1.0).in_training()
    return [
        bare.then_method("encode", source),
        bare.then_method("decode", target, draw.tensor(2, 3, 6), source),
        whole.then(source, target),
    ]


@EXERCISE.equals("no dropout in eval mode", 0.1)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in."""
    run = _model(draw, 7, 6, 6, 2, 1, 5, dropout=1.0)
    return [run.then(token_ids(draw, 2, 3, 7), token_ids(draw, 2, 1, 6))]


@EXERCISE.gradients("gradients reach every parameter", 0.4)
def _gradients(draw: Draw) -> list[Run]:
    """The encoder learns through the memory, and the target's embedding from both of its uses."""
    # Wide enough that no norm divides by next to nothing.
    post = _model(draw, 5, 4, 8, 2, 2, 2)
    pre = _model(draw, 4, 5, 8, 2, 1, 2, norm_first=True)
    return [
        post.then(padded(draw, (4, 3), 5), token_ids(draw, 2, 4, 4)),
        pre.then(token_ids(draw, 2, 3, 4), token_ids(draw, 2, 3, 5)),
    ]


def _finite(run: Run, record: Record) -> str | None:
    numbers = [plain(record.value), *map(plain, record.gradients.values())]
    if numbers[0] is None or numbers[0].shape != (2, 3, 4):
        return f"the logits: expected shape (2, 3, 4), got {describe(record.value)}"
    fine = all(a is None or np.isfinite(a).all() for a in numbers)
    return None if fine else "a source of padding only makes logits or gradients NaN"


@EXERCISE.holds("a source of padding only", 0.05, _finite, only_if_right=True)
def _nothing(draw: Draw) -> list[Run]:
    """Attention gives zeros where nothing may be seen. Let boolean masks take care of it."""
    source = padded(draw, (3, 2), 7)
    source.data[1] = 0
    run = _model(draw, 7, 4, 4, 2, 1, 2).then(source, token_ids(draw, 2, 3, 4))
    return [run.with_gradients()]


def _same_dtype(trial: Trial) -> Finding:
    """The table of positions may be float32, so float64's digits are not required."""
    value, expected = trial.record.value, trial.expected.value
    if not isinstance(value, Array) or value.dtype != expected.dtype:
        return Finding(False, f"the result: expected {expected.dtype}, got {describe(value)}")
    if trial.run.random:
        return Finding(True)
    given, wanted = (
        replace(v, data=v.data.astype("float32"), dtype="float32") for v in (value, expected)
    )
    return compare(given, wanted)


@EXERCISE.aspect("dtype", 0.05, _same_dtype, only_if_right=True)
def _double(draw: Draw) -> list[Run]:
    """A float64 model gives float64: convert the positions to the dtype of the embeddings."""
    run = _model(draw, 7, 6, 4, 2, 1, 3, dtype="float64")
    run = run.then(token_ids(draw, 2, 3, 7), token_ids(draw, 2, 4, 6))
    new = module(7, 6, 4, 2, 1, 3).then(token_ids(draw, 2, 3, 7), token_ids(draw, 2, 4, 6))
    short = run.in_float32()
    assert short is not None  # its parameters are in float64
    return [run, short, new.at_random(draw)]


def _one_layer(draw: Draw) -> list[Run]:
    run = _model(draw, 5, 6, 4, 2, 1, 3)
    return [run.then(padded(draw, (4, 2), 5), padded(draw, (2, 3), 6))]


EXERCISE.leaves_inputs_alone(0.05, _one_layer)
EXERCISE.leaves_state_alone(0.1, _one_layer, of_a_module=True)
EXERCISE.follows_its_inputs(_one_layer, _dropped)
