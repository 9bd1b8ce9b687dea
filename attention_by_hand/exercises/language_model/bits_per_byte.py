"""`bits_per_byte`: a measure that does not depend on the tokens."""

import numpy as np

from attention_by_hand.exercises.shared import sure
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Finding,
    Record,
    Run,
    StridedArray,
    Trial,
    call,
    describe,
    plain,
    tensor,
)
from autograder.student.engine.arrays import Value
from autograder.student.engine.aspects import compare, worst

EXERCISE = Declaration(
    "bits_per_byte", "A measure that fits all tokens", ("logits", "ids", "byte_lengths")
)


def _logits(draw: Draw, *shape: int, dtype: str = "float32") -> Array:
    return draw.tensor(*shape, scale=2.0, dtype=dtype)


def _ids(draw: Draw, B: int, n: int, vocab: int) -> Array:
    """Rows that begin with the shortest token; the first one alone ends with the longest."""
    ids = draw.integers(0, max(vocab - 2, 0), B, n)
    ids[:, 0] = 0
    ids[0, 1:][-1:] = vocab - 1
    return tensor(ids)


def _lengths(draw: Draw, vocab: int) -> Array:
    """How many bytes each token has: every next one more, the last as many as all others."""
    lengths = np.cumsum(draw.integers(1, 3, vocab))
    lengths[-1] += lengths.sum()
    return tensor(lengths)


def _single_number(trial: Trial) -> Finding:
    """One number, to the digits that the logits have; of what type is another aspect's business."""
    findings = []
    for step, value, expected in zip(
        trial.run.steps, trial.record.values, trial.expected.values, strict=True
    ):
        numbers = plain(value)
        if numbers is None or numbers.size != 1:
            findings.append(compare(value, expected))
            continue
        given: Value = [*step.args, *step.kwargs.values()]
        arrays = [a.array if isinstance(a, StridedArray) else a for a in given]
        dtype = next(a.dtype for a in arrays if a.data.ndim == 3)
        with np.errstate(over="ignore"):
            found, wanted = (tensor(np.float64(x), dtype) for x in (numbers.reshape(()), expected))
        findings.append(compare(found, wanted))
    return worst(findings)


@EXERCISE.aspect("bits per byte of random logits", 1.2, _single_number)
def _runs(draw: Draw) -> list[Run]:
    """Add up −log₂ p of every token that came after another, and the bytes of the same tokens;
    divide the one by the other. As in the loss, the logits at t are for the token at t + 1."""
    return [
        call(_logits(draw, 2, 5, 7), _ids(draw, 2, 5, 7), _lengths(draw, 7)),
        call(
            byte_lengths=_lengths(draw, 6), ids=_ids(draw, 1, 4, 6), logits=_logits(draw, 1, 4, 6)
        ),
        call(_logits(draw, 3, 2, 4), _ids(draw, 3, 2, 4), tensor(np.ones(4, dtype=np.int64))),
        call(_logits(draw, 1, 70, 2), _ids(draw, 1, 70, 2), _lengths(draw, 2)),
        call(_logits(draw, 2, 3, 1), _ids(draw, 2, 3, 1), tensor([4])),
        call(*sure(draw, 2, 4, 6), _lengths(draw, 6)),
    ]


@EXERCISE.aspect("long and short tokens", 0.6, _single_number)
def _uneven(draw: Draw) -> list[Run]:
    """The bytes are those of the predicted tokens, not of the tokens read, nor of the whole
    vocabulary. One fraction for the whole batch: a mean of the rows' or of the tokens' bits per
    byte counts long tokens for too little. A token of 0 bytes costs its bits all the same."""
    ids = tensor([[5, 0, 1, 2], [0, 3, 3, 4]])
    lengths = tensor([1, 2, 17, 1, 40, 90])
    return [
        call(_logits(draw, 2, 4, 6), ids, lengths),
        call(_logits(draw, 3, 6, 8), _ids(draw, 3, 6, 8), _lengths(draw, 8)),
        call(_logits(draw, 2, 5, 4), _ids(draw, 2, 5, 4), tensor(np.array([1, 9, 3, 30]), "int32")),
        call(_logits(draw, 2, 4, 6), ids, tensor([1, 2, 17, 0, 40, 90])),
    ]


@EXERCISE.aspect("nothing to predict", 0.35, _single_number, only_if_right=True)
def _nothing(draw: Draw) -> list[Run]:
    """With one token in each row there is nothing to divide: the result is 0."""
    return [
        call(_logits(draw, 2, 1, 5), _ids(draw, 2, 1, 5), _lengths(draw, 5)),
        call(_logits(draw, 1, 1, 3), _ids(draw, 1, 1, 3), _lengths(draw, 3)),
    ]


@EXERCISE.aspect("logits of ±10,000", 0.25, _single_number)
def _large(draw: Draw) -> list[Run]:
    """log_softmax in one step stays finite; the logarithm of a softmax is −∞ where that has
    underflowed to 0."""
    return [
        call(draw.tensor(2, 3, 5, scale=1e4), _ids(draw, 2, 3, 5), _lengths(draw, 5)),
        call(
            tensor(300.0 + draw.normal(2, 3, 5), "float32"), _ids(draw, 2, 3, 5), _lengths(draw, 5)
        ),
    ]


@EXERCISE.aspect("float64 logits", 0.15, _single_number)
def _double(draw: Draw) -> list[Run]:
    """Compute in the dtype of the logits: float64 has digits to keep."""
    # With a single prediction, rounding cannot cancel.
    sizes = [(2, 4, 5), *[(1, 2, 4)] * 5]
    return [
        call(_logits(draw, *size, dtype="float64"), _ids(draw, *size), _lengths(draw, size[-1]))
        for size in sizes
    ]


def _is_a_float(run: Run, record: Record) -> str | None:
    values = record.values
    found = next((value for value in values if not isinstance(value, float)), None)
    return None if found is None else f"expected a float, got {describe(found)}"


EXERCISE.holds(
    "a float",
    0.15,
    _is_a_float,
    "Return a Python number: float(…) or .item() makes one of a tensor.",
    _runs,
    _nothing,
    only_if_right=True,
)
EXERCISE.leaves_inputs_alone(0.1, _runs)


@EXERCISE.aspect("non-contiguous views", 0.1, _single_number)
def _strided(draw: Draw) -> list[Run]:
    """reshape works on any view; so do the slices that a shift makes of a tensor."""
    run = call(_logits(draw, 2, 4, 5), _ids(draw, 2, 4, 5), _lengths(draw, 5))
    return [run.as_views()]


EXERCISE.leaves_state_alone(0.1, _runs)
EXERCISE.follows_its_inputs(_runs)
