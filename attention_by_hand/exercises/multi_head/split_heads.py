"""`split_heads`: from features to heads."""

from autograder.student.authoring import Declaration, Draw, Run, StridedArray, call, tensor

EXERCISE = Declaration("split_heads", "From features to heads", ("x", "num_heads"))


@EXERCISE.equals("each head gets its slice of the features", 1.0)
def _runs(draw: Draw) -> list[Run]:
    """This takes two steps. First split the last axis in two, (B, n, H, d_k), with the positions
    still in place; then swap two axes, (B, H, n, d_k). Reshaping straight to (B, H, n, d_k) gives
    the right shape and mixes positions."""
    return [
        call(draw.tensor(2, 5, 6), 3),
        call(draw.tensor(1, 4, 8), 2),
        call(draw.tensor(3, 1, 6), 2),
        call(x=draw.tensor(2, 4, 12), num_heads=4),
        call(draw.tensor(1, 70, 2, scale=1e-3), 2),
    ]


@EXERCISE.equals("also where a wrong order of axes has the right shape", 0.75)
def _square(draw: Draw) -> list[Run]:
    """Number the entries of a small x from 0 and compare by eye: head 0 must hold the first d_k
    features of every position, in order."""
    # As many positions as heads, or as features in a head: every wrong order has the right shape.
    return [
        call(draw.tensor(2, 3, 9), 3),
        call(draw.tensor(2, 2, 8), 2),
        call(draw.tensor(4, 4, 16), 4),
    ]


@EXERCISE.equals("one head, and one feature per head", 0.25)
def _ends(draw: Draw) -> list[Run]:
    """With one head, the result is x with an extra axis of length 1; with d_model heads, d_k =
    1."""
    return [call(draw.tensor(2, 3, d), heads) for d, heads in ((5, 1), (5, 5), (1, 1))]


@EXERCISE.raises(
    "d_model not divisible by num_heads",
    0.5,
    ValueError,
    naming=lambda run: (run.steps[0].args[0].data.shape[-1], run.steps[0].args[1]),
)
def _uneven(draw: Draw) -> list[Run]:
    """Raise ValueError before reshaping, and name both numbers: d_model and num_heads."""
    return [
        call(draw.tensor(2, 3, 14), 4),
        call(draw.tensor(1, 3, 7), 2),
        call(draw.tensor(2, 4, 3), 8),
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
    return [call(StridedArray(draw.tensor(2, 5, 6)), 2)]


@EXERCISE.keeps_dtypes(0.1)
def _dtypes(draw: Draw) -> list[Run]:
    """Moving numbers around does not change their dtype."""
    whole = tensor(draw.integers(-9, 9, 2, 3, 4))
    return [call(draw.double(2, 3, 4), 2), call(whole, 2)]


EXERCISE.leaves_inputs_alone(0.05, _runs)
EXERCISE.follows_its_inputs(_runs)
