"""`Transformer`: the Transformer."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.engine.aspects import (
    Runs,
    compare,
    describe,
    each,
    equals_reference,
    gradients_match,
    has_property,
    inputs_untouched,
    no_side_effects_of_a_module,
    plain,
    worst,
)
from autograder.engine.runs import (
    Array,
    Aspect,
    Draw,
    Exercise,
    Finding,
    Previous,
    Record,
    Run,
    Trial,
    module,
    tensor,
)
from autograder.exercises.transformer.parameters import (
    model_state,
    padded,
    then_method,
    token_ids,
    training,
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


def _model_runs(draw: Draw) -> Sequence[Run]:
    sizes = {"source_vocab": 6, "target_vocab": 5, "d_model": 6, "num_heads": 3, "num_layers": 1}
    named = module(**sizes, d_ff=5, dropout=0.0, state=model_state(draw, 6, 5, 6, 1, 5))
    two = _model(draw, 7, 9, 8, 2, 2, 6).then(token_ids(draw, 2, 5, 7), token_ids(draw, 2, 4, 9))
    return [
        two.then(token_ids(draw, 1, 3, 7), token_ids(draw, 1, 6, 9)),
        named.then(target=token_ids(draw, 1, 3, 5), source=token_ids(draw, 1, 3, 6)),
        _model(draw, 5, 5, 4, 1, 2, 4).then(token_ids(draw, 3, 4, 5), token_ids(draw, 3, 4, 5)),
    ]


def _model_pre(draw: Draw) -> Sequence[Run]:
    return [
        _model(draw, 7, 6, 6, 2, n, 5, norm_first=True).then(
            token_ids(draw, 2, 4, 7), token_ids(draw, 2, n_t, 6)
        )
        for n, n_t in ((2, 4), (1, 3))
    ]


def _model_bare(draw: Draw) -> Sequence[Run]:
    """Without layers: what goes into the first of them, on either side."""
    runs = []
    for d, heads in ((8, 2), (5, 1)):
        source, target = token_ids(draw, 2, 9, 7), token_ids(draw, 2, 6, 6)
        run = then_method(_model(draw, 7, 6, d, heads, 0, 4), "encode", source)
        runs.append(then_method(run, "decode", target, Previous(0), source))
    return runs


def _model_source_padded(draw: Draw) -> Sequence[Run]:
    """Targets of one token, for which no causal mask is needed."""
    post = _model(draw, 7, 6, 6, 2, 2, 5)
    other = _model(draw, 7, 6, 6, 3, 1, 4, pad_id=3, norm_first=True)
    return [
        post.then(padded(draw, (4, 2, 3), 7), token_ids(draw, 3, 1, 6)),
        other.then(padded(draw, (3, 5), 7, 3), padded(draw, (1, 1), 6, 3)),
    ]


def _model_longer(draw: Draw) -> Sequence[Run]:
    """The same source twice, the second time with more padding behind it."""
    runs = []
    for pad_id in (0, 2):
        run = _model(draw, 7, 6, 6, 2, 2, 5, pad_id=pad_id)
        source = padded(draw, (3, 4), 7, pad_id)
        more = np.concatenate([source.data, np.full((2, 3), pad_id)], axis=1)
        target = padded(draw, (3, 3), 6, pad_id)
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
        padded(draw, (3, 4, 2), 7), padded(draw, (2, 4, 3), 6)
    )
    second = _model(draw, 7, 6, 6, 3, 1, 4, pad_id=3, norm_first=True).then(
        padded(draw, (5, 2), 7, 3), padded(draw, (2, 3), 6, 3)
    )
    return [first, second]


def _model_halves(draw: Draw) -> Sequence[Run]:
    post = _model(draw, 7, 6, 6, 2, 2, 5)
    pre = _model(draw, 7, 6, 6, 3, 2, 4, norm_first=True)
    source = padded(draw, (4, 2), 7)
    return [
        then_method(post, "encode", source),
        then_method(post, "decode", padded(draw, (3, 2), 6), draw.tensor(2, 4, 6), source),
        then_method(pre, "encode", source),
        then_method(
            pre, "decode", token_ids(draw, 2, 3, 6), memory=draw.tensor(2, 4, 6), source=source
        ),
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
        source, target = token_ids(draw, 2, 5, 7), token_ids(draw, 2, 5, 6)
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
    bare = training(_model(draw, 7, 6, 6, 2, 0, 5, dropout=1.0))
    source, target = token_ids(draw, 2, 3, 7), token_ids(draw, 2, 4, 6)
    whole = training(_model(draw, 7, 6, 6, 2, 1, 5, dropout=1.0))
    return [
        then_method(bare, "encode", source),
        then_method(bare, "decode", target, draw.tensor(2, 3, 6), source),
        whole.then(source, target),
    ]


def _model_evaluated(draw: Draw) -> Sequence[Run]:
    run = _model(draw, 7, 6, 6, 2, 1, 5, dropout=1.0)
    return [run.then(token_ids(draw, 2, 3, 7), token_ids(draw, 2, 1, 6))]


def _model_gradients(draw: Draw) -> Sequence[Run]:
    post = _model(draw, 5, 4, 4, 2, 2, 2)
    pre = _model(draw, 4, 5, 4, 2, 1, 2, norm_first=True)
    return [
        post.then(padded(draw, (4, 3), 5), token_ids(draw, 2, 4, 4)),
        pre.then(token_ids(draw, 2, 3, 4), token_ids(draw, 2, 3, 5)),
    ]


def _model_nothing(draw: Draw) -> Sequence[Run]:
    source = padded(draw, (3, 2), 7)
    source.data[1] = 0
    run = _model(draw, 7, 4, 4, 2, 1, 2).then(source, token_ids(draw, 2, 3, 4))
    return [run.with_gradients()]


def _model_finite(run: Run, record: Record) -> str | None:
    numbers = [plain(record.value), *map(plain, record.gradients.values())]
    if numbers[0] is None or numbers[0].shape != (2, 3, 4):
        return f"the logits are {describe(record.value)}"
    fine = all(a is None or np.isfinite(a).all() for a in numbers)
    return None if fine else "a source of nothing but padding makes logits or gradients NaN"


def _model_double(draw: Draw) -> Sequence[Run]:
    run = _model(draw, 7, 6, 4, 2, 1, 3, dtype="float64")
    return [run.then(token_ids(draw, 2, 3, 7), token_ids(draw, 2, 4, 6))]


def _model_one_layer(draw: Draw) -> Sequence[Run]:
    run = _model(draw, 5, 6, 4, 2, 1, 3)
    return [run.then(padded(draw, (4, 2), 5), padded(draw, (2, 3), 6))]


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
