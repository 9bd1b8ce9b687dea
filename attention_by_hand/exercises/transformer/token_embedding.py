"""`TokenEmbedding`: tokens to vectors and back."""

import numpy as np

from autograder.student.authoring import (
    Declaration,
    Draw,
    Previous,
    Record,
    Run,
    StridedArray,
    module,
    plain,
    tensor,
)

EXERCISE = Declaration("TokenEmbedding", "Tokens to vectors and back", ("ids",))


def _embedding(draw: Draw, vocab: int, d: int, dtype: str = "float32", **kwargs: object) -> Run:
    return module(vocab, d, state={"weight": draw.tensor(vocab, d, dtype=dtype)}, **kwargs)


@EXERCISE.equals("vectors for tokens", 0.65)
def _runs(draw: Draw) -> list[Run]:
    """Row i of weight belongs to token i. Multiply what you look up by √d_model, the root of the
    number of columns."""
    named = module(vocab_size=5, d_model=6, state={"weight": draw.tensor(5, 6)})
    return [
        _embedding(draw, 9, 8).then(tensor(draw.integers(0, 8, 2, 5))),
        named.then(ids=tensor(draw.integers(0, 4, 3, 4))),
        _embedding(draw, 7, 3).then(tensor([[0, 6, 3, 0]])),
        _embedding(draw, 70, 1).then(tensor(draw.integers(0, 69, 1, 70))),
        module(4, 4, state={"weight": draw.tensor(4, 4, scale=5e-4)}).then(tensor([[2, 1, 3]])),
    ]


@EXERCISE.equals("logits for vectors", 0.5)
def _logits(draw: Draw) -> list[Run]:
    """A token's score is the dot product of h with its row of weight. The √d_model belongs to the
    input side only, and the softmax to the loss."""
    return [
        _embedding(draw, 9, 8).then_method("logits", draw.tensor(2, 5, 8)),
        _embedding(draw, 6, 6).then_method("logits", h=draw.tensor(3, 1, 6)),
        _embedding(draw, 3, 1).then_method("logits", draw.tensor(2, 3, 1)),
        _embedding(draw, 4, 4).then_method("logits", StridedArray(draw.tensor(1, 3, 4))),
    ]


@EXERCISE.gradients("both uses train the same weight", 0.25)
def _gradients(draw: Draw) -> list[Run]:
    """One parameter, used twice: gradients reach it from the look-up and from the logits."""
    run = _embedding(draw, 5, 4, "float64")
    ids = tensor([[0, 3, 3, 1]])
    return [
        run.then(ids),
        run.then_method("logits", draw.double(2, 3, 4)),
        run.then(ids).then_method("logits", Previous(0)),
    ]


@EXERCISE.equals("any batch shape", 0.15)
def _shapes(draw: Draw) -> list[Run]:
    """ids may be (n,) or (B, n, m); the result has one more axis at the end."""
    run = _embedding(draw, 7, 4)
    return [
        run.then(tensor(draw.integers(0, 6, 5))),
        run.then(tensor(draw.integers(0, 6, 2, 3, 2))),
        run.then(StridedArray(tensor(draw.integers(0, 6, 3, 2)))),
        run.then_method("logits", draw.tensor(4)),
        run.then_method("logits", draw.tensor(2, 2, 3, 4)),
    ]


@EXERCISE.equals("the weight is left unchanged", 0.1)
def _both(draw: Draw) -> list[Run]:
    """Scale the result, not the parameter."""
    # Both on the same object: its weight must serve both, unchanged.
    run = _embedding(draw, 7, 5).then(tensor(draw.integers(0, 6, 2, 3)))
    run = run.then_method("logits", draw.tensor(2, 3, 5))
    return [run.then(tensor(draw.integers(0, 6, 2, 3)))]


def _as_large_as_positions(run: Run, record: Record) -> str | None:
    """Of 4000 numbers drawn right, the standard deviation is off by 5 % once in 10⁵ times."""
    vectors = plain(record.value)
    if vectors is None or vectors.shape != (40, 100):
        return "expected a row for each token"
    mean, spread = float(vectors.mean()), float(vectors.std())
    if abs(spread - 1) < 0.1 and abs(mean) < 0.1:
        return None
    found = f"got {mean:.2g} and {spread:.2g}"
    return f"mean and standard deviation of a new table's vectors: expected 0 and 1, {found}"


@EXERCISE.holds("a new table", 0.1, _as_large_as_positions, only_if_right=True)
def _new(draw: Draw) -> list[Run]:
    """The numbers of `weight` are drawn with mean 0 and standard deviation 1/√d_model: leave
    `__init__` as it is."""
    return [module(40, 100).then(tensor(np.arange(40))).at_random(draw)]


@EXERCISE.keeps_dtypes(0.1)
def _double(draw: Draw) -> list[Run]:
    """A float64 weight gives float64, a float32 weight float32."""
    run = _embedding(draw, 5, 4, "float64")
    ids = tensor(draw.integers(0, 4, 2, 3))
    return [run.then(ids), run.then_method("logits", draw.double(2, 4))]


EXERCISE.leaves_inputs_alone(0.05, _runs, _logits)
EXERCISE.leaves_state_alone(0.1, _runs, of_a_module=True)
EXERCISE.follows_its_inputs(_runs, _logits)
