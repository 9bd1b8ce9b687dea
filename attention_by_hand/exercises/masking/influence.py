"""`influence`: what moves what."""

from attention_by_hand.exercises.shared import itself
from autograder.student.authoring import (
    Array,
    Declaration,
    Draw,
    Run,
    StridedArray,
    as_argument,
    call,
)
from autograder.student.engine.arrays import Value

EXERCISE = Declaration("influence", "What moves what", ("function", "x", "other"))


def attend_to_past(x: Value) -> Value:
    """Attention of a sequence to itself, `(n, d)` to `(n, d)`, without its later positions."""
    weights = (x @ x.mT / x.shape[-1]).exp().tril()
    return weights / weights.sum(-1, keepdim=True) @ x


def attend_one_too_far(x: Value) -> Value:
    """The same, but each position sees one later position as well."""
    weights = (x @ x.mT / x.shape[-1]).exp().tril(1)
    return weights / weights.sum(-1, keepdim=True) @ x


def _two(draw: Draw, n: int, d: int, dtype: str = "float32") -> tuple[Array, Array]:
    return draw.tensor(n, d, dtype=dtype), draw.tensor(n, d, dtype=dtype)


@EXERCISE.equals("attention under a mask", 1.0)
def _attention(draw: Draw) -> list[Run]:
    """Call the function on x as it is, and once for each row that is replaced. How far output i
    moves is the length of a difference; it goes into row i, and into column j for input j."""
    past, one_too_far = as_argument(attend_to_past), as_argument(attend_one_too_far)
    return [
        call(past, *_two(draw, 5, 4)),
        call(one_too_far, *_two(draw, 4, 6)),
        call(other=draw.tensor(6, 3), x=draw.tensor(6, 3), function=past),
        call(past, *map(StridedArray, _two(draw, 3, 4))),
    ]


def two_sums(x: Value) -> Value:
    """`(2, d)`: the sum of the first row and the others' squares, and twice the first row."""
    squares = (x[1:] ** 2).sum(0)
    return (x[:1].expand(2, -1) + squares * x.new_tensor([[1.0], [0.0]])).mul(2.0)


def one_number(x: Value) -> Value:
    """`(1, 1)`: the sum of all sines."""
    return x.sin().sum().reshape(1, 1)


def wider(x: Value) -> Value:
    """`(n, d + 1)`: each row, with the sum of the row before it as one more feature."""
    return x.new_zeros(len(x), x.shape[1] + 1) + x.cumsum(0).sum(1, keepdim=True).tanh()


@EXERCISE.equals("outputs of another number and width", 0.5)
def _shapes(draw: Draw) -> list[Run]:
    """There are as many rows as the function has outputs, and as many columns as x has rows. The
    function alone decides how many outputs there are, and how long each is."""
    return [
        call(as_argument(two_sums), *_two(draw, 5, 3)),
        call(as_argument(one_number), *_two(draw, 4, 2)),
        call(as_argument(wider), *_two(draw, 3, 4)),
        call(as_argument(two_sums), *_two(draw, 70, 1)),
        call(as_argument(attend_to_past), *_two(draw, 1, 3)),
        call(as_argument(wider), *_two(draw, 4, 1)),
    ]


def reversed_view(x: Value) -> Value:
    """A view of the input: its columns, as rows."""
    return x.mT


@EXERCISE.equals("a function that returns its input, or a view of it", 0.25)
def _views(draw: Draw) -> list[Run]:
    """Such an output changes along with the tensor that it came from. Leave x as it is, and give
    the function a tensor of its own each time."""
    return [
        call(as_argument(itself), *_two(draw, 4, 3)),
        call(as_argument(reversed_view), *_two(draw, 3, 5)),
    ]


@EXERCISE.equals("small and large changes", 0.25)
def _sizes(draw: Draw) -> list[Run]:
    """Replace the row as it is given, however near or far it is: neither add it, nor divide what
    comes out by a length."""
    x, step = draw.normal(4, 3), draw.normal(4, 3)
    rows = [Array(x + size * step, "torch", "float64", "cpu") for size in (1e-3, 300.0)]
    start = Array(x, "torch", "float64", "cpu")
    return [call(as_argument(itself), start, row) for row in rows]


@EXERCISE.keeps_dtypes(0.25)
def _dtypes(draw: Draw) -> list[Run]:
    """float64 stays float64, and float32 float32: start from a tensor you are given."""
    past = as_argument(attend_to_past)
    return [call(past, *_two(draw, 3, 4, dtype)) for dtype in ("float64", "float32")]


EXERCISE.leaves_inputs_alone(0.25, _attention, _views)
EXERCISE.follows_its_inputs(_attention, _shapes)
