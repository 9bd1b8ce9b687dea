"""`TokenEmbedding`: tokens to vectors and back."""

from collections.abc import Sequence
from typing import Any

from autograder.engine.aspects import (
    dtypes_kept,
    equals_reference,
    gradients_match,
    inputs_untouched,
    no_side_effects_of_a_module,
)
from autograder.engine.runs import Draw, Exercise, Previous, Run, Strided, module, tensor
from autograder.exercises.transformer.parameters import then_method


def _embedding(draw: Draw, vocab: int, d: int, dtype: str = "float32", **kwargs: Any) -> Run:
    return module(vocab, d, state={"weight": draw.tensor(vocab, d, dtype=dtype)}, **kwargs)


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
        then_method(run, "logits", draw.tensor(4)),
        then_method(run, "logits", draw.tensor(2, 2, 3, 4)),
    ]


def _embedding_logits(draw: Draw) -> Sequence[Run]:
    return [
        then_method(_embedding(draw, 9, 8), "logits", draw.tensor(2, 5, 8)),
        then_method(_embedding(draw, 6, 6), "logits", h=draw.tensor(3, 1, 6)),
        then_method(_embedding(draw, 4, 4), "logits", Strided(draw.tensor(1, 3, 4))),
    ]


def _embedding_both(draw: Draw) -> Sequence[Run]:
    """One after the other on the same object: its weight must be the same for both, and stay."""
    run = _embedding(draw, 7, 5).then(tensor(draw.integers(0, 6, 2, 3)))
    run = then_method(run, "logits", draw.tensor(2, 3, 5))
    return [run.then(tensor(draw.integers(0, 6, 2, 3)))]


def _embedding_gradients(draw: Draw) -> Sequence[Run]:
    run = _embedding(draw, 5, 4, "float64")
    ids = tensor([[0, 3, 3, 1]])
    return [
        run.then(ids),
        then_method(run, "logits", draw.tensor(2, 3, 4, dtype="float64")),
        then_method(run.then(ids), "logits", Previous(0)),
    ]


def _embedding_double(draw: Draw) -> Sequence[Run]:
    run = _embedding(draw, 5, 4, "float64")
    ids = tensor(draw.integers(0, 4, 2, 3))
    return [run.then(ids), then_method(run, "logits", draw.tensor(2, 4, dtype="float64"))]


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
