"""`merge_heads`: from heads back to features."""

from autograder.student.authoring import Declaration, Draw, Run, Strided, call, tensor

EXERCISE = Declaration("merge_heads", "From heads back to features", ("x",))


@EXERCISE.equals("the heads' features are concatenated", 0.75)
def _runs(draw: Draw) -> list[Run]:
    """Undo the two steps of the split in reverse: swap the axes of heads and positions, (B, n, H,
    d_k), then join the last two."""
    return [
        call(draw.tensor(2, 3, 5, 2)),
        call(draw.tensor(1, 2, 4, 4)),
        call(x=draw.tensor(3, 4, 1, 2)),
        call(draw.tensor(2, 1, 3, 5)),
        call(draw.tensor(1, 2, 70, 1, scale=1e-3)),
    ]


@EXERCISE.equals("also where a wrong order of axes has the right shape", 0.75)
def _square(draw: Draw) -> list[Run]:
    """Joining without swapping the axes first mixes positions. merge_heads(split_heads(x, H)) must
    be x, number for number."""
    return [
        call(draw.tensor(2, 3, 3, 2)),
        call(draw.tensor(2, 2, 4, 2)),
        call(draw.tensor(3, 3, 3, 3)),
    ]


EXERCISE.gradients(
    "gradients reach x",
    0.25,
    "Views and transposes keep the gradient; NumPy, .data and newly made tensors do not.",
    _runs,
)


@EXERCISE.equals("a non-contiguous view", 0.1)
def _strided(draw: Draw) -> list[Run]:
    """x may be a slice of a larger tensor: reshape copies where a view is impossible."""
    return [call(Strided(draw.tensor(2, 3, 4, 2)))]


@EXERCISE.keeps_dtypes(0.1)
def _dtypes(draw: Draw) -> list[Run]:
    """Moving numbers around does not change their dtype."""
    return [
        call(draw.double(2, 2, 3, 4)),
        call(tensor(draw.integers(-9, 9, 1, 2, 3, 2))),
    ]


EXERCISE.leaves_inputs_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs)
