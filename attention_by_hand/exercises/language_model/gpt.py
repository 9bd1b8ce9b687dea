"""`GPT`: the decoder alone."""

from collections.abc import Sequence

import numpy as np

from attention_by_hand.exercises.dropped import dropped_once
from attention_by_hand.exercises.parameters import layer_state, norm_state, prefixed, token_ids
from attention_by_hand.exercises.shared import State, no_peeking
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Record,
    Run,
    StridedArray,
    describe,
    module,
    plain,
    tensor,
)

EXERCISE = Declaration(
    "GPT",
    "The decoder alone",
    ("ids",),
    forbids=("transformer",),
    allows=("DecoderBlock",),
    uses=("MultiHeadAttention",),
)


def gpt_state(
    draw: Draw, vocab: int, context: int, d: int, num_layers: int, dtype: str = "float32"
) -> State:
    state = {
        "tokens.weight": draw.tensor(vocab, d, dtype=dtype),
        "positions.weight": draw.tensor(context, d, dtype=dtype),
    }
    for i in range(num_layers):
        state |= prefixed(f"blocks.{i}", layer_state(draw, d, 4 * d, ("attn",), dtype))
    return state | norm_state(draw, "norm", d, dtype)


def _model(
    draw: Draw,
    vocab: int,
    context: int,
    d: int,
    num_heads: int,
    num_layers: int,
    dtype: str = "float32",
    **kwargs: object,
) -> Run:
    state = gpt_state(draw, vocab, context, d, num_layers, dtype)
    return module(vocab, context, d, num_heads, num_layers, state=state, **kwargs)


def _ids(draw: Draw, B: int, n: int, vocab: int) -> Array:
    return token_ids(draw, B, n, vocab, low=0)


@EXERCISE.equals("the logits", 1.45)
def _runs(draw: Draw) -> list[Run]:
    """Add the vectors of the tokens and those of the positions 0 … n − 1, go through the blocks,
    each under a causal mask, normalise, and score every token by its row of tokens.weight."""
    sizes = {"vocab_size": 5, "context_size": 7, "d_model": 6, "num_heads": 3, "num_layers": 1}
    named = module(**sizes, dropout=0.0, state=gpt_state(draw, 5, 7, 6, 1))
    small = gpt_state(draw, 5, 4, 4, 1) | {"tokens.weight": draw.tensor(5, 4, scale=1e-3)}
    return [
        _model(draw, 7, 6, 8, 2, 2).then(_ids(draw, 2, 5, 7)).then(_ids(draw, 3, 6, 7)),
        named.then(ids=_ids(draw, 1, 4, 5)),
        _model(draw, 9, 4, 4, 1, 3).then(_ids(draw, 3, 4, 9)),
        module(5, 4, 4, 2, 1, state=small).then(_ids(draw, 2, 3, 5)),
    ]


@EXERCISE.equals("one token, a context of one, one word", 0.4)
def _other_sizes(draw: Draw) -> list[Run]:
    """n may be anything from 1 to context_size, and the vocabulary may hold a single token."""
    return [
        _model(draw, 5, 6, 4, 2, 1).then(_ids(draw, 2, 1, 5)),
        _model(draw, 4, 1, 4, 2, 1).then(_ids(draw, 3, 1, 4)),
        _model(draw, 1, 3, 4, 2, 1).then(_ids(draw, 2, 3, 1)),
        _model(draw, 2, 70, 3, 1, 1).then(_ids(draw, 1, 70, 2)),
        _model(draw, 5, 4, 1, 1, 1).then(_ids(draw, 2, 3, 5)),
        _model(draw, 6, 5, 4, 2, 1).then(StridedArray(_ids(draw, 2, 4, 6))),
    ]


@EXERCISE.equals("without blocks: embedding, norm, logits", 0.35)
def _bare(draw: Draw) -> list[Run]:
    """With num_layers = 0 the sum of the two embeddings goes straight into the norm. Neither of
    them is multiplied by √d_model."""
    return [
        _model(draw, 7, 9, 8, 2, 0).then(_ids(draw, 2, 6, 7)),
        _model(draw, 6, 5, 5, 1, 0).then(_ids(draw, 5, 5, 6)),
    ]


@EXERCISE.holds("no position sees what comes after it", 0.5, no_peeking)
def _perturbed(draw: Draw) -> list[Run]:
    """Every block needs the causal mask: position i sees 0 … i. Everything from the changed token
    on may change, nothing before it."""
    ids = _ids(draw, 2, 5, 6)
    run = _model(draw, 6, 8, 6, 2, 2).then(ids)
    for position in (4, 2):
        other = ids.data.copy()
        other[:, position] = (other[:, position] + 1 + draw.integers(0, 4, 2)) % 6
        run = run.then(tensor(other))
    return [run]


def _both_lengths(run: Run) -> Sequence[int]:
    return run.steps[0].args[0].data.shape[1], run.constructor.args[1]


@EXERCISE.raises("more tokens than the context holds", 0.35, ValueError, naming=_both_lengths)
def _too_long(draw: Draw) -> list[Run]:
    """There is no vector for a position beyond context_size: raise a ValueError with the number of
    tokens and the size of the context."""
    return [
        _model(draw, 7, 5, 4, 2, 1).then(_ids(draw, 2, 6, 7)),
        _model(draw, 7, 3, 4, 2, 0).then(_ids(draw, 1, 40, 7)),
    ]


@EXERCISE.equals("the attribute context_size", 0.1, only_if_right=True)
def _attribute(draw: Draw) -> list[Run]:
    """Whoever generates text with a model has to know how much it can read: keep context_size as an
    attribute.
    """
    return [_model(draw, 4, 6, 4, 2, 1).then_method("__getattribute__", "context_size")]


@EXERCISE.equals("dropout on the sum, and inside the blocks", 0.3)
def _dropped(draw: Draw) -> list[Run]:
    """Dropout acts once on the sum of the two embeddings, and every block gets the same p. With
    p = 1 in training the norm gets zeros."""
    return [
        _model(draw, 7, 6, 6, 2, n, dropout=1.0).in_training().then(_ids(draw, 2, 3, 7))
        for n in (0, 2)
    ]


def _once(run: Run, record: Record) -> str | None:
    logits = plain(record.value)
    if logits is None or logits.shape != (8, 5, 9):
        return f"the logits: expected shape (8, 5, 9), got {describe(record.value)}"
    return dropped_once(logits[..., 1:])


@EXERCISE.holds("dropout acts once", 0.1, _once, only_if_right=True)
def _drawn(draw: Draw) -> list[Run]:
    """The sum of the two vectors is dropped once: neither vector before it, nor the sum again."""
    d, rows = 8, np.ones((9, 8))
    rows[1:] = np.eye(d)  # their logits are what comes out of the norm
    state: dict[str, np.ndarray] = {"tokens.weight": rows, "positions.weight": np.ones((5, d))}
    state |= {"norm.weight": np.ones(d), "norm.bias": np.zeros(d)}
    numbers = {name: tensor(array, "float32") for name, array in state.items()}
    run = module(9, 5, d, 2, 0, dropout=0.5, state=numbers).in_training()
    return [run.then(tensor(np.zeros((8, 5), dtype=np.int64))).at_random(draw)]


@EXERCISE.equals("no dropout in eval mode", 0.15)
def _evaluated(draw: Draw) -> list[Run]:
    """nn.Dropout follows model.eval(); F.dropout has to be told which mode it is in. Unless
    `dropout` is given, nothing is dropped in training, either."""
    runs = _model(draw, 7, 6, 6, 2, 1, dropout=1.0), _model(draw, 7, 6, 6, 2, 1).in_training()
    return [run.then(_ids(draw, 2, 3, 7)) for run in runs]


@EXERCISE.gradients("gradients reach every parameter", 0.5)
def _gradients(draw: Draw) -> list[Run]:
    """One table for both ends: gradients reach tokens.weight from the look-up and from the logits.
    A row of positions that no token used has a gradient of 0."""
    return [
        _model(draw, 5, 4, 4, 2, 1, dtype="float64").then(_ids(draw, 2, 4, 5)),
        _model(draw, 4, 5, 3, 1, 2, dtype="float64").then(_ids(draw, 2, 3, 4)),
    ]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 model gives float64, a float32 model float32."""
    run = _model(draw, 7, 6, 4, 2, 1, dtype="float64")
    new = module(7, 6, 4, 2, 1).then(_ids(draw, 2, 3, 7))
    return [run.then(_ids(draw, 2, 3, 7)), new.at_random(draw)]


EXERCISE.leaves_inputs_alone(0.1, _runs)
EXERCISE.leaves_state_alone(0.1, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _dropped)
