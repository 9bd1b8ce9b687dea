"""`convolution_by_heads`: a convolution as attention whose heads each look one step away."""

from attention_by_hand.exercises.shared import OUTPUT_AND_WEIGHTS
from autograder.student.authoring import Array, Declaration, Draw, Run, StridedArray, call

EXERCISE = Declaration(
    "convolution_by_heads",
    "A convolution by heads",
    ("x", "weight", "bias"),
    forbids=("convolution",),
    returns=OUTPUT_AND_WEIGHTS,
)


def _given(
    draw: Draw, B: int, n: int, d_in: int, d_out: int, k: int, dtype: str = "float32"
) -> tuple[Array, Array]:
    """x and weight."""
    weight = draw.tensor(d_out, d_in, k, scale=(d_in * k) ** -0.5, dtype=dtype)
    return draw.tensor(B, n, d_in, dtype=dtype), weight


@EXERCISE.equals("the weights of the heads", 0.55, part=1)
def _runs(draw: Draw) -> list[Run]:
    """Head h has one 1 in each row, at column i + h − (k − 1)/2 of row i, and no other number;
    where that column is beyond the ends, the row is all zeros. One table for each head: (k, n,
    n)."""
    x, weight = _given(draw, 1, 6, 2, 4, 5)
    return [
        call(*_given(draw, 2, 5, 3, 4, 3)),
        call(weight=weight, x=x, bias=None),
        call(*_given(draw, 3, 3, 3, 3, 3), None),
        call(*_given(draw, 2, 9, 2, 1, 7)),
        call(*map(StridedArray, _given(draw, 2, 4, 3, 2, 3))),
        call(*_given(draw, 1, 70, 1, 1, 3)),
        call(draw.tensor(2, 4, 2, scale=1e-3), _given(draw, 2, 4, 2, 3, 3)[1]),
    ]


EXERCISE.equals(
    "the output",
    1.2,
    "The values of head h are the rows of x times the matrix weight[:, :, h], which is "
    "(d_out, d_in), as in nn.Linear. Apply the head's weights to them, and add up the heads.",
    _runs,
    part=0,
)


@EXERCISE.equals("a kernel of width 1, and one wider than the sequence", 0.4)
def _ends(draw: Draw) -> list[Run]:
    """With k = 1 the only head looks where it stands. A head that looks further than the sequence
    is long sees nothing at all, and its table is zero."""
    return [
        call(*_given(draw, 2, 4, 3, 2, 1)),
        call(*_given(draw, 2, 3, 2, 3, 9)),
        call(*_given(draw, 1, 1, 2, 2, 3)),
        call(*_given(draw, 1, 2, 1, 1, 5)),
    ]


@EXERCISE.equals("with a bias", 0.35)
def _biased(draw: Draw) -> list[Run]:
    """The bias is added once to every output, at the ends as well, and not once by each head."""
    return [
        call(*_given(draw, 2, 4, 3, 5, 3), draw.tensor(5)),
        call(*_given(draw, 1, 5, 2, 2, 5), bias=StridedArray(draw.tensor(2))),
        call(*_given(draw, 3, 2, 3, 3, 1), draw.tensor(3)),
    ]


@EXERCISE.gradients("gradients reach x, weight and bias", 0.4)
def _backward(draw: Draw) -> list[Run]:
    """The weights of the heads are fixed numbers; the gradients flow through the values."""
    return [
        call(*_given(draw, 2, 4, 2, 3, 3, "float64"), draw.double(3)),
        call(*_given(draw, 1, 3, 3, 2, 5, "float64")),
    ]


@EXERCISE.raises(
    "an even kernel", 0.25, ValueError, naming=lambda run: run.steps[0].args[1].data.shape[2:]
)
def _even(draw: Draw) -> list[Run]:
    """With an even number of heads, none stands in the middle: raise a ValueError that names k."""
    return [
        call(*_given(draw, 2, 5, 3, 3, 4)),
        call(*_given(draw, 1, 3, 5, 7, 2), draw.tensor(7)),
        call(*_given(draw, 3, 5, 5, 3, 6)),
    ]


@EXERCISE.keeps_dtypes(0.15)
def _double(draw: Draw) -> list[Run]:
    """float64 in, float64 out; float32 in, float32 out, the weights of the heads included."""
    return [
        call(*_given(draw, 2, 4, 2, 3, 3, "float64")),
        call(*_given(draw, 1, 3, 2, 2, 5, "float64"), draw.double(2)),
    ]


EXERCISE.leaves_inputs_alone(0.1, _biased, lambda draw: _runs(draw)[:2])
EXERCISE.leaves_state_alone(0.1, lambda draw: _runs(draw)[:1])
EXERCISE.follows_its_inputs(_runs, _biased)
